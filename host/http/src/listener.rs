//! Taking connections: HTTP/1.1 and HTTP/2, no more than there is room for, and none for those who only hold them.
//!
//! A client that sends no request, half of one, or does not read what it asked for costs a connection and memory and
//! does nothing for it. Each connection knows for whom it waits (`connection.rs`): a sweep ends those that keep the
//! server waiting for too long, and where there is no room for a new one, the one gives way that has kept it waiting
//! the longest (`table.rs`). What waits for the server, such as a poll, is never ended for another's sake.

mod connection;
mod pace;
mod table;
mod transfer;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use nudge_platform::config;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;

use self::connection::{Memory, Order, Patience};
use self::table::{Full, Seat, Table};
use self::transfer::{Answer, Received, Socket};
use crate::admission;
use crate::request_context::Peer;

/// How long a client of HTTP/1 may take from one request to the end of the next one's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection of HTTP/2 may be without a request.
const IDLE: Duration = Duration::from_mins(2);
/// How long a peer may take to answer a ping of HTTP/2, which is sent when it was silent for [`HEAD_TIMEOUT`].
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a connection that is old may take to finish what it has in hand.
const DRAIN: Duration = Duration::from_mins(5);
/// The largest head of a request of HTTP/1, and what is buffered of an answer.
const HTTP1_BUFFER: usize = 32 * 1024;
/// The largest head of a request of HTTP/2.
const HTTP2_HEAD: u32 = 16 * 1024;
/// What a client of HTTP/2 may send of bodies before they are asked for: of one, and of all of a connection.
const HTTP2_WINDOWS: [u32; 2] = [256 * 1024, 512 * 1024];
/// What is buffered of an answer of HTTP/2 beyond its first piece.
const HTTP2_BUFFER: usize = 128 * 1024;
/// What the system takes of an answer before it is sent. More would take the system's memory for clients that do not
/// read, and would hide that they read slowly.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 64 * 1024;
/// How long to wait when the system gives out no more connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long after the last one there may be another connection that was opened before a listener ends.
const LATE: Duration = Duration::from_millis(20);
/// And for how long all of them are taken, where the system cannot be told to open no more.
const LAST: Duration = Duration::from_millis(500);
/// Connections beyond the limit that hear a refusal at a time; there too, who says nothing gives way.
const REFUSED: usize = 64;
/// How long such a connection is open at the most, and what of it is for finishing.
const REFUSED_TIMEOUT: [Duration; 2] = [Duration::from_secs(4), Duration::from_secs(1)];
/// How often connections are looked at.
const SWEEP: Duration = Duration::from_millis(250);
/// How often the log says that connections are refused.
const SAY: Duration = Duration::from_mins(1);

/// What a listener allows.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Of them, so many of one address; 0: any number. This machine's own are not counted.
    pub of_an_address: usize,
    /// Requests at a time on one connection of HTTP/2.
    pub streams: u32,
    /// From the beginning of a connection to that of its first request.
    pub first: Duration,
    /// Behind with reading an answer.
    pub stalled: Duration,
    /// From the beginning of a connection until it is asked to end.
    pub age: Duration,
    /// Bytes of answers that wait for their readers.
    pub answers: usize,
}

impl Limits {
    /// Those of the API's listener.
    pub fn new(config: &config::Server) -> Self {
        Self {
            connections: config.max_connections,
            // A proxy has the connections of everybody behind it.
            of_an_address: match config.trusted_proxies {
                0 => config.max_connections_per_address,
                _ => 0,
            },
            streams: config.http2_max_streams.max(1),
            first: Duration::from_secs(config.first_bytes_seconds.max(1)),
            stalled: Duration::from_secs(config.stalled_seconds.max(1)),
            age: Duration::from_secs(config.max_connection_age_seconds.max(1)),
            answers: config.answer_memory_bytes,
        }
    }
}

/// What a listener answers with.
#[derive(Debug)]
pub struct Answers {
    /// The listener's name among the metrics.
    pub name: &'static str,
    /// Ordinary connections.
    pub router: Router,
    /// Those for which there is no room.
    pub beyond: Router,
}

