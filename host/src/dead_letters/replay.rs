//! Replaying dead letters: the stage that failed is run again, with the same event id and time.

use std::collections::HashSet;
use std::sync::Arc;

use nudge_apps::App;
use nudge_apps::auth::Scope;
use nudge_campaigns::campaign::Kind;
use nudge_campaigns::settings::ValidationFailure;
use nudge_campaigns::store::{self as campaigns, Hold};
use nudge_http::{ApiError, Code};
use nudge_ingest::commit::CommitOutcome;
use nudge_ingest::submission::Submission;
use nudge_ingest::validation::{self, Urgency, Verdict};
use nudge_pipeline::{Fired, Size, Work};
use nudge_platform::audit::{self, Entry};
use nudge_platform::jobs;
use nudge_push::sender;
use nudge_records::dead_letters::replay::event;
use nudge_records::dead_letters::store::{self, Failure, FoundLetter};
use nudge_records::dead_letters::violation::Violation;
use nudge_records::dead_letters::{Letter, Stage};
use nudge_records::events::Event;
use nudge_records::scheduled_work;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::services::Services;

/// The reason of a letter whose event was removed since.
pub(super) const EVENT_REMOVED: &str = "event_removed";
/// The reason of a letter whose campaign does not run.
const NOT_ACTIVE: &str = "campaign_not_active";
/// Why a letter still fails while the validation plugin does.
const PLUGIN_UNAVAILABLE: &str = "plugin_unavailable";

/// What became of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// The letter is gone, the event where it belongs.
    Done,
    /// It fails still.
    StillFailing {
        /// Why, as a stable code.
        reason: String,
        /// What is wrong with the event.
        violations: Vec<Violation>,
    },
}

/// Why nothing is known of a replay in the pipeline.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// The database.
    #[error("storage failed")]
    Storage(#[from] nudge_db::Error),
    /// The server stops.
    #[error("the pipeline stopped")]
    Stopped,
}

impl From<Trouble> for ApiError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Storage(error) => error.into(),
            Trouble::Stopped => Self::unavailable(trouble),
        }
    }
}

impl From<Trouble> for jobs::Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Storage(error) => Self::Storage(error),
            Trouble::Stopped => Self::Stopping,
        }
    }
}

/// What validation makes of a letter's event now.
pub(super) enum Judged {
    Passes,
    Fails(Failure),
    /// The plugin failed: what is wrong with the event is not known.
    Unknown(Failure),
}

/// Replays a letter, its properties changed by a merge patch first. One that was replayed already stays so: whoever lost
/// the answer asks again.
pub async fn replay(
    services: &Services,
    scope: &Scope,
    id: Uuid,
    patch: Option<&Map<String, Value>>,
) -> Result<Replayed, ApiError> {
    match replay_open(services, scope, id, patch).await {
        Err(error) if error.code() == Code::NotFound => {
            let mut tx = services.db.read().await?;
            let is_done = store::was_replayed(&mut tx, scope.app.id, id).await?;
            is_done.then_some(Replayed::Done).ok_or(error)
        }
        outcome => outcome,
    }
}

async fn replay_open(
    services: &Services,
    scope: &Scope,
    id: Uuid,
    patch: Option<&Map<String, Value>>,
) -> Result<Replayed, ApiError> {
    // Mostly somebody has mended something a moment ago, maybe on another process.
    let app = &services.apps.renewed(Arc::clone(&scope.app)).await?;
    let mut tx = services.db.read().await?;
    let found = store::find(&mut tx, app.id, id).await?;
    let found = found.ok_or_else(|| ApiError::new(Code::NotFound))?;
    drop(tx);
    if patch.is_some() && found.letter.stage != Stage::Validation {
        let detail =
            "this event was accepted; only events that broke their definition can be patched";
        return Err(ApiError::field("/patch", "not_allowed", detail));
    }
    record(services, scope, id, patch.is_some()).await?;
    match found.letter.stage {
        Stage::Validation => replay_validation(services, app, found, patch).await,
        Stage::Trigger => replay_trigger(services, app, found.letter).await,
        Stage::Personalization => replay_personalization(services, app, found.letter).await,
    }
}

/// Adds the replay to the audit log before it is tried: what it does is committed elsewhere, and must not be
/// there without an entry.
async fn record(
    services: &Services,
    scope: &Scope,
    id: Uuid,
    patched: bool,
) -> nudge_db::Result<()> {
    let entry = Entry {
        app_id: scope.app.id,
        actor: &scope.actor,
        action: "dead_letter.replay_started",
        resource: format!("dead-letter/{id}"),
        detail: json!({"patched": patched}),
    };
    let mut tx = services.db.write().await?;
    audit::record(&mut tx, &entry, services.clock.now()).await?;
    tx.commit().await
}

