//! Public keys that sign tokens: read from PEM or JWK, kept as `SubjectPublicKeyInfo` (RFC 5280).
//!
//! A key has one algorithm, its own. What a token says of its algorithm only has to agree with it.

use aws_lc_rs::encoding::{AsDer as _, PublicKeyX509Der};
use aws_lc_rs::rsa::PublicEncryptingKey;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
    RsaPublicKeyComponents, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::secrets;

const PEM_BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";
/// Members of a JWK that only a private or secret key has (RFC 7518, section 6).
const PRIVATE_MEMBERS: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// Why something is not taken as a public key. The texts say what to send instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// A private key; whoever sent it has leaked it.
    #[error(
        "this is a private key: send the public key only, and replace this one, since it has left its owner"
    )]
    Private,
    /// RSA of less than 2048 bits.
    #[error("an RSA key must have at least 2048 bits")]
    TooShort,
    /// A key of another algorithm.
    #[error(
        "the key must be for ES256 (P-256), EdDSA (Ed25519) or RS256 (RSA of 2048 to 8192 bits)"
    )]
    Algorithm,
    /// No key at all.
    #[error(
        "the key must be a PEM text that begins with -----BEGIN PUBLIC KEY-----, or a JWK object"
    )]
    Malformed,
}

/// A public key for one of ES256, `EdDSA` and RS256.
#[derive(Clone, Debug)]
pub struct PublicKey {
    algorithm: Algorithm,
    spki: Vec<u8>,
    decoding: DecodingKey,
}

impl PublicKey {
    /// Reads a PEM text or a JWK.
    pub fn from_value(value: &Value) -> Result<Self, Unusable> {
        match value {
            Value::String(pem) => Self::from_pem(pem),
            Value::Object(jwk) => Self::from_jwk(jwk),
            _ => Err(Unusable::Malformed),
        }
    }

    /// Reads a PEM text (RFC 7468) of a `SubjectPublicKeyInfo`.
    pub fn from_pem(pem: &str) -> Result<Self, Unusable> {
        if pem.contains("PRIVATE KEY-----") {
            return Err(Unusable::Private);
        }
        let body = pem
            .trim()
            .strip_prefix(PEM_BEGIN)
            .and_then(|rest| rest.strip_suffix(PEM_END))
            .ok_or(Unusable::Malformed)?;
        let base64: String = body.split_ascii_whitespace().collect();
        let der = STANDARD.decode(base64).map_err(|_| Unusable::Malformed)?;
        Self::from_spki(&der)
    }

    /// Reads a JWK (RFC 7517).
    pub fn from_jwk(jwk: &serde_json::Map<String, Value>) -> Result<Self, Unusable> {
        if PRIVATE_MEMBERS
            .iter()
            .any(|member| jwk.contains_key(*member))
        {
            return Err(Unusable::Private);
        }
        let text = |member: &str| jwk.get(member).and_then(Value::as_str);
        let bytes = |member: &str| {
            let text = text(member).ok_or(Unusable::Malformed)?;
            URL_SAFE_NO_PAD
                .decode(text)
                .map_err(|_| Unusable::Malformed)
        };
        let (algorithm, spki) = match (text("kty"), text("crv")) {
            (Some("RSA"), _) => {
                let (n, e) = (bytes("n")?, bytes("e")?);
                (Algorithm::RS256, rsa_spki(&n, &e)?)
            }
            (Some("EC"), Some("P-256")) => {
                let (x, y) = (bytes("x")?, bytes("y")?);
                if x.len() != 32 || y.len() != 32 {
                    return Err(Unusable::Malformed);
                }
                let point = [&[4], x.as_slice(), y.as_slice()].concat();
                (Algorithm::ES256, spki(&ECDSA_P256_SHA256_FIXED, &point)?)
            }
            (Some("OKP"), Some("Ed25519")) => {
                let x = bytes("x")?;
                if x.len() != 32 {
                    return Err(Unusable::Malformed);
                }
                (Algorithm::EdDSA, spki(&ED25519, &x)?)
            }
            (Some(_), _) => return Err(Unusable::Algorithm),
            (None, _) => return Err(Unusable::Malformed),
        };
        if text("alg").is_some_and(|named| named != name_of(algorithm)) {
            return Err(Unusable::Algorithm);
        }
        Ok(Self::new(algorithm, spki))
    }

