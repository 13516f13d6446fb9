//! Routes of people (contract 5, specification 4.1).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use nudge_apps::App;
use nudge_apps::auth::Viewer;
use nudge_db::Tx;
use nudge_http::csv::{self, WantsCsv};
use nudge_http::cursor::Cursors;
use nudge_http::page::{self, DEFAULT_LIMIT, Gathering, MOST, Page, checked_limit};
use nudge_http::query::range;
use nudge_http::{ApiError, Code, Data, Params, ResourceName};
use nudge_platform::clock;
use nudge_push::tokens;
use nudge_records::subjects::AliasKind;
use nudge_records::subjects::named::{IdKind, NameQuery};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::store::{self, Alias, Device, Person, Property};
use super::timeline::{self, Event, Filter, TimelinePosition};
use super::{MOST_SEARCH, Search, Total, UserPosition};
use crate::services::Shared;

/// People.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_users))
        .routes(routes!(get_user))
        .routes(routes!(list_user_events))
        .routes(routes!(get_user_called_properties))
}

/// Events of the largest page (contract 0).
const MOST_EVENTS: u32 = 500;

/// A person in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserView {
    subject_id: Uuid,
    /// The oldest anonymous id; null for who is known by server-side events only.
    anonymous_id: Option<String>,
    anonymous_ids: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    first_seen_at: String,
    last_seen_at: String,
    event_count: i64,
    /// The first 100 saved properties by key, of those that have at most 1,024 characters as JSON.
    top_properties: BTreeMap<String, Value>,
    /// Two letters: where the newest time zone is that an event told.
    country: Option<String>,
    platform: Option<String>,
}

/// People, the one that was made last first.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserPage {
    items: Vec<UserView>,
    /// How many there are, up to 10,000; counted for the first page.
    total: i64,
    /// Present and true if there may be more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    total_is_estimate: bool,
    next_cursor: Option<String>,
}

/// Which people to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub struct UsersQuery {
    /// What an anonymous id, external id or subject id begins with, or what is in the text of a property's value;
    /// at most 256 characters. A page can be short, or empty, and go on: a request looks through 20,000 values.
    q: Option<String>,
    /// How many items, 1 to 200; 50 unless given.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// A person.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserDetail {
    /// As what the id in the path was found. Somebody else may have it as the other kind of id.
    matched_by: IdKind,
    profile: ProfileView,
    devices: Vec<DeviceView>,
    properties: Vec<PropertyView>,
}

/// A person's profile.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProfileView {
    #[serde(flatten)]
    user: UserView,
    identified: bool,
    locale: Option<String>,
    timezone: Option<String>,
    consent: ConsentView,
}

/// Consent as it stands.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ProfileConsentView)]
pub struct ConsentView {
    analytics: bool,
    messaging: bool,
    /// Null as long as the app's default stands.
    updated_at: Option<String>,
}

/// A device.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceView {
    device_id: String,
    platform: Option<String>,
    app_version: Option<String>,
    sdk_version: Option<String>,
    locale: Option<String>,
    first_seen_at: String,
    last_seen_at: String,
    /// How messages reach it, if its SDK has registered that.
    #[serde(skip_serializing_if = "Option::is_none")]
    push: Option<PushView>,
}

/// How messages reach a device.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PushView {
    /// `apns`, `fcm` or `webpush`.
    provider: String,
    /// `production` or `sandbox`.
    environment: String,
    /// The end of its token.
    token_suffix: String,
    /// `active`, `invalid` or `opted_out`.
    status: String,
}

/// A saved property.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PropertyView {
    key: String,
    value: Value,
    updated_at: String,
    source: String,
}

/// Which events of a person to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct EventsQuery {
    /// What the id in the path is. Unless given: what begins with `externalId:` is an external id; anything else an
    /// anonymous id or, if nobody has it, an external id.
    id_kind: Option<IdKind>,
    /// Only events of this name.
    name: Option<String>,
    /// Happened at or after: an ISO 8601 instant, or a day (UTC).
    from: Option<String>,
    /// Happened before: an ISO 8601 instant; or a day, which is included.
    to: Option<String>,
    /// How many items, 1 to 500; 50 unless given.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// An event of a person.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventView {
    event_id: Uuid,
    name: String,
    timestamp: String,
    /// When by the client's clock, where that differed from the server's and `timestamp` was corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_timestamp: Option<String>,
    received_at: String,
    #[schema(value_type = Object)]
    properties: Box<RawValue>,
    /// Null for what a server sent under an external id.
    anonymous_id: Option<String>,
    platform: Option<String>,
    app_version: Option<String>,
    source: String,
}

