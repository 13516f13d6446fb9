//! The embedded issuer of access tokens, for installations without an identity provider.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode};
use nudge_db::Timestamp;
use nudge_platform::secrets::Secrets;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// Who the embedded issuer's tokens are for.
pub const EMBEDDED_AUDIENCE: &str = "nudge";
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

/// Signs and checks access tokens, and signs documents, with an Ed25519 key derived from the master key. What the
/// keys of previous master keys have signed is still good.
pub struct Issuer {
    name: String,
    newest: Key,
    previous: Vec<Key>,
}

/// One of the issuer's keys.
struct Key {
    id: String,
    public: String,
    pair: Ed25519KeyPair,
    signing: EncodingKey,
    checking: DecodingKey,
}

impl Key {
    fn new(seed: &[u8; 32]) -> anyhow::Result<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed)
            .map_err(|_| anyhow::anyhow!("the embedded issuer's key can't be derived"))?;
        let document = pair
            .to_pkcs8()
            .map_err(|_| anyhow::anyhow!("the embedded issuer's key can't be encoded"))?;
        let public = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        let fingerprint = nudge_platform::secrets::hash(&[public.as_bytes()]);
        Ok(Self {
            id: URL_SAFE_NO_PAD.encode(&fingerprint[..12]),
            signing: EncodingKey::from_ed_der(document.as_ref()),
            checking: DecodingKey::from_ed_components(&public)?,
            public,
            pair,
        })
    }
}

impl Issuer {
    /// The issuer of this name.
    pub fn new(secrets: &Secrets, name: &str) -> anyhow::Result<Self> {
        let mut keys = secrets
            .derive_all("embedded issuer")
            .iter()
            .map(Key::new)
            .collect::<anyhow::Result<Vec<Key>>>()?
            .into_iter();
        Ok(Self {
            name: name.to_owned(),
            newest: keys.next().context("there is no master key")?,
            previous: keys.collect(),
        })
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.newest).chain(&self.previous)
    }

    /// Signs bytes: a JWS in compact form (RFC 7515) whose header says what they are. No access token is of that
    /// type, nor has anything else that one must have. None: the header can't be written, which is a defect.
    pub fn sign(&self, kind: &str, payload: &[u8]) -> Option<String> {
        let header = json!({"alg": "EdDSA", "kid": self.newest.id, "typ": kind});
        let header = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&header).ok()?);
        let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(payload));
        let signature = self.newest.pair.sign(signed.as_bytes());
        Some(format!(
            "{signed}.{}",
            URL_SAFE_NO_PAD.encode(signature.as_ref())
        ))
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
            aud: EMBEDDED_AUDIENCE.to_owned(),
            sub: subject.to_owned(),
            iat: now.seconds(),
            exp: now.plus(lifetime).seconds(),
            roles,
            operator,
        };
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(self.newest.id.clone());
        Ok(encode(&header, &claims, &self.newest.signing)?)
    }

    /// The claims of a token, if it is genuine and in force.
    pub fn verify(&self, token: &str, now: Timestamp) -> Option<Claims> {
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.set_issuer(&[&self.name]);
        validation.set_audience(&[EMBEDDED_AUDIENCE]);
        // Compared below against the server's clock, which tests can move.
        validation.validate_exp = false;
        let claims = self
            .keys()
            .find_map(|key| decode::<Claims>(token, &key.checking, &validation).ok())?
            .claims;
        (now.minus(LEEWAY).seconds() < claims.exp).then_some(claims)
    }

    /// The public keys, as a JWK Set (RFC 7517).
    pub fn key_set(&self) -> Value {
        let key = |key: &Key| {
            json!({
                "kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": key.id, "x": key.public,
            })
        };
        json!({"keys": self.keys().map(key).collect::<Vec<Value>>()})
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
