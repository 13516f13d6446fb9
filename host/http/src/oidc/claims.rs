//! What a provider's token says, in our terms.

use std::collections::BTreeMap;

use nudge_db::Timestamp;
use nudge_platform::config::OidcIssuer;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::issuer::{Claims, LEEWAY, Role};

/// The longest `sub` (OpenID Connect Core, section 2).
const MOST_SUBJECT: usize = 255;

/// The issuer that a token names, before anything of it is checked.
pub fn unverified_issuer(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        iss: String,
    }
    let named: Named = jsonwebtoken::dangerous::insecure_decode_claims(token).ok()?;
    Some(named.iss)
}

/// Reads the claims of a token whose signature is good. `None`: it is of another issuer, for another audience,
/// or not in force, with a minute's leeway.
pub fn read(claims: &Value, issuer: &OidcIssuer, now: Timestamp) -> Option<Claims> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(issuer.issuer.as_str()) || !is_for(claims.get("aud"), &issuer.audience) {
        return None;
    }
    let leeway = i64::try_from(LEEWAY.as_secs()).unwrap_or(0);
    let exp = seconds(claims.get("exp")?)?;
    if now.seconds().saturating_sub(leeway) >= exp {
        return None;
    }
    if let Some(nbf) = claims.get("nbf")
        && now.seconds().saturating_add(leeway) < seconds(nbf)?
    {
        return None;
    }
    let sub = text("sub").filter(|sub| !sub.is_empty() && sub.len() <= MOST_SUBJECT)?;
    let roles = at_path(claims, &issuer.roles_claim).map_or_else(BTreeMap::new, roles);
    let operator = at_path(claims, &issuer.operator_claim) == Some(&Value::Bool(true));
    Some(Claims {
        iss: issuer.issuer.clone(),
        aud: issuer.audience.clone(),
        sub: sub.to_owned(),
        iat: claims.get("iat").and_then(seconds).unwrap_or_default(),
        exp,
        roles,
        operator,
    })
}

/// Whether an identity token whose signature is good answers a sign-in: it is for this client, of this request, and in
/// force (OpenID Connect Core 1.0, section 3.1.3.7).
pub fn is_identity(claims: &Value, issuer: &OidcIssuer, nonce: &str, now: Timestamp) -> bool {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let client = issuer.client_id.as_str();
    // A token for several says who it was issued to.
    let is_issued_to_us = match (claims.get("azp"), claims.get("aud")) {
        (Some(issued_to), _) => issued_to.as_str() == Some(client),
        (None, Some(Value::Array(several))) => several.len() == 1,
        (None, _) => true,
    };
    let leeway = i64::try_from(LEEWAY.as_secs()).unwrap_or(0);
    let expires = claims.get("exp").and_then(seconds);
    text("iss") == Some(issuer.issuer.as_str())
        && is_for(claims.get("aud"), client)
        && is_issued_to_us
        && text("nonce") == Some(nonce)
        && text("sub").is_some_and(|sub| !sub.is_empty())
        && expires.is_some_and(|expires| now.seconds().saturating_sub(leeway) < expires)
}

/// `aud` is a string or an array of strings (RFC 7519, section 4.1.3).
fn is_for(aud: Option<&Value>, audience: &str) -> bool {
    match aud {
        Some(Value::String(one)) => one == audience,
        Some(Value::Array(several)) => several.iter().any(|one| one == audience),
        _ => false,
    }
}

/// A `NumericDate` (RFC 7519, section 2), which may have a fraction.
fn seconds(value: &Value) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a date beyond i64 seconds is clamped"
    )]
    value
        .as_i64()
        .or_else(|| value.as_f64().map(|seconds| seconds.floor() as i64))
}

/// The claim at a dotted path. A name that has dots itself, as those with a domain do, comes first.
fn at_path<'a>(claims: &'a Value, path: &str) -> Option<&'a Value> {
    if let Some(found) = claims.get(path) {
        return Some(found);
    }
    path.match_indices('.').find_map(|(at, _)| {
        let (outer, inner) = path.split_at(at);
        at_path(claims.get(outer)?, inner.get(1..)?)
    })
}

