//! Removes what has been kept for as long as an app's settings say (contract 13, `retention`), once an hour, by one process at
//! a time, a bounded number of rows at a time. What is kept for an hour is looked for more often, by each.

mod deliveries;
pub mod events;
mod store;

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use nudge_apps::console;
use nudge_campaigns::settings::Settings;
use nudge_db::{Timestamp, Tx};
use nudge_people::privacy;
use nudge_platform::due::FirstError;
use nudge_platform::jobs;
use nudge_platform::rounds::Round;
use nudge_push::webhooks;
use nudge_records::events::removed;
use nudge_records::webhooks::messages;
use nudge_records::{properties, rejected, stats};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::deliveries::Places;
use crate::services::Shared;

/// The pause between two rounds, by the server's clock.
const PAUSE: Duration = Duration::from_hours(1);
const ROUND: Round = Round {
    name: "retention",
    pause: PAUSE,
};
/// How soon a process that may not begin a round asks again.
const ASK_AGAIN: Duration = Duration::from_mins(5);
/// Days that updates of properties are remembered, so that one that is sent again is known.
const MUTATION_DAYS: i64 = 30;
/// Days that is known why firings had no effect.
const SUPPRESSED_DAYS: i64 = 30;
/// Days that is known what came of a job.
const JOB_DAYS: u32 = 30;
/// The pause between two looks for what is kept for an hour.
const OFTEN: Duration = Duration::from_mins(5);
/// The pause after a round that failed.
const SHORT_PAUSE: Duration = Duration::from_mins(1);
/// Days that push deliveries are kept unless an app says otherwise.
const DELIVERY_DAYS: i64 = 90;
const DAY: Duration = Duration::from_hours(24);

/// Runs until the server stops. `kinds`: those of jobs that go some time after their end.
pub async fn run(services: Shared, kinds: Vec<&'static str>, halt: CancellationToken) {
    let look_again = Duration::from_millis(services.config.pipeline.poll_ms.max(1));
    let mut next_at = Timestamp::default();
    let mut often_at = Timestamp::default();
    let mut places = Places::new();
    loop {
        let now = services.clock.now();
        // A clock that was set back puts nothing off.
        often_at = often_at.min(now.plus(OFTEN));
        if now >= often_at {
            often_at = now.plus(OFTEN);
            if let Err(error) = remove_rejected(&services, now, &halt).await {
                tracing::warn!(error = ?error, "refused events could not be removed yet");
            }
            if let Err(error) = remove_sessions(&services, now, &halt).await {
                tracing::warn!(error = ?error, "ended console sessions could not be removed yet");
            }
        }
        next_at = next_at.min(now.plus(PAUSE));
        if now >= next_at {
            next_at = match turn(&services, (now, &kinds), &mut places, &halt).await {
                Ok(next_at) => next_at,
                Err(error) => {
                    tracing::warn!(error = ?error, "what is past its retention could not be removed yet");
                    now.plus(SHORT_PAUSE)
                }
            };
        }
        tokio::select! {
            () = tokio::time::sleep(look_again) => {}
            () = halt.cancelled() => return,
        }
    }
}

/// Removes refused events that arrived more than an hour ago.
async fn remove_rejected(
    services: &Shared,
    now: Timestamp,
    halt: &CancellationToken,
) -> nudge_db::Result<()> {
    let mut tx = services.db.read().await?;
    let versions = nudge_campaigns::apps::versions(&mut tx).await?;
    drop(tx);
    let before = now.minus(rejected::KEPT);
    let mut failed = FirstError::default();
    for (app_id, _) in versions {
        failed.note(remove_rejected_of(services, app_id, before, halt).await)?;
    }
    failed.end()
}

/// Removes refused events of an app that arrived before an instant.
async fn remove_rejected_of(
    services: &Shared,
    app_id: Uuid,
    before: Timestamp,
    halt: &CancellationToken,
) -> nudge_db::Result<()> {
    // Looked for before anything is locked: most apps have none.
    let mut tx = services.db.read().await?;
    let are_there = rejected::is_any_before(&mut tx, app_id, before).await?;
    drop(tx);
    if are_there {
        drain(services, halt, move |tx| {
            rejected::delete_before(tx, app_id, before).boxed()
        })
        .await?;
    }
    Ok(())
}

/// Removes sessions of the console that have ended, and links and logins that nobody used in time.
async fn remove_sessions(
    services: &Shared,
    now: Timestamp,
    halt: &CancellationToken,
) -> nudge_db::Result<()> {
    let mut tx = services.db.read().await?;
    let are_there = console::has_ended(&mut tx, now).await?;
    drop(tx);
    if are_there {
        drain(services, halt, move |tx| {
            console::remove_ended(tx, now).boxed()
        })
        .await?;
    }
    Ok(())
}

