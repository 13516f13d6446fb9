//! What extractors learn about a request that its response's headers depend on.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Once};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, header};
use nudge_db::Timestamp;
use nudge_platform::clock::Clock;
use nudge_platform::rate_limits::{Policy, Quota, RateLimits};
use parking_lot::Mutex;
use uuid::Uuid;

use super::admission::{Admission, RequestPlace, Room, Share};
use super::error::ApiError;

/// The quota that is left, by policy (IETF draft ratelimit-headers).
pub const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// The policies that a request fell under (IETF draft ratelimit-headers).
pub const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The address that a connection comes from; the listener puts it into each request.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// The notes of one request, among its extensions. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Inner>>);

/// The app whose key a request has, as far as HTTP is concerned.
#[derive(Debug)]
struct CallingApp {
    id: Uuid,
    key_id: Uuid,
    origins: Arc<[String]>,
}

#[derive(Debug, Default)]
struct Inner {
    app: Option<CallingApp>,
    quotas: Vec<Quota>,
    /// The policy under which the request was one too many.
    over: Option<Policy>,
    admission: Option<Arc<Admission>>,
    /// The address that has a share of the room for bodies.
    sender: Option<[u8; 16]>,
    place: Option<RequestPlace>,
    share: Option<Share>,
    body: Option<Arc<Room>>,
    /// Whose bytes the body's are.
    senders: Vec<(Policy, [u8; 16])>,
    /// What counts them.
    meter: Option<(Arc<RateLimits>, Clock)>,
    /// Whether the answer's form depends on `Accept`.
    varies_by_accept: bool,
}

impl Inner {
    /// Notes a quota. A request of many people falls under one policy for each: their lowest is told, so that heads stay short.
    fn note(&mut self, quota: Quota) {
        match self
            .quotas
            .iter_mut()
            .find(|known| known.policy == quota.policy)
        {
            // Of two that are empty the one that refuses comes later.
            Some(known) if quota.remaining <= known.remaining => *known = quota,
            Some(_) => {}
            None => self.quotas.push(quota),
        }
    }
}

impl Notes {
    /// The notes of a request; empty ones where nobody made any.
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// Notes whose key the request has, and counts it among the app's requests.
    pub fn set_app(
        &self,
        app_id: Uuid,
        key_id: Uuid,
        origins: &Arc<[String]>,
    ) -> Result<(), ApiError> {
        let mut inner = self.0.lock();
        inner.app = Some(CallingApp {
            id: app_id,
            key_id,
            origins: Arc::clone(origins),
        });
        if let (Some(admission), None) = (&inner.admission, &inner.share) {
            inner.share = Some(admission.request_of(app_id)?);
        }
        Ok(())
    }

    /// Notes the place that the request has.
    pub(super) fn admit(
        &self,
        admission: &Arc<Admission>,
        place: RequestPlace,
        sender: Option<[u8; 16]>,
    ) {
        let mut inner = self.0.lock();
        inner.admission = Some(Arc::clone(admission));
        inner.sender = sender;
        inner.place = Some(place);
    }

    /// Gives the request's place to others while it waits for something; it stays one of its app's.
    pub fn step_aside(&self) {
        self.0.lock().place = None;
    }

    /// Takes a place again after [`leave`](Self::leave), as soon as there is one.
    pub(super) async fn come_back(&self) -> Result<(), ApiError> {
        let Some(admission) = self.0.lock().admission.clone() else {
            return Ok(());
        };
        let place = admission.come_back().await?;
        let mut inner = self.0.lock();
        inner.place = Some(place);
        if let Some(app) = &inner.app {
            inner.share = Some(admission.request_of(app.id)?);
        }
        Ok(())
    }

    /// Gives everything to others that the request had, but for the memory of its body.
    pub fn leave(&self) {
        let mut inner = self.0.lock();
        (inner.place, inner.share) = (None, None);
    }

    /// Room for a body, to be kept by [`keep_room`](Self::keep_room). None: nothing is counted here.
    pub(super) fn room(&self) -> Option<Room> {
        let inner = self.0.lock();
        let admission = inner.admission.as_ref();
        admission.map(|admission| admission.room(inner.sender))
    }

    /// Keeps the room of the body until the request is answered.
    pub(super) fn keep_room(&self, room: Option<Room>) {
        self.0.lock().body = room.map(Arc::new);
    }

