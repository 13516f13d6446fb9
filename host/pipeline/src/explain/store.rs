//! What is left of a firing, in the database.

use nudge_db::{Result, Timestamp, Tx};
use nudge_plugin_runtime::Accepted;
use nudge_records::events::SEQ_BLOCK;
use nudge_records::events::store::Stored;
use uuid::Uuid;

/// What came of an event for a campaign and subject.
#[derive(Debug, Default)]
pub struct Trace {
    /// When the instruction was issued, or the delivery made.
    pub issued: Option<Timestamp>,
    /// The push message that was made.
    pub delivery: Option<MadeDelivery>,
    /// Why there is none, if that was noted for this very event.
    pub suppressed_by: Option<String>,
    /// When that was noted.
    suppressed_at: Option<Timestamp>,
    /// Until when it is deferred.
    pub deferred_until: Option<Timestamp>,
    /// A timer that the event set.
    pub timer: Option<WaitingTimer>,
    /// Whether the event waits to be processed.
    pub pending: bool,
}

impl Trace {
    /// When it was judged, as far as that was noted.
    pub fn issued_at(&self) -> Option<Timestamp> {
        self.issued.or(self.suppressed_at)
    }

    /// What follows from it under the plugin that decides: nothing from a timer of another one.
    #[must_use]
    pub fn under(self, accepted: &Accepted) -> Self {
        let timer = self.timer;
        Self {
            timer: timer.filter(|timer| accepted.inherits(timer.plugin.as_deref())),
            ..self
        }
    }
}

/// A push message that an event caused.
#[derive(Debug, nudge_db::FromRow)]
pub struct MadeDelivery {
    /// Its id.
    pub id: Uuid,
    /// Where it stands.
    pub status: String,
    /// Why.
    pub reason: Option<String>,
    created_at: Timestamp,
}

#[derive(nudge_db::FromRow)]
struct InstructionRow {
    created_at: Timestamp,
    suppressed_by: Option<String>,
}

/// A timer that waits.
#[derive(Debug, nudge_db::FromRow)]
pub struct WaitingTimer {
    /// When it is due.
    pub due_at: Timestamp,
    /// The plugin's key.
    pub key: String,
    /// What the plugin wants back.
    pub payload: Vec<u8>,
    /// The plugin's name, if it is known.
    pub plugin: Option<String>,
}

/// What came of an event. An instruction counts for more than a note that there was none.
pub async fn trace(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    campaign_id: Uuid,
    stored: &Stored,
) -> Result<Trace> {
    let mut trace = Trace::default();
    // By the person: without statistics SQLite would read all of the campaign's.
    let instruction: Option<InstructionRow> = tx
        .sql(
            "SELECT created_at, suppressed_by FROM instructions
             WHERE app_id = $1 AND subject_id = $2 AND (campaign_id = $3) IS TRUE AND trigger_event_id = $4
             ORDER BY CASE WHEN suppressed_by IS NULL THEN 0 ELSE 1 END, created_at LIMIT 1",
        )
        .bind(app_id)
        .bind(subject_id)
        .bind(campaign_id)
        .bind(stored.event.id)
        .fetch_optional()
        .await?;
    if let Some(row) = instruction {
        if row.suppressed_by.is_some() {
            trace.suppressed_by = row.suppressed_by;
            trace.suppressed_at = Some(row.created_at);
        } else {
            trace.issued = Some(row.created_at);
        }
    }
    trace.delivery = tx
        .sql(
            "SELECT id, status, reason, created_at FROM deliveries
             WHERE app_id = $1 AND subject_id = $2 AND campaign_id = $3 AND event_id = $4 ORDER BY created_at LIMIT 1",
        )
        .bind(app_id)
        .bind(subject_id)
        .bind(campaign_id)
        .bind(stored.event.id)
        .fetch_optional()
        .await?;
    let made = trace.delivery.as_ref().map(|delivery| delivery.created_at);
    trace.issued = trace.issued.or(made);
    (trace.deferred_until, trace.timer) =
        waiting(tx, (app_id, campaign_id, subject_id), stored.seq).await?;
    let pending: Option<i64> = tx
        .sql("SELECT id AS number FROM pending WHERE id = $1 AND app_id = $2")
        .bind(stored.seq / SEQ_BLOCK)
        .bind(app_id)
        .fetch_value()
        .await?;
    trace.pending = pending.is_some_and(|row| row > 0);
    Ok(trace)
}

/// What the audit log says of the last change of a resource until an instant, if there is one. A test that was sent of a campaign
/// changes nothing.
pub async fn last_change(
    tx: &mut Tx,
    app_id: Uuid,
    resource: &str,
    until: Timestamp,
) -> Result<Option<serde_json::Value>> {
    let detail: Option<String> = tx
        .sql(
            "SELECT detail FROM audit_log
             WHERE app_id = $1 AND resource = $2 AND at <= $3 AND action <> 'campaign.test_sent'
             ORDER BY id DESC LIMIT 1",
        )
        .bind(app_id)
        .bind(resource.to_owned())
        .bind(until)
        .fetch_value()
        .await?;
    Ok(detail.and_then(|detail| serde_json::from_str(&detail).ok()))
}

/// What of an event waits: until when it is deferred, and a timer.
async fn waiting(
    tx: &mut Tx,
    (app_id, campaign_id, subject_id): (Uuid, Uuid, Uuid),
    seq: i64,
) -> Result<(Option<Timestamp>, Option<WaitingTimer>)> {
    // `+ 0`: for the order alone SQLite would read all of the campaign's.
    let deferred: Option<Timestamp> = tx
        .sql(
            "SELECT due_at FROM occasions
             WHERE app_id = $1 AND campaign_id = $2 AND subject_id = $3 AND event_seq = $4 AND firing_id IS NOT NULL
             ORDER BY due_at + 0 LIMIT 1",
        )
        .bind(app_id)
        .bind(campaign_id)
        .bind(subject_id)
        .bind(seq)
        .fetch_value()
        .await?;
    let timer = tx
        .sql(
            "SELECT due_at, key, payload, plugin FROM timers
             WHERE app_id = $1 AND campaign_id = $2 AND subject_id = $3 AND event_seq = $4 ORDER BY due_at LIMIT 1",
        )
        .bind(app_id)
        .bind(campaign_id)
        .bind(subject_id)
        .bind(seq)
        .fetch_optional()
        .await?;
    Ok((deferred, timer))
}