/// Serves connections until told to stop, then until the last request is answered.
pub async fn serve(
    listener: TcpListener,
    answers: Answers,
    limits: Limits,
    stop: CancellationToken,
) {
    let rooms = Rooms::new(&limits);
    let connections = TaskTracker::new();
    let (sweepers, sweeping) = (TaskTracker::new(), CancellationToken::new());
    sweepers.spawn({
        let (rooms, sweeping) = (rooms.clone(), sweeping.clone());
        async move {
            let sweep = rooms.sweep(answers.name);
            sweeping.run_until_cancelled(sweep).await
        }
    });
    let swept = sweeping.drop_guard();
    let builder = builder(&limits);
    let mut refused = Refused::default();
    let mut last = None;
    while let Some((stream, peer)) = next(&listener, &stop, &mut last).await {
        let peer = peer.ip();
        let (seat, router) = match rooms.seat(peer) {
            Ok(seat) => (seat, &answers.router),
            Err(full) => {
                refused.note(full, peer);
                if full == Full::Address {
                    continue;
                }
                match rooms.refused.admit(peer, Instant::now()) {
                    Ok(seat) => (seat, &answers.beyond),
                    Err(_) => continue,
                }
            }
        };
        connections.spawn(converse(builder.clone(), stream, seat, router.clone()));
    }
    drop(listener);
    rooms.drain();
    connections.close();
    connections.wait().await;
    drop(swept);
    sweepers.close();
    sweepers.wait().await;
}

/// The next connection. Once told to stop only those that clients have opened already, which would be cut off with the
/// listener; then none.
async fn next(
    listener: &TcpListener,
    stop: &CancellationToken,
    last: &mut Option<Instant>,
) -> Option<(TcpStream, SocketAddr)> {
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        accepted = accept(listener) => return Some(accepted),
    }
    let last = *last.get_or_insert_with(|| {
        if let Err(error) = open_no_more(listener) {
            tracing::debug!(%error, "connections may be opened until the listener ends");
        }
        Instant::now() + LAST
    });
    if Instant::now() > last {
        return None;
    }
    timeout(LATE, accept(listener)).await.ok()
}

/// Has the system ignore who wants a connection, as if the packet were lost: clients try again, and then nobody listens.
/// Otherwise a connection that is opened between the last one's acceptance and the listener's end is reset, and a proxy
/// that has sent a request on it sends it to no other server.
#[cfg(target_os = "linux")]
fn open_no_more(listener: &TcpListener) -> std::io::Result<()> {
    use socket2::{SockFilter, SockRef};
    /// Where the flags are in the head of TCP, and that of a first packet (RFC 9293, 3.1).
    const FLAGS: u32 = 13;
    const SYN: u32 = 2;
    // Instructions of the kernel's packet filter: load a byte, jump if a bit is set, end with the packet's length.
    const LOAD: u16 = 0x30;
    const IF_SET: u16 = 0x45;
    const END: u16 = 0x06;
    SockRef::from(listener).attach_filter(&[
        SockFilter::new(LOAD, 0, 0, FLAGS),
        SockFilter::new(IF_SET, 0, 1, SYN),
        SockFilter::new(END, 0, 0, 0),
        SockFilter::new(END, 0, 0, u32::MAX),
    ])
}

#[cfg(not(target_os = "linux"))]
fn open_no_more(_listener: &TcpListener) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

fn builder(limits: &Limits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HTTP1_BUFFER);
    let [stream_window, connection_window] = HTTP2_WINDOWS;
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HEAD_TIMEOUT)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(HTTP2_HEAD)
        .initial_stream_window_size(stream_window)
        .initial_connection_window_size(connection_window)
        .max_send_buf_size(HTTP2_BUFFER);
    builder
}

/// Where connections are: those that are served, and those that are refused.
#[derive(Clone, Debug)]
struct Rooms {
    served: Arc<Table>,
    refused: Arc<Table>,
    memory: Arc<Memory>,
}

