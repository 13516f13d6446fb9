//! Routes of event definitions (contract 11).

use std::sync::Arc;

use axum::extract::State;
use nudge_apps::auth::{Editor, Scope, Viewer};
use nudge_campaigns::campaign::size;
use nudge_campaigns::definitions::{Content, Definition, Error, Status, store};
use nudge_db::Tx;
use nudge_http::cursor::Cursors;
use nudge_http::page::{Gathering, Page, PageQuery};
use nudge_http::precondition::IfMatch;
use nudge_http::{ApiError, Data, Json, Params, ResourceId, body, created};
use nudge_platform::audit::{self, Entry};
use nudge_platform::clock;
use nudge_platform::event_names::is_reserved;
use nudge_records::stats::{self, Tally};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::services::{Services, Shared};

/// Definitions of events.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_event_definitions, create_event_definition))
        .routes(routes!(
            get_event_definition,
            update_event_definition,
            delete_event_definition
        ))
}

/// A definition as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionView {
    id: Uuid,
    name: String,
    version: i64,
    status: Status,
    #[serde(flatten)]
    content: Content,
    created_at: String,
    updated_at: String,
    stats: StatsView,
}

/// How a definition's events fared in the last 24 hours.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatsView {
    /// Events of the name that arrived while the definition was active.
    seen24h: i64,
    /// Those of them that break it.
    violations24h: i64,
}

/// A new definition.
#[derive(Debug, Deserialize, ToSchema)]
pub struct CreateRequest {
    name: String,
    /// Whether it is in force; `active` unless given.
    #[serde(default = "in_force")]
    status: Status,
    /// What it says.
    #[serde(flatten)]
    #[schema(value_type = nudge_campaigns::definitions::Content)]
    rest: Map<String, Value>,
}

fn in_force() -> Status {
    Status::Active
}

/// What a change leaves: everything but what never changes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Changeable {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    enforcement: nudge_campaigns::definitions::Enforcement,
    additional_properties: nudge_campaigns::definitions::AdditionalProperties,
    properties: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    validator: Option<nudge_campaigns::definitions::Validator>,
    status: Status,
}

impl DefinitionView {
    fn new(mut definition: Definition, tally: Tally) -> Self {
        // Shown whether or not it was said.
        for property in &mut definition.content.properties {
            if let Some(property) = property.as_object_mut() {
                property.entry("required").or_insert(Value::Bool(false));
            }
        }
        Self {
            id: definition.id,
            name: definition.name,
            version: definition.version,
            status: definition.status,
            content: definition.content,
            created_at: clock::to_text(definition.created_at),
            updated_at: clock::to_text(definition.updated_at),
            stats: StatsView {
                seen24h: tally.seen,
                violations24h: tally.violations,
            },
        }
    }
}

/// Lists the event definitions of an app, newest first.
#[utoipa::path(get, path = "/v1/apps/{appId}/event-definitions", tag = "event definitions",
    params(("appId" = Uuid, Path), PageQuery), responses((status = 200, body = Data<Page<DefinitionView>>)))]
pub async fn list_event_definitions(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    Params(query): Params<PageQuery>,
) -> Result<Data<Page<DefinitionView>>, ApiError> {
    let limit = query.limit()?;
    let now = services.clock.now();
    let list = format!("definitions {}", scope.app.id);
    let cursors = Cursors::new(&services.secrets, list, now);
    let before = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.read().await?;
    let mut page = Gathering::new(limit as usize);
    while let Some(wanted) = page.wanted() {
        let before = page
            .last()
            .map(|(definition, _): &(Definition, usize)| definition.id)
            .or(before);
        let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
        let found = store::list(&mut tx, scope.app.id, before, wanted).await?;
        page.add(found, |(_, bytes)| *bytes);
    }
    drop(tx);
    let (found, more) = page.end();
    let next_cursor = cursors.behind(&found, more, |(definition, _)| definition.id);
    let found = found.into_iter().map(|(definition, _)| definition);
    let items = views(&services, scope.app.id, found.collect()).await?;
    Ok(Data {
        data: Page { items, next_cursor },
    })
}

