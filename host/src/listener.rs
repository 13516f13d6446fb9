//! Taking connections: HTTP/1.1 and HTTP/2, with time-outs for those who send nothing.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::util::MapRequest;

use crate::http::notes::Peer;

/// How long a client may take to send the head of a request, and how long a connection may be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait when the system gives out no more connections.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves connections until told to stop, then until the last request is answered.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    builder.http2().timer(TokioTimer::new());
    let graceful = GracefulShutdown::new();
    let connections = TaskTracker::new();
    loop {
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = stop.cancelled() => break,
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
            if let Err(error) = connection.await {
                tracing::debug!(error = %error, "a connection ended early");
            }
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
