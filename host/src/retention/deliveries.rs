//! Deliveries that are past their retention.
//!
//! One that a frequency cap, a pause or an audience still counts stays without what it said, as [`KEPT`]. An index has
//! deliveries by status, so that a round finds those that are not kept without walking over those that are. Of these it
//! looks at some, from where the last round came to.

use std::collections::HashMap;

use nudge_campaigns::campaign::Kind;
use nudge_campaigns::settings::Frequency;
use nudge_campaigns::targeting::{FrequencyCap, Scope};
use nudge_db::{Result, Timestamp, Tx};
use nudge_records::deliveries::Status;
use nudge_records::deliveries::store::{KEPT, OldRow, delete_done, keep, old};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::services::Shared;

/// Deliveries that one transaction goes through at the most.
const STEP: usize = 500;
/// Steps through kept deliveries of an app in a round.
const STEPS: usize = 20;

/// Where the next look at kept deliveries goes on, by app: creation and id.
pub(super) type Places = HashMap<Uuid, (Timestamp, Uuid)>;

/// After when deliveries of an app are counted.
#[derive(Debug, PartialEq)]
struct Counted {
    /// Those of all campaigns.
    of_all: Timestamp,
    /// Those of each campaign.
    of_campaigns: HashMap<Uuid, Timestamp>,
}

impl Counted {
    fn none() -> Self {
        Self {
            of_all: Timestamp(i64::MAX),
            of_campaigns: HashMap::new(),
        }
    }

    /// Adds what the cap windows of a campaign count.
    fn add(&mut self, campaign_id: Uuid, cap: &FrequencyCap, app: &Frequency, now: Timestamp) {
        for cap_window in cap.cap_windows(campaign_id, Kind::Push, app) {
            let since = cap_window.since(now);
            match cap_window.scope {
                Scope::Campaign(id) => {
                    let known = self.of_campaigns.entry(id).or_insert(since);
                    *known = since.min(*known);
                }
                Scope::Kind(_) | Scope::Presented => self.of_all = since.min(self.of_all),
            }
        }
    }

    fn has(&self, delivery: &OldRow) -> bool {
        let of_campaign = self.of_campaigns.get(&delivery.campaign_id);
        delivery.counts()
            && (delivery.created_at > self.of_all
                || of_campaign.is_some_and(|since| delivery.created_at > *since))
    }
}

/// Removes deliveries of an app that were made before an instant and are done with, and empties those that are counted.
pub(super) async fn remove(
    services: &Shared,
    (app_id, frequency): (Uuid, &Frequency),
    (before, now): (Timestamp, Timestamp),
    places: &mut Places,
    halt: &CancellationToken,
) -> Result<()> {
    let mut tx = services.db.read().await?;
    let counted = counted(&mut tx, app_id, frequency, now).await?;
    drop(tx);
    let start = (Timestamp(i64::MIN), Uuid::nil());
    // One that waits for its campaign is not done with.
    for status in Status::ALL.into_iter().filter(|it| *it != Status::Queued) {
        while !halt.is_cancelled() {
            let step = (app_id, status.name());
            if pass(services, step, start, before, &counted)
                .await?
                .is_none()
            {
                break;
            }
        }
    }
    let mut after = places.remove(&app_id).unwrap_or(start);
    for _ in 0..STEPS {
        if halt.is_cancelled() {
            break;
        }
        let Some(last) = pass(services, (app_id, KEPT), after, before, &counted).await? else {
            // The next round begins again.
            return Ok(());
        };
        after = last;
    }
    places.insert(app_id, after);
    Ok(())
}

/// Goes through some deliveries of a status behind a place; answers the last one's place.
async fn pass(
    services: &Shared,
    (app_id, status): (Uuid, &'static str),
    after: (Timestamp, Uuid),
    before: Timestamp,
    counted: &Counted,
) -> Result<Option<(Timestamp, Uuid)>> {
    let mut tx = services.db.read().await?;
    let found = old(&mut tx, (app_id, status), after, before, STEP).await?;
    drop(tx);
    let Some(last) = found.last().map(|row| (row.created_at, row.id)) else {
        return Ok(None);
    };
    let (kept, gone): (Vec<OldRow>, Vec<OldRow>) =
        found.into_iter().partition(|row| counted.has(row));
    if status == KEPT && gone.is_empty() {
        return Ok(Some(last));
    }
    let mut tx = services.db.write().await?;
    delete_done(&mut tx, app_id, gone.iter().map(|row| row.id)).await?;
    if status != KEPT {
        keep(&mut tx, app_id, kept.iter().map(|row| row.id)).await?;
    }
    tx.commit().await?;
    Ok(Some(last))
}

#[derive(nudge_db::FromRow)]
struct CampaignRow {
    id: Uuid,
    body: String,
}

/// What the campaigns, the settings and the audiences of an app count.
async fn counted(
    tx: &mut Tx,
    app_id: Uuid,
    frequency: &Frequency,
    now: Timestamp,
) -> Result<Counted> {
    let mut counted = Counted::none();
    counted.add(Uuid::nil(), &FrequencyCap::default(), frequency, now);
    let campaigns: Vec<CampaignRow> = tx
        .sql("SELECT id, body FROM campaigns WHERE app_id = $1 AND kind = 'push'")
        .bind(app_id)
        .fetch_all()
        .await?;
    for CampaignRow { id, body } in campaigns {
        let body: Value = serde_json::from_str(&body)
            .map_err(|cause| nudge_db::Error::corrupt("campaigns", "body", cause))?;
        let cap = body.get("frequencyCap").filter(|cap| !cap.is_null());
        // A draft may have one that is none.
        let cap = FrequencyCap::read(cap, "").unwrap_or_default();
        counted.add(id, &cap, frequency, now);
    }
    if is_asked_for(tx, app_id).await? {
        counted.of_all = Timestamp(i64::MIN);
    }
    Ok(counted)
}

/// Whether an audience asks what people did with messages.
async fn is_asked_for(tx: &mut Tx, app_id: Uuid) -> Result<bool> {
    let asking: Vec<Uuid> = tx
        .sql(
            "SELECT id FROM campaigns WHERE app_id = $1 AND status = 'active' AND body LIKE '%\"message_interaction\"%'
             UNION ALL SELECT id FROM segments WHERE app_id = $1 AND audience LIKE '%\"message_interaction\"%'",
        )
        .bind(app_id)
        .fetch_values()
        .await?;
    Ok(!asking.is_empty())
}
