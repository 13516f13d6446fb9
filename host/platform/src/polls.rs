//! The SDKs that wait for instructions, and what wakes them.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use tokio::sync::Notify;
use uuid::Uuid;

/// The subjects whose SDKs wait. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Polls {
    waiting: Arc<Mutex<HashMap<Uuid, OpenPolls>>>,
    /// How often polls have looked.
    looks: Arc<AtomicU64>,
}

/// The open polls of a subject.
#[derive(Debug, Default)]
struct OpenPolls {
    notify: Arc<Notify>,
    polls: usize,
    /// What one of them saw last.
    seen: Option<State>,
    /// The version of the subject that one of them saw last, where any change of the subject may bring something.
    watched: Option<i64>,
}

/// What of a subject its polls depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, nudge_db::FromRow)]
pub struct State {
    /// How many instructions it has had.
    pub instructions: i64,
    /// Moves when one of its tokens ends.
    pub tokens: i64,
    /// Whether nothing may be stored of it.
    pub suppressed: bool,
    /// Whether it may be sent something, if it has said so.
    pub messaging_consent: Option<bool>,
}

/// One open poll; its place is given back when it is dropped.
#[derive(Debug)]
pub struct Poll {
    polls: Polls,
    subject_id: Uuid,
    notify: Arc<Notify>,
}

impl Polls {
    /// Opens a poll. What is issued from now on wakes it.
    pub fn open(&self, subject_id: Uuid) -> Poll {
        let mut waiting = self.waiting.lock();
        let of_subject = waiting.entry(subject_id).or_default();
        of_subject.polls += 1;
        let notify = Arc::clone(&of_subject.notify);
        Poll {
            polls: self.clone(),
            subject_id,
            notify,
        }
    }

    /// Wakes a subject's polls.
    pub fn wake(&self, subject_id: Uuid) {
        if let Some(waiting) = self.waiting.lock().get(&subject_id) {
            waiting.notify.notify_waiters();
        }
    }

    /// Wakes everybody's polls: whether their app and its keys are still there, or what it offers, has changed.
    pub fn wake_all(&self) {
        for waiting in self.waiting.lock().values() {
            waiting.notify.notify_waiters();
        }
    }

    /// How many polls are open.
    pub fn count(&self) -> usize {
        self.waiting
            .lock()
            .values()
            .map(|waiting| waiting.polls)
            .sum()
    }

    /// How often polls have looked for something: once when they are opened, when they are woken, and when their
    /// time is over.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Notes how a subject is, and wakes its polls if one of them saw it otherwise. None: it is gone.
    pub fn compare(&self, subject_id: Uuid, state: Option<State>) {
        if let Some(waiting) = self.waiting.lock().get_mut(&subject_id)
            && waiting.seen.is_some()
            && waiting.seen != state
        {
            waiting.seen = state;
            waiting.notify.notify_waiters();
        }
    }

    /// The subjects of which any change wakes their polls.
    pub fn watched(&self) -> Vec<Uuid> {
        let waiting = self.waiting.lock();
        let watched = waiting.iter().filter(|(_, polls)| polls.watched.is_some());
        watched.map(|(subject_id, _)| *subject_id).collect()
    }

    /// Notes the version of a watched subject, and wakes its polls if they saw an earlier one. None: the subject is gone.
    pub fn compare_version(&self, subject_id: Uuid, version: Option<i64>) {
        if let Some(waiting) = self.waiting.lock().get_mut(&subject_id)
            && let Some(seen) = waiting.watched
            && version.is_none_or(|version| version > seen)
        {
            waiting.watched = version;
            waiting.notify.notify_waiters();
        }
    }

    /// The subjects that are waited for.
    pub fn subjects(&self) -> Vec<Uuid> {
        self.waiting.lock().keys().copied().collect()
    }
}

