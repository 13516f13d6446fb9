//! When a loop that looks for work in the database looks again.

use std::time::{Duration, Instant};

use nudge_db::{Db, Timestamp};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;

/// Paces one loop. A loop that finds nothing looks again after a pause. Where this process has the database for itself,
/// it does not look at all until something is committed or falls due.
#[derive(Debug)]
pub struct Pacer {
    pause: Duration,
    clock: Clock,
    commits: Option<watch::Receiver<()>>,
    trouble: Trouble,
}

impl Pacer {
    /// Looks every `poll_ms` (`pipeline.pollMs`) while there may be something. `what` the loop does stands in the log
    /// when it fails.
    pub fn new(db: &Db, clock: &Clock, poll_ms: u64, what: &'static str) -> Self {
        Self {
            trouble: Trouble::new(what),
            pause: Duration::from_millis(poll_ms.max(1)),
            clock: clock.clone(),
            commits: db.commits(),
        }
    }

    /// A look begins: it sees everything that is committed by now. Answers whether anything was since the last look.
    pub fn look(&mut self) -> bool {
        let Some(commits) = &mut self.commits else {
            return true;
        };
        let changed = commits.has_changed().unwrap_or(true);
        commits.mark_unchanged();
        changed
    }

    /// Takes note of how a look ended. None: it failed, and the loop looks again soon.
    pub fn note<T>(&mut self, looked: nudge_db::Result<T>) -> Option<T> {
        self.trouble.note(looked)
    }

    /// Looks until the server stops.
    pub async fn run<F>(mut self, halt: CancellationToken, mut look: impl FnMut() -> F)
    where
        F: Future<Output = nudge_db::Result<Next>>,
    {
        loop {
            self.look();
            let looked = look().await;
            let next = self.note(looked).unwrap_or(Next::Soon);
            if halt.run_until_cancelled(self.wait(next)).await.is_none() {
                return;
            }
        }
    }

    /// Waits until the next look. `next` is the earliest instant at which anything that the last look saw falls due.
    pub async fn wait(&mut self, next: Next) {
        tokio::time::sleep(self.pause).await;
        let (Some(commits), Next::At(next)) = (&mut self.commits, next) else {
            return;
        };
        tokio::select! {
            _ = commits.changed() => {}
            () = self.clock.sleep_until(next) => {}
        }
    }
}

/// Tells of work that is tried until it succeeds: once when it begins to fail, and once when it succeeds again. A
/// database that is away for an hour is two lines in the log of each loop.
#[derive(Debug)]
pub struct Trouble {
    what: &'static str,
    since: Option<Instant>,
}

impl Trouble {
    /// `what` is tried, for the log.
    pub fn new(what: &'static str) -> Self {
        Self { what, since: None }
    }

    /// Takes note of an attempt. None: it failed.
    pub fn note<T, E: std::fmt::Debug>(&mut self, attempt: Result<T, E>) -> Option<T> {
        match (attempt, self.since) {
            (Ok(value), None) => Some(value),
            (Ok(value), Some(since)) => {
                self.since = None;
                let seconds = since.elapsed().as_secs();
                tracing::info!(what = self.what, seconds, "works again");
                Some(value)
            }
            (Err(error), None) => {
                self.since = Some(Instant::now());
                tracing::warn!(
                    what = self.what,
                    ?error,
                    "fails, and is tried again until it works"
                );
                None
            }
            (Err(error), Some(_)) => {
                tracing::debug!(what = self.what, ?error, "still fails");
                None
            }
        }
    }
}

/// Does something again and again, with a pause before each time, until the server stops. `what` it is stands in the log
/// when it fails.
pub async fn every<F, E>(
    pause: Duration,
    halt: CancellationToken,
    what: &'static str,
    mut turn: impl FnMut() -> F,
) where
    F: Future<Output = Result<(), E>>,
    E: std::fmt::Debug,
{
    let mut trouble = Trouble::new(what);
    let pausing = || tokio::time::sleep(pause);
    while halt.run_until_cancelled(pausing()).await.is_some() {
        trouble.note(turn().await);
    }
}

