//! Whose job runs next: apps take turns, and none has more than its share of the threads and of their time. Pure.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use uuid::Uuid;

/// Apps that are remembered before those that did nothing lately are forgotten.
const MANY: usize = 64;

/// What an app may have of some threads.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// How many of its jobs run at a time, at least one.
    pub threads: usize,
    /// How long its jobs run within a second, all together. Not used up, a second's worth is kept.
    pub budget: Duration,
}

impl Share {
    /// No limit.
    pub const ALL: Self = Self {
        threads: usize::MAX,
        budget: Duration::MAX,
    };
}

/// Jobs that wait, by app.
#[derive(Debug)]
pub(super) struct Turns<J> {
    share: Share,
    apps: HashMap<Uuid, App<J>>,
    /// Apps with jobs that wait; whose turn it is stands first.
    order: VecDeque<Uuid>,
    waiting: usize,
    tidy_at: usize,
}

#[derive(Debug)]
struct App<J> {
    jobs: VecDeque<J>,
    running: usize,
    /// Microseconds that its jobs may run; less than nothing when the last one took longer.
    credit: i64,
    /// When `credit` was true, since the beginning.
    at: Duration,
    /// Whether it waits for credit.
    held: bool,
}

/// What a thread is to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<J> {
    /// A job of an app.
    Job(Uuid, J),
    /// Nothing, until something changes or so much time has passed.
    Wait(Option<Duration>),
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

impl<J> Turns<J> {
    pub(super) fn new(share: Share) -> Self {
        Self {
            share,
            apps: HashMap::new(),
            order: VecDeque::new(),
            waiting: 0,
            tidy_at: MANY,
        }
    }

    /// How many jobs wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many jobs of an app wait.
    pub(super) fn waiting_of(&self, app_id: Uuid) -> usize {
        self.apps.get(&app_id).map_or(0, |app| app.jobs.len())
    }

    /// Adds a job. `now` is the time since the beginning, here and below.
    pub(super) fn push(&mut self, app_id: Uuid, job: J, now: Duration) {
        let full = micros(self.share.budget);
        let app = self.apps.entry(app_id).or_insert_with(|| App {
            jobs: VecDeque::new(),
            running: 0,
            credit: full,
            at: now,
            held: false,
        });
        if app.jobs.is_empty() {
            self.order.push_back(app_id);
        }
        app.jobs.push_back(job);
        self.waiting += 1;
    }

    /// The next job. `held_back` is told of each app that begins to wait for time.
    pub(super) fn next(&mut self, now: Duration, held_back: impl Fn()) -> Next<J> {
        let mut soonest: Option<Duration> = None;
        let mut chosen = None;
        for (place, app_id) in self.order.iter().enumerate() {
            let Some(app) = self.apps.get_mut(app_id) else {
                continue;
            };
            if app.running >= self.share.threads {
                continue;
            }
            app.refill(self.share.budget, now);
            if app.credit > 0 {
                chosen = Some((place, *app_id));
                break;
            }
            if !app.held {
                app.held = true;
                held_back();
            }
            let wait = app.until_credit(self.share.budget);
            soonest = Some(soonest.map_or(wait, |soonest| soonest.min(wait)));
        }
        let taken = chosen.and_then(|(place, app_id)| {
            self.order.remove(place);
            let app = self.apps.get_mut(&app_id)?;
            let job = app.jobs.pop_front()?;
            app.running += 1;
            app.held = false;
            if !app.jobs.is_empty() {
                self.order.push_back(app_id);
            }
            self.waiting -= 1;
            Some(Next::Job(app_id, job))
        });
        taken.unwrap_or(Next::Wait(soonest))
    }

    /// Notes that a job is over.
    pub(super) fn done(&mut self, app_id: Uuid, took: Duration, now: Duration) {
        let budget = self.share.budget;
        if let Some(app) = self.apps.get_mut(&app_id) {
            app.refill(budget, now);
            app.running = app.running.saturating_sub(1);
            app.credit = app.credit.saturating_sub(micros(took));
        }
        if self.apps.len() >= self.tidy_at {
            self.apps.retain(|_, app| {
                app.refill(budget, now);
                app.running > 0 || !app.jobs.is_empty() || app.credit < micros(budget)
            });
            self.tidy_at = self.apps.len() * 2 + MANY;
        }
    }
}