async fn replay_validation(
    services: &Services,
    app: &Arc<App>,
    found: FoundLetter,
    patch: Option<&Map<String, Value>>,
) -> Result<Replayed, ApiError> {
    let event = event(&found.letter, patch)?;
    let now = services.clock.now();
    let events = [(found.subject_id, &event)];
    let verdicts = validation::validate(services, app, &events, now, Urgency::Awaited)
        .await
        .map_err(ApiError::internal)?;
    let verdict = verdicts.into_iter().next().unwrap_or(Verdict::Pass);
    let patched = patch.is_some();
    match judge(app, &found.letter, verdict) {
        Judged::Passes => {}
        Judged::Fails(failure) => {
            count_failure(services, app.id, failure.noted(&found.letter, patched)).await?;
            return Ok(Replayed::StillFailing {
                reason: failure.reason,
                violations: failure.violations,
            });
        }
        Judged::Unknown(failure) => {
            count_failure(services, app.id, failure).await?;
            return Ok(Replayed::StillFailing {
                reason: PLUGIN_UNAVAILABLE.to_owned(),
                violations: Vec::new(),
            });
        }
    }
    let letter = found.letter;
    let submission = submission(app, &letter, vec![(letter.id, event)]);
    match services.committer.commit(submission).await? {
        CommitOutcome::Committed(_) => Ok(Replayed::Done),
        CommitOutcome::ConsentMissing => Err(ApiError::new(Code::ConsentRequired)),
        CommitOutcome::TokenRevoked | CommitOutcome::Suppressed | CommitOutcome::LettersGone => {
            Err(ApiError::new(Code::NotFound))
        }
    }
}

/// Counts an attempt.
async fn count_failure(
    services: &Services,
    app_id: Uuid,
    failure: Failure,
) -> Result<(), ApiError> {
    let mut tx = services.db.write().await?;
    if store::update_failed(&mut tx, app_id, &[failure]).await? == 0 {
        // Another replay has brought it in meanwhile, or somebody has acknowledged it.
        return Err(ApiError::new(Code::NotFound));
    }
    tx.commit().await?;
    Ok(())
}

/// What a verdict about a letter's event means.
pub(super) fn judge(app: &App, letter: &Letter, verdict: Verdict) -> Judged {
    let open = app.settings.plugins.validation_failure == ValidationFailure::Open;
    match verdict {
        Verdict::Broken(violations) => Judged::Fails(Failure {
            id: letter.id,
            detail: None,
            reason: violations
                .first()
                .map_or_else(|| letter.reason.clone(), |first| first.code.clone()),
            violations,
        }),
        Verdict::Unchecked if !open => Judged::Unknown(Failure {
            id: letter.id,
            detail: None,
            reason: letter.reason.clone(),
            violations: letter.violations.clone(),
        }),
        Verdict::Unchecked | Verdict::Observed | Verdict::Pass => Judged::Passes,
    }
}

/// Events of letters on their way into the database. They arrived when the letters did, with what the letters keep
/// of their requests.
pub(super) fn submission(app: &Arc<App>, first: &Letter, events: Vec<(Uuid, Event)>) -> Submission {
    let (replays, events): (Vec<Uuid>, Vec<Arc<Event>>) = events
        .into_iter()
        .map(|(letter, event)| (letter, Arc::new(event)))
        .unzip();
    Submission {
        app: Arc::clone(app),
        alias: first.alias,
        claims: None,
        origin: Arc::clone(&first.origin),
        received_at: first.received_at,
        events,
        letters: Vec::new(),
        observed: HashSet::new(),
        rejected: Vec::new(),
        replays,
        wants_instructions: false,
    }
}

async fn replay_trigger(
    services: &Services,
    app: &App,
    letter: Letter,
) -> Result<Replayed, ApiError> {
    let id = letter.id;
    let letters = [letter];
    let tried = replay_triggers(services, app, &letters).await?;
    match tried.first() {
        Some(Tried::Done) => return Ok(Replayed::Done),
        Some(Tried::Failed) => {}
        Some(Tried::Not(failure)) => {
            count_failure(services, app.id, failure.clone()).await?;
            return Ok(Replayed::StillFailing {
                reason: failure.reason.clone(),
                violations: failure.violations.clone(),
            });
        }
        Some(Tried::Gone) | None => return Err(ApiError::new(Code::NotFound)),
    }
    still_failing(services, app, id).await
}