/// A page of a person's events.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineView {
    /// As what the id in the path was found. Somebody else may have it as the other kind of id.
    matched_by: IdKind,
    #[serde(flatten)]
    page: Page<EventView>,
}

/// A place in the list, and what the first page said of its length.
#[derive(Serialize, Deserialize)]
struct Bookmark {
    after: UserPosition,
    count: i64,
    at_least: bool,
}

/// Lists people, or searches them.
#[utoipa::path(get, path = "/v1/apps/{appId}/users", tag = "users",
    params(("appId" = Uuid, Path), UsersQuery),
    responses((status = 200, content((Data<UserPage> = "application/json"), (String = "text/csv")))))]
pub async fn list_users(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    WantsCsv(wants_csv): WantsCsv,
    Params(query): Params<UsersQuery>,
) -> Result<Response, ApiError> {
    let text = query.q.filter(|text| !text.is_empty());
    if text
        .as_ref()
        .is_some_and(|text| text.chars().count() > MOST_SEARCH)
    {
        let detail = format!("q has at most {MOST_SEARCH} characters");
        return Err(ApiError::field("/q", "too_long", detail));
    }
    let limit = page::limit(query.limit)? as usize;
    let search = text.as_deref().map(Search::new);
    if wants_csv {
        return rows(services, scope.app.id, search).await;
    }
    let (app_id, now) = (scope.app.id, services.clock.now());
    let names = search.as_ref().map(|search| &search.names.0);
    let list = format!("users {app_id} {names:?}");
    let cursors = Cursors::new(&services.secrets, list, now);
    let bookmark: Option<Bookmark> = cursors.open(query.cursor.as_deref())?;

    // Somebody may become one with another person meanwhile: whoever is found still has what is theirs.
    let mut tx = services.db.repeatable_read().await?;
    let (total, scanned) = match &bookmark {
        Some(bookmark) => {
            let (count, at_least) = (bookmark.count, bookmark.at_least);
            (Total { count, at_least }, None)
        }
        None => super::total(&mut tx, app_id, search.as_ref()).await?,
    };
    let after = bookmark.map(|bookmark| bookmark.after);
    let found = match (&search, after) {
        (Some(search), after) => {
            super::search(&mut tx, app_id, search, after, limit, scanned).await?
        }
        (None, after) => super::everybody(&mut tx, app_id, id_of(after.as_ref())?, limit).await?,
    };
    let items = views(&mut tx, app_id, &found.ids).await?;
    let next_cursor = found.next.map(|after| {
        cursors.seal(&Bookmark {
            after,
            count: total.count,
            at_least: total.at_least,
        })
    });
    let data = UserPage {
        items,
        total: total.count,
        total_is_estimate: total.at_least,
        next_cursor,
    };
    Ok(Data { data }.into_response())
}

/// A place in the list of everybody.
fn id_of(after: Option<&UserPosition>) -> Result<Option<Uuid>, ApiError> {
    match after {
        None => Ok(None),
        Some(UserPosition::Id(after)) => Ok(Some(*after)),
        Some(_) => Err(ApiError::new(Code::InvalidCursor)),
    }
}

/// All people whom a search finds, as CSV.
async fn rows(
    services: Shared,
    app_id: Uuid,
    search: Option<Search>,
) -> Result<Response, ApiError> {
    let search = Arc::new(search);
    let read = move |after: Option<UserPosition>| {
        let (services, search) = (Arc::clone(&services), Arc::clone(&search));
        async move {
            let mut tx = services.db.repeatable_read().await?;
            let most = MOST as usize;
            let found = match &*search {
                Some(search) => super::search(&mut tx, app_id, search, after, most, None).await?,
                None => super::everybody(&mut tx, app_id, id_of(after.as_ref())?, most).await?,
            };
            let views = views(&mut tx, app_id, &found.ids).await?;
            Ok((views, found.next))
        }
    };
    csv::answer(COLUMNS, read).await
}

/// The columns of people as CSV.
const COLUMNS: &[&str] = &[
    "subjectId",
    "anonymousId",
    "externalId",
    "firstSeenAt",
    "lastSeenAt",
    "eventCount",
    "country",
    "platform",
    "anonymousIds",
    "topProperties",
];

