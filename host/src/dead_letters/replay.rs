//! Replaying a dead letter: the stage that failed is run again, with the same event id and time.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::store::{self, Found};
use super::{Letter, Stage};
use crate::apps::App;
use crate::audit::{self, Entry};
use crate::http::auth::Scope;
use crate::http::{ApiError, Code, FieldError, merge};
use crate::ingest::commit::Outcome;
use crate::ingest::validation::{self, Verdict, Violation};
use crate::ingest::{Event, Origin, Submission};
use crate::pipeline::{Work, occasions};
use crate::push::sender;
use crate::services::Shared;

/// What became of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// The letter is gone, the event where it belongs.
    Done,
    /// It fails as before.
    StillFailing(Vec<Violation>),
}

/// Replays a letter, its properties changed by a merge patch first.
pub async fn replay(
    services: &Shared,
    scope: &Scope,
    id: Uuid,
    patch: Option<Value>,
) -> Result<Replayed, ApiError> {
    let app = &scope.app;
    let mut tx = services.db.read().await?;
    let Found {
        letter, subject_id, ..
    } = store::find(&mut tx, app.id, id)
        .await?
        .ok_or_else(|| ApiError::new(Code::NotFound))?;
    drop(tx);
    record(services, scope, id, patch.is_some()).await?;
    match letter.stage {
        Stage::Validation => replay_validation(services, app, letter, subject_id, patch).await,
        Stage::Personalization if patch.is_none() => {
            let replayed = sender::replay::replay(services, app, letter).await?;
            Ok(if replayed {
                Replayed::Done
            } else {
                Replayed::StillFailing(Vec::new())
            })
        }
        Stage::Trigger | Stage::Personalization => {
            if patch.is_some() {
                let detail = "this event was accepted; only events that broke their definition can be patched";
                return Err(ApiError::fields(
                    Code::ValidationFailed,
                    vec![FieldError::new("/patch", "not_allowed", detail)],
                ));
            }
            replay_trigger(services, app, letter, subject_id).await
        }
    }
}

/// Adds the replay to the audit log before it is tried: what it does is committed elsewhere, and must not be
/// there without an entry.
async fn record(services: &Shared, scope: &Scope, id: Uuid, patched: bool) -> nudge_db::Result<()> {
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
    services: &Shared,
    app: &Arc<App>,
    mut letter: Letter,
    subject_id: Uuid,
    patch: Option<Value>,
) -> Result<Replayed, ApiError> {
    let event = event(&letter, patch)?;
    let now = services.clock.now();
    let verdicts = validation::validate(&services.plugins, app, subject_id, &[&event], now)
        .await
        .map_err(ApiError::internal)?;
    if let Some(Verdict::Broken(violations)) = verdicts.into_iter().next() {
        letter.reason = violations
            .first()
            .map_or_else(|| letter.reason.clone(), |first| first.code.clone());
        letter.violations.clone_from(&violations);
        let mut tx = services.db.write().await?;
        store::update_failed(&mut tx, &letter).await?;
        tx.commit().await?;
        return Ok(Replayed::StillFailing(violations));
    }
    let outcome = services
        .committer
        .commit(Submission {
            app: Arc::clone(app),
            alias: letter.alias,
            token: None,
            origin: Arc::new(Origin::default()),
            received_at: letter.received_at,
            events: vec![Arc::new(event)],
            letters: Vec::new(),
            replays: Some(letter.id),
            wants_instructions: false,
        })
        .await?;
    match outcome {
        Outcome::Committed(_) => Ok(Replayed::Done),
        Outcome::ConsentMissing => Err(ApiError::new(Code::ConsentRequired)),
        Outcome::TokenRevoked | Outcome::Suppressed => Err(ApiError::new(Code::NotFound)),
    }
}

/// Runs the trigger stage again, in the subject's lane, after everything that is ahead of it there.
async fn replay_trigger(
    services: &Shared,
    app: &Arc<App>,
    letter: Letter,
    subject_id: Uuid,
) -> Result<Replayed, ApiError> {
    let mut tx = services.db.read().await?;
    let stored = if letter.event_name == occasions::SCHEDULED {
        Some(occasions::event_with_id(letter.event_id, letter.timestamp))
    } else {
        crate::ingest::store::find_by_id(&mut tx, app.id, letter.alias, letter.event_id).await?
    };
    let stored = stored.ok_or_else(|| ApiError::new(Code::NotFound))?;
    drop(tx);
    let room = services.pipeline.wait_for_room(1).await;
    let (sender, receiver) = oneshot::channel();
    tracing::debug!(subject.id = %subject_id, letter.id = %letter.id, "replaying a trigger");
    services
        .pipeline
        .submit(Work::replay(app.id, &letter, stored, room, sender));
    let fired = receiver
        .await
        .map_err(|_| ApiError::unavailable(anyhow::anyhow!("the pipeline stopped")))?;
    if fired.failed {
        Ok(Replayed::StillFailing(Vec::new()))
    } else {
        Ok(Replayed::Done)
    }
}

/// The event that a letter keeps, patched.
fn event(letter: &Letter, patch: Option<Value>) -> Result<Event, ApiError> {
    let mut kept: Value = serde_json::from_str(&letter.event).map_err(ApiError::internal)?;
    let mut properties = kept
        .get_mut("properties")
        .map(Value::take)
        .unwrap_or_default();
    if let Some(patch) = patch {
        merge::apply(&mut properties, patch);
        crate::ingest::check_properties(&properties.to_string())
            .map_err(|detail| ApiError::field("/patch", "invalid", detail))?;
    }
    Ok(Event {
        id: letter.event_id,
        name: letter.event_name.as_str().into(),
        timestamp: letter.timestamp,
        client_timestamp: None,
        properties: properties.to_string().into(),
    })
}