/// What a letter says of the replay that was in vain.
async fn still_failing(services: &Services, app: &App, id: Uuid) -> Result<Replayed, ApiError> {
    let mut tx = services.db.read().await?;
    let letter = store::find(&mut tx, app.id, id).await?;
    let letter = letter.ok_or_else(|| ApiError::new(Code::NotFound))?.letter;
    Ok(Replayed::StillFailing {
        reason: letter.reason,
        violations: letter.violations,
    })
}

/// What became of a letter of the trigger stage.
pub(super) enum Tried {
    /// What its event fires has fired, and the letter was removed with it.
    Done,
    /// The plugin failed again, which was counted.
    Failed,
    /// It can't be tried, which is yet to be counted: the event is not there any more, or the campaign does not run.
    Not(Failure),
    /// It is not there any longer: it was replayed, acknowledged or erased meanwhile.
    Gone,
}

/// Runs the trigger stage of letters again, each in its subject's lane, after everything that is ahead of it
/// there. A letter and what follows from it are one transaction.
pub(super) async fn replay_triggers(
    services: &Services,
    app: &App,
    letters: &[Letter],
) -> Result<Vec<Tried>, Trouble> {
    let mut waiting = Vec::with_capacity(letters.len());
    for letter in letters {
        let mut tx = services.db.read().await?;
        let (alias, event_id) = (letter.alias, letter.event_id);
        // Of a campaign's own occasion there is no event.
        let stored = if letter.event_name == nudge_platform::event_names::SCHEDULED {
            Some(scheduled_work::event_with_id(event_id, letter.timestamp))
        } else {
            nudge_records::events::store::find_by_id(&mut tx, app.id, alias, event_id).await?
        };
        drop(tx);
        let Some(stored) = stored else {
            waiting.push(Err(EVENT_REMOVED));
            continue;
        };
        let campaign_id = match campaign_state(services, app, letter).await? {
            CampaignState::Decides(id) => Some(id),
            CampaignState::Gone => None,
            CampaignState::Rests => {
                waiting.push(Err(NOT_ACTIVE));
                continue;
            }
        };
        let size = Size::of([&*stored.event]);
        let room = services.pipeline.wait_for_room(size).await;
        let (sender, receiver) = oneshot::channel();
        let work = Work::replay(app.id, letter, campaign_id, stored, room, sender);
        services.pipeline.submit(work);
        waiting.push(Ok(receiver));
    }
    let mut tried = Vec::with_capacity(waiting.len());
    for (letter, waiting) in letters.iter().zip(waiting) {
        let not = |reason: &str| {
            Tried::Not(Failure {
                id: letter.id,
                detail: letter.detail.clone(),
                reason: reason.to_owned(),
                violations: Vec::new(),
            })
        };
        tried.push(match waiting {
            Err(reason) => not(reason),
            Ok(receiver) => match receiver.await.map_err(|_| Trouble::Stopped)? {
                // It was paused meanwhile.
                Fired { rests: true, .. } => not(NOT_ACTIVE),
                Fired { failed: true, .. } => Tried::Failed,
                Fired { gone: true, .. } => Tried::Gone,
                Fired { .. } => Tried::Done,
            },
        });
    }
    Ok(tried)
}

/// How the campaign of a letter stands.
enum CampaignState {
    /// It decides.
    Decides(Uuid),
    /// It does not run: the letter waits until it does.
    Rests,
    /// There is none, or none any more: the letter is about nothing.
    Gone,
}

async fn campaign_state(
    services: &Services,
    app: &App,
    letter: &Letter,
) -> nudge_db::Result<CampaignState> {
    let Some(id) = letter.campaign_id else {
        return Ok(CampaignState::Gone);
    };
    if app.campaign(id).is_some() {
        return Ok(CampaignState::Decides(id));
    }
    let mut tx = services.db.read().await?;
    let status = campaigns::status(&mut tx, app.id, id, Hold::No).await?;
    Ok(status.map_or(CampaignState::Gone, |_| CampaignState::Rests))
}

/// Renders what a letter of the personalization stage is about again: its deliveries, or its in-app message.
pub(super) async fn replay_personalization(
    services: &Services,
    app: &Arc<App>,
    letter: Letter,
) -> Result<Replayed, ApiError> {
    let kind = match letter.campaign_id {
        Some(id) => {
            let mut tx = services.db.read().await?;
            let campaign = campaigns::stored(&mut tx, app.id, id, Hold::No).await?;
            campaign.map(|campaign| campaign.kind()).transpose()?
        }
        None => None,
    };
    if kind == Some(Kind::InApp) {
        // An in-app message is made where its firing takes effect.
        return replay_trigger(services, app, letter).await;
    }
    let id = letter.id;
    if sender::replay::replay(&services.push, app, letter).await? {
        return Ok(Replayed::Done);
    }
    still_failing(services, app, id).await
}
