//! Bodies that nobody has read when the answer is made.
//!
//! A request is refused as soon as there is a reason, often before its body is read. Most HTTP/1.1 clients listen only when they
//! have sent everything, and send their next request on the same connection. So what is left of a body is read before
//! the answer is sent. Where that would be too much, the answer says that the connection ends (RFC 9112, section 9.6).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{Version, header};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;

use super::body::MOST_BODY_BYTES;

/// How long the rest of a body is waited for.
const READS_WITHIN: Duration = Duration::from_secs(1);

/// What a request's handlers leave of its body.
pub(super) struct Unread {
    rest: Rest,
    /// The client sends the body only when it is asked to (RFC 9110, section 10.1.1), which reading does.
    waits: bool,
}

type Rest = Arc<Mutex<Option<Body>>>;

/// A body whose rest is kept when it is dropped.
struct Watched {
    body: Body,
    ended: bool,
    rest: Rest,
}

impl Unread {
    /// Watches a request's body. None: there is none, or it has a stream of its own (HTTP/2).
    pub(super) fn watch(request: &mut Request) -> Option<Self> {
        if request.version() >= Version::HTTP_2 || request.body().is_end_stream() {
            return None;
        }
        let waits = request.headers().contains_key(header::EXPECT);
        let rest = Rest::default();
        let watched = Watched {
            body: std::mem::take(request.body_mut()),
            ended: false,
            rest: Arc::clone(&rest),
        };
        *request.body_mut() = Body::new(watched);
        Some(Self { rest, waits })
    }

    /// Reads what is left. Whether all was read: if not, the connection can't go on.
    pub(super) async fn read(self) -> bool {
        let Some(mut body) = self.rest.lock().take() else {
            return true;
        };
        if self.waits || body.size_hint().lower() > MOST_BODY_BYTES as u64 {
            return false;
        }
        let read = async {
            let mut left = MOST_BODY_BYTES;
            while let Some(frame) = body.frame().await {
                let length = frame.ok()?.data_ref().map_or(0, Bytes::len);
                left = left.checked_sub(length)?;
            }
            Some(())
        };
        matches!(tokio::time::timeout(READS_WITHIN, read).await, Ok(Some(())))
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        // A client that broke off sends no more either.
        self.ended |= matches!(&polled, Poll::Ready(None | Some(Err(_))));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.ended && !self.body.is_end_stream() {
            *self.rest.lock() = Some(std::mem::take(&mut self.body));
        }
    }
}
