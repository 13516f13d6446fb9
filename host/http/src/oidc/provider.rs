//! One OpenID provider: its keys, by OpenID Connect Discovery 1.0, and the tokens that they sign.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use nudge_db::Timestamp;
use nudge_platform::config::OidcIssuer;
use nudge_platform::public_key::PublicKey;
use nudge_platform::{due, outbound};
use parking_lot::RwLock;
use reqwest::{Client, Url};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::login::{self, Endpoints};
use super::{AccessTokenRefusal, claims};
use crate::issuer::Claims;

/// How long keys are good without another look (contract 1).
const FRESH: Duration = Duration::from_mins(10);
/// The pause between two looks at the keys (contract 1).
const PAUSE: Duration = Duration::from_secs(30);
/// How long keys are trusted of a provider that does not answer. It bounds how long a key that was withdrawn
/// can do harm to who keeps us from its provider.
const STALE: Duration = Duration::from_hours(24);
const MOST_DOCUMENT_BYTES: usize = 256 * 1024;
const MOST_KEYS: usize = 64;

/// A provider and what is known of its keys.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) config: OidcIssuer,
    pub(super) client: Client,
    discovery: Url,
    allow_http: bool,
    key_cache: RwLock<KeyCache>,
    /// Held by whoever asks the provider.
    asking: Mutex<()>,
}

#[derive(Clone, Debug, Default)]
struct KeyCache {
    /// None until the provider answered for the first time.
    keys: Option<Arc<KeySet>>,
    asked_at: Option<Timestamp>,
    /// Why the last look brought nothing.
    failure: Option<String>,
}

#[derive(Debug)]
struct KeySet {
    fetched_at: Timestamp,
    /// Where people sign in, or why they can't.
    endpoints: Result<Endpoints, String>,
    keys: Vec<(Option<String>, PublicKey)>,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Value>,
}

impl Provider {
    pub(super) fn new(
        config: OidcIssuer,
        client: Client,
        allow_http: bool,
    ) -> anyhow::Result<Self> {
        ensure!(
            !config.audience.is_empty(),
            "auth.issuers: an issuer without audience"
        );
        login::check(&config)?;
        let base = config.issuer.trim_end_matches('/');
        let discovery = format!("{base}/.well-known/openid-configuration");
        let discovery = outbound::checked_url(&discovery, allow_http)
            .context("auth.issuers; `auth.allowHttp` allows http for development")?;
        Ok(Self {
            config,
            client,
            discovery,
            allow_http,
            key_cache: RwLock::default(),
            asking: Mutex::default(),
        })
    }

    pub(super) fn is(&self, issuer: &str) -> bool {
        self.config.issuer == issuer
    }

