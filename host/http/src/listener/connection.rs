//! What is known of one connection: its requests in hand, for whom they wait, and what it was told to do.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use strum::IntoStaticStr;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::pace::Pace;

/// How long a connection may do what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Until its first request has begun.
    pub(super) first: Duration,
    /// Behind with reading answers.
    pub(super) stalled: Duration,
    /// Without a request.
    pub(super) idle: Duration,
    /// From its beginning until it is asked to end.
    pub(super) age: Duration,
    /// From then until it is ended.
    pub(super) drain: Duration,
}

impl Patience {
    /// The time that a client can earn by reading in advance.
    pub(super) fn credit(&self) -> Duration {
        self.stalled.saturating_mul(2)
    }
}

/// What a connection is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum Order {
    /// Finish what is in hand, take nothing new.
    Drain,
    /// End now.
    Close,
    /// End now, and forget what was not read.
    Reset,
}

/// Why; a label of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Reason {
    /// No request in time.
    NoRequest,
    /// Answers are not read.
    Stalled,
    /// Nothing to do.
    Idle,
    /// Open for as long as may be.
    Age,
    /// It makes room for another.
    Room,
    /// Answers that are not read take too much memory.
    Memory,
}

impl Reason {
    /// Its name among the metrics.
    pub(super) fn name(self) -> &'static str {
        self.into()
    }
}

/// The bytes of answers that wait for their readers, of all connections together.
#[derive(Debug, Default)]
pub(super) struct Memory {
    bytes: AtomicUsize,
    /// Wakes whoever keeps them within limits.
    pub(super) exceeded: Notify,
    most: usize,
}

impl Memory {
    /// None yet, and so many at the most.
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// How many there are.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many there are too many.
    pub(super) fn excess(&self) -> usize {
        self.bytes().saturating_sub(self.most)
    }

    fn add(&self, bytes: usize) {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.most {
            self.exceeded.notify_one();
        }
    }

    fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    /// Its name in its table.
    pub(super) id: u64,
    /// The client's address.
    pub(super) peer: IpAddr,
    opened: Instant,
    credit: Duration,
    memory: Arc<Memory>,
    state: Mutex<State>,
    ordered: Notify,
}

#[derive(Debug)]
struct State {
    /// Whether anything was read.
    heard: bool,
    /// Whether there was a request.
    began: bool,
    /// Whether there should have been one by now. The connection ends once its socket is found empty.
    overdue: bool,
    idle_since: Instant,
    /// A handful at the most: HTTP/1 has one, HTTP/2 as many as streams are allowed.
    exchanges: Vec<(u64, Exchange)>,
    next: u64,
    /// The socket, while it takes no more.
    blocked: Option<Pace>,
    order: Option<Order>,
    drained: Option<Instant>,
}

/// A request and its answer.
#[derive(Debug)]
struct Exchange {
    /// The body, which the handler may be waiting for.
    body: Pace,
    /// The answer, which the client may have to read.
    answer: Pace,
    /// Bytes of the answer that are ready and not yet on their way.
    held: usize,
}

impl Exchange {
    fn waits_since(&self) -> Option<Instant> {
        self.body
            .waits_since()
            .or_else(|| self.answer.waits_since())
    }
}

impl Connection {
    pub(super) fn new(
        id: u64,
        peer: IpAddr,
        credit: Duration,
        memory: &Arc<Memory>,
        now: Instant,
    ) -> Self {
        let state = State {
            heard: false,
            began: false,
            overdue: false,
            idle_since: now,
            exchanges: Vec::new(),
            next: 0,
            blocked: None,
            order: None,
            drained: None,
        };
        Self {
            id,
            peer,
            opened: now,
            credit,
            memory: Arc::clone(memory),
            state: Mutex::new(state),
            ordered: Notify::new(),
        }
    }

    /// The account of a transfer with this client.
    pub(super) fn pace(&self, now: Instant) -> Pace {
        Pace::new(self.credit, now)
    }

    /// The first bytes were read.
    pub(super) fn hear(&self) {
        let mut state = self.state.lock();
        state.heard = true;
        if state.order.is_some() {
            state.overdue = false;
            self.ordered.notify_one();
        }
    }

    /// Before HTTP hears that it is to finish: whether it may. As long as nothing was read, it would end at once, with a
    /// request that has arrived; then the socket is looked at first, and [`Connection::hear`] tells the order again.
    pub(super) fn may_finish(&self) -> bool {
        let mut state = self.state.lock();
        state.overdue |= !state.heard;
        state.heard
    }

    /// A request has arrived.
    pub(super) fn begin(self: &Arc<Self>, now: Instant) -> Arc<Hand> {
        let mut state = self.state.lock();
        state.began = true;
        state.overdue = false;
        state.next += 1;
        let id = state.next;
        let exchange = Exchange {
            body: self.pace(now),
            answer: self.pace(now),
            held: 0,
        };
        state.exchanges.push((id, exchange));
        drop(state);
        Arc::new(Hand {
            connection: Arc::clone(self),
            id,
        })
    }