/// People as lists show them, in the order of their ids.
pub(crate) async fn views(
    tx: &mut Tx,
    app_id: Uuid,
    ids: &[Uuid],
) -> nudge_db::Result<Vec<UserView>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let people = store::people(tx, app_id, ids).await?;
    let mut people: HashMap<Uuid, Person> = people
        .into_iter()
        .map(|person| (person.id, person))
        .collect();
    let mut aliases: HashMap<Uuid, Vec<Alias>> = HashMap::new();
    for alias in store::aliases(tx, app_id, ids).await? {
        aliases.entry(alias.subject_id).or_default().push(alias);
    }
    let mut properties: HashMap<Uuid, Vec<Property>> = HashMap::new();
    for property in store::top_properties(tx, app_id, ids).await? {
        let of_person = properties.entry(property.subject_id).or_default();
        of_person.push(property);
    }
    let views = ids.iter().filter_map(|id| {
        let person = people.remove(id)?;
        let aliases = aliases.remove(id).unwrap_or_default();
        let properties = properties.remove(id).unwrap_or_default();
        Some(UserView::new(&person, &aliases, properties))
    });
    Ok(views.collect())
}

impl UserView {
    fn new(person: &Person, aliases: &[Alias], properties: Vec<Property>) -> Self {
        let anonymous_ids: Vec<String> = aliases
            .iter()
            .filter(|alias| alias.kind == AliasKind::Anonymous.name())
            .map(|alias| alias.value.clone())
            .collect();
        Self {
            subject_id: person.id,
            anonymous_id: anonymous_ids.first().cloned(),
            anonymous_ids,
            external_id: person.external_id.clone(),
            first_seen_at: clock::to_text(person.first_seen_at),
            last_seen_at: clock::to_text(person.last_seen_at),
            event_count: person.event_count,
            top_properties: properties
                .into_iter()
                .map(|property| (property.key, json(&property.value)))
                .collect(),
            country: person.country.clone(),
            platform: person.platform.clone(),
        }
    }
}

/// A value that the server wrote itself.
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// Shows a person, found by any anonymous id or by the external id.
#[utoipa::path(get, path = "/v1/apps/{appId}/users/{anonymousId}", tag = "users",
    params(("appId" = Uuid, Path), ("anonymousId" = String, Path), NameQuery),
    responses((status = 200, body = Data<UserDetail>)))]
pub async fn get_user(
    Viewer(scope): Viewer,
    ResourceName(name): ResourceName,
    State(services): State<Shared>,
    Params(query): Params<NameQuery>,
) -> Result<Data<UserDetail>, ApiError> {
    let app_id = scope.app.id;
    // Whoever is found may become one with another person meanwhile, who has it all from then on.
    let mut tx = services.db.repeatable_read().await?;
    let named = query.find(&mut tx, app_id, &name).await?;
    let id = named.subject_id;
    let person = store::people(&mut tx, app_id, &[id]).await?.pop();
    let person = person.ok_or_else(|| ApiError::new(Code::NotFound))?;
    let aliases = store::aliases(&mut tx, app_id, &[id]).await?;
    let top = store::top_properties(&mut tx, app_id, &[id]).await?;
    let devices = store::devices(&mut tx, app_id, id).await?;
    let tokens = tokens::store::shown(&mut tx, app_id, id).await?;
    let properties = store::recent_properties(&mut tx, app_id, id).await?;
    let user = UserView::new(&person, &aliases, top);
    let data = UserDetail {
        matched_by: named.matched_by,
        profile: ProfileView::new(person, user, &scope.app),
        devices: devices
            .into_iter()
            .map(|device| {
                let push = tokens
                    .iter()
                    .find(|shown| shown.device_id == device.device_id);
                DeviceView::new(device, push)
            })
            .collect(),
        properties: properties.into_iter().map(PropertyView::from).collect(),
    };
    Ok(Data { data })
}

/// Shows the person of the anonymous id `properties`, whose path is that of updates too.
#[utoipa::path(get, path = "/v1/apps/{appId}/users/properties", tag = "users",
    params(("appId" = Uuid, Path), NameQuery), responses((status = 200, body = Data<UserDetail>)))]
