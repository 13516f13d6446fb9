//! Firebase Cloud Messaging, HTTP v1: access tokens granted to the app's service account (RFC 7523).

use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Bytes;
use nudge_campaigns::push::message::Message;
use nudge_db::Timestamp;
use nudge_platform::config;
use nudge_platform::outbound::{self, Lookups};
use reqwest::{Client, StatusCode, Url};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::http::{self, Answer};
use super::jws::{SigningKey, Unusable};
use super::payload::ForGoogle;
use super::{PushOutcome, payload};
use crate::credentials::Google;

const SCOPE: &str = "https://www.googleapis.com/auth/firebase.messaging";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Where Google grants tokens.
const GOOGLE_TOKENS: &str = "https://oauth2.googleapis.com/token";
const GOOGLE_MESSAGES: &str = "https://fcm.googleapis.com";
/// How long an assertion is good for; Google takes an hour at the most.
const ASSERTION_LIFETIME: Duration = Duration::from_hours(1);
/// An access token is not used in the last minute before its end.
const MARGIN: Duration = Duration::from_mins(1);
/// How long Google wants to be left alone after a message too many, where it does not say so itself.
const QUOTA_PAUSE: Duration = Duration::from_mins(1);
/// The longest that an access token is used, in seconds.
const MOST_LIFETIME: u64 = 24 * 60 * 60;
/// Why a message waits while the server's clock is wrong.
const CLOCK_DIFFERS: &str = "clock_differs";
/// What Google says of an assertion whose times are not near its own, in lower case. It has no code of its own for that.
const TIMES_REFUSED: [&str; 2] = ["reasonable timeframe", "iat and exp"];

/// The service.
pub(super) struct Fcm {
    client: Client,
    messages: Url,
    tokens: Url,
}

/// A service account with the access token that it was granted last.
pub(super) struct Account {
    identity: Google,
    signing: SigningKey,
    // Held while one is fetched, so that messages at once fetch one.
    token: Mutex<Tokens>,
}

#[derive(Default)]
struct Tokens {
    current: Option<AccessToken>,
    /// Why the last one was not granted, and when that was known.
    refusal: Option<(Instant, NoToken)>,
}

#[derive(Clone)]
struct AccessToken {
    text: String,
    until: Timestamp,
}

/// The body of a request.
#[derive(Serialize)]
struct Request<'m> {
    message: ForGoogle<'m>,
}

#[derive(Deserialize)]
struct Grant {
    access_token: String,
    expires_in: u64,
}

#[derive(Default, Deserialize)]
struct GrantRefusal {
    error: Option<String>,
    error_description: Option<String>,
}

#[derive(Deserialize)]
struct Accepted {
    name: Option<String>,
}

/// Google's error model.
#[derive(Default, Deserialize)]
struct FcmError {
    #[serde(default)]
    error: ErrorBody,
}

#[derive(Default, Deserialize)]
struct ErrorBody {
    status: Option<String>,
    #[serde(default)]
    details: Vec<Detail>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Detail {
    error_code: Option<String>,
    #[serde(default)]
    field_violations: Vec<Violation>,
}

#[derive(Deserialize)]
struct Violation {
    field: Option<String>,
}

/// Why there is no access token.
#[derive(Clone)]
enum NoToken {
    Outcome(PushOutcome),
    Unusable(Unusable),
}

impl Account {
    pub(super) fn new(identity: Google, signing: SigningKey) -> Self {
        Self {
            identity,
            signing,
            token: Mutex::default(),
        }
    }
}

impl Fcm {
    pub(super) fn new(config: &config::Push, lookups: &Lookups) -> anyhow::Result<Self> {
        let messages = outbound::checked_url(&config.fcm.url, false).context("push.fcm.url")?;
        let tokens = match config.fcm.token_url.as_str() {
            "" if config.fcm.url == GOOGLE_MESSAGES => GOOGLE_TOKENS.to_owned(),
            "" => format!("{}/token", messages.as_str().trim_end_matches('/')),
            url => url.to_owned(),
        };
        Ok(Self {
            client: http::builder(config, lookups)?
                .build()
                .context(http::NO_TLS)?,
            tokens: outbound::checked_url(&tokens, false).context("push.fcm.tokenUrl")?,
            messages,
        })
    }