    /// The room of the body, for whatever is still at work on it when its client has gone.
    pub fn body_room(&self) -> Option<Arc<Room>> {
        self.0.lock().body.clone()
    }

    /// Notes whose bytes those of the body are.
    pub fn count_for(
        &self,
        limits: &Arc<RateLimits>,
        clock: &Clock,
        policy: Policy,
        owner: [u8; 16],
    ) {
        let mut inner = self.0.lock();
        if !inner.senders.iter().any(|(known, _)| *known == policy) {
            inner.senders.push((policy, owner));
        }
        if inner.meter.is_none() {
            inner.meter = Some((Arc::clone(limits), clock.clone()));
        }
    }

    /// Counts the bytes of the body for all whose they are; refuses them if they are too many for one.
    pub fn count_bytes(&self, bytes: usize) -> Result<(), ApiError> {
        let senders = std::mem::take(&mut self.0.lock().senders);
        // A subject's first: what is refused for it takes nothing of its app's.
        for (policy, owner) in senders.into_iter().rev() {
            self.count_bytes_for(policy, owner, bytes)?;
        }
        Ok(())
    }

    /// Counts bytes for somebody who sent them.
    pub fn count_bytes_for(
        &self,
        policy: Policy,
        owner: [u8; 16],
        bytes: usize,
    ) -> Result<(), ApiError> {
        let mut inner = self.0.lock();
        let outcome = inner
            .meter
            .as_ref()
            .and_then(|(limits, clock)| limits.charge_bytes(policy, owner, bytes, clock.now()));
        let Some(outcome) = outcome else {
            return Ok(());
        };
        let quota = outcome.unwrap_or_else(|quota| quota);
        inner.note(quota);
        match outcome {
            Ok(_) => Ok(()),
            Err(quota) => {
                let detail = "too many bytes; the request may be sent again after Retry-After";
                Err(ApiError::rate_limited(quota.reset_seconds).with_detail(detail))
            }
        }
    }

    /// The app whose key the request has, and that key.
    pub(super) fn caller(&self) -> Option<(Uuid, Uuid)> {
        let inner = self.0.lock();
        inner.app.as_ref().map(|app| (app.id, app.key_id))
    }

    /// Whether the request was refused as one too many under a policy.
    pub fn is_over(&self, policy: Policy) -> bool {
        self.0.lock().over == Some(policy)
    }

    /// The origins whose pages may read answers of the app whose key the request has, if it got that far.
    pub fn origins(&self) -> Option<Arc<[String]>> {
        let inner = self.0.lock();
        inner.app.as_ref().map(|app| Arc::clone(&app.origins))
    }

    /// Notes that the answer's form depends on `Accept`.
    pub(super) fn vary_by_accept(&self) {
        self.0.lock().varies_by_accept = true;
    }

    /// Writes into a response's head what its form depends on, so that no cache hands it to a client that asks otherwise.
    pub(super) fn write_vary(&self, headers: &mut HeaderMap) {
        if self.0.lock().varies_by_accept {
            headers.append(header::VARY, HeaderValue::from_static("accept"));
        }
    }

