//! Taking one person's events, whichever route brings them: definitions, dead letters, the commit, what became of each.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use nudge_apps::App;
use nudge_campaigns::settings::ValidationFailure;
use nudge_db::Timestamp;
use nudge_http::request_context::Notes;
use nudge_http::{ApiError, Code};
use nudge_platform::event_names::is_lifecycle;
use nudge_platform::traces::{self, NewSpan};
use nudge_records::dead_letters::Letter;
use nudge_records::events::{Event, Origin, removed, store};
use nudge_records::instructions::views::InstructionView;
use nudge_records::instructions::{self, Instruction};
use nudge_records::stats;
use nudge_records::subjects::{self, AliasView};
use uuid::Uuid;

use super::body::Delivery;
use super::commit::{self, CommitOutcome, Committed};
use super::event;
use super::owner::Owner;
use super::validation::{self, Urgency, Verdict};
use crate::rejected::{self, Said};
use crate::services::Shared;
use crate::submission::{Rejection, Submission};

/// What all events of a person in a request have in common.
pub(super) struct Batch<'a> {
    pub(super) app: &'a Arc<App>,
    /// Whose they are.
    pub(super) owner: &'a Owner,
    /// What the request says about them.
    pub(super) origin: Arc<Origin>,
    pub(super) received_at: Timestamp,
}

/// What became of events.
pub(super) struct Taken {
    /// How many are on disk.
    pub(super) accepted: usize,
    /// The others, in order.
    pub(super) rejections: Vec<Rejection>,
    /// What those of a delivery fired.
    pub(super) instructions: Option<Vec<InstructionView>>,
}

/// Takes checked events, each with its place in the request, beside those that were rejected.
pub(super) async fn take(
    services: &Shared,
    notes: &Notes,
    batch: &Batch<'_>,
    (checked, mut rejections): (Placed<Event>, Vec<Rejection>),
    delivery: Option<Delivery>,
) -> Result<Taken, ApiError> {
    let &Batch {
        app,
        owner,
        ref origin,
        received_at,
    } = batch;
    let (checked, ignored) = heeded(app, checked);
    let divided = divide(services, batch, checked, &mut rejections).await?;
    let stored = divided.passed.iter();
    let indexes = stored.map(|(index, event)| (*index, event.id));
    let indexes = indexes.chain(ignored.iter().copied()).collect();
    let there = there_already(services, app, owner, &rejections).await?;
    let submission = Submission {
        wants_instructions: delivery.is_some(),
        rejected: rejected::kept(app, owner, origin, received_at, &rejections, &there),
        ..divided.submission(batch)
    };
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
    let rejections = (rejections, there);
    let taken = answer(services, batch, outcome, indexes, rejections, delivery).await?;
    let ignored = if committed { ignored.len() } else { 0 };
    let count = |kind, count| services.stats.count(app.id, received_at, kind, count);
    count(stats::Kind::Ignored, ignored);
    count(stats::Kind::Rejected, taken.rejections.len());
    Ok(taken)
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
    fn submission(self, batch: &Batch<'_>) -> Submission {
        let events = self.passed.into_iter().map(|(_, event)| Arc::new(event));
        Submission {
            app: Arc::clone(batch.app),
            alias: batch.owner.alias,
            claims: batch.owner.claims,
            origin: Arc::clone(&batch.origin),
            received_at: batch.received_at,
            events: events.collect(),
            letters: self.letters,
            observed: self.observed,
            rejected: Vec::new(),
            replays: Vec::new(),
            wants_instructions: false,
        }
    }
}

/// Checks events against their definitions; those that break them become dead letters.
async fn divide(
    services: &Shared,
    batch: &Batch<'_>,
    checked: Placed<Event>,
    rejections: &mut Vec<Rejection>,
) -> Result<Divided, ApiError> {
    let &Batch {
        app,
        owner,
        ref origin,
        received_at,
    } = batch;
    let events: Vec<(Uuid, &Event)> = checked
        .iter()
        .map(|(_, event)| (owner.subject_id, event))
        .collect();
    let verdicts = validation::validate(services, app, &events, received_at, Urgency::Awaited)
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
                )?;
                rejections.push(Rejection {
                    dead_letter_id: Some(letter.id),
                    said: Some(Box::new(Said::of(&event))),
                    ..Rejection::new(index, Some(event.id), "schema_violation", letter.summary())
                });
                divided.letters.push(letter);
            }
            Verdict::Unchecked if !open => rejections.push(Rejection {
                retryable: true,
                said: Some(Box::new(Said::of(&event))),
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
    batch: &Batch<'_>,
    outcome: CommitOutcome,
    events: Placed<Uuid>,
    (mut rejections, there): (Vec<Rejection>, HashSet<Uuid>),
    delivery: Option<Delivery>,
) -> Result<Taken, ApiError> {
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
            reject_all("suppressed_subject", event::DELETED, batch.owner.erasing);
            None
        }
        CommitOutcome::ConsentMissing => {
            let detail = "the user has not consented to analytics";
            reject_all("consent_missing", detail, false);
            None
        }
        // What a client sends replays no letters.
        CommitOutcome::LettersGone => return Err(ApiError::new(Code::NotFound)),
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
            Some(instructions_for(services, batch.app, &delivery, committed).await?)
        }
        (Some(_), None) => Some(Vec::new()),
        (None, _) => None,
    };
    Ok(Taken {
        accepted,
        rejections,
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
    owner: &Owner,
    rejections: &[Rejection],
) -> Result<HashSet<Uuid>, ApiError> {
    let asked = rejections.iter().filter(|it| it.is_about_content());
    let asked: Vec<Uuid> = asked.filter_map(|it| it.event_id).collect();
    if asked.is_empty() {
        return Ok(HashSet::new());
    }
    let mut tx = services.db.read().await?;
    let mut there = store::committed(&mut tx, app.id, owner.subject_id, &asked).await?;
    let asked = asked.iter().map(|id| (owner.alias, owner.subject_id, *id));
    let removed = removed::known(&mut tx, &asked.collect::<Vec<_>>()).await?;
    there.extend(removed.into_iter().map(|(_, id)| id));
    Ok(there)
}

/// What the delivery's events fired. Waits for the pipeline to evaluate those that are new; what it
/// does not manage in time appears in the next poll.
async fn instructions_for(
    services: &Shared,
    app: &App,
    delivery: &Delivery,
    mut committed: Committed,
) -> Result<Vec<InstructionView>, ApiError> {
    let wait = Duration::from_millis(services.config.pipeline.delivery_wait_ms);
    if let Some(fired) = &mut committed.fired {
        let fired = tokio::time::timeout(wait, fired).await;
        if !matches!(fired, Ok(Ok(_))) {
            // Its effects, whose commit would have it on disk, are not written, or not here.
            let flushed = committed.flush(app.id, &services.db, &services.pipeline);
            flushed.await?;
        }
        match fired {
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
    let standing = subjects::store::of_subject(&mut tx, app.id, committed.subject_id).await?;
    let may_message = |standing: &AliasView| !standing.suppressed && standing.may_message(app);
    let Some(standing) = standing.filter(may_message) else {
        return Ok(Vec::new());
    };
    let found = instructions::store::of_events(
        &mut tx,
        app.id,
        standing.subject_id,
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
