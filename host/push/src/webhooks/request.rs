//! One request to an endpoint, and what came of it.

use std::time::{Duration, Instant};

use nudge_db::Timestamp;
use nudge_platform::outbound::{guard, lookups, retry_after};
use nudge_platform::traces;
use reqwest::header::CONTENT_TYPE;
use uuid::Uuid;

use super::signature::Signed;
use super::{Secret, TIMEOUT, Webhooks};

/// As much of an answer's body is read, so that its connection can be used again; nobody looks at it.
const MOST_ANSWER_BYTES: usize = 64 * 1024;

/// A request to be sent.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// Whose it is.
    pub app_id: Uuid,
    /// Where to.
    pub url: &'a str,
    /// What it is signed with, the newest first.
    pub secrets: &'a [Secret],
    /// The message.
    pub id: Uuid,
    /// Of which type it is.
    pub event: &'a str,
    /// The how manieth attempt it is, from 1 on.
    pub attempt: i64,
    /// The bytes of the body.
    pub body: &'a str,
    /// When it is sent.
    pub at: Timestamp,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The status, if the whole answer came.
    pub status: Option<u16>,
    /// How long it took, in milliseconds.
    pub latency_ms: i64,
    /// Why the message did not arrive, for people. Tells no address.
    pub error: Option<String>,
    /// The pause that the receiver asked for.
    pub asked: Option<Duration>,
    /// Whether nothing was tried: the host's name could not be looked up for want of room, which says nothing of the
    /// receiver.
    pub put_off: bool,
}

impl Exchange {
    /// One that never took place.
    pub fn failed(reason: &str) -> Self {
        Self {
            status: None,
            latency_ms: 0,
            error: Some(reason.to_owned()),
            asked: None,
            put_off: false,
        }
    }
}

/// Sends a request and waits for its answer, 10 seconds altogether.
pub async fn send(webhooks: &Webhooks, outgoing: &Outgoing<'_>) -> Exchange {
    let began = Instant::now();
    let outcome = lookups::on_behalf_of(outgoing.app_id, exchange(webhooks, outgoing)).await;
    let latency_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
    match outcome {
        Ok((status, asked)) => Exchange {
            status: Some(status),
            latency_ms,
            error: complaint(status),
            asked,
            put_off: false,
        },
        Err(Failure { reason, put_off }) => Exchange {
            latency_ms,
            put_off,
            ..Exchange::failed(&reason)
        },
    }
}

/// Why there was no whole answer.
struct Failure {
    reason: String,
    put_off: bool,
}

async fn exchange(
    webhooks: &Webhooks,
    outgoing: &Outgoing<'_>,
) -> Result<(u16, Option<Duration>), Failure> {
    let url = webhooks
        .guard
        .check(outgoing.url)
        .map_err(|cause| Failure {
            reason: cause.to_string(),
            put_off: false,
        })?;
    let signed = Signed {
        secrets: outgoing.secrets,
        id: outgoing.id,
        at: outgoing.at,
        body: outgoing.body,
    };
    let id = outgoing.id.to_string();
    let mut response = webhooks
        .client
        .post(url)
        .headers(traces::headers())
        .header(CONTENT_TYPE, "application/json")
        .header("X-Service-Event", outgoing.event)
        .header("X-Service-Signature", signed.service())
        .header("X-Service-Delivery", &id)
        .header("X-Service-Attempt", outgoing.attempt)
        .header("webhook-id", &id)
        .header("webhook-timestamp", outgoing.at.seconds())
        .header("webhook-signature", signed.standard())
        .body(outgoing.body.to_owned())
        .send()
        .await
        .map_err(|error| failure(&error))?;
    let status = response.status().as_u16();
    let may_ask = matches!(status, 429 | 503);
    let asked = retry_after(response.headers(), outgoing.at).filter(|_| may_ask);
    let mut read = 0;
    while read < MOST_ANSWER_BYTES
        && let Some(chunk) = response.chunk().await.map_err(|error| failure(&error))?
    {
        read += chunk.len();
    }
    Ok((status, asked))
}

fn complaint(status: u16) -> Option<String> {
    match status {
        200..=299 => None,
        300..=399 => Some(format!(
            "the receiver answered {status}; redirects are not followed"
        )),
        _ => Some(format!("the receiver answered {status}")),
    }
}

fn failure(error: &reqwest::Error) -> Failure {
    Failure {
        reason: reason(error),
        put_off: lookups::busy(error),
    }
}

/// Why a request failed, without addresses.
fn reason(error: &reqwest::Error) -> String {
    if guard::refused(error) {
        nudge_platform::outbound::NotAllowed::Host.to_string()
    } else if lookups::busy(error) {
        "the server is looking too many names up".to_owned()
    } else if error.is_timeout() {
        format!("no whole answer within {} seconds", TIMEOUT.as_secs())
    } else if error.is_connect() {
        "no connection: the host has no address, does not answer, or its TLS certificate is not good"
            .to_owned()
    } else {
        "the connection broke off, or the answer was no HTTP".to_owned()
    }
}