    /// The claims of a token that one of the provider's keys signed, if they are good now.
    pub(super) async fn verify(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Claims, AccessTokenRefusal> {
        let claims = self.open(token, now).await?;
        claims::read(&claims, &self.config, now).ok_or(AccessTokenRefusal::Invalid)
    }

    /// Where people sign in.
    pub(super) async fn endpoints(&self, now: Timestamp) -> anyhow::Result<Endpoints> {
        let mut cache = self.key_cache();
        if !cache.is_good_for(None, now) {
            cache = self.look(None, now).await;
        }
        let failure = cache.failure.unwrap_or_default();
        let keys = cache.keys.with_context(|| failure)?;
        keys.endpoints.clone().map_err(anyhow::Error::msg)
    }

    /// What a token says that one of the provider's keys signed.
    pub(super) async fn open(
        &self,
        token: &str,
        now: Timestamp,
    ) -> Result<Value, AccessTokenRefusal> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| AccessTokenRefusal::Invalid)?;
        let kid = header.kid.as_deref();
        let mut cache = self.key_cache();
        if !cache.is_good_for(kid, now) {
            cache = self.look(kid, now).await;
        }
        let keys = cache
            .keys
            .filter(|keys| now.since(keys.fetched_at) < STALE)
            .ok_or_else(|| unavailable(cache.failure.as_deref()))?;
        if !keys.has(kid)
            && let Some(failure) = &cache.failure
        {
            return Err(unavailable(Some(failure)));
        }
        keys.candidates(kid)
            .find_map(|key| key.open::<Value>(token))
            .ok_or(AccessTokenRefusal::Invalid)
    }

    /// Asks the provider for its keys, unless somebody did just now; answers what is known then.
    async fn look(&self, kid: Option<&str>, now: Timestamp) -> KeyCache {
        let before = self.key_cache();
        let _asking = match self.asking.try_lock() {
            Ok(guard) => guard,
            // Somebody asks. Who has keys to go on with does not wait for that.
            Err(_) if before.keys.is_some() => return before,
            Err(_) => self.asking.lock().await,
        };
        let before = self.key_cache();
        let asked_at = before.asked_at;
        let asks_not_yet = asked_at.is_some_and(|asked| !due::is_over(PAUSE, asked, now));
        if asks_not_yet || before.is_good_for(kid, now) {
            return before;
        }
        // The first keys, and those that are due, keep nobody from asking for a key that is not among them.
        let due = before.keys.as_ref().is_none_or(|keys| !keys.is_fresh(now));
        let outcome = self.fetch(now).await;
        let after = match outcome {
            Ok(keys) => KeyCache {
                keys: Some(Arc::new(keys)),
                asked_at: if due { before.asked_at } else { Some(now) },
                failure: None,
            },
            Err(error) => {
                let failure = format!("{error:#}");
                tracing::warn!(
                    issuer = self.config.issuer,
                    error = failure,
                    "an issuer does not answer"
                );
                KeyCache {
                    keys: before.keys,
                    asked_at: Some(now),
                    failure: Some(failure),
                }
            }
        };
        self.key_cache.write().clone_from(&after);
        after
    }

    /// Whether it answers with keys.
    pub(super) async fn reach(&self, now: Timestamp) -> anyhow::Result<()> {
        let keys = self.fetch(now).await;
        keys.map(drop)
            .with_context(|| format!("auth.issuers: {} can't be used", self.config.issuer))
    }

    async fn fetch(&self, now: Timestamp) -> anyhow::Result<KeySet> {
        let discovery: Discovery =
            outbound::get_json(&self.client, self.discovery.clone(), MOST_DOCUMENT_BYTES)
                .await
                .context("the discovery document")?;
        ensure!(
            discovery.issuer == self.config.issuer,
            "the discovery document is of another issuer"
        );
        let url =
            outbound::checked_url(&discovery.jwks_uri, self.allow_http).context("jwks_uri")?;
        let jwks: Jwks = outbound::get_json(&self.client, url, MOST_DOCUMENT_BYTES)
            .await
            .context("the key set")?;
        let endpoints = Endpoints::read(&discovery.rest, self.allow_http);
        let objects = jwks.keys.iter().filter_map(Value::as_object);
        let keys = objects.filter_map(signing_key).take(MOST_KEYS).collect();
        Ok(KeySet {
            fetched_at: now,
            endpoints: endpoints.map_err(|error| format!("{error:#}")),
            keys,
        })
    }

    fn key_cache(&self) -> KeyCache {
        self.key_cache.read().clone()
    }
}

impl KeyCache {
    /// Whether the provider need not be asked for a key.
    fn is_good_for(&self, kid: Option<&str>, now: Timestamp) -> bool {
        let keys = self.keys.as_ref();
        keys.is_some_and(|keys| keys.is_fresh(now) && keys.has(kid))
    }
}

impl KeySet {
    fn is_fresh(&self, now: Timestamp) -> bool {
        !due::is_over(FRESH, self.fetched_at, now)
    }

    /// Whether there is a key to try.
    fn has(&self, kid: Option<&str>) -> bool {
        self.candidates(kid).next().is_some()
    }

    /// The key of an id, or all keys for a token that names none.
    fn candidates<'a>(&'a self, kid: Option<&'a str>) -> impl Iterator<Item = &'a PublicKey> {
        let matches = move |held: &Option<String>| kid.is_none() || held.as_deref() == kid;
        let keys = self.keys.iter();
        keys.filter(move |(held, _)| matches(held))
            .map(|(_, key)| key)
    }
}

/// A key that signs and is of an algorithm of ours; others are no concern of ours.
fn signing_key(jwk: &Map<String, Value>) -> Option<(Option<String>, PublicKey)> {
    // Who says nothing of its use says that it is for both (RFC 7517, section 4.2).
    if jwk.get("use").is_some_and(|purpose| purpose != "sig") {
        return None;
    }
    let key = PublicKey::from_jwk(jwk).ok()?;
    let kid = jwk.get("kid").and_then(Value::as_str).map(str::to_owned);
    Some((kid, key))
}

fn unavailable(failure: Option<&str>) -> AccessTokenRefusal {
    let failure = failure.unwrap_or("its keys are too old").to_owned();
    AccessTokenRefusal::Unavailable(
        anyhow!(failure).context("an issuer of access tokens does not answer"),
    )
}
