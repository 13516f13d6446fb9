//! Access tokens from OpenID providers (contract 1): whose they are and what they allow; and signing in there (contract 22).

pub mod claims;
pub mod login;
mod provider;

use anyhow::ensure;
use login::LoginClient;
use nudge_db::Timestamp;
use nudge_platform::config;
use nudge_platform::outbound::{self, Lookups};
use provider::Provider;

use crate::issuer::{Claims, Issuer};

/// A longer token is nobody's; RFC 9110 asks servers for header fields of 8,000 bytes at least.
const MOST_TOKEN_BYTES: usize = 16 * 1024;

/// Why a token opens nothing.
#[derive(Debug)]
pub enum AccessTokenRefusal {
    /// It is not a token of a known issuer in force.
    Invalid,
    /// Its issuer does not answer and nothing is known of its keys.
    Unavailable(anyhow::Error),
}

/// Whoever issues access tokens: the embedded issuer, or the configured ones instead.
#[derive(Debug)]
pub struct AccessTokens {
    providers: Vec<Provider>,
}

impl AccessTokens {
    /// The issuers of a configuration. None of them is asked yet.
    pub fn new(config: &config::Auth, lookups: &Lookups) -> anyhow::Result<Self> {
        if config.issuers.is_empty() {
            return Ok(Self {
                providers: Vec::new(),
            });
        }
        let client = outbound::client(lookups)?;
        let open = |issuer: &config::OidcIssuer| {
            Provider::new(issuer.clone(), client.clone(), config.allow_http)
        };
        let providers: anyhow::Result<Vec<Provider>> = config.issuers.iter().map(open).collect();
        let providers = providers?;
        for (place, provider) in providers.iter().enumerate() {
            let mut others = providers.iter().skip(place + 1);
            let signs_in = |provider: &Provider| !provider.config.client_id.is_empty();
            ensure!(
                !signs_in(provider)
                    || !others.any(|other| other.is(&provider.config.issuer) && signs_in(other)),
                "auth.issuers: {} has a clientId twice; people sign in with one",
                provider.config.issuer
            );
        }
        Ok(Self { providers })
    }

    /// The issuers with which people may sign in to the console.
    pub fn login_issuers(&self) -> impl Iterator<Item = &str> {
        let providers = self.providers.iter();
        providers
            .filter(|provider| !provider.config.client_id.is_empty())
            .map(|provider| provider.config.issuer.as_str())
    }

    /// The console as a client of an issuer. None: nobody signs in with that.
    pub fn login_client(&self, issuer: &str) -> Option<LoginClient<'_>> {
        let providers = self.providers.iter();
        let mut clients = providers.filter(|provider| !provider.config.client_id.is_empty());
        clients
            .find(|provider| provider.is(issuer))
            .map(LoginClient::new)
    }

    /// Whether the embedded issuer's tokens are taken: only where no other issuer is configured.
    pub fn are_embedded(&self) -> bool {
        self.providers.is_empty()
    }

    /// Asks every issuer for its keys, as the first token of each would.
    pub async fn reach(&self, now: Timestamp) -> anyhow::Result<()> {
        for provider in &self.providers {
            provider.reach(now).await?;
        }
        Ok(())
    }

    /// The claims of a token that is genuine and in force.
    pub async fn verify(
        &self,
        embedded: &Issuer,
        token: &str,
        now: Timestamp,
    ) -> Result<Claims, AccessTokenRefusal> {
        if token.len() > MOST_TOKEN_BYTES {
            return Err(AccessTokenRefusal::Invalid);
        }
        if self.are_embedded() {
            return embedded
                .verify(token, now)
                .ok_or(AccessTokenRefusal::Invalid);
        }
        let issuer = claims::unverified_issuer(token).ok_or(AccessTokenRefusal::Invalid)?;
        // One issuer may be configured once for each audience.
        let mut refusal = AccessTokenRefusal::Invalid;
        for provider in self
            .providers
            .iter()
            .filter(|provider| provider.is(&issuer))
        {
            match provider.verify(token, now).await {
                Err(AccessTokenRefusal::Invalid) => {}
                Err(unavailable) => refusal = unavailable,
                verified => return verified,
            }
        }
        Err(refusal)
    }
}