impl Poll {
    /// What resolves at the next issue; take it before looking, so that none is missed.
    pub fn issued(&self) -> tokio::sync::futures::Notified<'_> {
        self.notify.notified()
    }

    /// Notes how the subject was when this poll looked. Another poll that saw it otherwise looks again.
    pub fn saw(&self, state: State) {
        self.polls.looks.fetch_add(1, Ordering::Relaxed);
        let mut waiting = self.polls.waiting.lock();
        if let Some(waiting) = waiting.get_mut(&self.subject_id) {
            let before = waiting.seen.replace(state);
            if before.is_some_and(|before| before != state) {
                waiting.notify.notify_waiters();
            }
        }
    }

    /// Notes the version of the subject that this poll looked at, so that any change of the subject wakes the poll; none: no
    /// longer. Another poll that saw an earlier version looks again.
    pub fn watches(&self, version: Option<i64>) {
        let mut waiting = self.polls.waiting.lock();
        if let Some(waiting) = waiting.get_mut(&self.subject_id) {
            let before = std::mem::replace(&mut waiting.watched, version);
            if before.is_some() && before < version {
                waiting.notify.notify_waiters();
            }
        }
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        let mut waiting = self.polls.waiting.lock();
        if let Some(of_subject) = waiting.get_mut(&self.subject_id) {
            of_subject.polls = of_subject.polls.saturating_sub(1);
            if of_subject.polls == 0 {
                waiting.remove(&self.subject_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(instructions: i64) -> State {
        State {
            instructions,
            tokens: 0,
            suppressed: false,
            messaging_consent: None,
        }
    }

    /// Whether a poll is woken by something.
    fn wakes(poll: &Poll, by: impl FnOnce()) -> bool {
        let mut issued = std::pin::pin!(poll.issued());
        issued.as_mut().enable();
        by();
        futures_util::FutureExt::now_or_never(issued).is_some()
    }

    #[test]
    fn a_poll_is_woken_by_its_own_subjects_news_alone() {
        let polls = Polls::default();
        let (ada, bob) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let poll = polls.open(ada);
        assert!(wakes(&poll, || polls.wake(ada)));
        assert!(!wakes(&poll, || polls.wake(bob)));
        assert!(wakes(&poll, || polls.wake_all()));
    }

    #[test]
    fn what_another_process_did_wakes_whoever_has_not_seen_it() {
        let polls = Polls::default();
        let ada = Uuid::from_u128(1);
        let poll = polls.open(ada);
        // It has not looked yet, and will.
        assert!(!wakes(&poll, || polls.compare(ada, Some(state(1)))));
        poll.saw(state(1));
        assert!(!wakes(&poll, || polls.compare(ada, Some(state(1)))));
        assert!(wakes(&poll, || polls.compare(ada, Some(state(2)))));
        assert!(wakes(&poll, || polls.compare(ada, None)));
        // A second poll sees more than the first did.
        let second = polls.open(ada);
        poll.saw(state(2));
        assert!(wakes(&poll, || second.saw(state(3))));
    }

    #[test]
    fn a_change_of_a_subject_wakes_the_polls_that_watch_it() {
        let polls = Polls::default();
        let ada = Uuid::from_u128(1);
        let poll = polls.open(ada);
        assert!(!wakes(&poll, || polls.compare_version(ada, Some(1))));
        poll.watches(Some(1));
        assert_eq!(polls.watched(), [ada]);
        assert!(!wakes(&poll, || polls.compare_version(ada, Some(1))));
        assert!(wakes(&poll, || polls.compare_version(ada, Some(2))));
        // What was read before the poll looked is older than what the poll saw.
        poll.watches(Some(3));
        assert!(!wakes(&poll, || polls.compare_version(ada, Some(2))));
        // A second poll sees a later version than the first did.
        let second = polls.open(ada);
        assert!(wakes(&poll, || second.watches(Some(4))));
        assert!(wakes(&poll, || polls.compare_version(ada, None)));
        poll.watches(None);
        assert!(polls.watched().is_empty());
    }

    #[test]
    fn a_place_is_given_back_with_the_last_poll() {
        let polls = Polls::default();
        let ada = Uuid::from_u128(1);
        let (one, two) = (polls.open(ada), polls.open(ada));
        assert_eq!((polls.count(), polls.subjects().len()), (2, 1));
        drop(one);
        assert_eq!((polls.count(), polls.subjects().len()), (1, 1));
        drop(two);
        assert_eq!((polls.count(), polls.subjects().len()), (0, 0));
    }
}
