//! The embedded issuer of access tokens, for installations without an identity provider.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use nudge_db::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::secrets::Secrets;

/// Who the tokens are for.
const AUDIENCE: &str = "nudge";
/// How far clocks may differ (contract 1).
pub const LEEWAY: Duration = Duration::from_mins(1);

/// What a person may do in a workspace.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Also changes surveys, campaigns and definitions.
    Editor,
    /// Also manages privacy, keys, settings and plugins.
    Admin,
}

/// The claims of an access token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Claims {
    /// Who issued it.
    pub iss: String,
    /// Who it is for.
    pub aud: String,
    /// Who it speaks for.
    pub sub: String,
    /// When it was issued, in seconds since the epoch.
    pub iat: i64,
    /// When it expires, in seconds since the epoch.
    pub exp: i64,
    /// Roles by workspace.
    #[serde(default)]
    pub roles: BTreeMap<Uuid, Role>,
    /// Whether it opens the operator routes.
    #[serde(default)]
    pub operator: bool,
}

/// Signs and checks access tokens with an Ed25519 key derived from the master key.
pub struct Issuer {
    name: String,
    key_id: String,
    public_key: String,
    signing: EncodingKey,
    checking: DecodingKey,
}

impl Issuer {
    /// The issuer of this name.
    pub fn new(secrets: &Secrets, name: &str) -> anyhow::Result<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&secrets.derive("embedded issuer"))
            .map_err(|_| anyhow::anyhow!("the embedded issuer's key can't be derived"))?;
        let document = pair
            .to_pkcs8()
            .map_err(|_| anyhow::anyhow!("the embedded issuer's key can't be encoded"))?;
        let public_key = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        let fingerprint = crate::secrets::hash(&[public_key.as_bytes()]);
        Ok(Self {
            name: name.to_owned(),
            key_id: URL_SAFE_NO_PAD.encode(&fingerprint[..12]),
            signing: EncodingKey::from_ed_der(document.as_ref()),
            checking: DecodingKey::from_ed_components(&public_key)?,
            public_key,
        })
    }

    /// Issues a token.
    pub fn issue(
        &self,
        subject: &str,
        roles: BTreeMap<Uuid, Role>,
        operator: bool,
        now: Timestamp,
        lifetime: Duration,
    ) -> anyhow::Result<String> {
        let claims = Claims {
            iss: self.name.clone(),
            aud: AUDIENCE.to_owned(),
            sub: subject.to_owned(),
            iat: now.seconds(),
            exp: now.plus(lifetime).seconds(),
            roles,
            operator,
        };
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(self.key_id.clone());
        Ok(encode(&header, &claims, &self.signing)?)
    }

    /// The claims of a token, if it is genuine and in force.
    pub fn verify(&self, token: &str, now: Timestamp) -> Option<Claims> {
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.set_issuer(&[&self.name]);
        validation.set_audience(&[AUDIENCE]);
        // Compared below against the server's clock, which tests can move.
        validation.validate_exp = false;
        let claims = decode::<Claims>(token, &self.checking, &validation)
            .ok()?
            .claims;
        (now.minus(LEEWAY).seconds() < claims.exp).then_some(claims)
    }

    /// The public key, as a JWK Set (RFC 7517).
    pub fn key_set(&self) -> Value {
        json!({"keys": [{
            "kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": self.key_id, "x": self.public_key,
        }]})
    }

    /// The discovery document (OpenID Connect Discovery 1.0).
    pub fn discovery(&self, public_url: &str) -> Value {
        json!({
            "issuer": self.name,
            "jwks_uri": format!("{public_url}/.well-known/jwks.json"),
            "id_token_signing_alg_values_supported": ["EdDSA"],
            "response_types_supported": ["none"],
            "subject_types_supported": ["public"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_until_it_expires_and_for_its_issuer_only() {
        let secrets = Secrets::open(
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            std::path::Path::new("/"),
        )
        .unwrap();
        let issuer = Issuer::new(&secrets, "nudge").unwrap();
        let now = Timestamp::from_seconds(1_800_000_000);
        let token = issuer
            .issue(
                "ada",
                BTreeMap::from([(Uuid::nil(), Role::Editor)]),
                false,
                now,
                Duration::from_mins(10),
            )
            .unwrap();

        let claims = issuer.verify(&token, now).unwrap();
        assert_eq!(claims.roles.get(&Uuid::nil()), Some(&Role::Editor));
        assert!(
            issuer
                .verify(&token, now.plus(Duration::from_secs(659)))
                .is_some()
        );
        assert!(
            issuer
                .verify(&token, now.plus(Duration::from_secs(661)))
                .is_none()
        );
        assert!(
            Issuer::new(&secrets, "other")
                .unwrap()
                .verify(&token, now)
                .is_none()
        );
        assert!(issuer.verify(&token[1..], now).is_none());
    }
}