/// Notices that the clock was set back since a loop looked last, or may have been before the loop began.
#[derive(Debug, Default)]
pub struct Setbacks {
    latest: Option<Timestamp>,
}

impl Setbacks {
    /// Whether instants that were noted earlier may lie further ahead than they were meant to. True of the first look.
    pub fn look(&mut self, now: Timestamp) -> bool {
        let before = self.latest.replace(now);
        before.is_none_or(|before| before > now)
    }

    /// What a look led to was not done: the next one answers the same.
    pub fn forget(&mut self) {
        self.latest = None;
    }
}

/// How often claims are compared with what is in hand.
const STRAYS_EVERY: Duration = Duration::from_secs(10);

/// When a loop compares the rows that its process has claimed with what it has in hand. A claim without work is left
/// where the answer to a commit got lost, or the task that had the work ended before its time. The process lives, so that no
/// other one takes the row.
#[derive(Debug)]
pub struct StrayCheck {
    clock: Clock,
    checked_at: Timestamp,
    /// A turn has failed: rows may be claimed that nobody here knows of.
    in_doubt: bool,
    /// Something was committed since the last comparison, a claim perhaps.
    changed: bool,
}

impl StrayCheck {
    /// A loop that begins has claimed nothing.
    pub fn new(clock: &Clock) -> Self {
        Self {
            clock: clock.clone(),
            checked_at: clock.now(),
            in_doubt: false,
            changed: false,
        }
    }

    /// Whether to compare now: a turn has failed, or the last comparison is a while ago.
    pub fn is_due(&self) -> bool {
        let now = self.clock.now();
        self.in_doubt || now < self.checked_at || now.since(self.checked_at) >= STRAYS_EVERY
    }

    /// Claims without work are given up.
    pub fn checked(&mut self) {
        self.in_doubt = false;
        self.changed = false;
        self.checked_at = self.clock.now();
    }

    /// When a loop looks that would do so `next`: also for a comparison, once a while after each change.
    #[must_use]
    pub fn next(&mut self, next: Next, changed: bool) -> Next {
        self.changed |= changed;
        if !self.changed {
            return next;
        }
        next.or(Next::At(Some(self.checked_at.plus(STRAYS_EVERY))))
    }

    /// A turn has failed: rows may be claimed that nobody here knows of.
    pub fn doubt(&mut self) {
        self.in_doubt = true;
    }
}

/// What a look has seen of the time to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// There may be something at any time.
    Soon,
    /// Nothing before this instant; none: nothing at all.
    At(Option<Timestamp>),
}

impl Next {
    /// The earlier of two.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::At(Some(one)), Self::At(Some(other))) => Self::At(Some(one.min(other))),
            (Self::At(one), Self::At(other)) => Self::At(one.or(other)),
            _ => Self::Soon,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_over_with_the_first_success() {
        let mut trouble = Trouble::new("a test");
        assert_eq!(trouble.note(Ok::<_, ()>(1)), Some(1));
        for _ in 0..3 {
            assert_eq!(trouble.note(Err::<u8, _>("away")), None);
            assert!(trouble.since.is_some());
        }
        assert_eq!(trouble.note(Ok::<_, ()>(2)), Some(2));
        assert!(trouble.since.is_none());
    }

    #[test]
    fn claims_are_compared_once_more_after_a_change_and_then_left_alone() {
        let clock = Clock::default();
        let mut strays = StrayCheck::new(&clock);
        let (nothing, began) = (Next::At(None), strays.checked_at);
        assert_eq!(strays.next(nothing, false), nothing);

        let again = Next::At(Some(began.plus(STRAYS_EVERY)));
        assert_eq!(strays.next(nothing, true), again);
        assert_eq!(strays.next(nothing, false), again);
        assert_eq!(strays.next(Next::Soon, false), Next::Soon);
        assert!(!strays.is_due());
        clock.advance(STRAYS_EVERY);
        assert!(strays.is_due());
        strays.checked();
        assert_eq!(strays.next(nothing, false), nothing);

        strays.doubt();
        assert!(strays.is_due());
    }
}
