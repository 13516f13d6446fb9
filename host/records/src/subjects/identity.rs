//! Identity tokens: a customer's backend says who the user of an SDK is (contract 2).

use std::time::Duration;

use nudge_apps::App;
use nudge_db::Timestamp;
use nudge_http::issuer::LEEWAY;
use serde::Deserialize;

/// The longest token, in bytes.
const MOST_TOKEN: usize = 8 * 1024;
/// How far ahead a token may expire.
const MOST_LIFETIME: Duration = Duration::from_hours(24);
/// The longest external id, in characters.
pub const MOST_EXTERNAL_ID: usize = 256;

/// Who somebody is, according to the customer's backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The customer's own id of the user.
    pub external_id: String,
    /// When the backend said so.
    pub issued_at: Timestamp,
    /// Until when a subject token that follows from it may be good.
    pub expires_at: Timestamp,
}

/// Why an identity token is not taken. The texts are for the customer's developers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityRefusal {
    /// Not a JWT of an algorithm that is taken, or without `kid`.
    #[error("the identity token is not a JWT of ES256, EdDSA or RS256 whose header has a kid")]
    Malformed,
    /// No key of the app has its `kid`.
    #[error(
        "the app has no identity key of the token's kid; register the key or use a registered one"
    )]
    UnknownKey,
    /// Another key, another algorithm than the key's, or claims that are missing.
    #[error("the identity token's signature or claims are wrong: iss, sub, iat and exp are needed")]
    Unverified,
    /// `iss` is not the app.
    #[error("the identity token's iss must be the app's id")]
    Issuer,
    /// `sub` can't be an external id.
    #[error("the identity token's sub must have 1 to 256 characters and no control characters")]
    Subject,
    /// It is over, not yet in force, or good for too long.
    #[error(
        "the identity token is not in force: exp must be ahead, 24 hours at the most, iat and nbf past"
    )]
    Time,
    /// `aid` is another anonymous id.
    #[error("the identity token is for another anonymous id")]
    Device,
}

/// What a token says, once its signature has been verified.
#[derive(Debug, Deserialize)]
pub struct Claims {
    iss: String,
    sub: String,
    iat: f64,
    exp: f64,
    nbf: Option<f64>,
    aid: Option<String>,
}

/// Reads an identity token for a session of an anonymous id. The key that it names decides the algorithm.
pub fn verify(
    app: &App,
    token: &str,
    anonymous_id: &str,
    now: Timestamp,
) -> Result<Identity, IdentityRefusal> {
    if token.len() > MOST_TOKEN {
        return Err(IdentityRefusal::Malformed);
    }
    let header = jsonwebtoken::decode_header(token).map_err(|_| IdentityRefusal::Malformed)?;
    let kid = header.kid.ok_or(IdentityRefusal::Malformed)?;
    let known = app.identity_keys.iter().find(|known| known.kid == kid);
    let key = &known.ok_or(IdentityRefusal::UnknownKey)?.key;
    let claims: Claims = key.open(token).ok_or(IdentityRefusal::Unverified)?;
    if !claims.iss.eq_ignore_ascii_case(&app.id.to_string()) {
        return Err(IdentityRefusal::Issuer);
    }
    read(claims, anonymous_id, now)
}

/// Who the claims of a token of the app are about.
pub fn read(
    claims: Claims,
    anonymous_id: &str,
    now: Timestamp,
) -> Result<Identity, IdentityRefusal> {
    if !is_external_id(&claims.sub) {
        return Err(IdentityRefusal::Subject);
    }
    if claims.aid.is_some_and(|aid| aid != anonymous_id) {
        return Err(IdentityRefusal::Device);
    }
    let exp = instant(claims.exp).ok_or(IdentityRefusal::Time)?;
    let issued_at = instant(claims.iat).ok_or(IdentityRefusal::Time)?;
    let latest = now.plus(LEEWAY);
    let begins = [Some(claims.iat), claims.nbf];
    let in_force = begins
        .into_iter()
        .flatten()
        .all(|begin| instant(begin).is_some_and(|begin| begin <= latest));
    if !in_force || exp <= now || exp > latest.plus(MOST_LIFETIME) {
        return Err(IdentityRefusal::Time);
    }
    Ok(Identity {
        external_id: claims.sub,
        issued_at,
        expires_at: exp,
    })
}

/// Whether a text can be an external id.
pub fn is_external_id(text: &str) -> bool {
    let length = text.chars().count();
    (1..=MOST_EXTERNAL_ID).contains(&length) && !text.chars().any(char::is_control)
}

/// A `NumericDate` (RFC 7519, section 2), which may have a fraction.
fn instant(seconds: f64) -> Option<Timestamp> {
    let sane = (0.0..=1e11).contains(&seconds);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "within the range of whole microseconds"
    )]
    sane.then_some(Timestamp((seconds * 1e6) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: f64 = 1_800_000_000.0;

    fn at(iat: f64, exp: f64, nbf: Option<f64>) -> Result<i64, IdentityRefusal> {
        let claims = Claims {
            iss: String::new(),
            sub: "e-1".to_owned(),
            iat: NOW + iat,
            exp: NOW + exp,
            nbf: nbf.map(|nbf| NOW + nbf),
            aid: None,
        };
        let now = instant(NOW).unwrap();
        let identity = read(claims, "a", now)?;
        Ok((identity.expires_at.0 - now.0) / 1_000_000)
    }

    #[test]
    fn the_future_has_a_minute_of_leeway_and_the_past_none() {
        let day = 24.0 * 3600.0;
        assert_eq!(at(0.0, 3600.0, None), Ok(3600));
        assert_eq!(at(60.0, day + 60.0, Some(60.0)), Ok(86_460));
        assert_eq!(at(-1e6, 1.0, Some(-1.0)), Ok(1));
        for (iat, exp, nbf) in [
            (0.0, 0.0, None),
            (61.0, 100.0, None),
            (0.0, 100.0, Some(61.0)),
            (0.0, day + 61.0, None),
            (0.0, f64::INFINITY, None),
            (f64::NAN, 100.0, None),
            (-2.0 * NOW, 100.0, None),
        ] {
            assert_eq!(
                at(iat, exp, nbf),
                Err(IdentityRefusal::Time),
                "{iat} {exp} {nbf:?}"
            );
        }
    }

    #[test]
    fn who_and_where_must_be_right() {
        let read = |sub: &str, aid: Option<&str>| {
            let claims = Claims {
                iss: String::new(),
                sub: sub.to_owned(),
                iat: NOW,
                exp: NOW + 60.0,
                nbf: None,
                aid: aid.map(str::to_owned),
            };
            read(claims, "a", instant(NOW).unwrap()).map(|identity| identity.external_id)
        };
        assert_eq!(read("e-1", Some("a")), Ok("e-1".to_owned()));
        assert_eq!(read("e-1", Some("b")), Err(IdentityRefusal::Device));
        assert!(read(&"ü".repeat(256), None).is_ok());
        for sub in ["", &"ü".repeat(257), "a\u{0}"] {
            assert_eq!(read(sub, None), Err(IdentityRefusal::Subject));
        }
    }
}
