//! How services are asked: over connections that are kept, with time-outs, and with limits on what they answer.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use nudge_db::Timestamp;
use nudge_platform::config;
use nudge_platform::outbound::{Guard, Lookups, lookups, retry_after};
use reqwest::header::HeaderMap;
use reqwest::{Certificate, Client, ClientBuilder, RequestBuilder, Response, StatusCode, redirect};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls_platform_verifier::Verifier;
use serde::Serialize;

use super::PushOutcome;
use super::hand_over::Begun;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For a whole request and its answer.
const TIMEOUT: Duration = Duration::from_secs(15);
/// How often a connection on which nothing happens is asked whether it lives.
const KEEP_ALIVE: Duration = Duration::from_mins(1);
/// What may be wrong where a client can't be made.
pub(super) const NO_TLS: &str =
    "can't set TLS up: are the system's certificates (ca-certificates) installed?";
/// The longest answer that is read, in bytes.
const MOST_ANSWER: usize = 64 * 1024;
/// The longest reason, in characters.
const MOST_REASON: usize = 64;
/// The longest message id of a service that is kept, in characters.
const MOST_ID: usize = 256;

/// Settings of a client that trusts the configured certificates.
pub(super) fn builder(config: &config::Push, lookups: &Lookups) -> anyhow::Result<ClientBuilder> {
    trusting(base_builder(lookups), config)
}

/// Settings of a client with settings of TLS that were made before: no file is read.
pub(super) fn builder_with(tls: &ClientConfig, lookups: &Lookups) -> ClientBuilder {
    base_builder(lookups).tls_backend_preconfigured(tls.clone())
}

/// Settings of every client for a provider, but for TLS. Redirects are not followed.
fn base_builder(lookups: &Lookups) -> ClientBuilder {
    Client::builder()
        .dns_resolver(lookups.for_services())
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        .redirect(redirect::Policy::none())
        .http2_keep_alive_interval(KEEP_ALIVE)
        .user_agent(concat!("nudge/", env!("CARGO_PKG_VERSION")))
}

