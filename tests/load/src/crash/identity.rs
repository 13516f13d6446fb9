//! A customer's backend, which says who somebody is (contract 2).

use anyhow::Context as _;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use nudge_platform::clock::Clock;
use serde_json::json;

use super::manage;
use crate::child::Process;

const KID: &str = "crash";

/// A backend with a key that is registered at the app.
pub(super) struct Backend {
    key: Ed25519KeyPair,
    app_id: String,
}

impl Backend {
    pub(super) async fn new(process: &Process) -> anyhow::Result<Self> {
        let key = Ed25519KeyPair::generate().context("a key")?;
        let public = encode(key.public_key().as_ref());
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": public});
        let body = json!({"kid": KID, "publicKey": jwk});
        manage(process, "identity-keys", &body).await?;
        let app_id = process.access("appId")?.to_owned();
        Ok(Self { key, app_id })
    }

    /// An identity token for an hour.
    pub(super) fn token(&self, external_id: &str) -> String {
        let now = Clock::default().now().seconds();
        let header = json!({"alg": "EdDSA", "typ": "JWT", "kid": KID});
        let claims = json!({"iss": self.app_id, "sub": external_id, "iat": now, "exp": now + 3600});
        let content = format!(
            "{}.{}",
            encode(header.to_string().as_bytes()),
            encode(claims.to_string().as_bytes())
        );
        let signature = self.key.sign(content.as_bytes());
        format!("{content}.{}", encode(signature.as_ref()))
    }
}

fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