/// Roles by workspace. What is no workspace's id or no role of ours grants nothing.
fn roles(value: &Value) -> BTreeMap<Uuid, Role> {
    let entries = value.as_object().into_iter().flatten();
    entries
        .filter_map(|(workspace, role)| {
            let role = Role::deserialize(role).ok()?;
            Some((Uuid::parse_str(workspace).ok()?, role))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn issuer() -> OidcIssuer {
        OidcIssuer {
            roles_claim: "resource_access.nudge.roles".to_owned(),
            operator_claim: "https://id.example/operator".to_owned(),
            ..OidcIssuer::new("https://id.example", "nudge")
        }
    }

    fn claims(change: Value) -> Value {
        let mut claims =
            json!({"iss": "https://id.example", "aud": "nudge", "sub": "ada", "exp": 1_000_000});
        nudge_platform::json::merge::apply(&mut claims, change);
        claims
    }

    fn at(seconds: i64, change: Value) -> Option<Claims> {
        read(&claims(change), &issuer(), Timestamp::from_seconds(seconds))
    }

    #[test]
    fn times_have_a_minute_of_leeway() {
        assert!(at(1_000_059, json!({})).is_some());
        assert!(at(1_000_060, json!({})).is_none());
        assert!(at(500, json!({"nbf": 560})).is_some());
        assert!(at(500, json!({"nbf": 561})).is_none());
        assert!(at(500, json!({"exp": null})).is_none());
        assert!(at(500, json!({"exp": "1000000"})).is_none());
        assert!(at(500, json!({"nbf": "soon"})).is_none());
        assert!(at(500, json!({"exp": 1_000_000.5})).is_some());
    }

    #[test]
    fn issuer_audience_and_subject_must_be_right() {
        assert!(at(0, json!({"aud": ["other", "nudge"]})).is_some());
        for wrong in [
            json!({"aud": "other"}),
            json!({"aud": ["other"]}),
            json!({"aud": null}),
            json!({"iss": "https://id.example/"}),
            json!({"iss": null}),
            json!({"sub": null}),
            json!({"sub": ""}),
            json!({"sub": 7}),
            json!({"sub": "a".repeat(256)}),
        ] {
            assert!(at(0, wrong.clone()).is_none(), "{wrong}");
        }
    }

    #[test]
    fn an_identity_is_for_this_client_of_this_request_and_in_force() {
        let issuer = OidcIssuer {
            client_id: "console".to_owned(),
            ..issuer()
        };
        let is_good = |change: Value| {
            let mut claims = claims(json!({"aud": "console", "nonce": "n"}));
            nudge_platform::json::merge::apply(&mut claims, change);
            is_identity(&claims, &issuer, "n", Timestamp::from_seconds(1_000_059))
        };
        for good in [
            json!({}),
            json!({"aud": ["console"]}),
            json!({"azp": "console"}),
            json!({"aud": ["console", "other"], "azp": "console"}),
        ] {
            assert!(is_good(good.clone()), "{good}");
        }
        for wrong in [
            json!({"iss": "https://other.example"}),
            json!({"aud": "nudge"}),
            json!({"aud": null}),
            json!({"aud": ["console", "other"]}),
            json!({"aud": ["console", "other"], "azp": "other"}),
            json!({"azp": "other"}),
            json!({"nonce": "m"}),
            json!({"nonce": null}),
            json!({"sub": ""}),
            json!({"exp": 999_999}),
            json!({"exp": null}),
        ] {
            assert!(!is_good(wrong.clone()), "{wrong}");
        }
    }

    #[test]
    fn roles_are_found_by_a_dotted_path_and_nonsense_grants_nothing() {
        let workspace = Uuid::from_u128(7);
        let nested = json!({"resource_access": {"nudge": {"roles": {
            workspace.to_string(): "editor", "x": "admin", Uuid::from_u128(8).to_string(): "owner",
        }}}});
        let claims = at(0, nested).unwrap();
        assert_eq!(claims.roles, BTreeMap::from([(workspace, Role::Editor)]));
        assert!(!claims.operator);

        let flat = json!({"resource_access.nudge.roles": {workspace.to_string(): "admin"},
            "https://id.example/operator": true});
        let claims = at(0, flat).unwrap();
        assert_eq!(claims.roles, BTreeMap::from([(workspace, Role::Admin)]));
        assert!(claims.operator);
        for nothing in [
            json!({"resource_access": 7}),
            json!({"resource_access": {"nudge": {"roles": ["admin"]}}}),
        ] {
            assert!(at(0, nothing).unwrap().roles.is_empty());
        }
        assert!(
            !at(0, json!({"https://id.example/operator": "true"}))
                .unwrap()
                .operator
        );
    }
}
