//! What a trigger plugin has asked for, within the contract's limits.

use std::collections::{BTreeMap, BTreeSet};

use super::Stop;
use crate::call::Call;
use crate::limits::{
    STATE_BYTES, TIMER_AHEAD_MICROSECONDS, TIMER_KEY_BYTES, TIMER_PAYLOAD_BYTES, TIMERS_PER_SUBJECT,
};
use crate::trigger::{Explanation, Firing, StateWrite, TimerChange, TriggerOutcome};

/// A campaign and a subject.
type Pair = (u32, u32);

/// Firings, states, timers, explanations. Ordered maps, so that equal batches have equal outcomes.
#[derive(Debug, Default)]
pub(super) struct Requested {
    /// Whether the plugin is one of the host's own, whose timers are as many as it takes.
    unlimited_timers: bool,
    fired: Vec<Firing>,
    states: BTreeMap<Pair, Option<Vec<u8>>>,
    timers: Vec<TimerChange>,
    cancelled_at: Vec<u32>,
    timer_keys: BTreeMap<Pair, BTreeSet<String>>,
    explanations: Vec<Explanation>,
}

impl Requested {
    pub(super) fn new(unlimited_timers: bool) -> Self {
        Self {
            unlimited_timers,
            ..Self::default()
        }
    }

    pub(super) fn fire(&mut self, campaign: u32, item: u32) {
        self.fired.push(Firing { campaign, item });
    }

    /// What this call has stored: `Some(None)` where it has cleared the state.
    pub(super) fn state(&self, campaign: u32, subject: u32) -> Option<&Option<Vec<u8>>> {
        self.states.get(&(campaign, subject))
    }

    pub(super) fn set_state(
        &mut self,
        campaign: u32,
        subject: u32,
        state: Option<Vec<u8>>,
    ) -> Result<(), Stop> {
        if state
            .as_ref()
            .is_some_and(|state| state.len() > STATE_BYTES)
        {
            return Err(Stop::StateTooLarge);
        }
        self.states.insert((campaign, subject), state);
        Ok(())
    }

    /// `due`: when the timer is due, when the item reached the server, and the batch's time.
    pub(super) fn set_timer(
        &mut self,
        pair: Pair,
        item: u32,
        key: String,
        due: (i64, i64, i64),
        payload: Vec<u8>,
    ) -> Result<(), Stop> {
        let (at, received, now) = due;
        check_key(&key)?;
        if payload.len() > TIMER_PAYLOAD_BYTES {
            return Err(Stop::TimerPayloadTooLarge);
        }
        if at.saturating_sub(now) > TIMER_AHEAD_MICROSECONDS {
            return Err(Stop::TimerTooFarAhead);
        }
        let keys = self.timer_keys.entry(pair).or_default();
        if !keys.contains(&key) {
            if keys.len() >= TIMERS_PER_SUBJECT && !self.unlimited_timers {
                return Err(Stop::TooManyTimers);
            }
            keys.insert(key.clone());
        }
        self.timers.push(TimerChange::Set {
            campaign: pair.0,
            item,
            key,
            // Times of before the item mean nothing but "at once". Others of its batch came later, maybe after it is due.
            at: at.max(received),
            payload,
        });
        Ok(())
    }

    /// Cancels nothing where no timer can have the key.
    pub(super) fn cancel_timer(&mut self, pair: Pair, item: u32, key: String) {
        if check_key(&key).is_err() {
            return;
        }
        let (campaign, subject) = pair;
        if let Some(keys) = self.timer_keys.get_mut(&pair) {
            keys.remove(&key);
        }
        self.cancelled_at.push(item);
        self.timers.push(TimerChange::Cancel {
            campaign,
            subject,
            key,
        });
    }

    pub(super) fn cancel_timers(&mut self, pair: Pair, item: u32) {
        let (campaign, subject) = pair;
        self.timer_keys.remove(&pair);
        self.cancelled_at.push(item);
        self.timers
            .push(TimerChange::CancelAll { campaign, subject });
    }

    pub(super) fn explain(&mut self, explanation: Explanation) {
        self.explanations.push(explanation);
    }

    pub(super) fn into_outcome(mut self, call: Call) -> TriggerOutcome {
        self.fired
            .sort_unstable_by_key(|firing| (firing.item, firing.campaign));
        self.fired.dedup();
        let states = self.states.into_iter();
        TriggerOutcome {
            fired: self.fired,
            states: states
                .map(|((campaign, subject), state)| StateWrite {
                    campaign,
                    subject,
                    state,
                })
                .collect(),
            timers: self.timers,
            cancelled_at: self.cancelled_at,
            explanations: self.explanations,
            call,
        }
    }
}

