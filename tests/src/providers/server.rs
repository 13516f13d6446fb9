//! One HTTP/2 server over TLS, whose answers are a function's.
#![expect(
    clippy::disallowed_methods,
    reason = "the service ends with its test, not with the server"
)]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{Interval, interval};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::Authority;

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Received {
    /// When all of it had arrived.
    pub at: Instant,
    /// The connection that it came by: which one of those to this server.
    pub connection: usize,
    /// The HTTP version.
    pub version: Version,
    /// The method.
    pub method: Method,
    /// The service, as whoever asked calls it: `https://host:port`.
    pub origin: String,
    /// The path.
    pub path: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Received {
    /// A header's text; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap_or_default())
    }

    /// The body as JSON; null if it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
    /// How it is given.
    pub manner: Manner,
}

/// How an answer is given.
#[derive(Clone, Debug, Default)]
pub enum Manner {
    /// At once.
    #[default]
    Whole,
    /// Not before it is released.
    Held(Hold),
    /// Not at all.
    Reset,
    /// Byte by byte and without end.
    Slowly,
}

/// Keeps answers back until it is released.
#[derive(Clone, Debug)]
pub struct Hold(Arc<Semaphore>);

impl Default for Hold {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Hold {
    /// Lets all of them go.
    pub fn release(&self) {
        self.0.close();
    }

    async fn released(&self) {
        // Nobody adds a permit: this ends when it is closed.
        drop(self.0.acquire().await);
    }
}

impl Reply {
    /// An answer with a JSON body.
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self {
            status,
            headers: vec![("content-type", "application/json".to_owned())],
            body: body.to_string(),
            ..Self::default()
        }
    }

    /// No answer: the request is broken off.
    pub fn reset() -> Self {
        Self {
            manner: Manner::Reset,
            ..Self::default()
        }
    }

    /// The same, kept back until then.
    #[must_use]
    pub fn held(self, hold: &Hold) -> Self {
        let manner = Manner::Held(hold.clone());
        Self { manner, ..self }
    }

    /// The same, its body byte by byte and without end.
    #[must_use]
    pub fn slowly(self) -> Self {
        let manner = Manner::Slowly;
        Self { manner, ..self }
    }

    /// With one more header.
    #[must_use]
    pub fn with(mut self, header: &'static str, value: &str) -> Self {
        self.headers.push((header, value.to_owned()));
        self
    }
}

/// The pause between two bytes of an answer that is given slowly.
const BYTE: Duration = Duration::from_millis(50);

/// What answers.
type Answerer = dyn Fn(&Received) -> Reply + Send + Sync;

/// What a test sees of a server: what arrived, and what is answered next instead of what the server would.
#[derive(Clone, Default)]
pub(super) struct Log {
    received: Arc<Mutex<Vec<Received>>>,
    next: Arc<Mutex<VecDeque<Reply>>>,
    connections: Arc<Mutex<usize>>,
}

impl Log {
    pub(super) fn note(&self, request: &Received) {
        lock(&self.received).push(request.clone());
    }

    pub(super) fn received(&self) -> Vec<Received> {
        lock(&self.received).clone()
    }

    pub(super) fn answer_next(&self, reply: Reply) {
        lock(&self.next).push_back(reply);
    }

    pub(super) fn take_next(&self) -> Option<Reply> {
        lock(&self.next).pop_front()
    }

    pub(super) fn connections(&self) -> usize {
        *lock(&self.connections)
    }

    /// Notes that there is a connection more; answers its number.
    fn connected(&self) -> usize {
        let mut connections = lock(&self.connections);
        *connections += 1;
        *connections
    }
}

/// A mutex's content, also after a test has failed with it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running server; it ends when this is dropped.
pub(super) struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Takes a free port of this machine.
pub(super) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// Serves HTTP/2 and nothing else.
pub(super) fn serve(
    listener: TcpListener,
    authority: &Authority,
    log: Log,
    answer: Arc<Answerer>,
) -> Running {
    let acceptor = acceptor(authority);
    Running(tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, log, answer) = (acceptor.clone(), log.clone(), Arc::clone(&answer));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let connection = log.connected();
                let service = service_fn(move |request| {
                    respond(request, connection, log.clone(), Arc::clone(&answer))
                });
                let builder = Builder::new(TokioExecutor::new()).http2_only();
                // A client that breaks off is no failure of the test.
                drop(
                    builder
                        .serve_connection(TokioIo::new(stream), service)
                        .await,
                );
            });
        }
    }))
}

/// The body of an answer: its text, and then blanks without end, one at a time.
struct Answering {
    text: Option<Bytes>,
    blanks: Option<Interval>,
}

impl Body for Answering {
    type Data = Bytes;
    type Error = Reset;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Reset>>> {
        if let Some(text) = self.text.take() {
            return Poll::Ready(Some(Ok(Frame::data(text))));
        }
        let Some(blanks) = &mut self.blanks else {
            return Poll::Ready(None);
        };
        blanks
            .poll_tick(context)
            .map(|_| Some(Ok(Frame::data(Bytes::from_static(b" ")))))
    }
}

/// A request is broken off.
#[derive(Debug)]
struct Reset;

impl std::fmt::Display for Reset {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the test breaks the request off")
    }
}

impl std::error::Error for Reset {}

async fn respond(
    request: Request<Incoming>,
    connection: usize,
    log: Log,
    answer: Arc<Answerer>,
) -> Result<Response<Answering>, Reset> {
    let (head, body) = request.into_parts();
    // A sender that ends amid its request has not handed it over.
    let body = body.collect().await.map_err(|_| Reset)?.to_bytes();
    let received = Received {
        at: Instant::now(),
        connection,
        version: head.version,
        method: head.method,
        origin: format!(
            "https://{}",
            head.uri
                .authority()
                .map_or("", |authority| authority.as_str())
        ),
        path: head.uri.path().to_owned(),
        headers: head.headers,
        body: body.to_vec(),
    };
    let reply = answer(&received);
    log.note(&received);
    let mut blanks = None;
    match &reply.manner {
        Manner::Whole => {}
        Manner::Held(hold) => hold.released().await,
        Manner::Reset => return Err(Reset),
        Manner::Slowly => blanks = Some(interval(BYTE)),
    }
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    let text = (!reply.body.is_empty()).then(|| Bytes::from(reply.body));
    let body = Answering { text, blanks };
    Ok(response.body(body).expect("a response"))
}

fn acceptor(authority: &Authority) -> TlsAcceptor {
    let (certificate, key) = authority.certificate();
    let certificate = CertificateDer::from(certificate);
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key));
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a certificate");
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}