/// Goes through all apps if it is this process's turn; answers when to ask again.
async fn turn(
    services: &Shared,
    (now, kinds): (Timestamp, &[&'static str]),
    places: &mut Places,
    halt: &CancellationToken,
) -> nudge_db::Result<Timestamp> {
    let node = services.pipeline.node();
    let mut tx = services.db.write().await?;
    if !ROUND.begin(&mut tx, node, now).await? {
        return Ok(now.plus(ASK_AGAIN));
    }
    tx.commit().await?;
    round(services, (now, kinds), places, halt).await?;
    let next_at = now.plus(PAUSE);
    // Cut short, it is still due: another process takes it once this one has signed out.
    if !halt.is_cancelled() {
        let mut tx = services.db.write().await?;
        ROUND.end(&mut tx, node, next_at).await?;
        tx.commit().await?;
    }
    Ok(next_at)
}

/// Goes through all apps.
async fn round(
    services: &Shared,
    (now, kinds): (Timestamp, &[&'static str]),
    places: &mut Places,
    halt: &CancellationToken,
) -> nudge_db::Result<()> {
    let mut tx = services.db.read().await?;
    let versions = nudge_campaigns::apps::versions(&mut tx).await?;
    let ids: Vec<Uuid> = versions.into_iter().map(|(id, _)| id).collect();
    let settings = nudge_campaigns::apps::settings(&mut tx, &ids).await?;
    drop(tx);
    let mut failed = FirstError::default();
    // Deletions of apps are jobs of no app.
    failed.note(remove_jobs(services, Uuid::nil(), kinds, now, halt).await)?;
    for (app_id, _, settings) in settings {
        failed.note(remove_jobs(services, app_id, kinds, now, halt).await)?;
        if let Some(settings) = settings {
            failed.note(of_app(services, (app_id, &settings), now, places, halt).await)?;
        }
    }
    failed.end()
}

/// Removes jobs of an app that ended long ago.
async fn remove_jobs(
    services: &Shared,
    app_id: Uuid,
    kinds: &[&'static str],
    now: Timestamp,
    halt: &CancellationToken,
) -> nudge_db::Result<()> {
    let before = now.minus(DAY * JOB_DAYS);
    let mut tx = services.db.read().await?;
    let are_there = jobs::store::is_any_ended(&mut tx, app_id, kinds.to_vec(), before).await?;
    drop(tx);
    if are_there {
        let kinds = kinds.to_vec();
        drain(services, halt, move |tx| {
            jobs::store::delete_ended(tx, app_id, kinds.clone(), before).boxed()
        })
        .await?;
    }
    Ok(())
}

/// Goes through an app.
async fn of_app(
    services: &Shared,
    (app_id, settings): (Uuid, &Settings),
    now: Timestamp,
    places: &mut Places,
    halt: &CancellationToken,
) -> nudge_db::Result<()> {
    let retention = &settings.retention;
    let before = |days: i64| now.minus(DAY * u32::try_from(days).unwrap_or(u32::MAX));
    let letters = before(retention.dead_letters_days);
    drain(services, halt, move |tx| {
        store::delete_letters(tx, app_id, letters).boxed()
    })
    .await?;
    drain(services, halt, move |tx| {
        store::forget_replays(tx, app_id, letters).boxed()
    })
    .await?;
    let noted = before(SUPPRESSED_DAYS);
    drain(services, halt, move |tx| {
        store::delete_suppressed(tx, app_id, noted).boxed()
    })
    .await?;
    let mutations = before(MUTATION_DAYS);
    drain(services, halt, move |tx| {
        properties::forget_before(tx, app_id, mutations).boxed()
    })
    .await?;
    let days = retention.deliveries_days;
    let made = before(days.unwrap_or(DELIVERY_DAYS));
    let app = (app_id, &settings.frequency);
    deliveries::remove(services, app, (made, now), places, halt).await?;
    let told = now.minus(webhooks::KEPT);
    drain(services, halt, move |tx| {
        messages::delete_before(tx, app_id, told).boxed()
    })
    .await?;
    // A span that began before is looked at as long as it goes on.
    let spans = now.minus(stats::DEFINITION_SPAN + PAUSE);
    let counts = now.minus(stats::KEPT);
    drain(services, halt, move |tx| {
        let forget = async move {
            Ok(stats::store::forget_definitions(tx, app_id, spans).await?
                + stats::store::forget(tx, app_id, counts).await?)
        };
        forget.boxed()
    })
    .await?;
    privacy::exports::remove_expired(services, app_id, now).await?;
    drain(services, halt, move |tx| {
        removed::forget(tx, app_id, now).boxed()
    })
    .await?;
    if let Some(days) = retention.events_days {
        let taken_for = u64::try_from(settings.ingest.past_window_seconds).unwrap_or(0);
        let age = events::Age {
            before: before(days),
            taken_for: Duration::from_secs(taken_for),
            now,
        };
        events::remove(services, app_id, age, halt).await?;
    }
    Ok(())
}

/// Removes rows step by step, each a transaction, until a step finds none or the server stops.
async fn drain(
    services: &Shared,
    halt: &CancellationToken,
    step: impl for<'t> Fn(&'t mut Tx) -> BoxFuture<'t, nudge_db::Result<u64>> + Send + Sync,
) -> nudge_db::Result<()> {
    let mut more = true;
    while more && !halt.is_cancelled() {
        let mut tx = services.db.write().await?;
        more = step(&mut tx).await? > 0;
        tx.commit().await?;
    }
    Ok(())
}
