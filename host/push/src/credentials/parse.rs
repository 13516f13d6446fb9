//! Uploaded credentials, checked: keys are parsed before they are stored. What is refused is never repeated.

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use nudge_http::{ApiError, Code};
use nudge_platform::field_error::FieldError;
use nudge_platform::public_key::PublicKey;
use serde_json::{Map, Value};

use super::{Apple, Checked, Google, Identity, PrivateKey, Web};
use crate::providers::Environment;

/// The longest key that is parsed, in bytes: 8192 bits of RSA take some 6,500.
const MOST_KEY: usize = 16 * 1024;
/// The longest of the other texts, in bytes.
const MOST_TEXT: usize = 255;

const EC_HINT: &str = "send the whole text of the .p8 file: a private key for ES256 (P-256) in PEM";
const RSA_HINT: &str = "send the service account's JSON as Google gives it, with its private_key: RSA of 2048 to 8192 bits in PEM";
const VAPID_HINT: &str = "send publicKey (65 bytes) and privateKey (32 bytes) of one key of P-256, each in URL-safe Base64, or {\"generate\": true}";

/// A key that does not parse (contract 9).
fn invalid(pointer: &str, hint: &str) -> ApiError {
    let error = FieldError::new(pointer, "invalid", hint);
    ApiError::fields(Code::InvalidCredential, vec![error])
}

/// A text that goes into headers and URLs.
fn text(pointer: &str, text: String) -> Result<String, ApiError> {
    if (1..=MOST_TEXT).contains(&text.len()) && text.bytes().all(is_plain) {
        return Ok(text);
    }
    let detail = format!("must have 1 to {MOST_TEXT} letters, digits and . _ @ : + -");
    Err(ApiError::field(pointer, "invalid", detail))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._@:+-".contains(&byte)
}

/// A key for APNs.
pub(super) fn apple(
    p8: &str,
    key_id: String,
    team_id: String,
    bundle_id: String,
    environment: Environment,
) -> Result<Checked, ApiError> {
    let identity = Identity::Apple(Apple {
        key_id: text("/keyId", key_id)?,
        team_id: text("/teamId", team_id)?,
        bundle_id: text("/bundleId", bundle_id)?,
        environment,
    });
    let pair = pem(p8)
        .and_then(|der| {
            EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).ok()
        })
        .ok_or_else(|| invalid("/p8", EC_HINT))?;
    elliptic(identity, &pair).ok_or_else(|| invalid("/p8", EC_HINT))
}

/// A service account.
pub(super) fn google(account: &Map<String, Value>) -> Result<Checked, ApiError> {
    let member = |name: &str| {
        let pointer = format!("/serviceAccount/{name}");
        let value = account.get(name).and_then(Value::as_str);
        let plain =
            |value: &&str| (1..=MOST_TEXT).contains(&value.len()) && value.bytes().all(is_plain);
        value
            .filter(plain)
            .map(str::to_owned)
            .ok_or_else(|| invalid(&pointer, RSA_HINT))
    };
    let identity = Identity::Google(Google {
        project_id: member("project_id")?,
        client_email: member("client_email")?,
        private_key_id: account
            .contains_key("private_key_id")
            .then(|| member("private_key_id"))
            .transpose()?,
        token_uri: token_uri(account)?,
    });
    let refused = || invalid("/serviceAccount/private_key", RSA_HINT);
    let key = account.get("private_key").and_then(Value::as_str);
    let der = key.and_then(pem).ok_or_else(refused)?;
    let pair = RsaKeyPair::from_pkcs8(&der)
        .or_else(|_| RsaKeyPair::from_der(&der))
        .map_err(|_| refused())?;
    rsa_checked(identity, &pair).ok_or_else(refused)
}

