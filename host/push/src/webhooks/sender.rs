//! Sends messages: one a process. Processes share the work by claims; what a process had in hand that fell silent
//! is sent by another one, under the same id.
//!
//! Messages that were written as claimed come straight from whoever wrote them ([`MessagesInHand`](nudge_apps::webhooks::in_hand::MessagesInHand)).
//! The others the sender claims: each turn is one transaction, which notes what came of requests that have ended, and claims what
//! they leave room for. So a burst costs few transactions, and a crash can lose no message and no claim.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use nudge_apps::webhooks::in_hand::{ClaimedMessage, ReadyMessages};
use nudge_db::{Db, Kind, Timestamp};
use nudge_platform::claims::release_strays;
use nudge_platform::due::{Next, Pacer, Setbacks, StrayCheck};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::outcome::{self, Disabled};
use super::run::{LIMIT, Run, Step};
use super::store::queue::{self, AttemptOutcome, EndpointRow};
use super::{Secret, secrets_of};
use crate::services::Shared;
use crate::webhooks::fairness::{Asking, Limits, RequestsInHand, share};

/// How long a message is put off at the most that waits for another one, unless that one is due or ends before.
const DEFERRED: Duration = Duration::from_mins(1);

/// Outcomes that are noted together, at the most, and how long they may gather while requests are under way.
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
    /// Where messages come from that were written as claimed; none, if another sender has them.
    made: Option<UnboundedReceiver<ReadyMessages>>,
    /// Those of them that wait for a place, by endpoint.
    waiting: HashMap<Uuid, EndpointBacklog>,
    /// Requests under way, by endpoint.
    under_way: HashMap<Uuid, RequestsInHand>,
    /// Messages that each place of an endpoint may have in a run; one, if none is here.
    lengths: HashMap<Uuid, usize>,
    /// What came of requests, to be noted.
    outcomes: Vec<AttemptOutcome>,
    /// When they are noted at the latest.
    note_at: Option<Instant>,
    /// Whether a place is free since the last turn.
    has_room: bool,
    /// Whose turn it was last.
    last: Option<Uuid>,
    /// Whether the clock was set back.
    setbacks: Setbacks,
    /// When claims are looked for that nobody here knows of.
    strays: StrayCheck,
}

/// Messages of an endpoint that were written as claimed, and since when each waits for a place.
struct EndpointBacklog {
    app_id: Uuid,
    messages: VecDeque<(Instant, ClaimedMessage)>,
}

/// An endpoint that has places to send in.
struct Batch {
    webhook: EndpointRow,
    places: usize,
    secrets: Arc<[Secret]>,
    /// Messages that are to be claimed for it.
    wanted: usize,
}

