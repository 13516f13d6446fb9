//! One HTTP/2 server over TLS, whose answers are a function's.
#![expect(
    clippy::disallowed_methods,
    reason = "the service ends with its test, not with the server"
)]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::Authority;

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Received {
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
}

impl Reply {
    /// An answer with a JSON body.
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self {
            status,
            headers: vec![("content-type", "application/json".to_owned())],
            body: body.to_string(),
        }
    }

    /// With one more header.
    #[must_use]
    pub fn with(mut self, header: &'static str, value: &str) -> Self {
        self.headers.push((header, value.to_owned()));
        self
    }
}

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
                *lock(&log.connections) += 1;
                let service =
                    service_fn(move |request| respond(request, log.clone(), Arc::clone(&answer)));
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

async fn respond(
    request: Request<Incoming>,
    log: Log,
    answer: Arc<Answerer>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes().to_vec());
    let received = Received {
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
        body: body.unwrap_or_default(),
    };
    let reply = answer(&received);
    log.note(&received);
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    let body = Full::new(Bytes::from(reply.body));
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