    /// The socket takes no more, or takes something again.
    pub(super) fn set_blocked(&self, blocked: Option<Pace>) {
        self.state.lock().blocked = blocked;
    }

    /// Since when the server waits for this client, and has nothing else to do for it. None: it works for it.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        let state = self.state.lock();
        if let Some(blocked) = state.blocked {
            return blocked.waits_since();
        }
        let mut since = None;
        for (_, exchange) in &state.exchanges {
            let waits = exchange.waits_since()?;
            since = Some(since.map_or(waits, |since: Instant| since.min(waits)));
        }
        since.or(Some(state.idle_since))
    }

    /// Since when answers wait for this client to read them. None: they do not.
    pub(super) fn reads_since(&self) -> Option<Instant> {
        let state = self.state.lock();
        let answers = state.exchanges.iter();
        answers.filter_map(|(_, it)| it.answer.waits_since()).min()
    }

    /// Bytes of answers that wait for this client.
    pub(super) fn held(&self) -> usize {
        let state = self.state.lock();
        state.exchanges.iter().map(|(_, it)| it.held).sum()
    }

    /// What has to become of the connection, and why.
    pub(super) fn due(&self, patience: &Patience, now: Instant) -> Option<(Order, Reason)> {
        let state = self.state.lock();
        let passed = |since: Instant, limit| now.saturating_duration_since(since) >= limit;
        let answers = state.exchanges.iter().map(|(_, it)| it.answer);
        let mut stalled = answers.chain(state.blocked);
        if state.order >= Some(Order::Close) {
            None
        } else if stalled.any(|pace| pace.behind(now) >= patience.stalled) {
            Some((Order::Reset, Reason::Stalled))
        } else if let Some(drained) = state.drained {
            passed(drained, patience.drain).then_some((Order::Close, Reason::Age))
        } else if passed(self.opened, patience.age) {
            Some((Order::Drain, Reason::Age))
        } else if state.exchanges.is_empty() && passed(state.idle_since, patience.idle) {
            Some((Order::Drain, Reason::Idle))
        } else {
            None
        }
    }

    /// Has the socket looked at once more where the first request has not begun in time. The wall clock alone does not
    /// end a connection: a server that is late itself may not have read the request that has arrived.
    pub(super) fn check_first(&self, first: Duration, now: Instant) {
        let mut state = self.state.lock();
        let late = now.saturating_duration_since(self.opened) >= first;
        if state.began || state.overdue || !late {
            return;
        }
        state.overdue = true;
        drop(state);
        self.ordered.notify_one();
    }

    /// Whether the connection ends as soon as its socket has nothing to read.
    pub(super) fn is_overdue(&self) -> bool {
        self.state.lock().overdue
    }

    /// Ends it, and counts why.
    pub(super) fn end(&self, order: Order, reason: Reason, now: Instant) {
        metrics::counter!("nudge_http_connections_ended_total", "reason" => reason.name())
            .increment(1);
        tracing::debug!(peer = %self.peer, reason = reason.name(), ?order, "a connection is ended");
        self.tell(order, now);
    }

    /// Tells it what to do, unless it was told as much already.
    pub(super) fn tell(&self, order: Order, now: Instant) {
        let mut state = self.state.lock();
        if state.order >= Some(order) {
            return;
        }
        state.order = Some(order);
        state.drained.get_or_insert(now);
        drop(state);
        self.ordered.notify_one();
    }

    /// What it was told.
    pub(super) fn order(&self) -> Option<Order> {
        self.state.lock().order
    }

    /// Waits until it is told something more, or its socket has to be looked at.
    pub(super) async fn told(&self) {
        self.ordered.notified().await;
    }
}

/// A request in hand. It is over when nobody has it any more: neither the handler, nor the answer's body, nor what is
/// left of it in the buffers of HTTP.
#[derive(Debug)]
pub(super) struct Hand {
    connection: Arc<Connection>,
    id: u64,
}

impl Hand {
    fn with(&self, change: impl FnOnce(&mut Exchange)) {
        let mut state = self.connection.state.lock();
        let mut exchanges = state.exchanges.iter_mut();
        if let Some((_, exchange)) = exchanges.find(|(id, _)| *id == self.id) {
            change(exchange);
        }
    }

    /// The handler waits for the body.
    pub(super) fn waits_for_body(&self) {
        let now = Instant::now();
        self.with(|exchange| exchange.body.resume(now));
    }

    /// So much of the body arrived, or nothing more of it is wanted.
    pub(super) fn body_arrived(&self, bytes: usize) {
        let now = Instant::now();
        self.with(|exchange| {
            exchange.body.advance(bytes, now);
            exchange.body.pause(now);
        });
    }

