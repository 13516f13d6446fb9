//! The subject of an event: what is known of it, and what the plugin keeps of it.

use std::cell::Cell as Counter;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Event, Host};
use crate::declaration::Refusal;
use crate::history::History;
use crate::instant::Instant;
use crate::value::Value;

/// The most that [`Subject::count_events`] counts.
const MAX_COUNT: u32 = 1_000;

/// The subject of an event, as of just before that event.
pub struct Subject<'c> {
    event: Event<'c>,
    randoms: Counter<u32>,
}

/// When a timer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So long after the event reached the server.
    After(Duration),
    /// At an instant, at most 90 days ahead.
    At(Instant),
}

impl From<Duration> for Moment {
    fn from(duration: Duration) -> Self {
        Self::After(duration)
    }
}

impl From<Instant> for Moment {
    fn from(instant: Instant) -> Self {
        Self::At(instant)
    }
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    bytes.filter(|_| rest.is_empty())
}

impl<'c> Subject<'c> {
    pub(super) fn new(event: Event<'c>) -> Self {
        Self {
            event,
            randoms: Counter::new(0),
        }
    }

    fn host(&self) -> Host<'c> {
        self.event.campaign().batch().host()
    }

    fn campaign(&self) -> u32 {
        self.event.campaign().number()
    }

    /// A number that equals that of another event of the batch if both are of one subject.
    pub fn number(&self) -> u32 {
        let subjects = self.event.campaign().batch().subjects();
        subjects
            .get(self.event.item() as usize)
            .copied()
            .unwrap_or_default()
    }

    /// A saved property. Faster for those that `check` names among `subject_properties`.
    ///
    /// The host is asked once a subject, whatever number of campaigns ask.
    pub fn property(&self, key: &str) -> Option<Value> {
        let ask = || self.host().subject_property(self.event.item(), key);
        let batch = self.event.campaign().batch();
        batch.known.property(self.number(), key, ask)
    }

    /// A fact: `platform`, `country`, `locale`, `timezone`, `app_version`, `external_id`, `identified`,
    /// `first_seen_at`, `last_seen_at`, `event_count`, `survey_interactions`, `message_interactions`, `held_back`
    /// or `merged_states`.
    ///
    /// The host is asked once a subject, whatever number of campaigns ask.
    pub fn fact(&self, name: &str) -> Option<Value> {
        let ask = || self.host().subject_fact(self.event.item(), name);
        let batch = self.event.campaign().batch();
        batch.known.fact(self.number(), name, ask)
    }

    /// The id of the event whose firing of this campaign the host held back last: consent, a cap, quiet hours or the
    /// like kept it from having an effect. As of before the batch.
    pub fn held_back(&self) -> Option<String> {
        let Some(Value::Json(known)) = self.fact("held_back") else {
            return None;
        };
        let known: serde_json::Value = serde_json::from_str(&known).ok()?;
        let event = known.get(self.event.campaign().id())?;
        Some(event.as_str()?.to_owned())
    }

    /// What this campaign's plugin kept of people who were merged into this one, until it stores a state: it then holds
    /// what follows from all of them. Of such people the subject's own state is kept as it was.
    pub fn merged_states(&self) -> Vec<Vec<u8>> {
        let Some(Value::Json(known)) = self.fact("merged_states") else {
            return Vec::new();
        };
        let known: serde_json::Value = serde_json::from_str(&known).unwrap_or_default();
        let Some(of_campaign) = known.get(self.event.campaign().id()) else {
            return Vec::new();
        };
        // Facts are as of before the batch: what was stored since has them in it.
        let own = of_campaign.get("own").and_then(serde_json::Value::as_str);
        let own = own.and_then(from_hexadecimal);
        if own.is_none() || own != self.state_bytes() {
            return Vec::new();
        }
        let others = of_campaign.get("others").and_then(|it| it.as_array());
        let others = others.into_iter().flatten();
        let others = others.filter_map(|state| from_hexadecimal(state.as_str()?));
        others.collect()
    }

    /// The id of the event that is decided about; for a timer, of the event that set it.
    pub fn event_id(&self) -> String {
        self.event.id()
    }

    /// How many earlier events of this name happened within a span before now (none: ever), counted up to
    /// 1,000.
    pub fn count_events(&self, name: &str, within: impl Into<Option<Duration>>) -> u32 {
        self.host()
            .count_events(self.event.item(), name, self.since(within), MAX_COUNT)
    }

    /// [`Self::count_events`], counted up to a number of 1,000 or less. The host is asked once for all campaigns
    /// that ask the same.
    pub fn count_events_up_to(
        &self,
        name: &str,
        within: impl Into<Option<Duration>>,
        at_most: u32,
    ) -> u32 {
        let (item, since) = (self.event.item(), self.since(within));
        let ask = || self.host().count_events(item, name, since, at_most);
        let batch = self.event.campaign().batch();
        batch.known.count((item, since, at_most), name, ask)
    }

    /// Whether an earlier event of this name happened within a span before now (none: ever).
    pub fn has_event(&self, name: &str, within: impl Into<Option<Duration>>) -> bool {
        self.host()
            .count_events(self.event.item(), name, self.since(within), 1)
            > 0
    }

    /// The earlier events of this name within a span before now (none: ever), newest first, at most
    /// `limit` (1,000 or less) of them, with the properties at these paths.
    pub fn recent_events(
        &self,
        name: &str,
        within: impl Into<Option<Duration>>,
        limit: u32,
        paths: &[impl AsRef<str>],
    ) -> History {
        let paths: Vec<String> = paths.iter().map(|path| path.as_ref().to_owned()).collect();
        let since = self.since(within);
        History::new(
            self.host()
                .recent_events(self.event.item(), name, since, limit, &paths),
            paths,
        )
    }

    fn since(&self, within: impl Into<Option<Duration>>) -> Option<i64> {
        within
            .into()
            .map(|span| (self.event.received() - span).micros())
    }

    /// The time of the decision.
    pub fn now(&self) -> Instant {
        self.event.received()
    }

    /// A random number: another with each call, the same for the same event and campaign.
    pub fn random(&self) -> u64 {
        let n = self.randoms.replace(self.randoms.get() + 1);
        self.host().random(self.event.item(), self.campaign(), n)
    }

    /// What was last kept of the subject for this campaign. None: nothing.
    pub fn state<T: DeserializeOwned>(&self) -> Result<Option<T>, Refusal> {
        let Some(bytes) = self.state_bytes() else {
            return Ok(None);
        };
        let state = serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("the state kept of this person has another form: {error}");
            Refusal::new("invalid_state", message)
        })?;
        Ok(Some(state))
    }

    /// Keeps something of the subject for this campaign, at most 4 KiB as JSON. More ends the call.
    ///
    /// All campaigns together keep 64 KiB of a subject. Beyond that, a campaign that would keep more than its share
    /// counts as having refused.
    pub fn set_state<T: Serialize>(&self, state: &T) -> Result<(), Refusal> {
        self.set_state_bytes(&serde_json::to_vec(state)?);
        Ok(())
    }

    /// [`Self::state`] in a form of the plugin's own.
    pub fn state_bytes(&self) -> Option<Vec<u8>> {
        self.host().get_state(self.campaign(), self.event.item())
    }

    /// [`Self::set_state`] in a form of the plugin's own.
    pub fn set_state_bytes(&self, state: &[u8]) {
        self.host()
            .set_state(self.campaign(), self.event.item(), state);
    }

    /// Forgets what was kept.
    pub fn clear_state(&self) {
        self.host().clear_state(self.campaign(), self.event.item());
    }

    /// Sets a timer, in place of one with the same key. When it is due, the plugin's `on_timer` is called.
    ///
    /// Keys have at most 128 bytes and no NUL, payloads 1 KiB. One call sets at most 64 timers for a campaign and
    /// subject, each at most 90 days ahead. More ends the call.
    ///
    /// Where several calls together set more than 64, those that are due last go. All campaigns together keep 256 timers
    /// of a subject. Beyond that, a campaign that would keep more than its share counts as having refused.
    pub fn set_timer(&self, key: &str, moment: impl Into<Moment>, payload: &[u8]) {
        let at = match moment.into() {
            Moment::After(duration) => self.now() + duration,
            Moment::At(instant) => instant,
        };
        self.host().set_timer(
            self.campaign(),
            self.event.item(),
            key,
            at.micros(),
            payload,
        );
    }

    /// Cancels the timer with this key, if there is one.
    pub fn cancel_timer(&self, key: &str) {
        self.host()
            .cancel_timer(self.campaign(), self.event.item(), key);
    }

    /// Cancels all timers of the subject for this campaign, and its firings that wait for quiet hours or a pause to end.
    pub fn cancel_timers(&self) {
        self.host()
            .cancel_timers(self.campaign(), self.event.item());
    }

    /// Says why the event does or does not fire, for the person who asks. `detail` is made only if
    /// somebody does.
    pub fn explain(&self, check: &str, passed: bool, detail: impl FnOnce() -> String) {
        if self.event.campaign().batch().explaining() {
            self.host()
                .explain(self.campaign(), self.event.item(), check, passed, &detail());
        }
    }
}
