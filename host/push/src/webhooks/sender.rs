//! Sends messages: one a process. Processes share the work by claims; what a process had in hand that fell silent
//! is sent by another one, under the same id.
//!
//! Each turn is one transaction: it notes what came of requests that have ended, and claims what they leave room
//! for. So a burst costs few transactions, and a crash can lose no message and no claim.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use nudge_db::{Db, Kind, Timestamp};
use nudge_platform::claims::release_strays;
use nudge_platform::due::{Next, Pacer, Setbacks, StrayCheck};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::outcome::{self, Disabled};
use super::run::{Run, Step};
use super::store::queue::{self, AttemptOutcome, DueRow};
use super::{Secret, secrets_of};
use crate::services::Shared;
use crate::webhooks::fairness::{Asking, Limits, RequestsInHand, share};

/// How long a message is put off at the most that waits for another one, unless that one is due or ends before.
const DEFERRED: Duration = Duration::from_mins(1);

/// Outcomes that are noted together, at the most, and how long they may gather while no place is free.
const TOGETHER: usize = 512;
const GATHERING: Duration = Duration::from_millis(20);

/// How far clocks of servers may be apart before one counts as set back.
const LEEWAY: Duration = Duration::from_mins(1);

/// Sends messages of all apps.
pub struct Sender {
    services: Shared,
    /// Nobody waits for what is written here.
    db: Db,
    node: Uuid,
    tasks: TaskTracker,
    ended: UnboundedReceiver<Step>,
    end: UnboundedSender<Step>,
    /// Messages that are claimed here, until their end is noted.
    in_hand: HashSet<Uuid>,
    /// Requests under way, by endpoint.
    under_way: HashMap<Uuid, RequestsInHand>,
    /// Messages that each place of an endpoint may have in a run; one, if none is here.
    lengths: HashMap<Uuid, usize>,
    /// What came of requests, to be noted.
    outcomes: Vec<AttemptOutcome>,
    /// Whether a place is free since the last turn.
    has_room: bool,
    /// Whose turn it was last.
    last: Option<Uuid>,
    /// Whether the clock was set back.
    setbacks: Setbacks,
    /// When claims are looked for that nobody here knows of.
    strays: StrayCheck,
}

impl Sender {
    /// A sender for a process.
    pub fn new(services: Shared, tasks: TaskTracker) -> Self {
        let (end, ended) = mpsc::unbounded_channel();
        Self {
            node: services.pipeline.node(),
            strays: StrayCheck::new(&services.clock),
            db: services.db.unhurried(),
            services,
            tasks,
            ended,
            end,
            in_hand: HashSet::new(),
            under_way: HashMap::new(),
            lengths: HashMap::new(),
            outcomes: Vec::new(),
            has_room: false,
            last: None,
            setbacks: Setbacks::default(),
        }
    }

    /// Runs until the server stops and what is under way has ended.
    pub async fn run(mut self) {
        let poll_ms = self.services.config.pipeline.poll_ms;
        let what = "looking for messages to webhooks";
        let mut pacer = Pacer::new(&self.services.db, &self.services.clock, poll_ms, what);
        let stop = self.services.stop.clone();
        loop {
            let stopping = stop.is_cancelled();
            let changed = pacer.look();
            let turn = self.turn(stopping).await;
            if turn.is_err() {
                self.strays.doubt();
            }
            let turn = pacer.note(turn).unwrap_or(Some(Next::Soon));
            if stopping && self.in_hand.is_empty() {
                return;
            }
            if let Some(next) = turn {
                let next = self.strays.next(next, changed);
                let webhooks = self.services.webhooks.clone();
                tokio::select! {
                    () = pacer.wait(next) => {}
                    () = webhooks.rung() => {}
                    Some(one) = self.ended.recv() => {
                        self.take(one);
                        self.gather().await;
                    }
                    () = stop.cancelled(), if !stopping => {}
                }
            }
            while let Ok(one) = self.ended.try_recv() {
                self.take(one);
            }
        }
    }

    /// Takes what else ends within a short while, until a place is free or there are further messages.
    async fn gather(&mut self) {
        let until = Instant::now() + GATHERING;
        let webhooks = self.services.webhooks.clone();
        while !self.has_room && self.outcomes.len() < TOGETHER {
            tokio::select! {
                Some(one) = self.ended.recv() => self.take(one),
                () = webhooks.rung() => return,
                () = sleep_until(until) => return,
            }
        }
    }

    /// A request has ended; perhaps its place is free.
    fn take(&mut self, Step { outcome, next }: Step) {
        let webhook_id = outcome.webhook_id;
        self.outcomes.push(outcome);
        let Some(length) = next else { return };
        self.has_room = true;
        self.lengths.insert(webhook_id, length);
        if let Some(hand) = self.under_way.get_mut(&webhook_id) {
            hand.requests = hand.requests.saturating_sub(1);
            if hand.requests == 0 {
                self.under_way.remove(&webhook_id);
            }
        }
    }

