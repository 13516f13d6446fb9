//! Whether a request without an answer was handed over: the beginning of its body went out.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::HttpBody;
use bytes::Bytes;
use h2::Reason;
use hyper::body::{Frame, SizeHint};
use nudge_platform::outbound;
use reqwest::Body;

/// Whether anything of a body was asked for. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Begun(Arc<AtomicBool>);

/// A body that notes when it is asked for. Nobody asks before there is a connection with room for it.
struct Watched {
    bytes: Option<Bytes>,
    begun: Begun,
}

impl Begun {
    /// A body whose beginning is noted here.
    pub(super) fn watch(&self, bytes: impl Into<Bytes>) -> Body {
        Body::wrap(Watched {
            bytes: Some(bytes.into()),
            begun: self.clone(),
        })
    }

    /// Whether a request that failed so may have arrived.
    pub(super) fn may_have_arrived(&self, error: &reqwest::Error) -> bool {
        self.0.load(Ordering::SeqCst) && !is_unprocessed(error)
    }
}

/// Whether the service itself says that it has not looked at the request (RFC 9113, section 8.7).
fn is_unprocessed(error: &reqwest::Error) -> bool {
    outbound::cause::<h2::Error>(error).is_some_and(|error| {
        let reason = error.reason();
        error.is_remote()
            && ((error.is_go_away() && reason == Some(Reason::NO_ERROR))
                || (error.is_reset() && reason == Some(Reason::REFUSED_STREAM)))
    })
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.begun.0.store(true, Ordering::SeqCst);
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.bytes.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(u64::try_from(left).unwrap_or(u64::MAX))
    }
}