/// Settings of TLS for clients of HTTP/2 that trust the system's certificates and the configured ones. They are read here.
pub(super) fn http2_tls(config: &config::Push) -> anyhow::Result<ClientConfig> {
    check_certificates(config)?;
    let path = &config.extra_root_certificates;
    let mut extra = Vec::new();
    if !path.as_os_str().is_empty() {
        let named = || format!("push.extraRootCertificates: {}", path.display());
        let pem = std::fs::read(path).with_context(named)?;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            extra.push(certificate.with_context(named)?);
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = Verifier::new_with_extra_roots(extra, Arc::clone(&provider)).context(NO_TLS)?;
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context(NO_TLS)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    Ok(tls)
}

/// A client for endpoints that come from outside.
pub(super) fn guarded(guard: &Guard, config: &config::Push) -> anyhow::Result<Client> {
    trusting(guard.builder(TIMEOUT), config)?
        .build()
        .context(NO_TLS)
}

/// Whether the configured certificates can be read.
pub fn check_certificates(config: &config::Push) -> anyhow::Result<()> {
    trusting(Client::builder(), config).map(drop)
}

/// Trusts the configured certificates too.
fn trusting(mut builder: ClientBuilder, config: &config::Push) -> anyhow::Result<ClientBuilder> {
    let path = &config.extra_root_certificates;
    if !path.as_os_str().is_empty() {
        let named = || format!("push.extraRootCertificates: {}", path.display());
        let pem = std::fs::read(path).with_context(named)?;
        let certificates = Certificate::from_pem_bundle(&pem).with_context(named)?;
        ensure!(
            !certificates.is_empty(),
            "{}: there is no certificate in it",
            named()
        );
        // What is no certificate is noticed only where a client is made of it.
        Client::builder()
            .tls_certs_only(certificates.clone())
            .build()
            .with_context(|| format!("{}: not every certificate in it can be read", named()))?;
        builder = builder.tls_certs_merge(certificates);
    }
    Ok(builder)
}

/// An answer, read.
pub(super) struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

/// Asks for what may be asked for any number of times; without an answer it is to be tried again.
pub(super) async fn ask(request: RequestBuilder) -> Result<Answer, PushOutcome> {
    let response = request.send().await.map_err(|error| failed(&error))?;
    answer(response).await
}

/// A body of JSON.
pub(super) fn json(body: &impl Serialize) -> Result<Bytes, PushOutcome> {
    let written = serde_json::to_vec(body).map(Bytes::from);
    written.map_err(|_| PushOutcome::Rejected {
        reason: "payload_unwritable".to_owned(),
    })
}

/// Hands a message over. Without an answer it is to be tried again only if the message can't have arrived.
pub(super) async fn hand_over(
    request: RequestBuilder,
    body: impl Into<Bytes>,
) -> Result<Answer, PushOutcome> {
    let begun = Begun::default();
    match request.body(begun.watch(body)).send().await {
        Ok(response) => answer(response).await,
        Err(error) if begun.may_have_arrived(&error) => Err(PushOutcome::Unknown),
        Err(error) => Err(failed(&error)),
    }
}

/// Reads an answer. Of one that says yes, the body may be too long or break off: the service has the message, and must
/// not get it again for that.
async fn answer(mut response: Response) -> Result<Answer, PushOutcome> {
    let mut body = Vec::new();
    match read(&mut response, &mut body).await {
        Err(_) if response.status().is_success() => {}
        outcome => outcome?,
    }
    Ok(Answer {
        status: response.status(),
        headers: response.headers().clone(),
        body,
    })
}

async fn read(response: &mut Response, body: &mut Vec<u8>) -> Result<(), PushOutcome> {
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
        if body.len() + chunk.len() > MOST_ANSWER {
            return Err(retry("answer_too_large"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(())
}

/// Without an answer. A name that leads to addresses which are not allowed is told as one without an address: whoever
/// names an endpoint does not learn which internal names there are.
fn failed(error: &reqwest::Error) -> PushOutcome {
    retry(if lookups::busy(error) {
        "lookup_busy"
    } else if error.is_timeout() {
        "timeout"
    } else {
        "unreachable"
    })
}

/// To be tried again, whenever.
pub(super) fn retry(reason: &str) -> PushOutcome {
    PushOutcome::Retry {
        after: None,
        reason: reason.to_owned(),
    }
}

impl Answer {
    /// How long the service asks to wait, if it does.
    pub(super) fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        retry_after(&self.headers, now)
    }

    /// To be tried again, when the service says.
    pub(super) fn retry(&self, reason: String, now: Timestamp) -> PushOutcome {
        PushOutcome::Retry {
            after: self.retry_after(now),
            reason,
        }
    }

    /// A header's text, within limits.
    pub(super) fn id(&self, header: &str) -> Option<String> {
        let text = self.headers.get(header)?.to_str().ok()?;
        kept_id(text)
    }
}

/// A service's id of a message, within limits.
pub(super) fn kept_id(text: &str) -> Option<String> {
    let kept = (1..=MOST_ID).contains(&text.len()) && !text.chars().any(char::is_control);
    kept.then(|| text.to_owned())
}

/// A service's own reason in snake case: `BadDeviceToken` and `BAD_DEVICE_TOKEN` are `bad_device_token`. What is
/// none is named by the status.
pub(super) fn reason(theirs: Option<&str>, status: StatusCode) -> String {
    let named = theirs.filter(|text| {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        (1..=MOST_REASON).contains(&text.len()) && text.bytes().all(is_word)
    });
    let Some(named) = named else {
        return format!("status_{}", status.as_u16());
    };
    let mut snake = String::with_capacity(named.len() + 4);
    let mut after_lower = false;
    for letter in named.chars() {
        if letter.is_ascii_uppercase() && after_lower {
            snake.push('_');
        }
        after_lower = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use reqwest::header::RETRY_AFTER;

    use super::*;

    #[test]
    fn a_service_may_ask_for_seconds_or_a_date_in_each_of_its_forms() {
        let now = Timestamp(1_445_412_470_000_000);
        for (text, seconds) in [
            ("120", Some(120)),
            ("Wed, 21 Oct 2015 07:28:00 GMT", Some(10)),
            ("Wednesday, 21-Oct-15 07:28:00 GMT", Some(10)),
            ("Wed Oct 21 07:28:00 2015", Some(10)),
            ("Wed, 21 Oct 2015 07:27:00 GMT", Some(0)),
            ("99999999999", Some(24 * 3600)),
            ("99999999999999999999999", Some(24 * 3600)),
            ("soon", None),
        ] {
            let answer = Answer {
                status: StatusCode::SERVICE_UNAVAILABLE,
                headers: HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]),
                body: Vec::new(),
            };
            let expected = PushOutcome::Retry {
                after: seconds.map(Duration::from_secs),
                reason: "busy".to_owned(),
            };
            assert_eq!(answer.retry("busy".to_owned(), now), expected, "{text}");
        }
    }

    #[test]
    fn reasons_are_words_in_snake_case() {
        let of = |text| reason(Some(text), StatusCode::BAD_REQUEST);
        assert_eq!(of("BadDeviceToken"), "bad_device_token");
        assert_eq!(of("SENDER_ID_MISMATCH"), "sender_id_mismatch");
        assert_eq!(of("invalid_grant"), "invalid_grant");
        assert_eq!(of("<script>"), "status_400");
        assert_eq!(of(""), "status_400");
        assert_eq!(of(&"A".repeat(65)), "status_400");
        assert_eq!(reason(None, StatusCode::GONE), "status_410");
    }
}
