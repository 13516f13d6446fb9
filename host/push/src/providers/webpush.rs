//! Web Push: any push service that a browser names (RFC 8030), messages encrypted for the browser (RFC 8291), the
//! app known by its VAPID key (RFC 8292).
//!
//! Endpoints come from outside. What one of them answers is about its subscription alone: it can't make the app's
//! credential invalid, which would stop the messages to everybody else.

use std::time::Duration;

use nudge_campaigns::push::message::Message;
use nudge_campaigns::push::options::Priority;
use nudge_db::Timestamp;
use nudge_platform::config;
use nudge_platform::outbound::Guard;
use reqwest::Client;
use serde_json::json;

use super::http::{self, Answer};
use super::jws::{SigningKey, Unusable};
use super::{PushOutcome, Subscription, encryption, payload};
use crate::credentials::Web;

/// How long a service keeps a message for a browser that is away, unless the message says: four weeks, in seconds.
const DEFAULT_TTL: u64 = 28 * 24 * 60 * 60;
/// For how long a message is new.
const NEW: Duration = Duration::from_secs(5);
/// How long a signed token is good for; services take a day at the most.
const TOKEN_LIFETIME: Duration = Duration::from_hours(12);

/// The services of browsers.
pub(super) struct Webpush {
    client: Client,
    guard: Guard,
}

/// A VAPID key.
pub(super) struct Key {
    identity: Web,
    signing: SigningKey,
}

impl Key {
    pub(super) fn new(identity: Web, signing: SigningKey) -> Self {
        Self { identity, signing }
    }

    /// The `Authorization` of a request to an origin.
    fn authorization(&self, origin: &str, now: Timestamp) -> Result<String, Unusable> {
        let mut claims = json!({"aud": origin, "exp": now.plus(TOKEN_LIFETIME).seconds()});
        if let (Some(claims), Some(subject)) = (claims.as_object_mut(), &self.identity.subject) {
            claims.insert("sub".to_owned(), subject.as_str().into());
        }
        let token = self.signing.sign(None, &claims)?;
        Ok(format!("vapid t={token}, k={}", self.identity.public_key))
    }
}

impl Webpush {
    pub(super) fn new(config: &config::Push, guard: Guard) -> anyhow::Result<Self> {
        Ok(Self {
            client: http::guarded(&guard, config)?,
            guard,
        })
    }

    /// Sends a message to a browser.
    pub(super) async fn send(
        &self,
        key: &Key,
        subscription: &Subscription,
        message: &Message,
        now: Timestamp,
    ) -> Result<PushOutcome, Unusable> {
        let rejected = |reason: &str| PushOutcome::Rejected {
            reason: reason.to_owned(),
        };
        let Ok(url) = self.guard.check(&subscription.endpoint) else {
            return Ok(rejected("endpoint_not_allowed"));
        };
        let plain = match http::json(&payload::web(message)) {
            Ok(plain) => plain,
            Err(outcome) => return Ok(outcome),
        };
        let Ok(body) = encryption::encrypt(subscription, &plain) else {
            return Ok(rejected("invalid_subscription"));
        };
        let origin = url.origin().ascii_serialization();
        let urgency = match message.options.priority.unwrap_or_default() {
            Priority::High => "high",
            Priority::Normal => "normal",
        };
        let request = self
            .client
            .post(url)
            .header("authorization", key.authorization(&origin, now)?)
            .header("content-encoding", "aes128gcm")
            .header("content-type", "application/octet-stream")
            .header("ttl", time_to_live(message, now))
            .header("urgency", urgency)
            .header("topic", payload::topic(message));
        Ok(match http::hand_over(request, body).await {
            Ok(answer) => outcome(&answer, now),
            Err(outcome) => outcome,
        })
    }
}

/// How long a service may keep a message, in seconds: what is left of its life, so that a retry does not begin it anew.
fn time_to_live(message: &Message, now: Timestamp) -> u64 {
    let whole = message.options.ttl_seconds.map_or(DEFAULT_TTL, u64::from);
    let left = message.expires_at().map(|expires_at| expires_at.since(now));
    // What was just made has all of it, and a clock that was set back adds none.
    left.map_or(whole, |left| whole.min(left.saturating_add(NEW).as_secs()))
}

/// What an answer means (RFC 8030, section 5).
fn outcome(answer: &Answer, now: Timestamp) -> PushOutcome {
    let because = |reason: &str| reason.to_owned();
    match answer.status.as_u16() {
        200..=202 => PushOutcome::Accepted {
            provider_message_id: answer.id("location"),
        },
        404 | 410 => PushOutcome::Unregistered {
            reason: because("unregistered"),
        },
        // The browser subscribed with another key, or the service does not take the token.
        401 | 403 => PushOutcome::Rejected {
            reason: because("vapid_refused"),
        },
        413 => PushOutcome::Rejected {
            reason: because("payload_too_large"),
        },
        429 => answer.retry(because("too_many_requests"), now),
        500..=599 => answer.retry(http::reason(None, answer.status), now),
        _ => PushOutcome::Rejected {
            reason: http::reason(None, answer.status),
        },
    }
}

#[cfg(test)]
mod tests {
    use nudge_campaigns::push::options::Options;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_retry_has_what_is_left_of_a_messages_life() {
        let at = |ttl_seconds, milliseconds: i64| {
            let message = Message {
                delivery_id: Uuid::nil(),
                created_at: Timestamp::from_seconds(1_000),
                test: false,
                title: String::new(),
                body: String::new(),
                open_action: json!({"action": "none"}),
                options: Options {
                    ttl_seconds,
                    ..Options::default()
                },
            };
            time_to_live(&message, Timestamp(milliseconds * 1_000))
        };
        assert_eq!(at(Some(600), 1_000_000), 600);
        assert_eq!(at(Some(600), 1_004_900), 600, "it is new");
        assert_eq!(at(Some(600), 1_420_000), 185);
        assert_eq!(at(Some(600), 900_000), 600, "the clock was set back");
        assert_eq!(at(Some(0), 1_420_000), 0, "now or never");
        assert_eq!(at(None, 1_420_000), DEFAULT_TTL);
    }
}