    /// Sends a message to the device of a registration token.
    pub(super) async fn send(
        &self,
        account: &Account,
        registration_token: &str,
        message: &Message,
        now: Timestamp,
    ) -> Result<PushOutcome, Unusable> {
        let mut payload = payload::fcm(message);
        payload.token = Some(registration_token);
        let body = match http::json(&Request { message: payload }) {
            Ok(body) => body,
            Err(outcome) => return Ok(outcome),
        };
        let mut refused = None;
        loop {
            let token = match self.token(account, refused.as_deref(), now).await {
                Ok(token) => token,
                Err(NoToken::Outcome(outcome)) => return Ok(outcome),
                Err(NoToken::Unusable(unusable)) => return Err(unusable),
            };
            let answer = match self.ask(account, &token, body.clone()).await {
                Ok(answer) => answer,
                Err(outcome) => return Ok(outcome),
            };
            // One that Google took back before its time.
            if answer.status == StatusCode::UNAUTHORIZED && refused.is_none() {
                refused = Some(token);
                continue;
            }
            return Ok(outcome(&answer, now));
        }
    }

    async fn ask(
        &self,
        account: &Account,
        token: &str,
        body: Bytes,
    ) -> Result<Answer, PushOutcome> {
        let base = self.messages.as_str().trim_end_matches('/');
        let project = &account.identity.project_id;
        let request = self
            .client
            .post(format!("{base}/v1/projects/{project}/messages:send"))
            .bearer_auth(token)
            .header("content-type", "application/json");
        http::hand_over(request, body).await
    }

    /// The access token in use, or a new one.
    async fn token(
        &self,
        account: &Account,
        refused: Option<&str>,
        now: Timestamp,
    ) -> Result<String, NoToken> {
        let asked = Instant::now();
        let mut tokens = account.token.lock().await;
        // Some time has passed if others were asking.
        let now = now.plus(asked.elapsed());
        if let Some(token) = &tokens.current
            && refused != Some(token.text.as_str())
            && now < token.until
        {
            return Ok(token.text.clone());
        }
        // Who waited while it was refused does not ask once more: with a service that does not answer each would wait for all
        // that came before it.
        if let Some((at, refusal)) = &tokens.refusal
            && *at >= asked
        {
            return Err(refusal.clone());
        }
        *tokens = Tokens::default();
        match self.grant(account, now).await {
            Ok(granted) => {
                let text = granted.text.clone();
                tokens.current = Some(granted);
                Ok(text)
            }
            Err(refusal) => {
                tokens.refusal = Some((Instant::now(), refusal.clone()));
                Err(refusal)
            }
        }
    }

    async fn grant(&self, account: &Account, now: Timestamp) -> Result<AccessToken, NoToken> {
        let identity = &account.identity;
        let named = identity.token_uri.as_deref();
        let claims = json!({
            "iss": identity.client_email,
            "scope": SCOPE,
            "aud": named.unwrap_or(self.tokens.as_str()),
            "iat": now.seconds(),
            "exp": now.plus(ASSERTION_LIFETIME).seconds(),
        });
        let key_id = identity.private_key_id.as_deref();
        let assertion = account.signing.sign(key_id, &claims);
        let assertion = assertion.map_err(NoToken::Unusable)?;
        let mut form = Url::parse("form:").map_err(|_| NoToken::Unusable(Unusable))?;
        form.query_pairs_mut()
            .append_pair("grant_type", GRANT)
            .append_pair("assertion", &assertion);
        let request = self
            .client
            .post(self.token_url(named))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form.query().unwrap_or_default().to_owned());
        let answer = http::ask(request).await.map_err(NoToken::Outcome)?;
        granted(&answer, now).map_err(NoToken::Outcome)
    }

    /// Where an account's tokens are granted. What the account says counts only if it is on a server that is
    /// configured: accounts are uploaded, and could name any address.
    fn token_url(&self, named: Option<&str>) -> Url {
        let named = named.and_then(|text| Url::parse(text).ok());
        named
            .filter(|url| {
                let known = [&self.tokens, &self.messages];
                known.iter().any(|known| known.origin() == url.origin())
            })
            .unwrap_or_else(|| self.tokens.clone())
    }
}

