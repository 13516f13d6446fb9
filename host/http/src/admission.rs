//! How much is in hand at a time: requests, open polls, and the bytes of bodies. What is too much is refused at once,
//! so that whatever is taken is answered soon (contract 14).
//!
//! A request has a *place* while the server works on it: from before its credentials are looked at until its answer
//! is made, but not while it waits for the client to send the body, for a decision about its events, or for
//! instructions. Of an app only so many requests are in hand, those that wait for a decision too, which leaves places to
//! the others. An address has a share of the room for bodies, which leaves room to the others: whose body it is, is known
//! only once it has arrived.

mod bodies;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{Extensions, HeaderMap};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use nudge_platform::config;
use nudge_platform::outbound::address::is_public;
use nudge_platform::rate_limits::owner_of;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use super::code::Code;
use super::error::ApiError;
use super::request_context::{Notes, Peer, client_address};
use bodies::Bodies;
pub use bodies::Room;

/// How long a request whose body has arrived waits for a place.
const RETURNS_WITHIN: Duration = Duration::from_secs(5);
/// Streams of events that an app has at the most (contract 21).
const MOST_STREAMS: usize = 20;

/// What is free. One a server.
#[derive(Debug)]
pub struct Admission {
    places: Arc<Semaphore>,
    requests: Shares,
    seats: Arc<Semaphore>,
    polls: Shares,
    streams: Shares,
    bodies: Bodies,
    trusted_proxies: usize,
}

/// A place among the requests that are worked on; given back when it is dropped.
#[derive(Debug)]
pub struct RequestPlace {
    _permit: OwnedSemaphorePermit,
}

/// A place among the open polls; given back when it is dropped.
#[derive(Debug)]
pub struct Seat {
    _permit: OwnedSemaphorePermit,
    _share: Share,
}

/// How many of something each app has.
#[derive(Debug)]
struct Shares {
    most: usize,
    apps: Arc<Mutex<HashMap<Uuid, usize>>>,
}

/// One of an app's; given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    app_id: Uuid,
    apps: Arc<Mutex<HashMap<Uuid, usize>>>,
}

impl Admission {
    /// Everything is free.
    pub fn new(config: &config::Server) -> Self {
        let of = |number: usize| number.clamp(1, Semaphore::MAX_PERMITS);
        let semaphore = |number: usize| Arc::new(Semaphore::new(of(number)));
        Self {
            places: semaphore(config.max_requests),
            requests: Shares::new(config.max_requests, config.app_share),
            seats: semaphore(config.max_polls),
            polls: Shares::new(config.max_polls, config.app_share),
            streams: Shares {
                most: MOST_STREAMS,
                apps: Arc::default(),
            },
            bodies: Bodies::new(config.body_memory_bytes),
            trusted_proxies: config.trusted_proxies,
        }
    }

    /// A place, if there is one.
    fn enter(&self) -> Option<RequestPlace> {
        let permit = Arc::clone(&self.places).try_acquire_owned();
        permit.ok().map(|permit| RequestPlace { _permit: permit })
    }

    /// A place for a request that had one before, as soon as there is one. They come before those that are new, of
    /// which none is let in meanwhile.
    pub(super) async fn come_back(&self) -> Result<RequestPlace, ApiError> {
        let permit = Arc::clone(&self.places).acquire_owned();
        match tokio::time::timeout(RETURNS_WITHIN, permit).await {
            Ok(Ok(permit)) => Ok(RequestPlace { _permit: permit }),
            _ => Err(refuse("requests")),
        }
    }

    /// One of the requests of an app.
    pub(super) fn request_of(&self, app_id: Uuid) -> Result<Share, ApiError> {
        self.requests.take(app_id).ok_or_else(|| {
            shed("app");
            let detail = "the app has as many requests under way as it may have; try again after Retry-After";
            ApiError::rate_limited(1).with_detail(detail)
        })
    }

    /// A place for a poll that begins to wait.
    pub fn seat(&self, app_id: Uuid) -> Result<Seat, ApiError> {
        let share = self.polls.take(app_id).ok_or_else(|| refuse("polls"))?;
        let permit = Arc::clone(&self.seats).try_acquire_owned();
        permit
            .map(|permit| Seat {
                _permit: permit,
                _share: share,
            })
            .map_err(|_| refuse("polls"))
    }

    /// A place for a stream of an app's events.
    pub fn stream_of(&self, app_id: Uuid) -> Result<Share, ApiError> {
        self.streams.take(app_id).ok_or_else(|| {
            shed("streams");
            let detail =
                "the app has as many streams of events as it may have; end one of them first";
            ApiError::rate_limited(1).with_detail(detail)
        })
    }

    /// What bodies take now, in bytes.
    pub fn body_bytes(&self) -> usize {
        self.bodies.taken_bytes()
    }

    /// Room for a body, none of it taken yet; where an address has a share, it is of that.
    pub(super) fn room(&self, sender: Option<[u8; 16]>) -> Room {
        self.bodies.room(sender)
    }