impl Sender {
    /// A sender for a process.
    pub fn new(services: Shared, tasks: TaskTracker) -> Self {
        let (end, ended) = mpsc::unbounded_channel();
        let made = services.webhooks.in_hand.open();
        Self {
            node: services.pipeline.node(),
            strays: StrayCheck::new(&services.clock),
            db: services.db.unhurried(),
            services,
            tasks,
            ended,
            end,
            made,
            waiting: HashMap::new(),
            under_way: HashMap::new(),
            lengths: HashMap::new(),
            outcomes: Vec::new(),
            note_at: None,
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
        let in_hand = self.services.webhooks.in_hand.clone();
        loop {
            let stopping = stop.is_cancelled();
            if stopping {
                in_hand.close();
            }
            let changed = pacer.look();
            let turn = self.turn(stopping).await;
            let failed = turn.is_err();
            if failed {
                self.strays.doubt();
                // What could not be noted is noted at the next look.
                self.note_at = None;
            }
            let turn = pacer.note(turn).unwrap_or(Some(Next::Soon));
            if stopping && in_hand.is_empty() {
                return;
            }
            if let Some(next) = turn {
                let next = self.strays.next(next, changed);
                tokio::select! {
                    () = pacer.wait(next) => {}
                    // What could not be noted would be reason enough for a turn right away, and again.
                    () = self.reason(), if !failed => {}
                    () = stop.cancelled(), if !stopping => {}
                }
            }
            self.take_all();
        }
    }

    /// Resolves once there is reason for a turn: messages to send, a place to send in, or outcomes to note.
    async fn reason(&mut self) {
        let in_hand = self.services.webhooks.in_hand.clone();
        while !self.has_room && self.outcomes.len() < TOGETHER {
            let note_at = self.note_at;
            tokio::select! {
                () = in_hand.notified() => return,
                Some(ready) = next(&mut self.made) => return self.keep(ready),
                Some(step) = self.ended.recv() => self.take(step),
                () = sleep_until(note_at.unwrap_or_else(Instant::now)), if note_at.is_some() => return,
            }
        }
    }

    /// Takes what came meanwhile.
    fn take_all(&mut self) {
        while let Ok(step) = self.ended.try_recv() {
            self.take(step);
        }
        while let Some(Ok(ready)) = self.made.as_mut().map(UnboundedReceiver::try_recv) {
            self.keep(ready);
        }
    }

    /// Keeps messages until there is a place for them.
    fn keep(&mut self, ready: ReadyMessages) {
        let now = Instant::now();
        let waiting = self.waiting.entry(ready.webhook_id);
        let waiting = waiting.or_insert_with(|| EndpointBacklog {
            app_id: ready.app_id,
            messages: VecDeque::new(),
        });
        let messages = ready.messages.into_iter();
        waiting
            .messages
            .extend(messages.map(|message| (now, message)));
    }

    /// A request has ended; perhaps its place is free.
    fn take(&mut self, Step { outcome, next }: Step) {
        let webhook_id = outcome.webhook_id;
        self.add_outcome(outcome);
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

    fn add_outcome(&mut self, outcome: AttemptOutcome) {
        self.outcomes.push(outcome);
        self.note_at.get_or_insert(Instant::now() + GATHERING);
    }

    /// Sends what is in hand, notes what ended and claims what there is room for; answers when to look again if it claimed nothing.
    async fn turn(&mut self, stopping: bool) -> nudge_db::Result<Option<Next>> {
        let now = self.services.clock.now();
        self.has_room = false;
        self.put_right().await?;
        self.give_back(now, |since, _| stopping || since.elapsed() >= LIMIT);
        let (mut batches, mut behind) = self.batches(stopping, now).await?;
        for batch in &mut batches {
            self.send_waiting(batch);
        }
        batches.retain(|batch| batch.wanted > 0);
        if batches.is_empty() && !self.is_note_due(stopping) {
            let next = self.next(stopping, &behind).await?;
            self.services.webhooks.in_hand.set_behind(behind);
            return Ok(Some(next));
        }
        let mut tx = self.db.write().await?;
        let config = &self.services.config.webhooks;
        let disabled = outcome::note(&mut tx, self.node, &self.outcomes, config, now).await?;
        let is_disabled = |id| disabled.iter().any(|disabled| disabled.webhook_id == id);
        let mut claimed = Vec::new();
        for batch in batches {
            let webhook = &batch.webhook;
            if is_disabled(webhook.id) {
                continue;
            }
            let messages = queue::claim(&mut tx, self.node, webhook, now, batch.wanted).await?;
            if messages.len() < batch.wanted {
                queue::defer(&mut tx, webhook, now, now.plus(DEFERRED)).await?;
                behind.remove(&webhook.id);
            }
            if !messages.is_empty() {
                claimed.push((batch, messages));
            }
        }
        tx.commit().await?;
        let in_hand = &self.services.webhooks.in_hand;
        in_hand.free(self.outcomes.drain(..).map(|outcome| outcome.message_id));
        in_hand.set_behind(behind);
        self.note_at = None;
        let more = !claimed.is_empty();
        for (batch, messages) in claimed {
            self.begin(&batch, messages, batch.places);
        }
        for one in disabled {
            self.hold(one);
        }
        Ok((!more).then_some(Next::Soon))
    }

    /// Whether what came of requests is to be noted now, rather than together with more.
    fn is_note_due(&self, stopping: bool) -> bool {
        let soon = stopping || self.under_way.is_empty() || self.outcomes.len() >= TOGETHER;
        !self.outcomes.is_empty() && (soon || self.note_at.is_none_or(|at| at <= Instant::now()))
    }

    /// Has messages that wait for a place claimed by any process: those for which `is_over` holds, which is told since when one
    /// waits, and for which endpoint.
    fn give_back(&mut self, now: Timestamp, is_over: impl Fn(Instant, Uuid) -> bool) {
        let mut over = Vec::new();
        for (webhook_id, waiting) in &mut self.waiting {
            let of = (waiting.app_id, *webhook_id);
            let is_over = |(since, _): &mut (Instant, ClaimedMessage)| is_over(*since, *webhook_id);
            while let Some((_, message)) = waiting.messages.pop_front_if(is_over) {
                over.push(outcome::untried(of, message, now));
            }
        }
        self.waiting
            .retain(|_, waiting| !waiting.messages.is_empty());
        for outcome in over {
            self.add_outcome(outcome);
        }
    }

    /// The endpoints that get places, and all with messages in the database that are due.
    async fn batches(
        &mut self,
        stopping: bool,
        now: Timestamp,
    ) -> nudge_db::Result<(Vec<Batch>, HashSet<Uuid>)> {
        if stopping {
            return Ok(Default::default());
        }
        let mut tx = self.services.db.read().await?;
        let due = queue::due(&mut tx, now).await?;
        let behind: HashSet<Uuid> = due.iter().map(|webhook| webhook.id).collect();
        let mut webhooks: BTreeMap<Uuid, EndpointRow> = due
            .into_iter()
            .map(|webhook| (webhook.id, webhook))
            .collect();
        let others = self.waiting.keys().filter(|id| !behind.contains(id));
        let others: Vec<Uuid> = others.copied().collect();
        if !others.is_empty() {
            let others = queue::endpoints(&mut tx, others).await?;
            webhooks.extend(others.into_iter().map(|webhook| (webhook.id, webhook)));
        }
        // Endpoints that are gone or off have their messages when they are told anything again.
        self.give_back(now, |_, id| !webhooks.contains_key(&id));
        let shares = self.shares(webhooks.values());
        self.last = shares.last().map(|(id, _)| *id).or(self.last);
        let under_way = &self.under_way;
        self.lengths
            .retain(|id, _| under_way.contains_key(id) || webhooks.contains_key(id));
        let mut batches = Vec::with_capacity(shares.len());
        for (id, places) in shares {
            let Some(webhook) = webhooks.remove(&id) else {
                continue;
            };
            let secrets = self.secrets(&mut tx, &webhook, now).await?;
            let wanted = if behind.contains(&id) {
                places * self.length(id)
            } else {
                0
            };
            batches.push(Batch {
                webhook,
                places,
                secrets,
                wanted,
            });
        }
        Ok((batches, behind))
    }

    /// Messages that each place of an endpoint may have in a run.
    fn length(&self, webhook_id: Uuid) -> usize {
        self.lengths.get(&webhook_id).copied().unwrap_or(1)
    }

    /// Has messages sent that wait for a place of an endpoint. The places that are left are for others.
    fn send_waiting(&mut self, batch: &mut Batch) {
        let id = batch.webhook.id;
        let length = self.length(id);
        let Some(waiting) = self.waiting.get_mut(&id) else {
            return;
        };
        let count = waiting.messages.len().min(batch.places * length);
        let messages = waiting.messages.drain(..count);
        let messages: Vec<ClaimedMessage> = messages.map(|(_, message)| message).collect();
        if waiting.messages.is_empty() {
            self.waiting.remove(&id);
        }
        let places = batch.places.min(count);
        self.begin(batch, messages, places);
        batch.places -= places;
        batch.wanted = batch.wanted.min(batch.places * length);
    }

    /// Gives up claims that nobody here knows of, and looks through what waits once the clock was set back.
    async fn put_right(&mut self) -> nudge_db::Result<()> {
        let in_hand = &self.services.webhooks.in_hand;
        if in_hand.take_doubt() {
            self.strays.doubt();
        }
        if self.strays.is_due() {
            let in_hand = |id: &Uuid| in_hand.has(id);
            let db = &self.services.db;
            release_strays(db, queue::CLAIMS, self.node, in_hand).await?;
            self.strays.checked();
        }
        if self.setbacks.look(&self.services.clock) {
            let advanced = self.advance(self.services.clock.now()).await;
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
    async fn next(&self, stopping: bool, due: &HashSet<Uuid>) -> nudge_db::Result<Next> {
        if stopping || !due.is_empty() || !self.services.webhooks.in_hand.is_empty() {
            return Ok(Next::Soon);
        }
        let mut tx = self.services.db.read().await?;
        let waits = queue::anything_waits(&mut tx).await?;
        Ok(if waits { Next::Soon } else { Next::At(None) })
    }

    fn shares<'a>(&self, webhooks: impl Iterator<Item = &'a EndpointRow>) -> Vec<(Uuid, usize)> {
        let asking: Vec<Asking> = webhooks
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
        webhook: &EndpointRow,
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

    /// Has messages of an endpoint sent, as many at a time as there are places.
    fn begin(&mut self, batch: &Batch, messages: Vec<ClaimedMessage>, places: usize) {
        let webhook = &batch.webhook;
        let in_hand = &self.services.webhooks.in_hand;
        in_hand.add(webhook.id, messages.iter().map(|message| message.id));
        let run = Run::new(webhook, messages, Arc::clone(&batch.secrets));
        for _ in 0..places {
            let Some(first) = run.next() else { return };
            let hand = self.under_way.entry(webhook.id).or_default();
            hand.requests += 1;
            hand.failing = webhook.failing_since.is_some();
            let (services, end, run) = (
                Arc::clone(&self.services),
                self.end.clone(),
                Arc::clone(&run),
            );
            self.tasks
                .spawn(async move { run.send(&services, first, &end).await });
        }
    }

    /// Keeps what an endpoint that was disabled has not been sent.
    fn hold(&self, one: Disabled) {
        let services = Arc::clone(&self.services);
        self.tasks.spawn(async move {
            if let Err(error) = hold(&services, one).await {
                tracing::warn!(webhook.id = %one.webhook_id, error = ?error, "some messages of a disabled webhook are sent once it is enabled");
            }
        });
    }
}

/// The next of what is made; never, where that goes to another sender.
async fn next(made: &mut Option<UnboundedReceiver<ReadyMessages>>) -> Option<ReadyMessages> {
    match made {
        Some(made) => made.recv().await,
        None => std::future::pending().await,
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
