//! Occasions in this process's memory: how many there may be, and how they come to their lanes.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nudge_campaigns::campaign::Kind;
use nudge_db::Timestamp;
use nudge_records::events::store::Stored;
use nudge_records::scheduled_work::{self, ClaimedOccasion, DueOccasion};
use tokio::time::Instant;
use uuid::Uuid;

use super::work::{Source, Work};
use super::{Pipeline, Size};

/// Occasions that are in memory at once, at the most: a run over all subjects leaves room for what arrives.
const MOST: usize = 960;
/// How soon a run that waits for room looks again.
const LOOK: Duration = Duration::from_millis(4);

impl Pipeline {
    /// How many more occasions may be in memory.
    pub(crate) fn room_for_occasions(&self) -> usize {
        MOST.saturating_sub(self.inner().in_hand.occasions())
    }

    /// Waits until there is room for so many occasions of a run and, if messages come of them, for those, but no longer than
    /// `most`. So what a run makes goes straight to the pipeline and from there to the sender, and nobody has to claim it.
    /// Where other processes share the work, nothing is waited for.
    pub(crate) async fn wait_for_room_for_occasions(
        &self,
        app_id: Uuid,
        kind: Kind,
        count: usize,
        most: Duration,
    ) {
        let until = Instant::now() + most;
        while self.inner().is_alone.load(Ordering::Relaxed) && Instant::now() < until {
            let messages = match kind {
                Kind::Push => self.deliveries().of_app(app_id),
                _ => 0,
            };
            if messages + count <= self.room_for_occasions() {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Gives occasions that this process has claimed to their lanes. `events` are those behind them that were sent, by number.
    pub(crate) fn submit_occasions(
        &self,
        claimed: impl IntoIterator<Item = ClaimedOccasion>,
        events: &HashMap<i64, (Uuid, i64, Stored)>,
    ) {
        // Those of a run have one event in common.
        let mut own: HashMap<(Uuid, Timestamp), Stored> = HashMap::new();
        for occasion in claimed {
            let campaign_id = occasion.campaign_id;
            let stored = match scheduled_work::instant_of(occasion.event_seq) {
                Some(at) => {
                    let event = || scheduled_work::event(campaign_id, at);
                    let stored = own.entry((campaign_id, at)).or_insert_with(event);
                    Some(stored.clone())
                }
                None => events
                    .get(&occasion.event_seq)
                    .map(|(_, _, stored)| stored.clone()),
            };
            let Some(stored) = stored else {
                continue;
            };
            let due = DueOccasion {
                id: occasion.id,
                campaign_id,
                key: occasion.key,
                firing_id: occasion.firing_id,
            };
            let room = self.inner().room_for_claimed(Size::of([&*stored.event]));
            self.submit(Work::new(
                Source::Occasion(due),
                occasion.app_id,
                occasion.alias_number,
                vec![stored],
                room,
            ));
        }
    }
}
