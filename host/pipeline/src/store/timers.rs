//! The timers that plugins have set.

use std::collections::BTreeSet;

use nudge_db::{IS, Result, Rows, Timestamp, Tx};
use nudge_wasm::limits::TIMERS_PER_SUBJECT;
use uuid::Uuid;

use crate::effects::timers::{NewTimer, TimerKey};

/// Removes timers that were due. False: one is not this process's any longer, was set anew or cancelled.
pub(crate) async fn delete_due(tx: &mut Tx, ids: &[Uuid], node: Uuid) -> Result<bool> {
    let mut deleted = 0;
    for chunk in ids.chunks(Rows::MOST) {
        deleted += tx
            .with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(" DELETE FROM timers WHERE id IN (SELECT v.id FROM v) AND node")
            .push(IS)
            .push_bind(node)
            .execute()
            .await?;
    }
    Ok(deleted == ids.len() as u64)
}

/// Removes timers: all of some campaigns and subjects, and single ones, but for those that were due before an instant.
pub(crate) async fn cancel(
    tx: &mut Tx,
    app_id: Uuid,
    all: &[(Uuid, Uuid, Timestamp)],
    single: &[(TimerKey, Timestamp)],
) -> Result<()> {
    for chunk in all.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|of| of.0))
            .uuids(chunk.iter().map(|of| of.1))
            .timestamps(chunk.iter().map(|of| of.2));
        tx.with_rows("v(campaign_id, subject_id, at)", rows)
            .push(
                " DELETE FROM timers WHERE (campaign_id, subject_id) IN (SELECT v.campaign_id, v.subject_id FROM v)
                    AND due_at >= (SELECT min(v.at) FROM v WHERE v.campaign_id = timers.campaign_id
                                     AND v.subject_id = timers.subject_id)
                    AND app_id = ",
            )
            .push_bind(app_id)
            .execute()
            .await?;
    }
    for chunk in single.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|(timer, _)| timer.campaign_id))
            .uuids(chunk.iter().map(|(timer, _)| timer.subject_id))
            .texts(chunk.iter().map(|(timer, _)| timer.key.clone()))
            .timestamps(chunk.iter().map(|(_, at)| *at));
        tx.with_rows("v(campaign_id, subject_id, key, at)", rows)
            .push(
                " DELETE FROM timers
                  WHERE (campaign_id, subject_id, key) IN (SELECT v.campaign_id, v.subject_id, v.key FROM v)
                    AND due_at >= (SELECT min(v.at) FROM v WHERE v.campaign_id = timers.campaign_id
                                     AND v.subject_id = timers.subject_id AND v.key = timers.key)
                    AND app_id = ",
            )
            .push_bind(app_id)
            .execute()
            .await?;
    }
    Ok(())
}

/// Removes the timers of a plugin that a campaign and subject have too many of, those that are due last. A plugin is
/// told of its own call's only: it does not know what earlier calls have set.
async fn delete_surplus(tx: &mut Tx, app_id: Uuid, timers: &[NewTimer]) -> Result<()> {
    let limited = timers
        .iter()
        .filter(|timer| !timer.plugin.has_unlimited_timers());
    let owners: BTreeSet<(Uuid, Uuid, &str)> = limited
        .map(|timer| {
            (
                timer.timer_key.campaign_id,
                timer.timer_key.subject_id,
                &*timer.plugin.description().name,
            )
        })
        .collect();
    if owners.is_empty() {
        return Ok(());
    }
    let rows = Rows::new()
        .uuids(owners.iter().map(|owner| owner.0))
        .uuids(owners.iter().map(|owner| owner.1))
        .texts(owners.iter().map(|owner| owner.2.to_owned()));
    let most = i64::try_from(TIMERS_PER_SUBJECT).unwrap_or(i64::MAX);
    let deleted = tx
        .with_rows("v(campaign_id, subject_id, plugin)", rows)
        .push(
            " DELETE FROM timers WHERE id IN (
                SELECT ranked.id FROM (
                    SELECT t.id, row_number() OVER (PARTITION BY t.campaign_id, t.subject_id ORDER BY t.due_at, t.id) AS place
                    FROM timers t WHERE (t.campaign_id, t.subject_id) IN (SELECT v.campaign_id, v.subject_id FROM v)
                      AND (t.plugin IS NULL
                           OR (t.campaign_id, t.subject_id, t.plugin) IN (SELECT v.campaign_id, v.subject_id, v.plugin FROM v))
                ) ranked WHERE ranked.place > ",
        )
        .push_bind(most)
        .push(") AND app_id = ")
        .push_bind(app_id)
        .execute()
        .await?;
    if deleted > 0 {
        tracing::warn!(app.id = %app_id, timers = deleted, "a plugin has set more timers than it may");
    }
    Ok(())
}

/// Sets timers, each in place of one with the same key.
pub(crate) async fn set(
    tx: &mut Tx,
    app_id: Uuid,
    timers: &[NewTimer],
    now: Timestamp,
) -> Result<()> {
    for chunk in timers.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|timer| timer.id))
            .uuids(chunk.iter().map(|timer| timer.timer_key.campaign_id))
            .uuids(chunk.iter().map(|timer| timer.timer_key.subject_id))
            .texts(chunk.iter().map(|timer| timer.timer_key.key.clone()))
            .texts(
                chunk
                    .iter()
                    .map(|timer| timer.plugin.description().name.clone()),
            )
            .timestamps(chunk.iter().map(|timer| timer.due_at))
            .bytes(chunk.iter().map(|timer| timer.payload.clone()))
            .integers(chunk.iter().map(|timer| timer.event_seq));
        tx.with_rows("v(id, campaign_id, subject_id, key, plugin, due_at, payload, event_seq)", rows)
            .push(
                " INSERT INTO timers (id, campaign_id, subject_id, key, plugin, due_at, payload, event_seq, app_id, set_at)
                  SELECT v.id, v.campaign_id, v.subject_id, v.key, v.plugin, v.due_at, v.payload, v.event_seq, ",
            )
            .push_bind(app_id)
            .push(", ")
            .push_bind(now)
            .push(
                " FROM v WHERE true ON CONFLICT (campaign_id, subject_id, key)
                  DO UPDATE SET id = excluded.id, due_at = excluded.due_at, payload = excluded.payload, plugin = excluded.plugin,
                                event_seq = excluded.event_seq, set_at = excluded.set_at, node = NULL",
            )
            .execute()
            .await?;
        delete_surplus(tx, app_id, chunk).await?;
    }
    Ok(())
}
