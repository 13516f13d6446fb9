//! The ingest route (specification 4.2, contract 3).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use nudge_apps::App;
use nudge_apps::auth::{self, AppKey};
use nudge_apps::key::{self, Kind};
use nudge_apps::subject_token::{self, SubjectToken};
use nudge_campaigns::settings::ValidationFailure;
use nudge_db::Timestamp;
use nudge_http::request_context::Notes;
use nudge_http::{ApiError, Code, Data, JsonText};
use nudge_platform::event_names::is_lifecycle;
use nudge_platform::field_error::FieldError;
use nudge_platform::rate_limits::Policy;
use nudge_platform::secrets;
use nudge_records::dead_letters::Letter;
use nudge_records::events::{Event, Origin, store};
use nudge_records::instructions::views::InstructionView;
use nudge_records::instructions::{self, Instruction};
use nudge_records::stats;
use nudge_records::subjects::current::{Claim, Claims};
use nudge_records::subjects::identity::is_external_id;
use nudge_records::subjects::{self, AliasKind, AliasView, Anew, NOBODY};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::body::{Body, Context, Delivery, Events};
use super::commit::{self, CommitOutcome, Committed};
use super::event::{self, Mismatch, Rules};
use super::validation::{self, Verdict};
use crate::services::Shared;
use crate::submission::{Rejection, Submission};

/// What became of a request's events.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngestView {
    accepted: usize,
    rejected: usize,
    errors: Vec<Rejection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Vec<InstructionView>>,
}

/// A key and, where it was sent, a subject token of the key's app.
pub struct Caller {
    app: Arc<App>,
    key: AppKey,
    token: Option<SubjectToken>,
}

impl<S> FromRequestParts<S> for Caller
where
    Shared: FromRef<S>,
    nudge_apps::services::Shared: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let services = &Shared::from_ref(state);
        let key = AppKey::from_request_parts(parts, state).await?;
        let token = auth::subject_token(parts, services, &key.app)?;
        Ok(Self {
            app: Arc::clone(&key.app),
            key,
            token,
        })
    }
}

/// Whose events a request has.
struct Owner {
    alias: i64,
    subject_id: Uuid,
    claims: Option<Claims>,
    mismatch: Option<Mismatch>,
    anonymous_id: Option<String>,
    external_id: Option<String>,
    /// Events of then or before are of somebody who was deleted.
    events_after: Option<Timestamp>,
    /// Whether it is nobody for now only: somebody begins anew once a deletion is done.
    erasing: bool,
}

/// Takes events. 200 means that the accepted ones are on disk. With `settings.ingest.allowUnverifiedServerEvents`, the server-side
/// shape takes a write key alone too.
#[utoipa::path(post, path = "/v1/sdk/ingest", tag = "sdk", request_body = super::schema::IngestRequest,
    security(("writeKey" = [], "subjectToken" = []), ("serverKey" = [])),
    responses((status = 200, body = Data<IngestView>)))]
pub async fn ingest_events(
    caller: Caller,
    notes: Notes,
    State(services): State<Shared>,
    JsonText(text): JsonText,
) -> Result<Data<IngestView>, ApiError> {
    let received_at = services.clock.now();
    let (body, events) = Body::parse(&text)?;
    if let (Kind::Write, None, Some(user_id)) = (caller.key.key.kind, &caller.token, &body.user_id)
    {
        // Nothing but the request says whose events a public key's are.
        let owner = named_owner(caller.app.id, user_id);
        notes.count_bytes_for(Policy::SubjectBytes, owner, text.len())?;
    }
    let delivery = body.delivery()?;
    let owner = owner(&services, &caller, &body, &events).await?;
    let rules = rules(&caller.app, &body, &owner, received_at);
    let (checked, mut rejections) = event::check_all(events, &rules);
    if let Some(delivery) = &delivery {
        check_delivery(&services, &caller, delivery, &checked, &rejections).await?;
    }
    let (checked, ignored) = heeded(&caller.app, checked);
    let app = &caller.app;
    let origin = Arc::new(body.origin());
    let divided = divide(
        &services,
        app,
        &owner,
        &origin,
        received_at,
        checked,
        &mut rejections,
    )
    .await?;
    let stored = divided.passed.iter();
    let indexes = stored.map(|(index, event)| (*index, event.id));
    let indexes = indexes.chain(ignored.iter().copied()).collect();
    let submission = Submission {
        wants_instructions: delivery.is_some(),
        ..divided.submission(app, &owner, origin, received_at)
    };
    let there = there_already(&services, app, owner.subject_id, &rejections).await?;
    let committed = services
        .committer
        .commit_body(submission, notes.body_room());
    let outcome = committed.await?;
    let committed = matches!(outcome, CommitOutcome::Committed(_));
    if delivery.is_some() {
        // Whoever waits for a decision keeps nobody waiting.
        notes.step_aside();
    }
    let mut view = answer(
        &services, app, outcome, indexes, rejections, there, delivery,
    )
    .await?;
    if owner.erasing {
        let refused = view.errors.iter_mut();
        refused
            .filter(|it| it.code == "suppressed_subject")
            .for_each(|it| it.retryable = true);
    }
    let ignored = if committed { ignored.len() } else { 0 };
    let count = |kind, count| services.stats.count(app.id, received_at, kind, count);
    count(stats::Kind::Ignored, ignored);
    count(stats::Kind::Rejected, view.rejected);
    Ok(Data { data: view })
}

