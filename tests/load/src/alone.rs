//! What a service takes that a server calls, if nothing else is done: the same requests again, from a bare client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use axum::body::Bytes;
use axum::http::HeaderMap;
use tokio::task::JoinSet;

/// Requests that are with the service at a time.
const CLIENTS: usize = 48;

/// A request that the service got.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// How long the service takes for the requests.
pub(crate) async fn alone(
    client: &reqwest::Client,
    requests: Vec<Request>,
) -> anyhow::Result<Duration> {
    let requests: Arc<[Request]> = requests.into();
    let next = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    let started = Instant::now();
    for _ in 0..CLIENTS {
        let (client, requests, next) = (client.clone(), Arc::clone(&requests), Arc::clone(&next));
        clients.spawn(async move {
            while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                let sent = client.post(&request.url).headers(request.headers.clone());
                let answer = sent.body(request.body.clone()).send().await?;
                ensure!(answer.status().is_success(), "{}", answer.status());
                answer.bytes().await?;
            }
            Ok(())
        });
    }
    while let Some(done) = clients.join_next().await {
        done??;
    }
    Ok(started.elapsed())
}