    /// Writes the quotas into a response's head.
    pub fn write_quotas(&self, headers: &mut HeaderMap) {
        let inner = self.0.lock();
        if inner.quotas.is_empty() {
            return;
        }
        let list = |item: &dyn Fn(&Quota) -> String| {
            let items: Vec<String> = inner.quotas.iter().map(item).collect();
            HeaderValue::try_from(items.join(", "))
        };
        let policies = list(&|quota| {
            let (name, burst) = (quota.policy.name(), quota.burst);
            let unit = if quota.policy.counts_bytes() {
                ";qu=\"content-bytes\""
            } else {
                ""
            };
            format!("\"{name}\";q={burst}{unit};w={}", quota.window_seconds)
        });
        let rest = list(&|quota| {
            let (name, remaining) = (quota.policy.name(), quota.remaining);
            format!("\"{name}\";r={remaining};t={}", quota.reset_seconds)
        });
        if let (Ok(policies), Ok(rest)) = (policies, rest) {
            headers.insert(RATE_LIMIT_POLICY, policies);
            headers.insert(RATE_LIMIT, rest);
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Notes {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}

/// Counts a request under a policy, once however many extractors ask.
pub fn charge(
    parts: &Parts,
    limits: &RateLimits,
    now: Timestamp,
    policy: Policy,
    owner: [u8; 16],
) -> Result<(), ApiError> {
    let notes = Notes::of(&parts.extensions);
    let is_counted = |quota: &Quota| quota.policy == policy;
    if notes.0.lock().quotas.iter().any(is_counted) {
        return Ok(());
    }
    charge_each(parts, limits, now, policy, owner)
}

/// Counts one of the things that a request asks for under a policy, as each person whom it names.
pub fn charge_each(
    parts: &Parts,
    limits: &RateLimits,
    now: Timestamp,
    policy: Policy,
    owner: [u8; 16],
) -> Result<(), ApiError> {
    let notes = Notes::of(&parts.extensions);
    let mut inner = notes.0.lock();
    match limits.charge(policy, owner, now) {
        None => Ok(()),
        Some(Ok(quota)) => {
            inner.note(quota);
            Ok(())
        }
        Some(Err(quota)) => {
            inner.note(quota);
            inner.over = Some(policy);
            Err(ApiError::rate_limited(quota.reset_seconds))
        }
    }
}

/// The address that a request comes from. Behind proxies that append to `X-Forwarded-For`, the one that the
/// outermost trusted proxy saw.
pub fn client_address(
    extensions: &Extensions,
    headers: &HeaderMap,
    trusted_proxies: usize,
) -> Option<IpAddr> {
    let Peer(peer) = *extensions.get::<Peer>()?;
    if trusted_proxies == 0 {
        return Some(peer);
    }
    let forwarded = headers
        .get_all("x-forwarded-for")
        .iter()
        // By bytes: what a client sent may be no text, and the proxy's part stands behind it.
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(|part| address_of(str::from_utf8(part).ok()?))
        .collect::<Vec<_>>();
    let position = forwarded.len().checked_sub(trusted_proxies);
    Some(
        position
            .and_then(|position| forwarded.get(position).copied().flatten())
            .unwrap_or(peer),
    )
}

/// An address of `X-Forwarded-For`, to which some proxies add the port.
fn address_of(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let address = text.parse().ok();
    address.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()))
}

/// The header in which a proxy has said who its client is.
pub fn client_named_in(headers: &HeaderMap) -> Option<&'static str> {
    let named = ["x-forwarded-for", "forwarded"];
    named.into_iter().find(|name| headers.contains_key(*name))
}

/// Warns once, at the first request that came through a proxy, while none is trusted: all clients of a proxy are one
/// address then, and share what an address may.
pub fn notice_proxy(headers: &HeaderMap, trusted_proxies: usize) {
    static TOLD: Once = Once::new();
    if trusted_proxies > 0 || TOLD.is_completed() {
        return;
    }
    if let Some(header) = client_named_in(headers) {
        TOLD.call_once(|| {
            tracing::warn!(
                header,
                "a request came through a proxy, and server.trustedProxies is 0: all clients of the proxy count as one \
                 address, for which requests, sessions and failed authentication are limited. Set server.trustedProxies \
                 to the number of proxies in front that append to X-Forwarded-For"
            );
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(forwarded: &[&str]) -> Parts {
        let mut request = axum::http::Request::builder();
        for value in forwarded {
            request = request.header("x-forwarded-for", *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(Peer("10.0.0.1".parse().unwrap()));
        parts
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        let address = |forwarded: &[&str], trusted| {
            let parts = parts(forwarded);
            client_address(&parts.extensions, &parts.headers, trusted)
                .unwrap()
                .to_string()
        };
        assert_eq!(address(&["192.0.2.7"], 0), "10.0.0.1");
        assert_eq!(address(&["192.0.2.7"], 1), "192.0.2.7");
        assert_eq!(address(&["6.6.6.6, 192.0.2.7"], 1), "192.0.2.7");
        assert_eq!(address(&["6.6.6.6", "192.0.2.7, 10.1.1.1"], 2), "192.0.2.7");
        assert_eq!(address(&["192.0.2.7"], 2), "10.0.0.1");
        assert_eq!(address(&["nonsense"], 1), "10.0.0.1");
        assert_eq!(address(&["192.0.2.7:4711"], 1), "192.0.2.7");
        assert_eq!(address(&["[2001:db8::7]:4711"], 1), "2001:db8::7");
        assert_eq!(address(&[], 1), "10.0.0.1");
        assert_eq!(address(&["\u{fc}, 192.0.2.7"], 1), "192.0.2.7");
    }
}