/// The bucket of somebody who is known by an external id.
fn named_owner(app_id: Uuid, user_id: &str) -> [u8; 16] {
    let hash = secrets::hash(&[app_id.as_bytes(), user_id.as_bytes()]);
    hash.first_chunk().copied().unwrap_or_default()
}

/// What the events are checked against.
fn rules<'a>(app: &'a App, body: &Body<'_>, owner: &'a Owner, received_at: Timestamp) -> Rules<'a> {
    Rules {
        app_id: app.id,
        alias: owner.alias,
        mismatch: owner.mismatch,
        anonymous_id: owner.anonymous_id.as_deref(),
        external_id: owner.external_id.as_deref(),
        events_after: owner.events_after,
        settings: &app.settings.ingest,
        received_at,
        skew: event::skew(body.sent_at(), received_at),
    }
}

/// Tells who the events are of, by the shape of the request and the credentials.
async fn owner(
    services: &Shared,
    caller: &Caller,
    body: &Body<'_>,
    events: &Events<'_>,
) -> Result<Owner, ApiError> {
    match (&body.context, &body.user_id) {
        (Some(context), _) => {
            let named = context.external_id.is_some() || events.may_name_external();
            owner_by_token(services, caller, context, named).await
        }
        (None, Some(user_id)) => {
            owner_by_user_id(services, caller, user_id, body.delivery.is_some(), events).await
        }
        (None, None) => Err(ApiError::field(
            "/context",
            "required",
            "context with anonymousId is required",
        )),
    }
}

/// The subject of the token. Looks nothing up unless the request names another id than the token does, or may name
/// an external one; that the token is not revoked is checked where the events are committed.
async fn owner_by_token(
    services: &Shared,
    caller: &Caller,
    context: &Context<'_>,
    names_external: bool,
) -> Result<Owner, ApiError> {
    let anonymous_id = context.anonymous_id.as_deref().ok_or_else(|| {
        ApiError::field(
            "/context/anonymousId",
            "required",
            "context.anonymousId is required",
        )
    })?;
    caller.key.require_kind(services, Kind::Write)?;
    let token = caller
        .token
        .as_ref()
        .ok_or_else(|| ApiError::new(Code::SubjectTokenRequired))?;
    let claim = Claim::of_token(token);
    let mut claims = Claims {
        token: claim,
        named: claim,
    };
    let mut owner = Owner {
        alias: token.alias,
        subject_id: token.subject_id,
        claims: None,
        mismatch: None,
        anonymous_id: Some(anonymous_id.to_owned()),
        external_id: None,
        events_after: token.events_after,
        erasing: false,
    };
    let mut tx = None;
    if subject_token::fingerprint(anonymous_id) != token.fingerprint {
        let tx = tx.insert(services.db.read().await?);
        let named =
            subjects::store::find(tx, caller.app.id, AliasKind::Anonymous, anonymous_id).await?;
        match named.filter(|named| named.subject_id == token.subject_id) {
            Some(named) => {
                owner.alias = named.alias;
                owner.events_after = named.events_after;
                claims.named = Claim::of(&named);
            }
            None => owner.mismatch = Some(Mismatch::Anonymous),
        }
    }
    if names_external {
        let tx = match &mut tx {
            Some(tx) => tx,
            None => tx.insert(services.db.read().await?),
        };
        let standing = subjects::store::get(tx, caller.app.id, token.alias).await?;
        owner.external_id = standing.and_then(|standing| standing.external_id);
        let contradicts = |given: &str| Some(given) != owner.external_id.as_deref();
        if context.external_id.as_deref().is_some_and(contradicts) && owner.mismatch.is_none() {
            owner.mismatch = Some(Mismatch::External);
        }
    }
    owner.claims = Some(claims);
    Ok(owner)
}