impl<J> App<J> {
    fn refill(&mut self, budget: Duration, now: Duration) {
        let full = micros(budget);
        let passed = now.saturating_sub(self.at).as_secs_f64();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "microseconds; the cast saturates"
        )]
        let earned = (passed * budget.as_secs_f64() * 1e6) as i64;
        // Too little time for a whole microsecond counts the next time.
        if earned > 0 {
            self.credit = self.credit.saturating_add(earned).min(full);
            self.at = now;
        }
    }

    /// How long it takes until there is credit. The budget is more than nothing.
    fn until_credit(&self, budget: Duration) -> Duration {
        #[expect(clippy::cast_precision_loss, reason = "microseconds of a few seconds")]
        let missing = (1 - self.credit.min(0)) as f64;
        let seconds = missing / 1e6 / budget.as_secs_f64();
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX) + Duration::from_micros(1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: Duration = Duration::ZERO;

    fn app(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn turns(threads: usize, budget_ms: u64) -> Turns<u32> {
        Turns::new(Share {
            threads,
            budget: Duration::from_millis(budget_ms),
        })
    }

    fn take(turns: &mut Turns<u32>, now: Duration) -> Option<u32> {
        match turns.next(now, || {}) {
            Next::Job(_, job) => Some(job),
            Next::Wait(_) => None,
        }
    }

    #[test]
    fn apps_take_turns() {
        let mut turns = turns(9, 1000);
        for (number, job) in [(1, 10), (1, 11), (1, 12), (2, 20), (3, 30), (2, 21)] {
            turns.push(app(number), job, START);
        }
        let order: Vec<u32> = std::iter::from_fn(|| take(&mut turns, START)).collect();
        assert_eq!(order, [10, 20, 30, 11, 21, 12]);
        assert_eq!(turns.waiting(), 0);
    }

    #[test]
    fn an_app_has_its_share_of_the_threads() {
        let mut turns = turns(2, 1000);
        for job in 0..4 {
            turns.push(app(1), job, START);
        }
        assert_eq!(take(&mut turns, START), Some(0));
        assert_eq!(take(&mut turns, START), Some(1));
        assert_eq!(turns.next(START, || {}), Next::Wait(None));
        turns.push(app(2), 20, START);
        assert_eq!(take(&mut turns, START), Some(20));
        assert_eq!(turns.next(START, || {}), Next::Wait(None));
        turns.done(app(1), START, START);
        assert_eq!(take(&mut turns, START), Some(2));
        assert_eq!(turns.waiting_of(app(1)), 1);
    }

    #[test]
    fn who_used_up_its_time_waits_and_others_do_not() {
        let held = std::cell::Cell::new(0);
        let mut turns = turns(9, 500);
        turns.push(app(1), 10, START);
        turns.push(app(1), 11, START);
        assert_eq!(take(&mut turns, START), Some(10));
        let now = Duration::from_secs(2);
        turns.done(app(1), now, now);
        let count = || held.set(held.get() + 1);
        let Next::Wait(Some(wait)) = turns.next(now, count) else {
            panic!("it has used four seconds' worth, and has one");
        };
        assert!((3_000..3_001).contains(&wait.as_millis()), "{wait:?}");
        turns.push(app(2), 20, now);
        assert_eq!(turns.next(now, count), Next::Job(app(2), 20));
        assert!(matches!(turns.next(now, count), Next::Wait(Some(_))));
        assert_eq!(held.get(), 1, "once, however often it is passed over");
        assert_eq!(take(&mut turns, now + wait), Some(11));
    }

    #[test]
    fn idle_apps_are_forgotten() {
        let mut turns = turns(1, 1000);
        for number in 0..1000 {
            let now = Duration::from_secs(number);
            turns.push(app(u128::from(number)), 1, now);
            assert_eq!(take(&mut turns, now), Some(1));
            turns.done(app(u128::from(number)), Duration::from_millis(10), now);
        }
        assert!(turns.apps.len() <= MANY * 2);
    }

    #[test]
    fn without_limits_there_is_no_arithmetic_to_go_wrong() {
        let mut turns = Turns::new(Share::ALL);
        turns.push(app(1), 1, START);
        assert_eq!(take(&mut turns, START), Some(1));
        turns.done(app(1), Duration::MAX, Duration::from_secs(1));
        turns.push(app(1), 2, Duration::from_secs(2));
        assert_eq!(take(&mut turns, Duration::from_secs(2)), Some(2));
    }

    proptest! {
        /// Every job runs once, those of an app in their order, and never more at a time than the share.
        #[test]
        fn nothing_is_lost(jobs in prop::collection::vec(0_u128..4, 0..40), threads in 1_usize..4) {
            let mut turns = turns(threads, 10);
            let mut expected: HashMap<Uuid, Vec<u32>> = HashMap::new();
            for (job, number) in (0..).zip(&jobs) {
                turns.push(app(*number), job, START);
                expected.entry(app(*number)).or_default().push(job);
            }
            let mut ran: HashMap<Uuid, Vec<u32>> = HashMap::new();
            let mut running: VecDeque<Uuid> = VecDeque::new();
            let mut now = START;
            while turns.waiting() > 0 {
                match turns.next(now, || {}) {
                    Next::Job(app_id, job) => {
                        ran.entry(app_id).or_default().push(job);
                        running.push_back(app_id);
                        let of_app = running.iter().filter(|other| **other == app_id);
                        prop_assert!(of_app.count() <= threads);
                    }
                    Next::Wait(wait) => {
                        now += wait.unwrap_or(Duration::from_millis(7));
                        if let Some(app_id) = running.pop_front() {
                            turns.done(app_id, Duration::from_millis(7), now);
                        }
                    }
                }
            }
            prop_assert_eq!(ran, expected);
        }
    }
}
