//! A run: messages of one endpoint that are claimed together, and sent one after another in each of its places.
//!
//! A turn of the [sender](super::sender) is a transaction. If it claimed one message for each place, an endpoint that
//! answers within a millisecond would wait for transactions most of the time. So it claims as many as the endpoint takes
//! within [`AIM`]. What was not sent by [`LIMIT`], or before a failure, is given back: its person may be gone by then,
//! the endpoint changed.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use nudge_apps::webhooks::in_hand::ClaimedMessage;
use nudge_platform::traces::{KeyValue, NewSpan, Traces};
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedSender;

use super::Secret;
use super::outcome;
use super::request::{self, Exchange, Outgoing};
use super::store::queue::{AttemptOutcome, EndpointRow};
use crate::services::Shared;

/// How long a run is to take.
const AIM: Duration = Duration::from_millis(50);
/// After so long no other message of a run is sent.
pub(super) const LIMIT: Duration = Duration::from_millis(100);
/// Messages that a place has in a run, at the most.
const LONGEST: usize = 128;

/// Messages of one endpoint that were claimed together, and everything that sending them takes.
#[derive(Debug)]
pub(super) struct Run {
    pub webhook: EndpointRow,
    secrets: Arc<[Secret]>,
    /// What waits for a place: one request that hangs holds up no other message.
    messages: Mutex<VecDeque<ClaimedMessage>>,
}

/// What came of a message.
#[derive(Debug)]
pub(super) struct Step {
    pub outcome: AttemptOutcome,
    /// Its place is free: how many messages each of the endpoint's places may have in the next run.
    pub next: Option<usize>,
}

impl Run {
    pub(super) fn new(
        webhook: &EndpointRow,
        messages: Vec<ClaimedMessage>,
        secrets: Arc<[Secret]>,
    ) -> Arc<Self> {
        Arc::new(Self {
            webhook: webhook.clone(),
            secrets,
            messages: Mutex::new(messages.into()),
        })
    }

    /// Takes a message out that waits for a place.
    pub(super) fn next(&self) -> Option<ClaimedMessage> {
        self.messages.lock().pop_front()
    }

    /// Sends a message in a place of its own, and then others that wait; tells of each once it is over.
    pub(super) async fn send(
        &self,
        services: &Shared,
        first: ClaimedMessage,
        end: &UnboundedSender<Step>,
    ) {
        let (began, mut sent, mut message) = (Instant::now(), 0, first);
        // The sender listens until the last message is over.
        let tell = |outcome, next| drop(end.send(Step { outcome, next }));
        loop {
            let outcome = attempt(services, &self.webhook, &self.secrets, message).await;
            sent += 1;
            let took = began.elapsed();
            let arrived = outcome.state == "succeeded";
            if !arrived || took >= LIMIT || services.stop.is_cancelled() {
                let rest = std::mem::take(&mut *self.messages.lock());
                let now = services.clock.now();
                let of = (self.webhook.app_id, self.webhook.id);
                for message in rest {
                    tell(outcome::untried(of, message, now), None);
                }
                return tell(outcome, Some(1));
            }
            let Some(next) = self.next() else {
                return tell(outcome, Some(length(sent, took)));
            };
            tell(outcome, None);
            message = next;
        }
    }
}

/// Messages that a place may have in the next run, after it sent so many in so long.
fn length(sent: u32, took: Duration) -> usize {
    let each = took / sent.max(1);
    let fit = AIM.as_micros() / each.as_micros().max(1);
    let twice = u128::from(sent) * 2;
    usize::try_from(fit.min(twice)).map_or(LONGEST, |length| length.clamp(1, LONGEST))
}

/// Sends a message once.
async fn attempt(
    services: &Shared,
    webhook: &EndpointRow,
    secrets: &[Secret],
    message: ClaimedMessage,
) -> AttemptOutcome {
    let at = services.clock.now();
    let exchange = if secrets.is_empty() {
        Exchange::failed("the server can't read the secret; rotate it")
    } else {
        let outgoing = Outgoing {
            app_id: webhook.app_id,
            url: &webhook.url,
            secrets,
            id: message.id,
            event: &message.event_type,
            attempt: message.attempts + 1,
            body: &message.body,
            at,
        };
        let span = || {
            let event = KeyValue::new("nudge.webhook.event", outgoing.event.to_owned());
            NewSpan::client("webhook", vec![event])
        };
        let sent = request::send(&services.webhooks, &outgoing);
        AssertUnwindSafe(Traces::root(services.traces.as_ref(), span, sent))
            .catch_unwind()
            .await
            .unwrap_or_else(|_| Exchange::failed("a defect in the server"))
    };
    let random = u32::from_be_bytes(nudge_platform::secrets::random());
    let random = f64::from(random) / f64::from(u32::MAX);
    let base = services.config.webhooks.retry_base_seconds;
    let now = services.clock.now();
    outcome::of(webhook, message, exchange, at, now, base, random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_as_long_as_an_endpoint_is_quick() {
        let millis = Duration::from_millis;
        assert_eq!(length(1, millis(1)), 2);
        assert_eq!(length(16, millis(16)), 32);
        assert_eq!(length(32, millis(16)), 64);
        assert_eq!(length(128, millis(16)), LONGEST);
        assert_eq!(length(8, millis(80)), 5);
        assert_eq!(length(1, millis(90)), 1);
        assert_eq!(length(2, Duration::ZERO), 4);
    }
}