pub async fn get_user_called_properties(
    viewer: Viewer,
    services: State<Shared>,
    query: Params<NameQuery>,
) -> Result<Data<UserDetail>, ApiError> {
    let name = ResourceName("properties".to_owned());
    get_user(viewer, name, services, query).await
}

impl ProfileView {
    fn new(person: Person, user: UserView, app: &App) -> Self {
        let consent = &app.settings.consent;
        Self {
            user,
            identified: person.external_id.is_some(),
            locale: person.locale,
            timezone: person.timezone,
            consent: ConsentView {
                analytics: consent.grants(person.analytics_consent),
                messaging: consent.grants(person.messaging_consent),
                updated_at: person.consent_at.map(clock::to_text),
            },
        }
    }
}

impl DeviceView {
    fn new(device: Device, push: Option<&tokens::store::Shown>) -> Self {
        let push = push.map(|shown| PushView {
            provider: shown.provider.clone(),
            environment: shown.environment.clone(),
            token_suffix: shown.token_suffix.clone(),
            status: shown.status.clone(),
        });
        Self {
            push,
            device_id: device.device_id,
            platform: device.platform,
            app_version: device.app_version,
            sdk_version: device.sdk_version,
            locale: device.locale,
            first_seen_at: clock::to_text(device.first_seen_at),
            last_seen_at: clock::to_text(device.last_seen_at),
        }
    }
}

impl From<Property> for PropertyView {
    fn from(property: Property) -> Self {
        Self {
            value: json(&property.value),
            key: property.key,
            updated_at: clock::to_text(property.updated_at),
            source: property.source,
        }
    }
}

/// Lists a person's events under all ids, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/users/{anonymousId}/events", tag = "users",
    params(("appId" = Uuid, Path), ("anonymousId" = String, Path), EventsQuery),
    responses((status = 200, body = Data<TimelineView>)))]
pub async fn list_user_events(
    Viewer(scope): Viewer,
    ResourceName(name): ResourceName,
    State(services): State<Shared>,
    Params(query): Params<EventsQuery>,
) -> Result<Data<TimelineView>, ApiError> {
    let limit = checked_limit(query.limit, DEFAULT_LIMIT, MOST_EVENTS)? as usize;
    let (from, to) = range("", query.from.as_deref(), query.to.as_deref())?;
    let filter = Filter {
        name: query.name,
        from,
        to,
    };
    let (app_id, now) = (scope.app.id, services.clock.now());
    let list = format!("events {app_id} {name:?} {:?} {filter:?}", query.id_kind);
    let cursors = Cursors::new(&services.secrets, list, now);
    let after: Option<TimelinePosition> = cursors.open(query.cursor.as_deref())?;
    // Whoever is found may become one with another person meanwhile, who has the aliases from then on.
    let mut tx = services.db.repeatable_read().await?;
    let named = NameQuery::of(query.id_kind);
    let named = named.find(&mut tx, app_id, &name).await?;
    let aliases = store::aliases(&mut tx, app_id, &[named.subject_id]).await?;
    let numbers: Vec<i64> = aliases.iter().map(|alias| alias.number).collect();
    let mut page = Gathering::new(limit);
    while let Some(wanted) = page.wanted() {
        let after = page.last().map(Event::position).or(after);
        let events = timeline::page(&mut tx, app_id, &numbers, &filter, after, wanted).await?;
        page.add(events, |event| event.properties.len());
    }
    drop(tx);
    let (events, more) = page.end();
    let page = Page {
        next_cursor: cursors.behind(&events, more, Event::position),
        items: events
            .into_iter()
            .map(|event| EventView::new(event, &aliases))
            .collect(),
    };
    let data = TimelineView {
        matched_by: named.matched_by,
        page,
    };
    Ok(Data { data })
}

impl EventView {
    fn new(event: Event, aliases: &[Alias]) -> Self {
        let alias = aliases
            .iter()
            .find(|alias| alias.number == event.alias)
            .filter(|alias| alias.kind == AliasKind::Anonymous.name());
        Self {
            event_id: event.event_id,
            name: event.name,
            timestamp: clock::to_text(event.timestamp),
            client_timestamp: event.client_timestamp.map(clock::to_text),
            received_at: clock::to_text(event.received_at),
            properties: RawValue::from_string(event.properties).unwrap_or_default(),
            anonymous_id: alias.map(|alias| alias.value.clone()),
            platform: event.platform,
            app_version: event.app_version,
            source: event.source,
        }
    }
}