/// The subject with this external id, for servers.
async fn owner_by_user_id(
    services: &Shared,
    caller: &Caller,
    user_id: &str,
    delivery: bool,
    events: &Events<'_>,
) -> Result<Owner, ApiError> {
    if caller.key.key.kind != Kind::Write {
        caller.key.require_scope(services, key::EVENTS_WRITE)?;
    } else if !caller.app.settings.ingest.allow_unverified_server_events {
        return Err(ApiError::new(Code::SubjectTokenRequired));
    }
    if delivery {
        return Err(ApiError::field(
            "/delivery",
            "not_allowed",
            "server-side events have no delivery",
        ));
    }
    if !is_external_id(user_id) {
        let detail = "userId has 1 to 256 characters and no control characters";
        return Err(ApiError::field("/userId", "invalid", detail));
    }
    let (standing, erasing) = named(services, caller.app.id, user_id, events).await?;
    Ok(Owner {
        alias: standing.alias,
        subject_id: standing.subject_id,
        claims: None,
        mismatch: None,
        anonymous_id: None,
        external_id: standing.external_id,
        events_after: standing.events_after,
        erasing,
    })
}

/// The subject with an external id, made if there is none, and whether it is nobody for now only. Somebody who was
/// deleted begins anew with an event of after the deletion.
async fn named(
    services: &Shared,
    app_id: Uuid,
    user_id: &str,
    events: &Events<'_>,
) -> Result<(AliasView, bool), ApiError> {
    let (db, pseudonyms) = (&services.db, &services.pseudonyms);
    let now = services.clock.now();
    let kind = AliasKind::External;
    let standing = subjects::ensure(db, pseudonyms, app_id, kind, user_id, None, now).await?;
    if !standing.is_nobody() {
        return Ok((standing, false));
    }
    let Some(latest) = events.latest() else {
        return Ok((standing, false));
    };
    Ok(
        match subjects::begin_anew(db, pseudonyms, app_id, user_id, latest, now).await? {
            Anew::Begun(begun) => (begun, false),
            Anew::Later => (standing, true),
            Anew::Never => (standing, false),
        },
    )
}

/// Every id of a delivery must be one of the request's, its browser session the subject's own.
async fn check_delivery(
    services: &Shared,
    caller: &Caller,
    delivery: &Delivery,
    checked: &[(usize, Event)],
    rejections: &[Rejection],
) -> Result<(), ApiError> {
    let known: HashSet<Uuid> = checked
        .iter()
        .map(|(_, event)| event.id)
        .chain(rejections.iter().filter_map(|rejection| rejection.event_id))
        .collect();
    if let Some(index) = delivery
        .event_ids
        .items
        .iter()
        .position(|id| !known.contains(id))
    {
        let pointer = format!("/delivery/eventIds/{index}");
        let error = FieldError::new(
            pointer,
            "unknown_id",
            "the request has no event with this eventId",
        );
        return Err(ApiError::fields(Code::InvalidDelivery, vec![error]));
    }
    if let (Some(client_id), Some(token)) = (delivery.client_id, &caller.token)
        && token.alias != NOBODY
    {
        let mut tx = services.db.read().await?;
        let session = subjects::store::find_client(&mut tx, caller.app.id, client_id).await?;
        if !session.is_some_and(|session| session.subject_id == token.subject_id && !session.ended)
        {
            // What ended the browser session, or gave it to another subject, may have revoked the token too.
            subjects::current::read(&mut tx, token).await?;
            return Err(ApiError::new(Code::ClientSessionInvalid));
        }
    }
    Ok(())
}

