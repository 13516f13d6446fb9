//! Calls of a personalization plugin, on a plugin thread.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::recipients::KnownRecipients;
use nudge_db::Timestamp;
use nudge_plugin_runtime::halving::Halving;
use nudge_plugin_runtime::statistics::{CallOutcome, Made};
use nudge_plugin_runtime::{Reading, Recorder, RolloutPeriod, logs};
use nudge_wasm::personalization::{Batch, Item, Message, Resolution};
use nudge_wasm::{Call, Failed, PastEvent, Plugin};
use uuid::Uuid;

/// One recipient of a call.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The recipient.
    pub subject_id: Uuid,
    /// The data of the request that asks for the send, a JSON object.
    pub data: Arc<str>,
    /// The event that caused the message.
    pub trigger: Option<PastEvent>,
}

/// What the plugin said of one recipient.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// What it resolved.
    Resolved(Vec<Resolution>),
    /// It failed.
    Failed {
        /// How.
        code: &'static str,
        /// What happened, for people.
        detail: String,
    },
    /// It could not be asked properly; it may be asked again.
    Unavailable,
}

/// Recipients of one message, for one version of a plugin.
#[derive(Clone)]
pub(super) struct RecipientBatch {
    pub app_id: Uuid,
    /// The campaign whose message it is; none: a preview's.
    pub campaign_id: Option<Uuid>,
    pub plugin: Arc<Plugin>,
    pub period: Arc<RolloutPeriod>,
    pub recorder: Arc<Recorder>,
    pub now: Timestamp,
    pub seed: u64,
    pub config: Arc<str>,
    pub reading: Arc<Reading>,
    pub recipients: KnownRecipients,
    /// What the plugin is asked for.
    pub kind: logs::Kind,
}

impl RecipientBatch {
    fn batch(&self, entries: &[Entry]) -> Batch {
        let message = Message {
            config: Arc::clone(&self.config),
            properties: Arc::clone(&self.reading.properties),
            subject_properties: Arc::clone(&self.reading.subject_properties),
            items: (0..).take(entries.len()).collect(),
        };
        let items = entries.iter().map(|entry| Item {
            recipient: entry.subject_id,
            data: Arc::clone(&entry.data),
            trigger: entry.trigger.clone(),
        });
        Batch {
            now: self.now.0,
            seed: self.seed,
            items: items.collect(),
            messages: vec![message],
        }
    }
}

impl Halving<Entry> for RecipientBatch {
    type Answer = Answer;

    const FAILING_TIME: Duration = Duration::from_secs(2);
    const GIVES_UP_INCONCLUSIVE: bool = true;

    fn call(&self, entries: &[Entry]) -> Result<(Vec<Answer>, Call), Failed> {
        let subjects = entries.iter().map(|entry| entry.subject_id).collect();
        let facts = self.recipients.view(subjects);
        let outcome = self.plugin.resolve(self.batch(entries), facts)?;
        let answers = divide(entries.len(), outcome.resolutions);
        Ok((answers, outcome.call))
    }

    fn note(&self, entries: &[Entry], outcome: CallOutcome, call: &Call) {
        let made = Made {
            app_id: self.app_id,
            period: &self.period,
            items: entries.len(),
            outcome,
            call,
        };
        let topics = || logs::Topics {
            subjects: entries.iter().map(|entry| entry.subject_id).collect(),
            campaigns: self.campaign_id.into_iter().collect(),
            events: entries
                .iter()
                .filter_map(|entry| Some(entry.trigger.as_ref()?.id))
                .collect(),
        };
        self.recorder.made(&made, self.kind, topics);
    }

    fn warn(&self, failed: &Failed) {
        tracing::warn!(
            app.id = %self.app_id,
            plugin.name = self.period.name,
            plugin.version = self.period.version,
            error = %failed,
            "personalization failed"
        );
    }

    fn give_up(&self, entries: &[Entry], failed: &Failed) -> Vec<Answer> {
        let answer = if failed.is_inconclusive() {
            Answer::Unavailable
        } else {
            Answer::Failed {
                code: failed.failure.code(),
                detail: failed.detail(),
            }
        };
        vec![answer; entries.len()]
    }
}

/// Gives each recipient what was resolved for it.
fn divide(entries: usize, resolutions: Vec<Resolution>) -> Vec<Answer> {
    let mut by_item: HashMap<u32, Vec<Resolution>> = HashMap::new();
    for resolution in resolutions {
        by_item.entry(resolution.item).or_default().push(resolution);
    }
    let items = (0..).take(entries);
    items
        .map(|item| Answer::Resolved(by_item.remove(&item).unwrap_or_default()))
        .collect()
}
