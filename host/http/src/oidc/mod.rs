//! Access tokens from OpenID providers (contract 1): whose they are and what they allow.

pub mod claims;
mod provider;

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
        let providers: anyhow::Result<_> = config.issuers.iter().map(open).collect();
        Ok(Self {
            providers: providers?,
        })
    }

    /// Whether the embedded issuer's tokens are taken: only where no other issuer is configured.
    pub fn are_embedded(&self) -> bool {
        self.providers.is_empty()
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