    /// Reads a `SubjectPublicKeyInfo`.
    pub fn from_spki(der: &[u8]) -> Result<Self, Unusable> {
        // The leading byte of a DER sequence: raw points and raw Ed25519 keys are not meant here.
        if der.first() != Some(&0x30) {
            return Err(Unusable::Malformed);
        }
        let known: [(Algorithm, &'static dyn VerificationAlgorithm); 3] = [
            (Algorithm::EdDSA, &ED25519),
            (Algorithm::ES256, &ECDSA_P256_SHA256_FIXED),
            (Algorithm::RS256, &RSA_PKCS1_2048_8192_SHA256),
        ];
        for (algorithm, verification) in known {
            if let Ok(spki) = spki(verification, der) {
                if algorithm == Algorithm::RS256 {
                    check_size(&spki)?;
                }
                return Ok(Self::new(algorithm, spki));
            }
        }
        Err(Unusable::Algorithm)
    }

    fn new(algorithm: Algorithm, spki: Vec<u8>) -> Self {
        let decoding = match algorithm {
            Algorithm::EdDSA => DecodingKey::from_ed_der(&spki),
            Algorithm::ES256 => DecodingKey::from_ec_der(&spki),
            _ => DecodingKey::from_rsa_der(&spki),
        };
        Self {
            algorithm,
            spki,
            decoding,
        }
    }

    /// Its algorithm's name in tokens: `ES256`, `EdDSA` or `RS256`.
    pub fn algorithm(&self) -> &'static str {
        name_of(self.algorithm)
    }

    /// Its `SubjectPublicKeyInfo`, in DER.
    pub fn spki(&self) -> &[u8] {
        &self.spki
    }

    /// The SHA-256 of the `SubjectPublicKeyInfo` in hexadecimal digits, as
    /// `openssl pkey -pubin -outform DER | sha256sum` prints it.
    pub fn fingerprint(&self) -> String {
        secrets::hexadecimal(&Sha256::digest(&self.spki))
    }

    /// The claims of a token that this key signed. `None`: another key, another algorithm, extensions that
    /// must be understood (`crit`, RFC 7515), or claims of another form. Nothing that the claims say is
    /// checked: times, issuer and audience are the caller's to compare.
    pub fn open<T: DeserializeOwned>(&self, token: &str) -> Option<T> {
        let mut validation = Validation::new(self.algorithm);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        let opened = jsonwebtoken::decode::<T>(token, &self.decoding, &validation).ok()?;
        opened.header.crit.is_none().then_some(opened.claims)
    }
}

fn name_of(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::EdDSA => "EdDSA",
        Algorithm::ES256 => "ES256",
        _ => "RS256",
    }
}

/// A key in the one form in which it is kept; it must be good for the algorithm.
fn spki(algorithm: &'static dyn VerificationAlgorithm, key: &[u8]) -> Result<Vec<u8>, Unusable> {
    let parsed = ParsedPublicKey::new(algorithm, key).map_err(|_| Unusable::Malformed)?;
    let der: PublicKeyX509Der<'_> = parsed.as_der().map_err(|_| Unusable::Malformed)?;
    Ok(der.as_ref().to_vec())
}

fn rsa_spki(n: &[u8], e: &[u8]) -> Result<Vec<u8>, Unusable> {
    let components = RsaPublicKeyComponents { n, e };
    let der: PublicKeyX509Der<'_> = components.as_der().map_err(|_| Unusable::Malformed)?;
    PublicKey::from_spki(der.as_ref()).map(|key| key.spki)
}