impl Rooms {
    fn new(limits: &Limits) -> Self {
        let memory = Arc::new(Memory::new(limits.answers));
        let patience = Patience {
            first: limits.first,
            stalled: limits.stalled,
            idle: IDLE,
            age: limits.age,
            drain: DRAIN,
        };
        let [age, drain] = REFUSED_TIMEOUT;
        let short = Patience {
            first: limits.first.min(age),
            age,
            drain,
            ..patience
        };
        Self {
            served: Table::new(limits.connections, limits.of_an_address, patience, &memory),
            refused: Table::new(REFUSED, 0, short, &memory),
            memory,
        }
    }

    fn seat(&self, peer: IpAddr) -> Result<Seat, Full> {
        self.served.admit(peer, Instant::now())
    }

    fn drain(&self) {
        let now = Instant::now();
        self.served.drain(now);
        self.refused.drain(now);
    }

    /// Ends what has taken too long or takes too much, for ever.
    async fn sweep(&self, listener: &'static str) {
        let connections = metrics::gauge!("nudge_http_connections", "listener" => listener);
        let answers = metrics::gauge!("nudge_http_answer_bytes", "listener" => listener);
        let mut ticks = tokio::time::interval(SWEEP);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    let now = Instant::now();
                    self.served.sweep(now);
                    self.refused.sweep(now);
                    connections.set(exact(self.served.len()));
                    answers.set(exact(self.memory.bytes()));
                }
                () = self.memory.exceeded.notified() => {
                    let now = Instant::now();
                    self.refused.free(self.memory.excess(), now);
                    self.served.free(self.memory.excess(), now);
                    // What was ended needs a moment to give its memory back.
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

fn exact(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Connections that found no room, as the log and the metrics have them.
#[derive(Debug, Default)]
struct Refused {
    said: Option<Instant>,
    since: u64,
}

impl Refused {
    fn note(&mut self, full: Full, peer: IpAddr) {
        let what = match full {
            Full::Address => "address",
            Full::Table => "connections",
        };
        admission::shed(what);
        self.since += 1;
        if self.said.is_none_or(|said| said.elapsed() >= SAY) {
            let refused = self.since;
            tracing::warn!(%peer, full = what, refused, "connections are refused: there is no room for them");
            (self.said, self.since) = (Some(Instant::now()), 0);
        }
    }
}

/// Serves a connection until it ends or is told to.
async fn converse(builder: Builder<TokioExecutor>, stream: TcpStream, seat: Seat, router: Router) {
    let known = Arc::clone(&seat.connection);
    let service = hyper::service::service_fn(|mut request: Request<Incoming>| {
        let hand = known.begin(Instant::now());
        request.extensions_mut().insert(Peer(known.peer));
        let request = request.map(|body| Received::new(body, &hand));
        let answered = router.clone().call(request);
        async move {
            let response = answered.await?;
            Ok::<_, Infallible>(response.map(|body| Answer::new(body, hand)))
        }
    });
    let socket = TokioIo::new(Socket::new(stream, &known));
    let mut connection = std::pin::pin!(builder.serve_connection(socket, service));
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                // A client that breaks off or does not speak HTTP is no trouble of ours.
                if let Err(error) = ended {
                    tracing::debug!(error = %error, "a connection ended early");
                }
                return;
            }
            () = known.told() => match known.order() {
                Some(Order::Drain) if !known.may_finish() => {}
                Some(Order::Drain) => connection.as_mut().graceful_shutdown(),
                Some(Order::Close | Order::Reset) => return,
                None => {}
            },
        }
    }
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                if let Err(error) = set_options(&stream) {
                    tracing::debug!(error = %error, "a connection was gone at once");
                }
                return (stream, peer);
            }
            Err(error) => {
                tracing::warn!(error = %error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn set_options(stream: &TcpStream) -> std::io::Result<()> {
    // Answers are small; waiting to fill a packet would only delay them.
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT)?;
    Ok(())
}
