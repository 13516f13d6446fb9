//! Threads that look names up: as many as there is work for, within the limits of a purpose; they end when there is none
//! for a while. One that hangs keeps its place until the system gives up.

use std::collections::HashMap;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::names::Names;
use super::turns::{Limits, Turns};
use super::{Lookup, Unknown};

/// How long whoever asks waits for an answer, its turn included.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a name without an address is remembered as such.
const WITHOUT: Duration = Duration::from_secs(5);
/// How long a name that had one counts as one that works.
const WORKS: Duration = Duration::from_hours(1);
/// Names that are remembered as either.
const MOST_NAMES: usize = 1_024;
/// How long a thread waits for work.
const IDLE: Duration = Duration::from_secs(10);
/// What the system's resolver and its modules take of a stack.
const STACK_BYTES: usize = 512 * 1024;

type Answer = Result<Vec<IpAddr>, Unknown>;
/// Who is charged: the app, and whether for a name that works.
type Turn = (Uuid, bool);

/// Look-ups of one purpose.
#[derive(Clone, Debug)]
pub(super) struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    purpose: &'static str,
    lookup: Arc<dyn Lookup>,
    limits: Limits,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Debug)]
struct State {
    turns: Turns<Turn, Arc<str>>,
    /// What waits or runs, by app and name.
    asked: HashMap<(Uuid, Arc<str>), QueuedLookup>,
    without: Names,
    works: Names,
    threads: usize,
    /// Threads that wait for work, and those of them that are being woken.
    idle: usize,
    woken: usize,
}

#[derive(Debug)]
struct QueuedLookup {
    waiting: Vec<oneshot::Sender<Answer>>,
    began: Option<Instant>,
}

impl Pool {
    pub(super) fn new(purpose: &'static str, lookup: Arc<dyn Lookup>, limits: Limits) -> Self {
        Self(Arc::new(Shared {
            purpose,
            lookup,
            limits,
            state: Mutex::new(State {
                turns: Turns::new(limits),
                asked: HashMap::new(),
                without: Names::new(MOST_NAMES, WITHOUT),
                works: Names::new(MOST_NAMES, WORKS),
                threads: 0,
                idle: 0,
                woken: 0,
            }),
            work: Condvar::new(),
        }))
    }

    /// All addresses of a name, at least one.
    pub(super) async fn ask(&self, owner: Uuid, name: &str) -> Answer {
        self.ask_within(PATIENCE, owner, name).await
    }

    async fn ask_within(&self, patience: Duration, owner: Uuid, name: &str) -> Answer {
        let answer = self.answer(patience, owner, name).await;
        let outcome = match &answer {
            Ok(_) => "found",
            Err(Unknown::NoAddress) => "none",
            Err(Unknown::Busy) => "busy",
        };
        metrics::counter!("nudge_lookups_total", "purpose" => self.0.purpose, "outcome" => outcome)
            .increment(1);
        answer
    }

    async fn answer(&self, patience: Duration, owner: Uuid, name: &str) -> Answer {
        let name: Arc<str> = name.into();
        let answer = self.begin(owner, &name)?;
        match tokio::time::timeout(patience, answer).await {
            Ok(Ok(answer)) => answer,
            // Its thread is gone, which is no fault of the name.
            Ok(Err(_)) => Err(Unknown::Busy),
            Err(_) => Err(self.0.give_up(owner, name)),
        }
    }

    /// Has a name looked up, unless it is already, or there is no sense or no room.
    fn begin(&self, owner: Uuid, name: &Arc<str>) -> Result<oneshot::Receiver<Answer>, Unknown> {
        let now = Instant::now();
        let (sender, receiver) = oneshot::channel();
        let mut state = self.0.state.lock();
        if state.without.has(name, now) {
            return Err(Unknown::NoAddress);
        }
        let key = (owner, Arc::clone(name));
        if let Some(asked) = state.asked.get_mut(&key) {
            if asked.hangs(now) {
                return Err(Unknown::NoAddress);
            }
            asked.waiting.push(sender);
            return Ok(receiver);
        }
        let turn = (owner, state.works.has(name, now));
        if !state.turns.add(turn, Arc::clone(name)) {
            return Err(Unknown::Busy);
        }
        let asked = QueuedLookup {
            waiting: vec![sender],
            began: None,
        };
        state.asked.insert(key, asked);
        if !state.turns.may_begin(&turn) {
            return Ok(receiver);
        }
        if state.idle > state.woken {
            state.woken += 1;
            self.0.work.notify_one();
        } else if state.threads < self.0.limits.threads {
            state.threads += 1;
            let shared = Arc::clone(&self.0);
            let thread = std::thread::Builder::new()
                .name("lookup".to_owned())
                .stack_size(STACK_BYTES);
            if let Err(error) = thread.spawn(move || shared.run()) {
                state.threads -= 1;
                tracing::error!(error = %error, "no thread to look names up with");
            }
        }
        Ok(receiver)
    }
}

impl QueuedLookup {
    /// Whether it runs for so long that nobody waits for it any longer.
    fn hangs(&self, now: Instant) -> bool {
        self.began
            .is_some_and(|began| now.duration_since(began) >= PATIENCE)
    }
}

impl Shared {
    /// Nobody answered in time: why not.
    fn give_up(&self, owner: Uuid, name: Arc<str>) -> Unknown {
        let mut state = self.state.lock();
        let key = (owner, name);
        let began = state.asked.get(&key).map(|asked| asked.began.is_some());
        if began == Some(false) {
            return Unknown::Busy;
        }
        if began == Some(true) {
            let (_, name) = key;
            state.note(&name, false);
        }
        Unknown::NoAddress
    }

    /// What a thread does.
    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            while let Some((turn, name)) = state.turns.begin() {
                let key = (turn.0, name);
                if state.is_wanted(&key) {
                    drop(state);
                    let answer = self.look_up(&key.1);
                    state = self.state.lock();
                    state.note(&key.1, answer.is_ok());
                    let asked = state.asked.remove(&key);
                    for waiting in asked.into_iter().flat_map(|asked| asked.waiting) {
                        // Whoever waits no longer needs no answer.
                        drop(waiting.send(answer.clone()));
                    }
                } else {
                    state.asked.remove(&key);
                }
                state.turns.end(turn);
            }
            state.idle += 1;
            let idle = |state: &mut State| state.woken == 0;
            self.work.wait_while_for(&mut state, idle, IDLE);
            state.idle -= 1;
            if state.woken == 0 {
                state.threads -= 1;
                return;
            }
            state.woken -= 1;
        }
    }

    fn look_up(&self, name: &str) -> Answer {
        // A panic would take the thread's place for ever.
        match catch_unwind(AssertUnwindSafe(|| self.lookup.lookup(name))) {
            Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
            _ => Err(Unknown::NoAddress),
        }
    }
}

impl State {
    /// Whether anybody waits for a name; if so, it is being looked up from now on.
    fn is_wanted(&mut self, key: &(Uuid, Arc<str>)) -> bool {
        let Some(asked) = self.asked.get_mut(key) else {
            return false;
        };
        asked.began = Some(Instant::now());
        asked.waiting.iter().any(|waiting| !waiting.is_closed())
    }

    fn note(&mut self, name: &Arc<str>, found: bool) {
        let now = Instant::now();
        let (to, from) = if found {
            (&mut self.works, &mut self.without)
        } else {
            (&mut self.without, &mut self.works)
        };
        to.add(name, now);
        from.remove(name);
    }
}

#[cfg(test)]
mod tests;