fn granted(answer: &Answer, now: Timestamp) -> Result<AccessToken, PushOutcome> {
    if answer.status.is_success() {
        let grant: Grant = serde_json::from_slice(&answer.body)
            .map_err(|_| http::retry("invalid_token_answer"))?;
        let lifetime = Duration::from_secs(grant.expires_in.min(MOST_LIFETIME));
        return Ok(AccessToken {
            text: grant.access_token,
            until: now.plus(lifetime.saturating_sub(MARGIN)),
        });
    }
    let refusal: GrantRefusal = serde_json::from_slice(&answer.body).unwrap_or_default();
    if clock_differs(&refusal) {
        tracing::warn!("Google grants no access token, as this server's clock is wrong: set it");
        return Err(answer.retry(CLOCK_DIFFERS.to_owned(), now));
    }
    let reason = http::reason(refusal.error.as_deref(), answer.status);
    Err(match answer.status.as_u16() {
        // Others are not of the account: such as 404 and 408 of something between.
        400 | 401 | 403 => PushOutcome::CredentialInvalid { reason },
        _ => answer.retry(reason, now),
    })
}

/// Whether a grant is refused for the times in its assertion. They come from the server's clock: the account's key may be good.
fn clock_differs(refusal: &GrantRefusal) -> bool {
    let said = refusal.error_description.as_deref().unwrap_or_default();
    let said = said.to_ascii_lowercase();
    refusal.error.as_deref() == Some("invalid_grant")
        && TIMES_REFUSED.iter().any(|text| said.contains(text))
}

/// What an answer means.
fn outcome(answer: &Answer, now: Timestamp) -> PushOutcome {
    if answer.status.is_success() {
        let accepted: Option<Accepted> = serde_json::from_slice(&answer.body).ok();
        let name = accepted.and_then(|accepted| accepted.name);
        return PushOutcome::Accepted {
            provider_message_id: name.as_deref().and_then(http::kept_id),
        };
    }
    let value: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let refusal: FcmError = serde_json::from_value(value).unwrap_or_default();
    let details = &refusal.error.details;
    // Where no detail has a code, the status is one.
    let code = details
        .iter()
        .find_map(|detail| detail.error_code.as_deref())
        .or(refusal.error.status.as_deref());
    let reason = http::reason(code, answer.status);
    let blamed = |field: &str| {
        let violations = details.iter().flat_map(|detail| &detail.field_violations);
        violations
            .into_iter()
            .any(|violation| violation.field.as_deref() == Some(field))
    };
    match (answer.status.as_u16(), code) {
        (_, Some("UNREGISTERED")) => PushOutcome::Unregistered { reason },
        (400, _) if blamed("message.token") => PushOutcome::Unregistered { reason },
        // About the token and the project, or about Apple's key at Google: not about the account.
        (_, Some("SENDER_ID_MISMATCH" | "THIRD_PARTY_AUTH_ERROR")) => {
            PushOutcome::Rejected { reason }
        }
        (429, _) => PushOutcome::Retry {
            after: answer.retry_after(now).or(Some(QUOTA_PAUSE)),
            reason,
        },
        (500..=599, _) => answer.retry(reason, now),
        (401 | 403, _) => PushOutcome::CredentialInvalid { reason },
        _ => PushOutcome::Rejected { reason },
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderMap;

    use super::*;

    const NOW: Timestamp = Timestamp(1_445_412_470_000_000);

    fn refused(status: StatusCode, error: &str, description: Option<&str>) -> PushOutcome {
        let body = json!({"error": error, "error_description": description});
        let answer = Answer {
            status,
            headers: HeaderMap::new(),
            body: body.to_string().into_bytes(),
        };
        granted(&answer, NOW).err().unwrap()
    }

    #[test]
    fn a_clock_that_is_wrong_is_told_from_a_key_that_is() {
        for text in [
            "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim.",
            "Invalid JWT: Token must be a short-lived token and in a reasonable timeframe",
        ] {
            let outcome = refused(StatusCode::BAD_REQUEST, "invalid_grant", Some(text));
            assert_eq!(outcome, http::retry(CLOCK_DIFFERS), "{text}");
        }
        for (error, description) in [
            ("invalid_grant", Some("Invalid JWT Signature.")),
            ("invalid_grant", Some("Invalid grant: account not found")),
            ("invalid_grant", None),
            ("invalid_client", Some("in a reasonable timeframe")),
        ] {
            let reason = error.to_owned();
            let expected = PushOutcome::CredentialInvalid { reason };
            let outcome = refused(StatusCode::BAD_REQUEST, error, description);
            assert_eq!(outcome, expected, "{description:?}");
        }
    }
}
