//! The ingest route (specification 4.2, contract 3).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use nudge_apps::App;
use nudge_campaigns::settings::ValidationFailure;
use nudge_db::Timestamp;
use nudge_http::request_context::Notes;
use nudge_http::{ApiError, Code, Data, JsonText};
use nudge_platform::event_names::is_lifecycle;
use nudge_platform::field_error::FieldError;
use nudge_platform::traces::{self, NewSpan};
use nudge_records::dead_letters::Letter;
use nudge_records::events::{Event, Origin, store};
use nudge_records::instructions::views::InstructionView;
use nudge_records::instructions::{self, Instruction};
use nudge_records::stats;
use nudge_records::subjects::{self, NOBODY};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::body::{Body, Delivery};
use super::commit::{self, CommitOutcome, Committed};
use super::event::{self, Rules};
use super::owner::{self, Caller, Owner};
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
    take(&services, &caller, &notes, &text).await
}

/// Takes the events of a body, whichever way it came.
pub(super) async fn take(
    services: &Shared,
    caller: &Caller,
    notes: &Notes,
    text: &str,
) -> Result<Data<IngestView>, ApiError> {
    let received_at = services.clock.now();
    let (body, events) = Body::parse(text)?;
    caller.count_bytes(notes, &body, text.len())?;
    let delivery = body.delivery()?;
    let owner = owner::of(services, caller, &body, &events).await?;
    let rules = rules(&caller.app, &body, &owner, received_at);
    let (checked, mut rejections) = event::check_all(events, &rules);
    if let Some(delivery) = &delivery {
        check_delivery(services, caller, delivery, &checked, &rejections).await?;
    }
    let (checked, ignored) = heeded(&caller.app, checked);
    let app = &caller.app;
    let origin = Arc::new(body.origin());
    let divided = divide(
        services,
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
    let there = there_already(services, app, owner.subject_id, &rejections).await?;
    let committed = services
        .committer
        .commit_body(submission, notes.body_room());
    let span = || NewSpan::internal("commit events", Vec::new());
    let outcome = traces::within(span, committed).await?;
    let committed = matches!(outcome, CommitOutcome::Committed(_));
    if delivery.is_some() {
        // Whoever waits for a decision keeps nobody waiting.
        notes.step_aside();
    }
    let view = answer(
        services,
        app,
        &owner,
        outcome,
        indexes,
        (rejections, there),
        delivery,
    )
    .await?;
    let ignored = if committed { ignored.len() } else { 0 };
    let count = |kind, count| services.stats.count(app.id, received_at, kind, count);
    count(stats::Kind::Ignored, ignored);
    count(stats::Kind::Rejected, view.rejected);
    Ok(Data { data: view })
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
    owner: &Owner,
    outcome: CommitOutcome,
    events: Vec<(usize, Uuid)>,
    (mut rejections, there): (Vec<Rejection>, HashSet<Uuid>),
    delivery: Option<Delivery>,
) -> Result<IngestView, ApiError> {
    let mut reject_all = |code, message: &str, retryable| {
        let rejection = |index, event_id| Rejection {
            retryable,
            ..Rejection::new(index, event_id, code, message)
        };
        let letters = rejections
            .iter_mut()
            .filter(|it| it.dead_letter_id.is_some());
        letters.for_each(|it| *it = rejection(it.index, it.event_id));
        rejections.extend(
            events
                .iter()
                .map(|(index, id)| rejection(*index, Some(*id))),
        );
    };
    let mut committed = match outcome {
        CommitOutcome::Committed(committed) => Some(committed),
        CommitOutcome::TokenRevoked => return Err(ApiError::new(Code::SubjectTokenExpired)),
        CommitOutcome::Suppressed => {
            reject_all("suppressed_subject", event::DELETED, owner.erasing);
            None
        }
        CommitOutcome::ConsentMissing => {
            let detail = "the user has not consented to analytics";
            reject_all("consent_missing", detail, false);
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
