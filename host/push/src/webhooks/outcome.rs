//! What becomes of a message after an attempt, and what attempts say of their endpoint.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use nudge_apps::webhooks::in_hand::ClaimedMessage;
use nudge_db::{Timestamp, Tx};
use nudge_platform::audit::{self, Entry};
use nudge_platform::config;
use serde_json::json;
use uuid::Uuid;

use super::request::Exchange;
use super::retry::{self, MOST_ATTEMPTS, Verdict};
use super::store::queue::{self, AttemptOutcome, Change, EndpointRow};

/// An endpoint that was disabled just now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disabled {
    pub app_id: Uuid,
    pub webhook_id: Uuid,
}

/// What becomes of a message. `at` is when it was sent, `now` when that had ended; `random` is 0 to 1.
pub(super) fn of(
    webhook: &EndpointRow,
    message: ClaimedMessage,
    exchange: Exchange,
    at: Timestamp,
    now: Timestamp,
    base_seconds: f64,
    random: f64,
) -> AttemptOutcome {
    let put_off = exchange.put_off;
    let attempt = if put_off {
        message.attempts
    } else {
        message.attempts + 1
    };
    let (state, next_attempt_at) = match retry::verdict(exchange.status) {
        _ if put_off => ("pending", Some(now.plus(retry::put_off(random)))),
        Verdict::Arrived => ("succeeded", None),
        Verdict::Again if attempt < MOST_ATTEMPTS => {
            let pause = retry::pause(base_seconds, attempt, random, exchange.asked);
            ("pending", Some(now.plus(pause)))
        }
        Verdict::Again | Verdict::Refused => ("failed", None),
    };
    let counted = if put_off { "put_off" } else { state };
    metrics::counter!("nudge_webhook_attempts_total", "outcome" => counted).increment(1);
    AttemptOutcome {
        attempt,
        at,
        status: exchange.status.map(i64::from),
        latency_ms: exchange.latency_ms,
        error: exchange.error,
        state,
        put_off,
        next_attempt_at,
        ..untried((webhook.app_id, webhook.id), message, now)
    }
}

/// What becomes of a message that was claimed and not sent: it is due at once.
pub(super) fn untried(
    (app_id, webhook_id): (Uuid, Uuid),
    message: ClaimedMessage,
    now: Timestamp,
) -> AttemptOutcome {
    AttemptOutcome {
        attempt_id: nudge_platform::id::new(now),
        message_id: message.id,
        app_id,
        webhook_id,
        delivery_id: message.delivery_id,
        event_type: message.event_type,
        attempt: message.attempts,
        at: now,
        status: None,
        latency_ms: 0,
        error: None,
        state: "pending",
        put_off: true,
        next_attempt_at: Some(now),
    }
}

/// Notes what came of attempts, in the log, of the messages and of their endpoints; answers which of those are
/// given up now (contract 10).
pub(super) async fn note(
    tx: &mut Tx,
    node: Uuid,
    outcomes: &[AttemptOutcome],
    config: &config::Webhooks,
    now: Timestamp,
) -> nudge_db::Result<Vec<Disabled>> {
    if outcomes.is_empty() {
        return Ok(Vec::new());
    }
    let settled: HashSet<Uuid> = queue::settle(tx, node, outcomes)
        .await?
        .into_iter()
        .collect();
    let noted: Vec<&AttemptOutcome> = outcomes
        .iter()
        .filter(|outcome| settled.contains(&outcome.message_id) && !outcome.put_off)
        .collect();
    queue::insert_attempts(tx, &noted).await?;
    // Others were put off because of one that waited itself: it was tried before, or they are due with it.
    let waited =
        |outcome: &&AttemptOutcome| outcome.next_attempt_at.is_none() && outcome.attempt > 1;
    let ended: Vec<&AttemptOutcome> = noted.iter().copied().filter(waited).collect();
    queue::follow(tx, &ended, now).await?;
    let patience = Duration::from_secs(config.disable_after_seconds);
    let mut disabled = Vec::new();
    for ((webhook_id, app_id), change) in changes(&noted) {
        let failing_since = queue::note(tx, app_id, webhook_id, &change).await?;
        let hopeless = failing_since.is_some_and(|since| now.since(since) >= patience);
        if hopeless && queue::disable(tx, app_id, webhook_id, now).await? {
            nudge_campaigns::apps::bump_version(tx, app_id, now).await?;
            let entry = Entry {
                app_id,
                actor: audit::SERVER,
                action: "webhook.disabled",
                resource: format!("webhook/{webhook_id}"),
                detail: json!({"lastError": change.last_error}),
            };
            audit::record(tx, &entry, now).await?;
            disabled.push(Disabled { app_id, webhook_id });
        }
    }
    Ok(disabled)
}

