//! Apple Push Notification service: HTTP/2, with tokens signed by the app's key.

use std::future::ready;
use std::time::Duration;

use anyhow::Context as _;
use nudge_campaigns::push::message::Message;
use nudge_campaigns::push::options::Priority;
use nudge_db::Timestamp;
use nudge_platform::config;
use nudge_platform::due::is_over;
use nudge_platform::outbound::{self, Lookups};
use parking_lot::Mutex;
use reqwest::{Client, StatusCode, Url};
use rustls::ClientConfig;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::OnceCell;

use super::http::{self, Answer};
use super::jws::{SigningKey, Unusable};
use super::{Environment, PushOutcome, Target, payload};
use crate::credentials::Apple;

/// How long a token is used; Apple refuses those of over an hour, and who makes one more often than every twenty
/// minutes.
const TOKEN_LIFETIME: Duration = Duration::from_mins(50);

/// The service. Apple takes the tokens of only one key on a connection: each key has connections of its own.
pub(super) struct Apns {
    lookups: Lookups,
    /// Clients share it, so that no certificate is read for a key.
    tls: ClientConfig,
    production: Url,
    sandbox: Url,
}

/// A key with the token that it signed last, and with its connections.
pub(super) struct Key {
    identity: Apple,
    signing: SigningKey,
    token: Mutex<Option<Token>>,
    /// Made when the first message is sent.
    client: OnceCell<Client>,
}

#[derive(Clone)]
struct Token {
    text: String,
    issued_at: Timestamp,
}

#[derive(Default, Deserialize)]
struct ApnsError {
    reason: Option<String>,
}

impl Key {
    pub(super) fn new(identity: Apple, signing: SigningKey) -> Self {
        Self {
            identity,
            signing,
            token: Mutex::new(None),
            client: OnceCell::new(),
        }
    }

    /// The token in use, or a new one: where there is none, where it is old or from a time that is yet to come, and in the place of
    /// one that was refused.
    fn token(&self, now: Timestamp, refused: Option<&str>) -> Result<String, Unusable> {
        let mut held = self.token.lock();
        if let Some(token) = &*held
            && refused != Some(token.text.as_str())
            && !is_over(TOKEN_LIFETIME, token.issued_at, now)
        {
            return Ok(token.text.clone());
        }
        let claims = json!({"iss": self.identity.team_id, "iat": now.seconds()});
        let text = self.signing.sign(Some(&self.identity.key_id), &claims)?;
        *held = Some(Token {
            text: text.clone(),
            issued_at: now,
        });
        Ok(text)
    }
}

impl Apns {
    pub(super) fn new(config: &config::Push, lookups: &Lookups) -> anyhow::Result<Self> {
        let tls = http::http2_tls(config)?;
        // What is wrong with the configuration is told at the start, and not by the first message.
        new_client(&tls, lookups)?;
        Ok(Self {
            lookups: lookups.clone(),
            tls,
            production: outbound::checked_url(&config.apns.production_url, false)
                .context("push.apns.productionUrl")?,
            sandbox: outbound::checked_url(&config.apns.sandbox_url, false)
                .context("push.apns.sandboxUrl")?,
        })
    }

    /// Sends a message to the device of a token.
    pub(super) async fn send(
        &self,
        key: &Key,
        target: &Target,
        device_token: &str,
        message: &Message,
        now: Timestamp,
    ) -> Result<PushOutcome, Unusable> {
        let base = match target.environment {
            Environment::Production => &self.production,
            Environment::Sandbox => &self.sandbox,
        };
        let base = base.as_str().trim_end_matches('/');
        let url = format!("{base}/3/device/{device_token}");
        let mut token = key.token(now, None)?;
        let mut answer = match self.ask(&url, key, &token, target, message).await {
            Ok(answer) => answer,
            Err(outcome) => return Ok(outcome),
        };
        if answer.status == StatusCode::FORBIDDEN
            && theirs(&answer).as_deref() == Some("ExpiredProviderToken")
        {
            token = key.token(now, Some(&token))?;
            answer = match self.ask(&url, key, &token, target, message).await {
                Ok(answer) => answer,
                Err(outcome) => return Ok(outcome),
            };
        }
        let elsewhere = key.identity.environment != target.environment;
        Ok(outcome(&answer, elsewhere, now))
    }

    async fn ask(
        &self,
        url: &str,
        key: &Key,
        token: &str,
        target: &Target,
        message: &Message,
    ) -> Result<Answer, PushOutcome> {
        let options = &message.options;
        let priority = match options.priority.unwrap_or_default() {
            Priority::High => "10",
            Priority::Normal => "5",
        };
        let id = payload::apns_id(message, &target.device_id);
        let mut request = self
            .client(key)
            .await?
            .post(url)
            .bearer_auth(token)
            .header("apns-topic", &key.identity.bundle_id)
            .header("apns-push-type", "alert")
            .header("apns-priority", priority)
            .header("apns-collapse-id", payload::collapse_id(message))
            .header("apns-id", id.to_string());
        if let Some(seconds) = options.ttl_seconds {
            let until = match seconds {
                // Apple's word for now or never.
                0 => 0,
                seconds => message.created_at.seconds() + i64::from(seconds),
            };
            request = request.header("apns-expiration", until);
        }
        let body = http::json(&payload::apns(message))?;
        http::hand_over(request.header("content-type", "application/json"), body).await
    }