    /// Notes what ended and claims what there is room for; answers when to look again if it claimed nothing.
    async fn turn(&mut self, stopping: bool) -> nudge_db::Result<Option<Next>> {
        let now = self.services.clock.now();
        self.has_room = false;
        self.put_right(now).await?;
        let due = if stopping {
            Vec::new()
        } else {
            let mut tx = self.services.db.read().await?;
            queue::due(&mut tx, now).await?
        };
        let shares = self.shares(&due);
        if self.outcomes.is_empty() && shares.is_empty() {
            return self.next(stopping).await.map(Some);
        }
        let due: HashMap<Uuid, DueRow> = due.into_iter().map(|row| (row.id, row)).collect();
        let under_way = &self.under_way;
        self.lengths
            .retain(|id, _| under_way.contains_key(id) || due.contains_key(id));
        let mut tx = self.db.write().await?;
        let config = &self.services.config.webhooks;
        let disabled = outcome::note(&mut tx, self.node, &self.outcomes, config, now).await?;
        let mut runs = Vec::new();
        for (id, places) in &shares {
            let Some(webhook) = due.get(id) else { continue };
            if disabled.iter().any(|disabled| disabled.webhook_id == *id) {
                continue;
            }
            let most = places * self.lengths.get(id).copied().unwrap_or(1);
            let claimed = queue::claim(&mut tx, self.node, webhook, now, most).await?;
            if claimed.len() < most {
                queue::defer(&mut tx, webhook, now, now.plus(DEFERRED)).await?;
            }
            if claimed.is_empty() {
                continue;
            }
            let secrets = self.secrets(&mut tx, webhook, now).await?;
            runs.push((Run::new(webhook, claimed, secrets), *places));
        }
        tx.commit().await?;
        for outcome in self.outcomes.drain(..) {
            self.in_hand.remove(&outcome.message_id);
        }
        self.last = shares.last().map(|(id, _)| *id).or(self.last);
        let more = !runs.is_empty();
        for (run, places) in runs {
            self.begin(&run, places);
        }
        for one in disabled {
            let services = Arc::clone(&self.services);
            self.tasks.spawn(async move {
                if let Err(error) = hold(&services, one).await {
                    tracing::warn!(webhook.id = %one.webhook_id, error = ?error, "some messages of a disabled webhook are sent once it is enabled");
                }
            });
        }
        Ok((!more).then_some(Next::Soon))
    }

    /// Gives up claims that nobody here knows of, and looks through what waits once the clock was set back.
    async fn put_right(&mut self, now: Timestamp) -> nudge_db::Result<()> {
        if self.strays.is_due() {
            let in_hand = |id: &Uuid| self.in_hand.contains(id);
            let db = &self.services.db;
            release_strays(db, queue::CLAIMS, self.node, in_hand).await?;
            self.strays.checked();
        }
        if self.setbacks.look(now) {
            let advanced = self.advance(now).await;
            if advanced.is_err() {
                self.setbacks.forget();
            }
            return advanced;
        }
        Ok(())
    }

    /// Has messages sent now that a clock which was set back would keep waiting.
    async fn advance(&self, now: Timestamp) -> nudge_db::Result<()> {
        let (latest, deferred) = (now.plus(LEEWAY), now.plus(DEFERRED + LEEWAY));
        loop {
            let mut tx = self.services.db.write().await?;
            let advanced = queue::advance(&mut tx, now, latest, deferred).await?;
            tx.commit().await?;
            if advanced == 0 {
                return Ok(());
            }
        }
    }

    /// When to look again: a queue without any message is left alone.
    async fn next(&self, stopping: bool) -> nudge_db::Result<Next> {
        if stopping || !self.in_hand.is_empty() {
            return Ok(Next::Soon);
        }
        let mut tx = self.services.db.read().await?;
        let waits = queue::anything_waits(&mut tx).await?;
        Ok(if waits { Next::Soon } else { Next::At(None) })
    }

    fn shares(&self, due: &[DueRow]) -> Vec<(Uuid, usize)> {
        let asking: Vec<Asking> = due
            .iter()
            .map(|row| Asking {
                id: row.id,
                failing: row.failing_since.is_some(),
            })
            .collect();
        let config = &self.services.config.webhooks;
        let limits = Limits {
            all: config.concurrency.max(1),
            each: config.endpoint_concurrency.max(1),
        };
        share(&asking, &self.under_way, limits, self.last)
    }

    /// The secrets of an endpoint; none where they do not open, which fails its attempts and nothing else.
    async fn secrets(
        &self,
        tx: &mut nudge_db::Tx,
        webhook: &DueRow,
        now: Timestamp,
    ) -> nudge_db::Result<Arc<[Secret]>> {
        match secrets_of(tx, &self.services.secrets, webhook.id, now).await {
            Ok(secrets) => Ok(secrets.into()),
            Err(super::Error::Storage(error)) => Err(error),
            Err(error) => {
                tracing::error!(webhook.id = %webhook.id, error = %error, "a webhook's messages can't be signed");
                Ok(Arc::default())
            }
        }
    }

    /// Has a run's messages sent, as many at a time as there are places.
    fn begin(&mut self, run: &Arc<Run>, places: usize) {
        self.in_hand.extend(run.ids());
        for _ in 0..places {
            let Some(first) = run.next() else { return };
            let hand = self.under_way.entry(run.webhook.id).or_default();
            hand.requests += 1;
            hand.failing = run.webhook.failing_since.is_some();
            let (services, end, run) = (
                Arc::clone(&self.services),
                self.end.clone(),
                Arc::clone(run),
            );
            self.tasks
                .spawn(async move { run.send(&services, first, &end).await });
        }
    }
}

/// Keeps what an endpoint that was disabled has not been sent, and tells its app.
async fn hold(services: &Shared, disabled: Disabled) -> nudge_db::Result<()> {
    tracing::warn!(webhook.id = %disabled.webhook_id, "a webhook that only failed is disabled");
    services.apps.refresh(disabled.app_id).await?;
    loop {
        match hold_some(services, disabled).await {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            // It met whoever sends, or queues, some of them.
            Err(error) if error.kind() == Kind::Serialization => {}
            Err(error) => return Err(error),
        }
    }
}

async fn hold_some(services: &Shared, disabled: Disabled) -> nudge_db::Result<u64> {
    let mut tx = services.db.write().await?;
    let held =
        nudge_records::webhooks::messages::hold(&mut tx, disabled.app_id, disabled.webhook_id)
            .await?;
    tx.commit().await?;
    Ok(held)
}