/// Things with their places in the request.
type Placed<T> = Vec<(usize, T)>;

/// Takes lifecycle events out while the app's toggle is off: places and ids of those that are.
///
/// An SDK that has not heard of the toggle yet has done nothing wrong: they count as accepted, and nothing follows
/// from them.
fn heeded(app: &App, checked: Placed<Event>) -> (Placed<Event>, Placed<Uuid>) {
    if app.settings.lifecycle_events {
        return (checked, Vec::new());
    }
    let (ignored, heeded): (Vec<_>, Vec<_>) = checked
        .into_iter()
        .partition(|(_, event)| is_lifecycle(&event.name));
    let ignored = ignored.into_iter().map(|(index, event)| (index, event.id));
    (heeded, ignored.collect())
}

/// Events that were checked against their definitions.
#[derive(Default)]
struct Divided {
    /// Those to be stored, with their places.
    passed: Placed<Event>,
    /// Those of them that break a definition which only observes.
    observed: HashSet<Uuid>,
    /// The others.
    letters: Vec<Letter>,
}

impl Divided {
    /// What is to be stored of a request. Nobody waits for what follows from it.
    fn submission(
        self,
        app: &Arc<App>,
        owner: &Owner,
        origin: Arc<Origin>,
        received_at: Timestamp,
    ) -> Submission {
        let events = self.passed.into_iter().map(|(_, event)| Arc::new(event));
        Submission {
            app: Arc::clone(app),
            alias: owner.alias,
            claims: owner.claims,
            origin,
            received_at,
            events: events.collect(),
            letters: self.letters,
            observed: self.observed,
            replays: Vec::new(),
            wants_instructions: false,
        }
    }
}

/// Checks events against their definitions; those that break them become dead letters.
async fn divide(
    services: &Shared,
    app: &App,
    owner: &Owner,
    origin: &Arc<Origin>,
    received_at: Timestamp,
    checked: Vec<(usize, Event)>,
    rejections: &mut Vec<Rejection>,
) -> Result<Divided, ApiError> {
    let events: Vec<(Uuid, &Event)> = checked
        .iter()
        .map(|(_, event)| (owner.subject_id, event))
        .collect();
    let verdicts = validation::validate(services, app, &events, received_at)
        .await
        .map_err(ApiError::internal)?;
    let open = app.settings.plugins.validation_failure == ValidationFailure::Open;
    let mut divided = Divided::default();
    for ((index, event), verdict) in checked.into_iter().zip(verdicts) {
        match verdict {
            Verdict::Broken(violations) => {
                let Some(enforced) = app.definitions.get(&*event.name) else {
                    continue;
                };
                let (plugin, _) = enforced.accepted.for_subject(owner.subject_id);
                let plugin = plugin.description();
                let letter = Letter::broken(
                    app.id,
                    owner.alias,
                    received_at,
                    origin,
                    &event,
                    violations,
                    plugin,
                );
                rejections.push(Rejection {
                    dead_letter_id: Some(letter.id),
                    ..Rejection::new(index, Some(event.id), "schema_violation", letter.summary())
                });
                divided.letters.push(letter);
            }
            Verdict::Unchecked if !open => rejections.push(Rejection {
                retryable: true,
                ..Rejection::new(
                    index,
                    Some(event.id),
                    "plugin_unavailable",
                    "the validation plugin failed; send it again",
                )
            }),
            Verdict::Observed => {
                divided.observed.insert(event.id);
                divided.passed.push((index, event));
            }
            Verdict::Pass | Verdict::Unchecked => divided.passed.push((index, event)),
        }
    }
    Ok(divided)
}