    /// The address whose share of the room a body takes. None: the peer is no stranger. What has no public address is
    /// more often a proxy of whose clients nothing is known, as `server.trustedProxies` does not count it, than a client:
    /// everybody would have one share. An address that a trusted proxy names is a client's, whichever it is.
    fn sender(&self, extensions: &Extensions, headers: &HeaderMap) -> Option<[u8; 16]> {
        let address = client_address(extensions, headers, self.trusted_proxies)?;
        let is_peer = extensions
            .get::<Peer>()
            .is_some_and(|peer| peer.0 == address);
        (!is_peer || is_public(address)).then(|| owner_of(address))
    }
}

impl Shares {
    fn new(all: usize, share: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a part of a number of requests"
        )]
        let most = (all as f64 * share.clamp(0.0, 1.0)) as usize;
        Self {
            most: most.max(1),
            apps: Arc::default(),
        }
    }

    fn take(&self, app_id: Uuid) -> Option<Share> {
        let mut apps = self.apps.lock();
        let taken = apps.entry(app_id).or_default();
        if *taken >= self.most {
            return None;
        }
        *taken += 1;
        Some(Share {
            app_id,
            apps: Arc::clone(&self.apps),
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut apps = self.apps.lock();
        if let Some(taken) = apps.get_mut(&self.app_id) {
            *taken = taken.saturating_sub(1);
            if *taken == 0 {
                apps.remove(&self.app_id);
            }
        }
    }
}

fn refuse(what: &'static str) -> ApiError {
    shed(what);
    let detail = "the server has as much in hand as it takes; try again after Retry-After";
    ApiError::new(Code::Unavailable).with_detail(detail)
}

/// Counts a request or connection that is refused for want of room; `what` was full.
pub fn shed(what: &'static str) {
    metrics::counter!("nudge_http_shed_total", "full" => what).increment(1);
}

/// Lets a request in if there is a place for it.
pub async fn around(admission: &Arc<Admission>, request: Request, next: Next) -> Response {
    let Some(place) = admission.enter() else {
        return refuse("requests").into_response();
    };
    let notes = Notes::of(request.extensions());
    let sender = admission.sender(request.extensions(), request.headers());
    notes.admit(admission, place, sender);
    let response = next.run(request).await;
    notes.leave();
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use nudge_platform::config::Config;

    fn admission(change: impl FnOnce(&mut config::Server)) -> Admission {
        let mut config = Config::defaults().unwrap().server;
        change(&mut config);
        Admission::new(&config)
    }

    #[test]
    fn places_are_given_back() {
        let admission = admission(|config| config.max_requests = 2);
        let places: Vec<Option<RequestPlace>> = (0..3).map(|_| admission.enter()).collect();
        assert_eq!(places.iter().flatten().count(), 2);
        drop(places);
        assert!(admission.enter().is_some());
    }

    #[tokio::test]
    async fn who_comes_back_is_before_who_is_new() {
        let admission = Arc::new(admission(|config| config.max_requests = 1));
        let place = admission.enter();
        let mut returns = std::pin::pin!(admission.come_back());
        assert!(futures_util::FutureExt::now_or_never(&mut returns).is_none());
        drop(place);
        assert!(admission.enter().is_none());
        assert!(returns.await.is_ok());
    }

    #[test]
    fn an_app_leaves_something_to_others() {
        let admission = admission(|config| {
            config.max_requests = 4;
            config.max_polls = 4;
            config.app_share = 0.5;
        });
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let shares: Vec<_> = (0..3).map(|_| admission.request_of(one)).collect();
        assert_eq!(shares.iter().filter(|share| share.is_ok()).count(), 2);
        assert!(admission.request_of(two).is_ok());
        drop(shares);
        assert!(admission.request_of(one).is_ok());
        assert!(admission.requests.apps.lock().is_empty());

        let seats: Vec<_> = (0..3).map(|_| admission.seat(one)).collect();
        assert_eq!(seats.iter().filter(|seat| seat.is_ok()).count(), 2);
        assert!(admission.seat(two).is_ok());
    }

    #[test]
    fn strangers_have_a_share_and_proxies_have_none() {
        let sender = |trusted: usize, peer: &str, forwarded: &str| {
            let admission = admission(|config| config.trusted_proxies = trusted);
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", forwarded.parse().unwrap());
            let mut extensions = Extensions::new();
            extensions.insert(Peer(peer.parse().unwrap()));
            admission.sender(&extensions, &headers)
        };
        let owner = |address: &str| Some(owner_of(address.parse().unwrap()));
        for (trusted, peer, forwarded, expected) in [
            // What a client says of itself changes nothing.
            (0, "1.1.1.1", "9.9.9.9", owner("1.1.1.1")),
            (0, "10.0.0.7", "9.9.9.9", None),
            (0, "127.0.0.1", "9.9.9.9", None),
            (0, "::ffff:127.0.0.1", "9.9.9.9", None),
            (1, "10.0.0.7", "9.9.9.9", owner("9.9.9.9")),
            (1, "10.0.0.7", "10.0.0.8", owner("10.0.0.8")),
            (1, "10.0.0.7", "2606:4700::1", owner("2606:4700::2")),
            (1, "10.0.0.7", "nonsense", None),
        ] {
            let found = sender(trusted, peer, forwarded);
            assert_eq!(found, expected, "{trusted} {peer} {forwarded}");
        }
    }
}