/// An RSA key has the size that RFC 7518, section 3.3, demands, and none that takes long to verify with.
fn check_size(spki: &[u8]) -> Result<(), Unusable> {
    match PublicEncryptingKey::from_der(spki) {
        Ok(key) if key.key_size_bits() >= 2048 => Ok(()),
        Err(rejected) if rejected.to_string() != "TooSmall" => Err(Unusable::Algorithm),
        _ => Err(Unusable::TooShort),
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaKeyPair,
    };
    use serde_json::json;

    use super::*;

    fn pem(der: &[u8]) -> String {
        format!("{PEM_BEGIN}\n{}\n{PEM_END}\n", STANDARD.encode(der))
    }

    fn base64url(bytes: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    #[test]
    fn pem_and_jwk_of_one_key_are_the_same_key() {
        let ed = Ed25519KeyPair::generate().unwrap();
        let raw = ed.public_key().as_ref();
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": base64url(raw), "use": "sig"});
        let from_jwk = PublicKey::from_value(&jwk).unwrap();
        let from_pem = PublicKey::from_value(&json!(pem(from_jwk.spki()))).unwrap();
        assert_eq!(from_jwk.algorithm(), "EdDSA");
        assert_eq!(from_jwk.spki(), from_pem.spki());
        assert_eq!(from_jwk.fingerprint(), from_pem.fingerprint());

        let ec = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let point = ec.public_key().as_ref();
        let jwk = json!({"kty": "EC", "crv": "P-256", "alg": "ES256",
            "x": base64url(&point[1..33]), "y": base64url(&point[33..])});
        let from_jwk = PublicKey::from_value(&jwk).unwrap();
        let from_pem = PublicKey::from_value(&json!(pem(from_jwk.spki()))).unwrap();
        assert_eq!(
            (from_jwk.algorithm(), from_jwk.spki()),
            ("ES256", from_pem.spki())
        );

        let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let n = rsa.public_key().modulus().big_endian_without_leading_zero();
        let e = rsa
            .public_key()
            .exponent()
            .big_endian_without_leading_zero();
        let jwk = json!({"kty": "RSA", "n": base64url(n), "e": base64url(e)});
        let from_jwk = PublicKey::from_value(&jwk).unwrap();
        let from_pem = PublicKey::from_value(&json!(pem(from_jwk.spki()))).unwrap();
        assert_eq!(
            (from_jwk.algorithm(), from_jwk.spki()),
            ("RS256", from_pem.spki())
        );
    }

    #[test]
    fn what_is_no_good_public_key_is_refused_for_what_it_is() {
        let refused = |value: Value| PublicKey::from_value(&value).unwrap_err();
        let private = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----";
        assert_eq!(refused(json!(private)), Unusable::Private);
        assert_eq!(
            refused(json!({"kty": "OKP", "crv": "Ed25519", "x": "", "d": ""})),
            Unusable::Private
        );
        assert_eq!(
            refused(json!({"kty": "oct", "k": "c2VjcmV0"})),
            Unusable::Private
        );
        assert_eq!(
            refused(json!({"kty": "EC", "crv": "P-384"})),
            Unusable::Algorithm
        );
        assert_eq!(
            refused(json!({"kty": "OKP", "crv": "X25519"})),
            Unusable::Algorithm
        );
        for malformed in [
            json!(7),
            json!(""),
            json!("-----BEGIN PUBLIC KEY----------END PUBLIC KEY-----"),
            json!(pem(&[4; 65])),
            json!({}),
            json!({"kty": "RSA", "n": "AQAB"}),
            json!({"kty": "OKP", "crv": "Ed25519", "x": base64url(&[1; 31])}),
            json!({"kty": "EC", "crv": "P-256", "x": base64url(&[1; 32]), "y": base64url(&[1; 32])}),
        ] {
            assert_eq!(
                refused(malformed.clone()),
                Unusable::Malformed,
                "{malformed}"
            );
        }
        // A modulus of 1024 bits; what it is a product of does not matter here.
        let mut n = [0xff; 128];
        n[127] = 0xc5;
        let short = json!({"kty": "RSA", "n": base64url(&n), "e": "AQAB"});
        assert_eq!(refused(short), Unusable::TooShort);
        let ed = Ed25519KeyPair::generate().unwrap();
        let x = base64url(ed.public_key().as_ref());
        let mismatched = json!({"kty": "OKP", "crv": "Ed25519", "x": x, "alg": "RS256"});
        assert_eq!(refused(mismatched), Unusable::Algorithm);
    }
}
