//! Taking connections: HTTP/1.1 and HTTP/2, with time-outs for those who send nothing, and no more than there is room for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::util::MapRequest;

use crate::http::notes::Peer;

/// How long a client may take to send the head of a request, and how long a connection may be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a peer may take to answer a ping of HTTP/2, which is sent when it was silent for [`HEAD_TIMEOUT`].
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// How long to wait when the system gives out no more connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections beyond the limit that hear a refusal at a time; further ones are closed unheard.
const REFUSED: usize = 64;
/// How long such a connection is open at the most.
const REFUSED_TIMEOUT: Duration = Duration::from_secs(5);

/// How many connections there are.
#[derive(Debug)]
pub struct Limit {
    /// At a time.
    pub connections: usize,
    /// What answers on those beyond.
    pub beyond: Router,
}

/// Serves connections until told to stop, then until the last request is answered.
pub async fn serve(listener: TcpListener, router: Router, limit: Limit, stop: CancellationToken) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HEAD_TIMEOUT)
        .keep_alive_timeout(PING_TIMEOUT);
    let most = limit.connections.clamp(1, Semaphore::MAX_PERMITS);
    let room = Arc::new(Semaphore::new(most));
    let refused = Arc::new(Semaphore::new(REFUSED));
    let graceful = GracefulShutdown::new();
    let connections = TaskTracker::new();
    loop {
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = stop.cancelled() => break,
        };
        let (permit, router, lasts) = if let Ok(permit) = Arc::clone(&room).try_acquire_owned() {
            (permit, &router, Duration::MAX)
        } else {
            metrics::counter!("nudge_http_shed_total", "full" => "connections").increment(1);
            match Arc::clone(&refused).try_acquire_owned() {
                Ok(permit) => (permit, &limit.beyond, REFUSED_TIMEOUT),
                Err(_) => continue,
            }
        };
        let service = TowerToHyperService::new(MapRequest::new(
            router.clone(),
            move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(Peer(peer.ip()));
                request
            },
        ));
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection.into_owned());
        connections.spawn(async move {
            // A client that breaks off or does not speak HTTP is no trouble of ours.
            if let Ok(Err(error)) = tokio::time::timeout(lasts, connection).await {
                tracing::debug!(error = %error, "a connection ended early");
            }
            drop(permit);
        });
    }
    drop(listener);
    graceful.shutdown().await;
    connections.close();
    connections.wait().await;
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Answers are small; waiting to fill a packet would only delay them.
                if let Err(error) = stream.set_nodelay(true) {
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
