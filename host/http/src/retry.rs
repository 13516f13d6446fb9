//! Requests whose transaction lost against another one are answered once more.
//!
//! `PostgreSQL` ends one of two transactions that wait for each other (SQLSTATE 40P01), and one that can't be put in
//! order with others (40001). And what a request was to change may have been changed by another since it was read.
//! Nothing of it has taken effect, and the same request would most likely succeed. So it is
//! made again here, for all routes, as a client would that is told to, one after another; only what loses again and again is
//! refused.
//! What a handler committed before that stays, as it does when a client repeats the request; by its [`Mark`] it can tell
//! what it did itself.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequestParts, MatchedPath, Request};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use nudge_platform::secrets;
use parking_lot::Mutex;
use uuid::Uuid;

use super::body::MOST_BODY_BYTES;
use super::error::ApiError;
use super::request::COLLECTION;

/// How often a request is tried.
const MOST_TRIES: usize = 16;
/// The route of ingest.
const INGEST: &str = "/v1/sdk/ingest";

/// Tells a request from all others, and is the same each time that it is made again here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The request's own id, at random.
    pub id: Uuid,
    /// When it came.
    pub begun: Instant,
}

impl Mark {
    /// That of a request that comes now.
    fn new() -> Self {
        Self {
            id: Uuid::from_bytes(secrets::random()),
            begun: Instant::now(),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Mark {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let mark = parts.extensions.get::<Self>().copied();
        Ok(mark.unwrap_or_else(Self::new))
    }
}

/// Answers a request, if need be again.
pub(super) async fn run(next: Next, request: Request) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    if request.method().is_safe() || route.is_none_or(|route| tries_by_itself(route.as_str())) {
        return next.run(request).await;
    }
    let (mut head, body) = request.into_parts();
    head.extensions.insert(Mark::new());
    let kept = KeptBody::default();
    let mut body = kept.keep(body);
    let mut tries = 1;
    let mut turn = None;
    loop {
        let request = Request::from_parts(head.clone(), body);
        let response = next.clone().run(request).await;
        let error = response.extensions().get::<ApiError>();
        if tries == MOST_TRIES || !error.is_some_and(ApiError::lost_race) {
            return response;
        }
        let Some(whole) = kept.whole() else {
            return response;
        };
        body = whole;
        tries += 1;
        if turn.is_none() {
            turn = Some(turn_of(head.uri.path()).lock().await);
        }
        metrics::counter!("nudge_http_requests_repeated_total").increment(1);
    }
}

/// Whether a route tries again by itself, many requests together, and its bodies are not to be kept for longer.
fn tries_by_itself(route: &str) -> bool {
    route == INGEST || COLLECTION.contains(&route)
}

/// Whose turn it is to try again, of those that change the same: they would lose against each other again and again. It is kept
/// until the request is answered.
fn turn_of(path: &str) -> &'static tokio::sync::Mutex<()> {
    static TURNS: [tokio::sync::Mutex<()>; 64] = [const { tokio::sync::Mutex::const_new(()) }; 64];
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let place = usize::try_from(hasher.finish() % 64).unwrap_or_default();
    TURNS.get(place).unwrap_or(&TURNS[0])
}

/// What has been read of a body. Cheap to clone.
#[derive(Clone, Default)]
struct KeptBody(Arc<Mutex<ReadSoFar>>);

#[derive(Default)]
struct ReadSoFar {
    chunks: Vec<Bytes>,
    bytes: usize,
    ended: bool,
}

/// A body that is kept while it is read.
struct Keeping {
    body: Body,
    kept: KeptBody,
}

impl KeptBody {
    fn keep(&self, body: Body) -> Body {
        self.0.lock().ended = body.is_end_stream();
        let kept = self.clone();
        Body::new(Keeping { body, kept })
    }

    /// The body once more, if it was read to its end and is none of the large ones, which are not kept.
    fn whole(&self) -> Option<Body> {
        let kept = self.0.lock();
        (kept.ended && kept.bytes <= MOST_BODY_BYTES).then(|| Body::from(kept.chunks.concat()))
    }

    fn note(&self, data: &Bytes) {
        let mut kept = self.0.lock();
        kept.bytes = kept.bytes.saturating_add(data.len());
        if kept.bytes <= MOST_BODY_BYTES {
            kept.chunks.push(data.clone());
        } else {
            kept.chunks = Vec::new();
        }
    }
}

impl HttpBody for Keeping {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.kept.note(data);
                }
                self.kept.0.lock().ended = self.body.is_end_stream();
            }
            Poll::Ready(None) => self.kept.0.lock().ended = true,
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    async fn read(body: Body) -> Bytes {
        body.collect().await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn a_body_that_was_read_is_there_once_more() {
        let kept = KeptBody::default();
        let body = kept.keep(Body::from("text"));
        assert!(kept.whole().is_none());
        assert_eq!(read(body).await, "text");
        assert_eq!(read(kept.whole().unwrap()).await, "text");
        assert_eq!(read(kept.whole().unwrap()).await, "text");
    }

    #[tokio::test]
    async fn no_body_need_not_be_read() {
        let kept = KeptBody::default();
        let _unread = kept.keep(Body::empty());
        assert_eq!(read(kept.whole().unwrap()).await, "");
    }

    #[tokio::test]
    async fn a_body_is_kept_up_to_the_largest_that_json_may_have() {
        for (length, kept_whole) in [(MOST_BODY_BYTES, true), (MOST_BODY_BYTES + 1, false)] {
            let kept = KeptBody::default();
            read(kept.keep(Body::from(vec![b' '; length]))).await;
            assert_eq!(kept.whole().is_some(), kept_whole, "{length}");
        }
    }
}
