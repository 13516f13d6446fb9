//! Removes what has been kept for as long as an app's settings say (contract 13, `retention`), once an hour,
//! a bounded number of rows at a time. What is kept for an hour is looked for more often.

mod store;

use std::time::Duration;

use nudge_db::Timestamp;
use nudge_people::privacy;
use nudge_push::webhooks;
use nudge_records::{deliveries, rejected, stats};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::services::Shared;

/// The pause between two rounds, by the server's clock.
const PAUSE: Duration = Duration::from_hours(1);
/// Days that updates of properties are remembered, so that one that is sent again is known.
const MUTATION_DAYS: i64 = 30;
/// Days that is known why firings had no effect.
const SUPPRESSED_DAYS: i64 = 30;
/// The pause between two looks for what is kept for an hour.
const OFTEN: Duration = Duration::from_mins(5);
/// The pause after a round that failed.
const SHORT_PAUSE: Duration = Duration::from_mins(1);
/// Days that push deliveries are kept unless an app says otherwise.
const DELIVERY_DAYS: i64 = 90;
/// Deliveries that one statement removes at the most.
const STEP: i64 = 500;
const DAY: Duration = Duration::from_hours(24);

/// Runs until the server stops.
pub async fn run(services: Shared, halt: CancellationToken) {
    let look_again = Duration::from_millis(services.config.pipeline.poll_ms.max(1));
    let mut next_at = Timestamp::default();
    let mut often_at = Timestamp::default();
    loop {
        let now = services.clock.now();
        if now >= often_at {
            often_at = now.plus(OFTEN);
            if let Err(error) = remove_rejected(&services, now, &halt).await {
                tracing::warn!(error = ?error, "refused events could not be removed yet");
            }
        }
        if now >= next_at {
            let outcome = round(&services, now, &halt).await;
            next_at = now.plus(if outcome.is_ok() { PAUSE } else { SHORT_PAUSE });
            if let Err(error) = outcome {
                tracing::warn!(error = ?error, "what is past its retention could not be removed yet");
            }
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
    for (app_id, _) in versions {
        // Looked for before anything is locked: most apps have none.
        let mut tx = services.db.read().await?;
        let mut are_there = rejected::is_any_before(&mut tx, app_id, before).await?;
        drop(tx);
        while are_there && !halt.is_cancelled() {
            let mut tx = services.db.write().await?;
            are_there = rejected::delete_before(&mut tx, app_id, before).await? > 0;
            tx.commit().await?;
        }
    }
    Ok(())
}

/// Goes through all apps.
async fn round(
    services: &Shared,
    now: Timestamp,
    halt: &CancellationToken,
) -> nudge_db::Result<()> {
    let mut tx = services.db.read().await?;
    let versions = nudge_campaigns::apps::versions(&mut tx).await?;
    let ids: Vec<Uuid> = versions.into_iter().map(|(id, _)| id).collect();
    let settings = nudge_campaigns::apps::settings(&mut tx, &ids).await?;
    drop(tx);
    for (app_id, _, settings) in settings {
        let Some(settings) = settings else { continue };
        let before = |days: i64| now.minus(DAY * u32::try_from(days).unwrap_or(u32::MAX));
        let letters_before = before(settings.retention.dead_letters_days);
        while !halt.is_cancelled() {
            let mut tx = services.db.write().await?;
            let removed = store::delete_letters(&mut tx, app_id, letters_before).await?;
            tx.commit().await?;
            if removed == 0 {
                break;
            }
        }
        let noted_before = before(SUPPRESSED_DAYS);
        while !halt.is_cancelled() {
            let mut tx = services.db.write().await?;
            let removed = store::delete_suppressed(&mut tx, app_id, noted_before).await?;
            tx.commit().await?;
            if removed == 0 {
                break;
            }
        }
        let mutations_before = before(MUTATION_DAYS);
        while !halt.is_cancelled() {
            let mut tx = services.db.write().await?;
            let removed =
                nudge_records::properties::forget_before(&mut tx, app_id, mutations_before).await?;
            tx.commit().await?;
            if removed == 0 {
                break;
            }
        }
        let days = settings.retention.deliveries_days;
        let deliveries_before = before(days.unwrap_or(DELIVERY_DAYS));
        remove_deliveries(services, app_id, deliveries_before, halt).await?;
        remove_messages(services, app_id, now.minus(webhooks::KEPT), halt).await?;
        remove_counts(services, app_id, now, halt).await?;
        privacy::exports::remove_expired(services, app_id, now).await?;
        if let Some(days) = settings.retention.events_days {
            remove_events(services, app_id, before(days), halt).await?;
        }
    }
    Ok(())
}

/// Removes push deliveries that were made before an instant.
async fn remove_deliveries(
    services: &Shared,
    app_id: Uuid,
    before: Timestamp,
    halt: &CancellationToken,
) -> nudge_db::Result<()> {
    while !halt.is_cancelled() {
        let mut tx = services.db.write().await?;
        let removed = deliveries::store::delete_old(&mut tx, app_id, before, STEP).await?;
        tx.commit().await?;
        if removed == 0 {
            break;
        }
    }
    Ok(())
}

/// Removes what webhooks were told, with the attempts.
async fn remove_messages(
    services: &Shared,
    app_id: Uuid,
    before: Timestamp,
    halt: &CancellationToken,
) -> nudge_db::Result<()> {
    while !halt.is_cancelled() {
        let mut tx = services.db.write().await?;
        let removed =
            nudge_records::webhooks::messages::delete_before(&mut tx, app_id, before).await?;
        tx.commit().await?;
        if removed == 0 {
            break;
        }
    }
    Ok(())
}

/// Removes counts of an app that nobody is shown any more.
async fn remove_counts(
    services: &Shared,
    app_id: Uuid,
    now: Timestamp,
    halt: &CancellationToken,
) -> nudge_db::Result<()> {
    // A span that began before is looked at as long as it goes on.
    let definitions_before = now.minus(stats::DEFINITION_SPAN + PAUSE);
    let apps_before = now.minus(stats::KEPT);
    while !halt.is_cancelled() {
        let mut tx = services.db.write().await?;
        let removed = stats::store::forget_definitions(&mut tx, app_id, definitions_before).await?
            + stats::store::forget(&mut tx, app_id, apps_before).await?;
        tx.commit().await?;
        if removed == 0 {
            break;
        }
    }
    Ok(())
}

/// Goes through an app's aliases, some at a time.
async fn remove_events(
    services: &Shared,
    app_id: Uuid,
    before: Timestamp,
    halt: &CancellationToken,
) -> nudge_db::Result<()> {
    let mut after = None;
    loop {
        let mut tx = services.db.read().await?;
        let aliases = store::aliases(&mut tx, app_id, after.as_ref()).await?;
        drop(tx);
        let Some(last) = aliases.last().cloned() else {
            return Ok(());
        };
        let numbers: Vec<i64> = aliases.iter().map(|alias| alias.number).collect();
        loop {
            if halt.is_cancelled() {
                return Ok(());
            }
            let mut tx = services.db.write().await?;
            let removed = store::delete_events(&mut tx, app_id, &numbers, before).await?;
            tx.commit().await?;
            if removed == 0 {
                break;
            }
        }
        after = Some(last);
    }
}
