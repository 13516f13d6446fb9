//! When a loop that looks for work in the database looks again.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nudge_db::{Db, Timestamp};
use parking_lot::Mutex;
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
    /// Whether a commit ended the last wait.
    woken: bool,
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
            woken: false,
        }
    }

    /// A look begins: it sees everything that is committed by now. Answers whether anything was since the last look.
    pub fn look(&mut self) -> bool {
        let Some(commits) = &mut self.commits else {
            return true;
        };
        let changed = commits.borrow_and_update().has_changed();
        std::mem::take(&mut self.woken) || changed
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
            _ = commits.changed() => self.woken = true,
            () = self.clock.sleep_until(next) => {}
        }
    }
}

/// Whether a pause is over that began at an instant. One that has not come yet is from before the clock was set back.
pub fn is_over(pause: Duration, began: Timestamp, now: Timestamp) -> bool {
    now < began || now.since(began) >= pause
}

/// Errors of one app are no other app's trouble: a round notes them, goes on, and fails at its end.
#[derive(Debug, Default)]
pub struct FirstError(Option<nudge_db::Error>);

impl FirstError {
    /// Takes note of what came of one. An error where the database is away ends the round: it is everybody's.
    pub fn note(&mut self, outcome: nudge_db::Result<()>) -> nudge_db::Result<()> {
        match outcome {
            Err(error) if error.is_outage() => Err(error),
            Err(error) => {
                self.0.get_or_insert(error);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Ends the round.
    pub fn end(self) -> nudge_db::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// Why work failed, as far as it matters for the log.
pub trait Failure: fmt::Debug {
    /// Whether the database is away: then all that needs it fails, for one reason.
    fn is_outage(&self) -> bool {
        false
    }
}

impl Failure for nudge_db::Error {
    fn is_outage(&self) -> bool {
        self.kind() == nudge_db::Kind::Unavailable
    }
}

impl Failure for anyhow::Error {
    fn is_outage(&self) -> bool {
        let cause = self.downcast_ref::<nudge_db::Error>();
        cause.is_some_and(Failure::is_outage)
    }
}

/// Tells of work that is tried until it succeeds: once when it begins to fail, and once when it succeeds again. A
/// database that is away for an hour is two lines in the log of the process, whatever needs it.
#[derive(Debug)]
pub struct Trouble {
    what: &'static str,
    /// Since when it fails, for a reason of its own.
    since: Option<Instant>,
    /// It is tried until it works; what is only tried when somebody asks may not be tried again.
    is_loop: bool,
    /// It counts among what waits for the database.
    waits: bool,
}

impl Trouble {
    /// `what` is tried, for the log.
    pub fn new(what: &'static str) -> Self {
        Self {
            what,
            since: None,
            is_loop: true,
            waits: false,
        }
    }

    /// `what` is tried when somebody asks.
    pub fn of_questions(what: &'static str) -> Self {
        Self {
            is_loop: false,
            ..Self::new(what)
        }
    }

    /// Takes note of an attempt. None: it failed.
    pub fn note<T, E: Failure>(&mut self, attempt: Result<T, E>) -> Option<T> {
        match attempt {
            Ok(value) => {
                // A loop that did not fail may have found nothing to do, and asked the database nothing.
                if self.waits || !self.is_loop {
                    self.end_outage();
                }
                if let Some(since) = self.since.take() {
                    let seconds = since.elapsed().as_secs();
                    tracing::info!(what = self.what, seconds, "works again");
                }
                Some(value)
            }
            Err(error) => {
                if error.is_outage() {
                    self.note_outage(&error);
                } else if self.since.is_some() {
                    tracing::debug!(what = self.what, ?error, "still fails");
                } else {
                    self.since = Some(Instant::now());
                    tracing::warn!(
                        what = self.what,
                        ?error,
                        "fails, and is tried again until it works"
                    );
                }
                None
            }
        }
    }

    fn note_outage(&mut self, error: &impl Failure) {
        let is_new = self.is_loop && !self.waits;
        self.waits |= is_new;
        let mut outage = OUTAGE.lock();
        let tells = outage.fail(is_new, Instant::now());
        // Under the lock: otherwise the end of an outage could hide this one.
        IS_OUT.store(true, Ordering::Relaxed);
        drop(outage);
        if tells {
            tracing::warn!(
                what = self.what,
                ?error,
                "the database is away; what needs it is tried again until it works"
            );
        } else {
            tracing::debug!(what = self.what, ?error, "the database is away still");
        }
    }

    fn end_outage(&mut self) {
        if !IS_OUT.load(Ordering::Relaxed) {
            return;
        }
        let waited = std::mem::take(&mut self.waits);
        let mut outage = OUTAGE.lock();
        let lasted = outage.work(waited, Instant::now());
        IS_OUT.store(outage.since.is_some(), Ordering::Relaxed);
        drop(outage);
        if let Some(lasted) = lasted {
            tracing::info!(seconds = lasted.as_secs(), "the database works again");
        }
    }
}

impl Drop for Trouble {
    fn drop(&mut self) {
        // What has ended waits for nothing.
        if self.waits {
            self.end_outage();
        }
    }
}

/// For so long after an outage what fails is a part of it: an answer may have been under way.
const CALM: Duration = Duration::from_secs(5);

/// The outage of this process's database.
static OUTAGE: Mutex<Outage> = Mutex::new(Outage {
    waiting: 0,
    since: None,
    is_told: false,
    failed: None,
    ended: None,
});

/// Whether there is one, so that nothing waits for the lock while all goes well.
static IS_OUT: AtomicBool = AtomicBool::new(false);

/// If only questions failed, and none for so long, the outage is over: perhaps nobody asks again.
const QUIET: Duration = Duration::from_mins(1);

/// An outage begins with the first that fails and ends when all that failed work again.
#[derive(Debug)]
struct Outage {
    /// How many loops wait for the database.
    waiting: usize,
    since: Option<Instant>,
    is_told: bool,
    /// When something failed last.
    failed: Option<Instant>,
    /// When the one before ended.
    ended: Option<Instant>,
}

impl Outage {
    /// Takes note of a failure, of one that did not wait before or of one that did. Answers whether to tell of the outage.
    fn fail(&mut self, is_new: bool, now: Instant) -> bool {
        let before = self.failed.replace(now);
        let is_quiet = before.is_some_and(|before| now.saturating_duration_since(before) >= QUIET);
        if self.waiting == 0 && is_quiet && self.since.take().is_some() {
            self.is_told = false;
            self.ended = before;
        }
        self.waiting += usize::from(is_new);
        let since = *self.since.get_or_insert(now);
        let is_over = |then: Instant| now.saturating_duration_since(then) >= CALM;
        let tells = !self.is_told && (self.ended.is_none_or(is_over) || is_over(since));
        self.is_told |= tells;
        tells
    }

    /// Something works, perhaps one of those that waited. Answers how long the outage was, if it is over and was told.
    fn work(&mut self, waited: bool, now: Instant) -> Option<Duration> {
        self.waiting = self.waiting.saturating_sub(usize::from(waited));
        if self.waiting > 0 {
            return None;
        }
        let since = self.since.take()?;
        self.ended = Some(now);
        std::mem::take(&mut self.is_told).then(|| now.saturating_duration_since(since))
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
    E: Failure,
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
    seen: Option<u64>,
}

impl Setbacks {
    /// Whether instants that were noted earlier may lie further ahead than they were meant to. True of the first look.
    pub fn look(&mut self, clock: &Clock) -> bool {
        let setbacks = clock.setbacks();
        self.seen.replace(setbacks) != Some(setbacks)
    }

    /// What a look led to was not done: the next one answers the same.
    pub fn forget(&mut self) {
        self.seen = None;
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

    #[tokio::test]
    async fn a_look_knows_of_a_commit_whether_it_ended_the_wait_or_not() {
        let (commit, commits) = watch::channel(());
        let mut pacer = Pacer {
            pause: Duration::from_millis(1),
            clock: Clock::default(),
            commits: Some(commits),
            woken: false,
            trouble: Trouble::new("a test"),
        };
        assert!(!pacer.look());
        for next in [Next::Soon, Next::At(None)] {
            commit.send_replace(());
            pacer.wait(next).await;
            assert!(pacer.look());
            assert!(!pacer.look());
        }
    }

    #[derive(Debug)]
    struct Defect;

    impl Failure for Defect {}

    #[test]
    fn trouble_is_over_with_the_first_success() {
        let mut trouble = Trouble::new("a test");
        assert_eq!(trouble.note(Ok::<_, Defect>(1)), Some(1));
        for _ in 0..3 {
            assert_eq!(trouble.note(Err::<u8, _>(Defect)), None);
            assert!(trouble.since.is_some());
        }
        assert_eq!(trouble.note(Ok::<_, Defect>(2)), Some(2));
        assert!(trouble.since.is_none());
    }

    /// The database is away.
    #[derive(Debug)]
    struct Away;

    impl Failure for Away {
        fn is_outage(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_loop_with_nothing_to_do_ends_no_outage() {
        let (mut question, mut idle) =
            (Trouble::of_questions("a question"), Trouble::new("a loop"));
        assert_eq!(question.note(Err::<u8, _>(Away)), None);
        assert_eq!(idle.note(Ok::<_, Away>(1)), Some(1));
        assert!(IS_OUT.load(Ordering::Relaxed));
        assert_eq!(question.note(Ok::<_, Away>(2)), Some(2));
        assert!(!IS_OUT.load(Ordering::Relaxed));
    }

    #[test]
    fn an_outage_is_told_once_whatever_fails() {
        let mut outage = Outage {
            waiting: 0,
            since: None,
            is_told: false,
            failed: None,
            ended: None,
        };
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        assert!(outage.fail(true, at(0)));
        for loops in 0..5 {
            assert!(!outage.fail(loops < 2, at(1 + loops)));
        }
        assert_eq!(outage.work(true, at(10)), None);
        assert_eq!(outage.work(true, at(10)), None);
        assert_eq!(outage.work(true, at(11)), Some(Duration::from_secs(11)));
        // What was under way fails a moment later.
        assert!(!outage.fail(true, at(12)));
        assert_eq!(outage.work(true, at(13)), None);
        // One that lasts is told all the same, and one later is another.
        assert!(!outage.fail(true, at(14)));
        assert!(outage.fail(false, at(14) + CALM));
        assert_eq!(outage.work(true, at(20)), Some(Duration::from_secs(6)));
        assert!(outage.fail(true, at(20) + CALM));
        assert_eq!(outage.work(true, at(26)), Some(Duration::from_secs(1)));
        // A question that is answered ends it, if no loop waits. One that nobody asks again has ended after a while.
        assert!(outage.fail(false, at(40)));
        assert_eq!(outage.work(false, at(41)), Some(Duration::from_secs(1)));
        assert!(outage.fail(false, at(50)));
        assert!(!outage.fail(false, at(60)));
        assert!(outage.fail(true, at(60) + QUIET));
        assert_eq!(outage.work(true, at(125)), Some(Duration::from_secs(5)));
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