async fn answer(
    services: &Shared,
    app: &App,
    outcome: CommitOutcome,
    events: Vec<(usize, Uuid)>,
    mut rejections: Vec<Rejection>,
    there: HashSet<Uuid>,
    delivery: Option<Delivery>,
) -> Result<IngestView, ApiError> {
    let mut reject_all = |code, message: &str| {
        for rejection in rejections
            .iter_mut()
            .filter(|rejection| rejection.dead_letter_id.is_some())
        {
            *rejection = Rejection::new(rejection.index, rejection.event_id, code, message);
        }
        rejections.extend(
            events
                .iter()
                .map(|(index, id)| Rejection::new(*index, Some(*id), code, message)),
        );
    };
    let mut committed = match outcome {
        CommitOutcome::Committed(committed) => Some(committed),
        CommitOutcome::TokenRevoked => return Err(ApiError::new(Code::SubjectTokenExpired)),
        CommitOutcome::Suppressed => {
            reject_all("suppressed_subject", event::DELETED);
            None
        }
        CommitOutcome::ConsentMissing => {
            reject_all("consent_missing", "the user has not consented to analytics");
            None
        }
    };
    let mut accepted = 0;
    if let Some(committed) = &mut committed {
        accepted = events.len() + accept_known(committed, &mut rejections, &there);
    }
    rejections.sort_by_key(|rejection| rejection.index);
    metrics::counter!("nudge_events_total", "outcome" => "accepted").increment(accepted as u64);
    for rejection in &rejections {
        metrics::counter!("nudge_events_total", "outcome" => rejection.code).increment(1);
    }
    let instructions = match (delivery, committed) {
        (Some(delivery), Some(committed)) => {
            Some(instructions_for(services, app, &delivery, committed).await?)
        }
        (Some(_), None) => Some(Vec::new()),
        (None, _) => None,
    };
    Ok(IngestView {
        accepted,
        rejected: rejections.len(),
        errors: rejections,
        instructions,
    })
}

/// Takes away the rejections of events that are there already; answers of how many.
fn accept_known(
    committed: &mut Committed,
    rejections: &mut Vec<Rejection>,
    there: &HashSet<Uuid>,
) -> usize {
    let before = rejections.len();
    rejections.retain(|rejection| {
        let known = match (rejection.dead_letter_id, rejection.event_id) {
            (Some(letter), _) => committed.known_letters.contains(&letter),
            (None, Some(id)) => rejection.is_about_content() && there.contains(&id),
            (None, None) => false,
        };
        !known
    });
    let known = before - rejections.len();
    committed.all_new &= known == 0;
    known
}

/// Which of the events that were rejected for what they say are there already: sent again in a form, or at a time, that
/// it would not be taken in, an event is accepted and changes nothing.
async fn there_already(
    services: &Shared,
    app: &App,
    subject_id: Uuid,
    rejections: &[Rejection],
) -> Result<HashSet<Uuid>, ApiError> {
    let asked = rejections.iter().filter(|it| it.is_about_content());
    let asked: Vec<Uuid> = asked.filter_map(|it| it.event_id).collect();
    if asked.is_empty() {
        return Ok(HashSet::new());
    }
    let mut tx = services.db.read().await?;
    Ok(store::committed(&mut tx, app.id, subject_id, &asked).await?)
}

/// What the delivery's events fired. Waits for the pipeline to evaluate those that are new; what it
/// does not manage in time appears in the next poll.
async fn instructions_for(
    services: &Shared,
    app: &App,
    delivery: &Delivery,
    committed: Committed,
) -> Result<Vec<InstructionView>, ApiError> {
    let wait = Duration::from_millis(services.config.pipeline.delivery_wait_ms);
    if let Some(fired) = committed.fired {
        match tokio::time::timeout(wait, fired).await {
            Ok(Ok(fired)) if committed.all_new => {
                let asked = |instruction: &Instruction| {
                    instruction
                        .trigger_event_id
                        .is_some_and(|id| delivery.event_ids.items.contains(&id))
                };
                let found = fired.instructions.into_iter().filter(asked).collect();
                return Ok(
                    nudge_records::instructions::views::views(&services.db, app, found).await?,
                );
            }
            Ok(_) => {}
            Err(_) => return Ok(Vec::new()),
        }
    }
    if committed.all_new {
        return Ok(Vec::new());
    }
    let now = services.clock.now();
    let mut tx = services.db.read().await?;
    let found = instructions::store::of_events(
        &mut tx,
        app.id,
        committed.subject_id,
        &delivery.event_ids.items,
        now,
    )
    .await?;
    drop(tx);
    Ok(nudge_records::instructions::views::views(&services.db, app, found).await?)
}

impl From<commit::Error> for ApiError {
    fn from(error: commit::Error) -> Self {
        match &error {
            commit::Error::Storage(cause) if !cause.is_temporary() => Self::internal(error),
            _ => Self::unavailable(error),
        }
    }
}
