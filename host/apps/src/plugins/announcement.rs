//! Telling endpoints of plugins.

use nudge_campaigns::webhooks::EventType;
use nudge_db::{Timestamp, Tx};
use nudge_platform::{clock, id, secrets};
use nudge_plugin_runtime::catalogue::Entry;
use nudge_plugin_runtime::rollback::FailureRate;
use nudge_plugin_runtime::rollout_period::RolloutPeriod;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::webhooks::{Transition, enqueue_of_plugin};

/// Tells endpoints that a version was rolled back, in the transaction of the roll-back.
pub(super) async fn rolled_back(
    tx: &mut Tx,
    entry: &Entry,
    now: Timestamp,
) -> nudge_db::Result<()> {
    let Some(last) = &entry.last_rollback else {
        return Ok(());
    };
    let mut data =
        json!({"plugin": entry.name, "kind": entry.kind.as_str(), "rolledBackAt": last.at});
    if let (Value::Object(data), Ok(Value::Object(last))) = (&mut data, serde_json::to_value(last))
    {
        data.extend(last.into_iter().filter(|(key, _)| key != "at"));
    }
    let transition = Transition {
        subject_id: Uuid::nil(),
        source_id: id::new(now),
        event: EventType::PluginRolledBack,
        data,
        at: now,
    };
    enqueue_of_plugin(tx, entry.app_id, &transition, now).await
}

/// Tells endpoints that an active version fails too often; each hour once, whichever process notices it.
pub(super) async fn degraded(
    tx: &mut Tx,
    entry: &Entry,
    period: &RolloutPeriod,
    hour: Timestamp,
    (failing, now): (FailureRate, Timestamp),
) -> nudge_db::Result<()> {
    let mut data = json!({
        "plugin": entry.name,
        "kind": entry.kind.as_str(),
        "version": period.version,
        "reason": failing.sentence(),
        "degradedAt": clock::to_text(now),
    });
    if let (Value::Object(data), Ok(Value::Object(failing))) =
        (&mut data, serde_json::to_value(failing))
    {
        data.extend(failing);
    }
    let hash = secrets::hash(&[
        b"degraded plugin",
        period.owner.as_bytes(),
        period.name.as_bytes(),
        period.version.as_bytes(),
        &hour.0.to_be_bytes(),
    ]);
    let transition = Transition {
        subject_id: Uuid::nil(),
        source_id: id::derived(hour, &hash),
        event: EventType::PluginDegraded,
        data,
        at: now,
    };
    enqueue_of_plugin(tx, entry.app_id, &transition, now).await
}