/// What attempts mean for the health of each endpoint, in the order of the endpoints, so that two processes do not
/// wait for each other.
fn changes(outcomes: &[&AttemptOutcome]) -> BTreeMap<(Uuid, Uuid), Change> {
    let mut changes: BTreeMap<(Uuid, Uuid), Change> = BTreeMap::new();
    for outcome in outcomes {
        let change = changes
            .entry((outcome.webhook_id, outcome.app_id))
            .or_default();
        change.last_status = outcome.status.or(change.last_status);
        if outcome.state == "succeeded" {
            *change = Change {
                succeeded: true,
                failures: 0,
                failing_since: None,
                last_success_at: Some(outcome.at),
                ..change.clone()
            };
        } else {
            change.failures += 1;
            change.failing_since = change.failing_since.or(Some(outcome.at));
            change.last_failure_at = Some(outcome.at);
            change.last_error.clone_from(&outcome.error);
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: Option<u16>, attempts: i64, seconds: i64) -> AttemptOutcome {
        let webhook = EndpointRow {
            id: Uuid::from_u128(1),
            app_id: Uuid::from_u128(2),
            url: String::new(),
            failing_since: None,
        };
        let message = ClaimedMessage {
            id: Uuid::from_u128(3),
            delivery_id: Uuid::from_u128(4),
            event_type: "sent".to_owned(),
            body: String::new(),
            attempts,
        };
        let exchange = Exchange {
            status,
            ..Exchange::failed("why")
        };
        let at = Timestamp::from_seconds(seconds);
        of(&webhook, message, exchange, at, at, 30.0, 0.5)
    }

    #[test]
    fn the_fifth_attempt_is_the_last() {
        let fourth = outcome(Some(500), 3, 100);
        assert_eq!((fourth.attempt, fourth.state), (4, "pending"));
        let due = Timestamp::from_seconds(100 + 480);
        assert_eq!(fourth.next_attempt_at, Some(due));
        let fifth = outcome(Some(500), 4, 100);
        assert_eq!((fifth.attempt, fifth.state), (5, "failed"));
        assert_eq!(fifth.next_attempt_at, None);
        assert_eq!(outcome(Some(400), 0, 100).state, "failed");
        assert_eq!(outcome(Some(200), 4, 100).state, "succeeded");
        assert_eq!(outcome(None, 0, 100).state, "pending");
    }

    #[test]
    fn what_was_not_tried_is_no_attempt() {
        let webhook = EndpointRow {
            id: Uuid::from_u128(1),
            app_id: Uuid::from_u128(2),
            url: String::new(),
            failing_since: None,
        };
        for attempts in [0, MOST_ATTEMPTS - 1] {
            let message = ClaimedMessage {
                id: Uuid::from_u128(3),
                delivery_id: Uuid::from_u128(4),
                event_type: "sent".to_owned(),
                body: String::new(),
                attempts,
            };
            let exchange = Exchange {
                put_off: true,
                ..Exchange::failed("busy")
            };
            let at = Timestamp::from_seconds(100);
            let found = of(&webhook, message, exchange, at, at, 30.0, 0.5);
            assert_eq!((found.attempt, found.state), (attempts, "pending"));
            assert_eq!(found.next_attempt_at, Some(Timestamp::from_seconds(110)));
        }
    }

    #[test]
    fn failures_count_since_the_last_success() {
        let [first, second, third, fourth] = [
            outcome(Some(500), 0, 1),
            outcome(Some(200), 0, 2),
            outcome(None, 0, 3),
            outcome(Some(400), 0, 4),
        ];
        let all = changes(&[&first, &second, &third, &fourth]);
        let change = all.values().next().unwrap();
        assert!(change.succeeded);
        assert_eq!(change.failures, 2);
        let seconds = |at: Option<Timestamp>| at.map(Timestamp::seconds);
        assert_eq!(seconds(change.failing_since), Some(3));
        assert_eq!(seconds(change.last_success_at), Some(2));
        assert_eq!(seconds(change.last_failure_at), Some(4));
        assert_eq!(change.last_status, Some(400));
        let all = changes(&[&first]);
        let change = all.values().next().unwrap();
        assert!(!change.succeeded && change.failures == 1);
    }
}