/// Declares an event definition; it is enforced from the answer on.
#[utoipa::path(post, path = "/v1/apps/{appId}/event-definitions", tag = "event definitions",
    params(("appId" = Uuid, Path)), request_body = CreateRequest,
    responses((status = 201, body = Data<DefinitionView>)))]
pub async fn create_event_definition(
    Editor(scope): Editor,
    State(services): State<Shared>,
    Json(request): Json<CreateRequest>,
) -> Result<(axum::http::StatusCode, Data<DefinitionView>), ApiError> {
    check_name("/name", &request.name)?;
    let content = body::parse_value(Value::Object(request.rest))?;
    let now = services.clock.now();
    let definition = Definition {
        id: nudge_platform::id::new(now),
        app_id: scope.app.id,
        name: request.name,
        version: 1,
        status: request.status,
        content,
        created_at: now,
        updated_at: now,
    };
    let growth = size::check(&definition.content, None)?;
    let app = services.apps.renewed(Arc::clone(&scope.app)).await?;
    nudge_campaigns::definitions::check(&services.plugins, &app.deciders, &definition, None)
        .await?;
    let mut tx = services.db.write().await?;
    nudge_campaigns::definitions::create(&mut tx, &services.plugins, &definition).await?;
    size::check_total(&mut tx, scope.app.id, growth).await?;
    record(
        &mut tx,
        &scope,
        "event_definition.created",
        &definition,
        Map::new(),
    )
    .await?;
    tx.commit().await?;
    services.apps.refresh(scope.app.id).await?;
    Ok(created(DefinitionView::new(definition, Tally::default())))
}

/// Reads an event definition.
#[utoipa::path(get, path = "/v1/apps/{appId}/event-definitions/{id}", tag = "event definitions",
    params(("appId" = Uuid, Path), ("id" = Uuid, Path)), responses((status = 200, body = Data<DefinitionView>)))]
pub async fn get_event_definition(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
) -> Result<Data<DefinitionView>, ApiError> {
    let mut tx = services.db.read().await?;
    let found = store::find(&mut tx, scope.app.id, id).await?;
    drop(tx);
    let data = view(&services, found.ok_or(Error::NotFound)?).await?;
    Ok(Data { data })
}

/// Changes an event definition (JSON merge patch).
#[utoipa::path(patch, path = "/v1/apps/{appId}/event-definitions/{id}", tag = "event definitions",
    params(("appId" = Uuid, Path), ("id" = Uuid, Path)), request_body = Value,
    responses((status = 200, body = Data<DefinitionView>)))]
pub async fn update_event_definition(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    if_match: IfMatch,
    Json(patch): Json<Map<String, Value>>,
) -> Result<Data<DefinitionView>, ApiError> {
    let mut tx = services.db.read().await?;
    let current = store::find(&mut tx, scope.app.id, id)
        .await?
        .ok_or(Error::NotFound)?;
    drop(tx);
    if_match.check(current.version)?;
    let before = current.content.clone();
    let detail = audit::of_patch(&patch);
    let changed = changed(current, patch, services.clock.now())?;
    save(
        &services,
        &scope,
        ("event_definition.updated", detail),
        &changed,
        &before,
    )
    .await?;
    let data = view(&services, changed).await?;
    Ok(Data { data })
}

/// Archives an event definition: it is kept, and no longer enforced.
#[utoipa::path(delete, path = "/v1/apps/{appId}/event-definitions/{id}", tag = "event definitions",
    params(("appId" = Uuid, Path), ("id" = Uuid, Path)), responses((status = 204)))]
pub async fn delete_event_definition(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    if_match: IfMatch,
) -> Result<axum::http::StatusCode, ApiError> {
    let mut tx = services.db.read().await?;
    let current = store::find(&mut tx, scope.app.id, id)
        .await?
        .ok_or(Error::NotFound)?;
    drop(tx);
    if_match.check(current.version)?;
    let archived = Definition {
        version: current.version + 1,
        status: Status::Archived,
        updated_at: services.clock.now(),
        ..current
    };
    let content = archived.content.clone();
    save(
        &services,
        &scope,
        ("event_definition.archived", Map::new()),
        &archived,
        &content,
    )
    .await?;
    Ok(axum::http::StatusCode::NO_CONTENT)
}

