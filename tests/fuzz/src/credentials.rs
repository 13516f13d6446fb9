//! Tokens, cursors, keys, claims.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use nudge_apps::{key, subject_token};
use nudge_db::Timestamp;
use nudge_http::cursor;
use nudge_http::issuer::LEEWAY;
use nudge_http::oidc::claims;
use nudge_platform::config::OidcIssuer;
use nudge_platform::public_key::PublicKey;
use nudge_platform::secrets::Secrets;
use nudge_records::subjects::identity;
use nudge_surveys::instructions::polling::PagePosition;
use serde_json::Value;
use uuid::Uuid;

/// Base64 of 32 bytes; the corpus has a token of it.
const MASTER_KEY: &str = "bnVkZ2UtdGVzdHMtbWFzdGVyLWtleS0zMi1ieXRlcyE=";
/// 2026-03-01T12:00:00Z.
const NOW: Timestamp = Timestamp(1_772_366_400_000_000);

static SECRETS: LazyLock<Secrets> = LazyLock::new(|| {
    Secrets::open(MASTER_KEY, Path::new(".")).expect("the master key has 32 bytes")
});

/// A subject token, a cursor, an app's key. What opens was sealed by the server, byte for byte.
pub fn tokens(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if let Some(opened) = subject_token::open(&SECRETS, text) {
        assert_eq!(subject_token::seal(&SECRETS, &opened), text);
    }
    if let Ok(position) = cursor::decode::<(i64, Uuid)>(&SECRETS, "list", text, NOW) {
        let again = cursor::encode(&SECRETS, "list", &position, NOW.plus(cursor::LIFETIME));
        assert!(cursor::decode::<(i64, Uuid)>(&SECRETS, "list", &again, NOW).is_ok());
    }
    key::hash(text);
}

/// Where a poll goes on: what the server may have sealed, in whatever version. What opens is sealed and opens again.
pub fn cursors(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input) {
        drop(cursor::decode::<PagePosition>(&SECRETS, "polls", text, NOW));
    }
    let Ok(value) = serde_json::from_slice::<Value>(input) else {
        return;
    };
    let expires = NOW.plus(cursor::LIFETIME);
    let sealed = cursor::encode(&SECRETS, "polls", &value, expires);
    assert!(cursor::decode::<Value>(&SECRETS, "other", &sealed, NOW).is_err());
    if let Ok(place) = cursor::decode::<PagePosition>(&SECRETS, "polls", &sealed, NOW) {
        let again = cursor::encode(&SECRETS, "polls", &place, expires);
        assert_eq!(
            cursor::decode::<PagePosition>(&SECRETS, "polls", &again, NOW).ok(),
            Some(place)
        );
    }
}

/// What an app's backend says of a person. What is taken is somebody, from now on and for a day at the most.
pub fn identities(input: &[u8]) {
    let Ok(claims) = serde_json::from_slice::<identity::Claims>(input) else {
        return;
    };
    if let Ok(identity) = identity::read(claims, "ada", NOW) {
        assert!(identity::is_external_id(&identity.external_id));
        assert!(identity.expires_at > NOW);
        assert!(identity.expires_at <= NOW.plus(Duration::from_hours(24) + 2 * LEEWAY));
    }
}

/// A public key, as JWK, PEM or DER. What is taken is taken again in its own form.
pub fn keys(input: &[u8]) {
    let taken = [
        PublicKey::from_spki(input).ok(),
        std::str::from_utf8(input)
            .ok()
            .and_then(|pem| PublicKey::from_pem(pem).ok()),
        serde_json::from_slice::<Value>(input)
            .ok()
            .and_then(|value| PublicKey::from_value(&value).ok()),
    ];
    for key in taken.into_iter().flatten() {
        let again = PublicKey::from_spki(key.spki()).expect("its own form");
        assert_eq!(again.algorithm(), key.algorithm());
        if let Ok(token) = std::str::from_utf8(input) {
            assert_eq!(key.open::<Value>(token), None);
        }
    }
}

/// The claims of an access token, and the token that they came in.
pub fn claims(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let issuer = OidcIssuer {
        roles_claim: "resource_access.nudge.roles".to_owned(),
        ..OidcIssuer::new("https://id.example", "nudge")
    };
    claims::unverified_issuer(text);
    if let Ok(value) = serde_json::from_str::<Value>(text)
        && let Some(claims) = claims::read(&value, &issuer, NOW)
    {
        assert_eq!(claims.iss, issuer.issuer);
        assert!(!claims.sub.is_empty());
    }
}