    /// The client of a key.
    async fn client<'k>(&self, key: &'k Key) -> Result<&'k Client, PushOutcome> {
        // It shares no connection with any other.
        let make = || ready(new_client(&self.tls, &self.lookups));
        let client = key.client.get_or_try_init(make).await;
        client.map_err(|error| {
            tracing::error!(error = ?error, "messages can't be handed to Apple's service");
            http::retry("unavailable")
        })
    }
}

fn new_client(tls: &ClientConfig, lookups: &Lookups) -> anyhow::Result<Client> {
    // Apple speaks nothing else.
    let builder = http::builder_with(tls, lookups).http2_prior_knowledge();
    builder.build().context(http::NO_TLS)
}

fn theirs(answer: &Answer) -> Option<String> {
    let refusal: ApnsError = serde_json::from_slice(&answer.body).unwrap_or_default();
    refusal.reason
}

/// What an answer means. `elsewhere`: the key is for the other environment than the token.
fn outcome(answer: &Answer, elsewhere: bool, now: Timestamp) -> PushOutcome {
    let theirs = theirs(answer);
    let reason = http::reason(theirs.as_deref(), answer.status);
    let mismatch = "environment_mismatch".to_owned();
    match (answer.status.as_u16(), theirs.as_deref()) {
        (200, _) => PushOutcome::Accepted {
            provider_message_id: answer.id("apns-id"),
        },
        (400, Some("BadDeviceToken")) if elsewhere => PushOutcome::Rejected { reason: mismatch },
        (400, Some("BadDeviceToken")) | (410, _) => PushOutcome::Unregistered { reason },
        // The clock of one of the two is wrong, and no other token would be better; or the connection is another key's, such as
        // behind a proxy that shares its own: neither is the key's fault.
        (403, Some("ExpiredProviderToken" | "UnrelatedKeyIdInToken")) | (429 | 500..=599, _) => {
            answer.retry(reason, now)
        }
        (403, Some("BadEnvironmentKeyInToken" | "BadEnvironmentKeyIdInToken")) if elsewhere => {
            PushOutcome::Rejected { reason: mismatch }
        }
        (403, Some("BadEnvironmentKeyInToken" | "BadEnvironmentKeyIdInToken")) => {
            PushOutcome::CredentialInvalid { reason: mismatch }
        }
        (401 | 403, _) => PushOutcome::CredentialInvalid { reason },
        _ => PushOutcome::Rejected { reason },
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
    use reqwest::header::HeaderMap;

    use super::*;
    use crate::credentials::PrivateKey;

    #[test]
    fn a_token_from_a_time_that_is_yet_to_come_is_used_no_more() {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let signing = PrivateKey(pair.to_pkcs8v1().unwrap().as_ref().to_vec());
        let identity = Apple {
            key_id: "K".to_owned(),
            team_id: "T".to_owned(),
            bundle_id: "B".to_owned(),
            environment: Environment::Production,
        };
        let key = Key::new(identity, SigningKey::ec(&signing).unwrap());
        let at = |seconds| key.token(Timestamp::from_seconds(seconds), None).unwrap();
        let first = at(10_000);
        assert_eq!(at(12_999), first);
        // The clock was ahead, and is set back.
        let second = at(6_000);
        assert_ne!(second, first);
        assert_eq!(at(8_999), second);
        assert_ne!(at(9_000), second, "Apple takes none of over an hour");
    }

    fn outcome_of(status: u16, reason: &str, elsewhere: bool) -> PushOutcome {
        let answer = Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: json!({"reason": reason}).to_string().into_bytes(),
        };
        outcome(&answer, elsewhere, Timestamp(0))
    }

    #[test]
    fn a_mismatch_of_environments_is_told_apart() {
        let mismatch = "environment_mismatch".to_owned();
        assert_eq!(
            outcome_of(400, "BadDeviceToken", true),
            PushOutcome::Rejected {
                reason: mismatch.clone()
            }
        );
        assert_eq!(
            outcome_of(400, "BadDeviceToken", false),
            PushOutcome::Unregistered {
                reason: "bad_device_token".to_owned()
            }
        );
        assert_eq!(
            outcome_of(403, "BadEnvironmentKeyInToken", true),
            PushOutcome::Rejected {
                reason: mismatch.clone()
            }
        );
        assert_eq!(
            outcome_of(403, "BadEnvironmentKeyInToken", false),
            PushOutcome::CredentialInvalid { reason: mismatch }
        );
    }
}
