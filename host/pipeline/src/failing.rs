//! Work that fails by itself, for a defect of the server or a row that can't be read.
//!
//! A lane puts it aside, with what stands behind it of its alias, and tries it again now and then, apart from all other work:
//! nobody else waits for it. Meanwhile it stays claimed, and in the database.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::work::Work;

/// The pause before work is tried again; it doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What fails in a lane, by alias.
#[derive(Debug, Default)]
pub(super) struct FailingWorks(HashMap<i64, Failing>);

/// Work of one alias: a piece that failed, and what stands behind it.
#[derive(Debug)]
pub(super) struct Failing {
    works: VecDeque<Work>,
    pause: Duration,
    look_at: Instant,
}

impl FailingWorks {
    /// Puts work aside that has failed, or that stands behind such work.
    pub(super) fn add(&mut self, work: Work, now: Instant) {
        let failing = self.0.entry(work.alias).or_insert_with(|| Failing {
            works: VecDeque::new(),
            pause: FIRST_PAUSE,
            look_at: now + FIRST_PAUSE,
        });
        failing.works.push_back(work);
    }

    /// Puts aside what stands behind work that fails; answers the rest.
    pub(super) fn keep_behind(&mut self, works: impl IntoIterator<Item = Work>) -> VecDeque<Work> {
        let mut free = VecDeque::new();
        for work in works {
            match self.0.get_mut(&work.alias) {
                Some(failing) => failing.works.push_back(work),
                None => free.push_back(work),
            }
        }
        free
    }

    /// When to try again; none: nothing fails.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.0.values().map(|failing| failing.look_at).min()
    }

    /// Takes out the alias's work that has waited longest for being tried again, if it is time.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Failing> {
        let (alias, first) = self.0.iter().min_by_key(|(_, failing)| failing.look_at)?;
        let due = (first.look_at <= now).then_some(*alias)?;
        self.0.remove(&due)
    }

    /// Puts work back that has failed once more.
    pub(super) fn put_back(&mut self, failed: Work, mut behind: Failing, now: Instant) {
        let alias = failed.alias;
        behind.works.push_front(failed);
        behind.pause = (behind.pause * 2).min(LONGEST_PAUSE);
        behind.look_at = now + behind.pause;
        self.0.insert(alias, behind);
    }
}

impl Failing {
    /// Something else has kept it from being done: the next pause is the first one.
    pub(super) fn begin_anew(&mut self) {
        self.pause = FIRST_PAUSE / 2;
    }

    /// Takes out the piece that comes first.
    pub(super) fn take_first(&mut self) -> Option<Work> {
        self.works.make_contiguous().sort_by_key(Work::order);
        self.works.pop_front()
    }

    /// What stood behind it, once nothing fails any longer.
    pub(super) fn into_works(self) -> VecDeque<Work> {
        self.works
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::work::Source;

    fn request(id: i64, alias: i64) -> Work {
        Work::new(Source::Request(id), Uuid::nil(), alias, Vec::new(), None)
    }

    fn ids(works: impl IntoIterator<Item = Work>) -> Vec<i64> {
        let works = works.into_iter();
        works.filter_map(|work| work.request_id()).collect()
    }

    #[test]
    fn what_fails_is_tried_ever_more_seldom_and_has_its_alias_wait() {
        let mut now = Instant::now();
        let mut failing = FailingWorks::default();
        failing.add(request(2, 1), now);
        let free = failing.keep_behind([request(1, 1), request(3, 2)]);
        assert_eq!(ids(free), [3]);
        for pause in [100, 200, 400] {
            now += Duration::from_millis(pause - 1);
            assert!(failing.take_due(now).is_none());
            now += Duration::from_millis(1);
            let mut due = failing.take_due(now).unwrap();
            let first = due.take_first().unwrap();
            assert_eq!(first.request_id(), Some(1));
            failing.put_back(first, due, now);
        }
        let due = failing.take_due(now + LONGEST_PAUSE).unwrap();
        assert_eq!(ids(due.into_works()), [1, 2]);
        assert_eq!(failing.next_look(), None);
    }
}