    /// So much of the answer is ready.
    pub(super) fn hold(&self, bytes: usize) {
        let now = Instant::now();
        self.with(|exchange| {
            exchange.held += bytes;
            exchange.answer.resume(now);
        });
        self.connection.memory.add(bytes);
    }

    /// So much of it went to the client, or will go nowhere.
    pub(super) fn release(&self, bytes: usize) {
        let now = Instant::now();
        self.with(|exchange| {
            exchange.held = exchange.held.saturating_sub(bytes);
            exchange.answer.advance(bytes, now);
            if exchange.held == 0 {
                exchange.answer.pause(now);
            }
        });
        self.connection.memory.remove(bytes);
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        let mut state = self.connection.state.lock();
        state.exchanges.retain(|(id, _)| *id != self.id);
        if state.exchanges.is_empty() {
            state.idle_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    const PATIENCE: Patience = Patience {
        first: seconds(10),
        stalled: seconds(30),
        idle: seconds(60),
        age: seconds(600),
        drain: seconds(40),
    };

    fn connection(now: Instant) -> Arc<Connection> {
        let peer = "192.0.2.1".parse().unwrap();
        let credit = PATIENCE.credit();
        Arc::new(Connection::new(1, peer, credit, &Arc::default(), now))
    }

    #[test]
    fn who_asks_for_nothing_is_let_go() {
        let start = Instant::now();
        let connection = connection(start);
        let due = |after| connection.due(&PATIENCE, start + after);
        let is_overdue = |after| {
            connection.check_first(PATIENCE.first, start + after);
            connection.is_overdue()
        };
        assert!(!is_overdue(seconds(9)));
        assert!(is_overdue(seconds(10)));
        let hand = connection.begin(start + seconds(11));
        assert!(!is_overdue(seconds(12)));
        assert_eq!(due(seconds(300)), None);
        drop(hand);
        assert_eq!(due(seconds(30)), None);
        assert_eq!(due(seconds(70)), Some((Order::Drain, Reason::Idle)));
    }

    #[test]
    fn an_answer_that_nobody_reads_ends_the_connection() {
        let start = Instant::now();
        let connection = connection(start);
        let due = |after| connection.due(&PATIENCE, start + after);
        // One is read, the other is not.
        let hands = [connection.begin(start), connection.begin(start)];
        for hand in &hands {
            hand.hold(1000);
        }
        assert_eq!(connection.memory.bytes(), 2000);
        hands[0].release(1000);
        assert_eq!(due(seconds(29)), None);
        assert_eq!(due(seconds(32)), Some((Order::Reset, Reason::Stalled)));
        hands[1].release(1000);
        assert_eq!(due(seconds(32)), None);
        assert_eq!((connection.held(), connection.memory.bytes()), (0, 0));
    }

    #[test]
    fn a_socket_that_takes_nothing_ends_the_connection() {
        let start = Instant::now();
        let connection = connection(start);
        drop(connection.begin(start));
        let mut pace = connection.pace(start);
        pace.resume(start);
        connection.set_blocked(Some(pace));
        let due = connection.due(&PATIENCE, start + seconds(31));
        assert_eq!(due, Some((Order::Reset, Reason::Stalled)));
        connection.set_blocked(None);
        assert_eq!(connection.due(&PATIENCE, start + seconds(31)), None);
    }

    #[test]
    fn age_is_told_first_and_enforced_later() {
        let start = Instant::now();
        let connection = connection(start);
        let _hand = connection.begin(start);
        let due = |after| connection.due(&PATIENCE, start + after);
        assert_eq!(due(seconds(599)), None);
        assert_eq!(due(seconds(600)), Some((Order::Drain, Reason::Age)));
        connection.tell(Order::Drain, start + seconds(600));
        assert_eq!(due(seconds(639)), None);
        assert_eq!(due(seconds(640)), Some((Order::Close, Reason::Age)));
        connection.tell(Order::Close, start + seconds(640));
        connection.tell(Order::Drain, start + seconds(641));
        assert_eq!(connection.order(), Some(Order::Close));
        assert_eq!(due(seconds(700)), None);
    }

    #[test]
    fn the_server_waits_only_where_it_has_nothing_to_do() {
        let start = Instant::now();
        let connection = connection(start);
        assert_eq!(connection.waits_since(), Some(start));
        let hand = connection.begin(start);
        assert_eq!(connection.waits_since(), None);
        hand.waits_for_body();
        assert!(connection.waits_since().is_some());
        let other = connection.begin(start);
        assert_eq!(connection.waits_since(), None);
        other.hold(1);
        assert!(connection.waits_since().is_some());
        hand.body_arrived(1);
        assert_eq!(connection.waits_since(), None);
        drop((hand, other));
        assert!(connection.waits_since() >= Some(start));
    }
}