fn check_key(key: &str) -> Result<(), Stop> {
    if key.len() > TIMER_KEY_BYTES {
        return Err(Stop::TimerKeyTooLong);
    }
    // PostgreSQL keeps no NUL in a text.
    if key.contains('\0') {
        return Err(Stop::TimerKeyWithNul);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_000_000;

    fn set(asked: &mut Requested, key: &str, at: i64, payload: usize) -> Result<(), Stop> {
        asked.set_timer((0, 0), 0, key.to_owned(), (at, NOW, NOW), vec![0; payload])
    }

    #[test]
    fn timers_keep_to_the_contract() {
        let mut asked = Requested::default();
        assert_eq!(set(&mut asked, &"k".repeat(128), NOW, 1024), Ok(()));
        assert_eq!(
            set(&mut asked, &"k".repeat(129), NOW, 0),
            Err(Stop::TimerKeyTooLong)
        );
        assert_eq!(
            set(&mut asked, "k", NOW, 1025),
            Err(Stop::TimerPayloadTooLarge)
        );
        assert_eq!(
            set(&mut asked, "k", NOW + TIMER_AHEAD_MICROSECONDS, 0),
            Ok(())
        );
        assert_eq!(
            set(&mut asked, "k", NOW + TIMER_AHEAD_MICROSECONDS + 1, 0),
            Err(Stop::TimerTooFarAhead)
        );
        assert_eq!(
            set(&mut asked, "k", i64::MAX, 0),
            Err(Stop::TimerTooFarAhead)
        );
        assert_eq!(set(&mut asked, "a\0", NOW, 0), Err(Stop::TimerKeyWithNul));
    }

    #[test]
    fn a_key_that_no_timer_has_cancels_nothing() {
        let mut asked = Requested::default();
        for key in ["a\0".to_owned(), "k".repeat(129)] {
            asked.cancel_timer((0, 0), 0, key);
        }
        asked.cancel_timer((0, 0), 1, "k".repeat(128));
        let outcome = asked.into_outcome(Call::default());
        let cancelled = outcome.timers.iter().map(|change| match change {
            TimerChange::Cancel { key, .. } => key.len(),
            _ => 0,
        });
        assert_eq!(cancelled.collect::<Vec<_>>(), [128]);
        assert_eq!(outcome.cancelled_at, [1]);
    }

    #[test]
    fn a_timer_in_the_past_is_due_at_once() {
        let mut asked = Requested::default();
        assert_eq!(set(&mut asked, "k", i64::MIN, 0), Ok(()));
        let timers = asked.into_outcome(Call::default()).timers;
        assert!(
            matches!(timers[..], [TimerChange::Set { at: NOW, .. }]),
            "{timers:?}"
        );
    }

    #[test]
    fn a_timer_that_is_set_again_or_cancelled_takes_no_more_room() {
        let mut asked = Requested::default();
        for number in 0..64 {
            assert_eq!(set(&mut asked, &number.to_string(), NOW, 0), Ok(()));
        }
        assert_eq!(set(&mut asked, "0", NOW, 0), Ok(()));
        assert_eq!(set(&mut asked, "64", NOW, 0), Err(Stop::TooManyTimers));
        asked.cancel_timer((0, 0), 2, "0".to_owned());
        assert_eq!(set(&mut asked, "64", NOW, 0), Ok(()));
        asked.cancel_timers((0, 0), 3);
        assert_eq!(set(&mut asked, "65", NOW, 0), Ok(()));
        assert_eq!(asked.into_outcome(Call::default()).cancelled_at, [2, 3]);
    }

    #[test]
    fn the_hosts_own_plugin_sets_as_many_timers_as_it_takes() {
        let mut asked = Requested::new(true);
        for number in 0..200 {
            assert_eq!(set(&mut asked, &number.to_string(), NOW, 0), Ok(()));
        }
    }

    #[test]
    fn firings_are_distinct_and_in_order() {
        let mut asked = Requested::default();
        for (campaign, item) in [(1, 0), (0, 1), (0, 0), (1, 0)] {
            asked.fire(campaign, item);
        }
        let fired = asked.into_outcome(Call::default()).fired;
        let fired: Vec<_> = fired
            .into_iter()
            .map(|firing| (firing.item, firing.campaign))
            .collect();
        assert_eq!(fired, [(0, 0), (0, 1), (1, 0)]);
    }
}