/// Definitions with how their events fared.
async fn views(
    services: &Services,
    app_id: Uuid,
    definitions: Vec<Definition>,
) -> nudge_db::Result<Vec<DefinitionView>> {
    services.stats.flush(&services.db).await?;
    let after = services.clock.now().minus(stats::DEFINITION_SPAN);
    let ids: Vec<Uuid> = definitions.iter().map(|definition| definition.id).collect();
    let mut tx = services.db.read().await?;
    let tallies = stats::store::of_definitions(&mut tx, app_id, &ids, after).await?;
    let views = definitions.into_iter().map(|definition| {
        let tally = tallies.get(&definition.id).copied().unwrap_or_default();
        DefinitionView::new(definition, tally)
    });
    Ok(views.collect())
}

async fn view(services: &Services, definition: Definition) -> Result<DefinitionView, ApiError> {
    let views = views(services, definition.app_id, vec![definition]).await?;
    let view = views.into_iter().next();
    view.ok_or_else(|| Error::NotFound.into())
}

async fn save(
    services: &Shared,
    scope: &Scope,
    (action, detail): (&'static str, Map<String, Value>),
    definition: &Definition,
    before: &Content,
) -> Result<(), ApiError> {
    let growth = size::check(&definition.content, Some(before))?;
    let app = services.apps.renewed(Arc::clone(&scope.app)).await?;
    nudge_campaigns::definitions::check(&services.plugins, &app.deciders, definition, Some(before))
        .await?;
    let mut tx = services.db.write().await?;
    nudge_campaigns::definitions::update(&mut tx, &services.plugins, definition).await?;
    size::check_total(&mut tx, definition.app_id, growth).await?;
    record(&mut tx, scope, action, definition, detail).await?;
    tx.commit().await?;
    services.apps.refresh(definition.app_id).await?;
    Ok(())
}

/// Adds what was done to a definition to the audit log.
async fn record(
    tx: &mut Tx,
    scope: &Scope,
    action: &'static str,
    definition: &Definition,
    patch: Map<String, Value>,
) -> nudge_db::Result<()> {
    let mut detail = patch;
    detail.insert("name".to_owned(), json!(definition.name));
    detail.insert("version".to_owned(), json!(definition.version));
    let entry = Entry {
        app_id: scope.app.id,
        actor: &scope.actor,
        action,
        resource: format!("event-definition/{}", definition.id),
        detail: detail.into(),
    };
    audit::record(tx, &entry, definition.updated_at).await
}

/// The definition that a patch makes of another.
fn changed(
    current: Definition,
    patch: Map<String, Value>,
    now: nudge_db::Timestamp,
) -> Result<Definition, ApiError> {
    if patch
        .get("name")
        .is_some_and(|name| name != &Value::String(current.name.clone()))
    {
        return Err(ApiError::field(
            "/name",
            "immutable",
            "a definition keeps its name; declare another one",
        ));
    }
    let patch = patch.into_iter().filter(|(key, _)| key != "name").collect();
    let before = Changeable {
        description: current.content.description,
        enforcement: current.content.enforcement,
        additional_properties: current.content.additional_properties,
        properties: current.content.properties,
        validator: current.content.validator,
        status: current.status,
    };
    let Changeable {
        description,
        enforcement,
        additional_properties,
        properties,
        validator,
        status,
    } = nudge_http::merge::patched(&before, patch)?;
    Ok(Definition {
        version: current.version + 1,
        status,
        content: Content {
            description,
            enforcement,
            additional_properties,
            properties,
            validator,
        },
        updated_at: now,
        ..current
    })
}

/// Refuses a name that no event of a client can have.
pub(super) fn check_name(pointer: &str, name: &str) -> Result<(), ApiError> {
    let detail = if !nudge_records::events::is_name(name) {
        "a name has 1 to 200 characters and no control characters"
    } else if is_reserved(name) {
        "the server names its own events so, and they have no definition"
    } else {
        return Ok(());
    };
    Err(ApiError::field(pointer, "invalid", detail))
}