fn token_uri(account: &Map<String, Value>) -> Result<Option<String>, ApiError> {
    let Some(value) = account.get("token_uri") else {
        return Ok(None);
    };
    let url = value.as_str().filter(|url| url.len() <= MOST_TEXT);
    url.filter(|url| reqwest::Url::parse(url).is_ok())
        .map(|url| Some(url.to_owned()))
        .ok_or_else(|| invalid("/serviceAccount/token_uri", RSA_HINT))
}

/// A VAPID key.
pub(super) fn vapid(
    public: &str,
    private: &str,
    subject: Option<String>,
) -> Result<Checked, ApiError> {
    let subject = subject.map(contact).transpose()?;
    let decode = |pointer: &str, text: &str, length: usize| {
        let decoded = URL_SAFE_NO_PAD.decode(text.trim_end_matches('='));
        let whole = decoded.ok().filter(|bytes| bytes.len() == length);
        whole.ok_or_else(|| invalid(pointer, VAPID_HINT))
    };
    let public = decode("/vapid/publicKey", public, 65)?;
    let private = decode("/vapid/privateKey", private, 32)?;
    let refused = || invalid("/vapid/privateKey", VAPID_HINT);
    let pair = EcdsaKeyPair::from_private_key_and_public_key(
        &ECDSA_P256_SHA256_FIXED_SIGNING,
        &private,
        &public,
    )
    .map_err(|_| refused())?;
    web(&pair, subject).ok_or_else(refused)
}

/// A new VAPID key.
pub(super) fn generate(subject: Option<String>) -> Result<Checked, ApiError> {
    let subject = subject.map(contact).transpose()?;
    let failed = || ApiError::internal(anyhow::anyhow!("no VAPID key can be made"));
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(|_| failed())?;
    web(&pair, subject).ok_or_else(failed)
}

/// How push services reach whoever sends (RFC 8292, section 2.1).
fn contact(subject: String) -> Result<String, ApiError> {
    let good = subject.len() <= MOST_TEXT
        && subject.bytes().all(|byte| byte.is_ascii_graphic())
        && ["mailto:", "https://"]
            .iter()
            .any(|scheme| subject.len() > scheme.len() && subject.starts_with(scheme));
    if good {
        return Ok(subject);
    }
    let detail = format!("subject is a mailto: or https: URL of at most {MOST_TEXT} characters");
    Err(ApiError::field("/vapid/subject", "invalid", detail))
}

fn web(pair: &EcdsaKeyPair, subject: Option<String>) -> Option<Checked> {
    let public_key = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
    elliptic(
        Identity::Web(Web {
            public_key,
            subject,
        }),
        pair,
    )
}

fn elliptic(identity: Identity, pair: &EcdsaKeyPair) -> Option<Checked> {
    let spki: PublicKeyX509Der<'_> = pair.public_key().as_der().ok()?;
    checked(identity, &spki, pair.to_pkcs8v1().ok()?.as_ref())
}

fn rsa_checked(identity: Identity, pair: &RsaKeyPair) -> Option<Checked> {
    let public: &rsa::PublicKey = pair.public_key();
    let spki: PublicKeyX509Der<'_> = public.as_der().ok()?;
    let key: Pkcs8V1Der<'_> = pair.as_der().ok()?;
    checked(identity, &spki, key.as_ref())
}

fn checked(identity: Identity, spki: &PublicKeyX509Der<'_>, key: &[u8]) -> Option<Checked> {
    Some(Checked {
        identity,
        fingerprint: PublicKey::from_spki(spki.as_ref()).ok()?.fingerprint(),
        key: PrivateKey(key.to_vec()),
    })
}

/// The content of a PEM text with one private key (RFC 7468).
fn pem(text: &str) -> Option<Vec<u8>> {
    let text = Some(text.trim()).filter(|text| text.len() <= MOST_KEY)?;
    let rest = text.strip_prefix("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    if !["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"].contains(&label) {
        return None;
    }
    let body = rest.strip_suffix("-----")?.strip_suffix(label)?;
    let body = body.strip_suffix("-----END ")?;
    let base64: String = body.split_ascii_whitespace().collect();
    STANDARD.decode(base64).ok()
}
