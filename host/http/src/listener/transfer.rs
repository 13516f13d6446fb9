//! What passes between HTTP and a connection's client, watched: the socket, the bodies of requests, those of answers.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::Body;
use bytes::{Buf, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::connection::{Connection, Hand, Order, Reason};
use super::pace::Pace;

/// A socket that tells its connection while it takes no more, and ends it where a request is overdue and nothing has
/// arrived.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    connection: Arc<Connection>,
    pace: Pace,
    blocked: bool,
    heard: bool,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, connection: &Arc<Connection>) -> Self {
        Self {
            stream,
            connection: Arc::clone(connection),
            pace: connection.pace(Instant::now()),
            blocked: false,
            heard: false,
        }
    }

    /// Whether nothing has arrived that was not read yet. The system is asked: the runtime hears of arrivals late where
    /// it has much to do.
    fn is_empty(&self) -> bool {
        let mut byte = [MaybeUninit::uninit()];
        let peeked = SockRef::from(&self.stream).peek(&mut byte);
        peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    fn note(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(bytes)) => {
                let now = Instant::now();
                self.pace.advance(*bytes, now);
                if std::mem::take(&mut self.blocked) {
                    self.pace.pause(now);
                    self.connection.set_blocked(None);
                }
            }
            Poll::Pending if !self.blocked => {
                self.blocked = true;
                self.pace.resume(Instant::now());
                self.connection.set_blocked(Some(self.pace));
            }
            _ => {}
        }
        written
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.connection.order() != Some(Order::Reset) {
            return;
        }
        // What the client does not read would stay in the system's memory for as long as the client likes.
        if let Err(error) = self.stream.set_zero_linger() {
            tracing::debug!(error = %error, "a connection was gone before it was reset");
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_pending() && self.connection.is_overdue() && self.is_empty() {
            self.connection
                .end(Order::Close, Reason::NoRequest, Instant::now());
        }
        if !self.heard && !buffer.filled().is_empty() {
            self.heard = true;
            self.connection.hear();
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The body of a request, which tells while its handler waits for more of it.
#[derive(Debug)]
pub(super) struct Received<B> {
    body: B,
    hand: Arc<Hand>,
    waits: bool,
}

impl<B> Received<B> {
    pub(super) fn new(body: B, hand: &Arc<Hand>) -> Self {
        Self {
            body,
            hand: Arc::clone(hand),
            waits: false,
        }
    }

    fn arrived(&mut self, bytes: usize) {
        if std::mem::take(&mut self.waits) {
            self.hand.body_arrived(bytes);
        }
    }
}

impl<B> Drop for Received<B> {
    fn drop(&mut self) {
        self.arrived(0);
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Received<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Pending if !self.waits => {
                self.waits = true;
                self.hand.waits_for_body();
            }
            Poll::Pending => {}
            Poll::Ready(Some(Ok(frame))) => self.arrived(frame.data_ref().map_or(0, Bytes::len)),
            Poll::Ready(_) => self.arrived(0),
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

/// The body of an answer, whose pieces are counted until they are on their way.
#[derive(Debug)]
pub(super) struct Answer {
    body: Body,
    hand: Arc<Hand>,
}

impl Answer {
    pub(super) fn new(body: Body, hand: Arc<Hand>) -> Self {
        Self { body, hand }
    }
}

impl HttpBody for Answer {
    type Data = Piece;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let piece = |bytes| Piece::new(bytes, &self.hand);
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes of an answer. HTTP/2 keeps them until the client's windows let them through.
#[derive(Debug)]
pub(super) struct Piece {
    bytes: Bytes,
    hand: Arc<Hand>,
}

impl Piece {
    fn new(bytes: Bytes, hand: &Arc<Hand>) -> Self {
        hand.hold(bytes.len());
        let hand = Arc::clone(hand);
        Self { bytes, hand }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.hand.release(count);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            self.hand.release(self.bytes.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Duration;

    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;

    use super::*;

    fn is_pending(socket: &mut Socket, bytes: &mut [u8]) -> bool {
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut buffer = ReadBuf::new(bytes);
        let read = Pin::new(socket).poll_read(&mut context, &mut buffer);
        read.is_pending()
    }

    #[tokio::test]
    async fn what_has_arrived_is_read_before_a_client_counts_as_silent() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        let opened = Instant::now();
        let first = Duration::from_secs(10);
        let connection = Connection::new(1, peer.ip(), first, &Arc::default(), opened);
        let connection = Arc::new(connection);
        let mut socket = Socket::new(stream, &connection);
        let mut bytes = [0; 3];
        assert!(is_pending(&mut socket, &mut bytes));
        // Bytes arrive, and the only thread of the runtime is too busy to hear of them.
        client.write_all(b"GET").unwrap();
        connection.check_first(first, opened + first);
        assert!(is_pending(&mut socket, &mut bytes));
        assert_eq!(connection.order(), None);
        socket.read_exact(&mut bytes).await.unwrap();
        assert_eq!((&bytes, connection.order()), (b"GET", None));
        // Nothing more arrives.
        assert!(is_pending(&mut socket, &mut bytes));
        assert_eq!(connection.order(), Some(Order::Close));
    }

    #[tokio::test]
    async fn a_request_that_has_arrived_is_read_before_its_connection_finishes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut clients = [(); 2].map(|()| std::net::TcpStream::connect(address).unwrap());
        clients[0].write_all(b"GET").unwrap();
        for arrived in [true, false] {
            let (stream, peer) = listener.accept().await.unwrap();
            let now = Instant::now();
            let connection = Connection::new(1, peer.ip(), Duration::ZERO, &Arc::default(), now);
            let connection = Arc::new(connection);
            connection.tell(Order::Drain, now);
            connection.told().await;
            assert!(!connection.may_finish());
            let mut socket = Socket::new(stream, &connection);
            let mut bytes = [0; 3];
            if arrived {
                socket.read_exact(&mut bytes).await.unwrap();
                // The order is told once more; what follows has its time.
                connection.told().await;
                assert!(connection.may_finish());
            }
            assert!(is_pending(&mut socket, &mut bytes));
            let order = if arrived { Order::Drain } else { Order::Close };
            assert_eq!(connection.order(), Some(order));
        }
    }
}
