//! Signed tokens that services ask for: JWS in compact form (RFC 7515), ES256 or RS256.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::credentials::PrivateKey;

/// A key that signs.
pub(super) enum SigningKey {
    /// P-256.
    Ec(EcdsaKeyPair),
    /// RSA.
    Rsa(RsaKeyPair),
}

/// A stored key is none, or did not sign: a defect.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the credential's key does not sign")]
pub(super) struct Unusable;

impl SigningKey {
    /// A stored key of P-256.
    pub(super) fn ec(key: &PrivateKey) -> Result<Self, Unusable> {
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key.0)
            .map(Self::Ec)
            .map_err(|_| Unusable)
    }

    /// A stored key of RSA.
    pub(super) fn rsa(key: &PrivateKey) -> Result<Self, Unusable> {
        RsaKeyPair::from_pkcs8(&key.0)
            .map(Self::Rsa)
            .map_err(|_| Unusable)
    }

    /// Signs claims.
    pub(super) fn sign(&self, key_id: Option<&str>, claims: &Value) -> Result<String, Unusable> {
        let algorithm = match self {
            Self::Ec(_) => "ES256",
            Self::Rsa(_) => "RS256",
        };
        let mut header = json!({"alg": algorithm, "typ": "JWT"});
        if let (Some(header), Some(key_id)) = (header.as_object_mut(), key_id) {
            header.insert("kid".to_owned(), key_id.into());
        }
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(&header), encode(claims));
        let signature = self.signature(signed.as_bytes())?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    fn signature(&self, message: &[u8]) -> Result<Vec<u8>, Unusable> {
        let random = SystemRandom::new();
        match self {
            Self::Ec(pair) => {
                let signature = pair.sign(&random, message).map_err(|_| Unusable)?;
                Ok(signature.as_ref().to_vec())
            }
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .map_err(|_| Unusable)?;
                Ok(signature)
            }
        }
    }
}
