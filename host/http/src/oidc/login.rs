//! Signing in at a provider: OpenID Connect Core 1.0, authorization code flow with PKCE (RFC 7636), and renewal by
//! refresh token (RFC 6749, section 6).

use anyhow::{Context as _, anyhow, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use form_urlencoded::{Serializer, byte_serialize};
use nudge_db::Timestamp;
use nudge_platform::config::OidcIssuer;
use nudge_platform::{outbound, secrets};
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::provider::Provider;
use super::{AccessTokenRefusal, MOST_TOKEN_BYTES, claims};
use crate::issuer::Claims;

/// Parameters of the request that nobody may configure.
const OWN_PARAMETERS: &[&str] = &[
    "client_id",
    "client_secret",
    "code_challenge",
    "code_challenge_method",
    "nonce",
    "redirect_uri",
    "request",
    "request_uri",
    "response_mode",
    "response_type",
    "scope",
    "state",
];
const MOST_ANSWER_BYTES: usize = 256 * 1024;

/// What a provider says of signing in (OpenID Connect Discovery 1.0).
#[derive(Clone, Debug)]
pub(super) struct Endpoints {
    authorization: Url,
    token: Url,
    /// Whether the client's secret is sent in the body, as the provider takes it nowhere else.
    takes_posted_secret_only: bool,
    /// Whether the provider names itself when it sends people back (RFC 9207).
    names_itself: bool,
}

/// What ties the steps of one sign-in together. All of it is derived from one secret that the browser keeps.
pub struct LoginKeys {
    state: String,
    nonce: String,
    verifier: String,
}

/// With what the provider sent somebody back.
#[derive(Clone, Copy, Debug)]
pub struct Return<'a> {
    /// The authorization code.
    pub code: &'a str,
    /// Who it says it is (RFC 9207).
    pub issuer: Option<&'a str>,
    /// Where it sent them.
    pub redirect_uri: &'a str,
}

/// Tokens of a person who signed in. They are secrets.
pub struct Tokens {
    /// Opens the routes of management.
    pub access: String,
    /// Gets the next access token.
    pub refresh: Option<String>,
    /// What the access token says.
    pub claims: Claims,
}

/// Why there are no tokens.
#[derive(Debug)]
pub enum LoginRefusal {
    /// The provider said no, or sent something that is not good here.
    Refused(anyhow::Error),
    /// The provider does not answer.
    Unavailable(anyhow::Error),
}

/// The console as a provider's client.
#[derive(Clone, Copy, Debug)]
pub struct LoginClient<'a> {
    provider: &'a Provider,
}

/// An answer of the token endpoint.
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    token_type: String,
    id_token: Option<String>,
    refresh_token: Option<String>,
}

/// Whether a configuration of signing in makes sense.
pub(super) fn check(config: &OidcIssuer) -> anyhow::Result<()> {
    let issuer = &config.issuer;
    ensure!(
        !config.client_id.is_empty() || config.client_secret.is_empty(),
        "auth.issuers: {issuer} has a clientSecret without a clientId"
    );
    ensure!(
        config.scope.split(' ').any(|scope| scope == "openid"),
        "auth.issuers: the scope of {issuer} must have `openid`"
    );
    for name in config.login_parameters.keys() {
        ensure!(
            !OWN_PARAMETERS.contains(&name.as_str()),
            "auth.issuers: `{name}` of {issuer} is no loginParameter: the server sets it"
        );
    }
    Ok(())
}

impl Endpoints {
    /// Reads them from a discovery document.
    pub(super) fn read(document: &Map<String, Value>, allow_http: bool) -> anyhow::Result<Self> {
        let url = |name: &'static str| {
            let text = document.get(name).and_then(Value::as_str);
            let text = text.with_context(|| format!("the discovery document has no {name}"))?;
            outbound::checked_url(text, allow_http).context(name)
        };
        let methods = document.get("token_endpoint_auth_methods_supported");
        let takes = |method: &str| {
            methods
                .and_then(Value::as_array)
                .is_some_and(|methods| methods.iter().any(|known| known == method))
        };
        Ok(Self {
            authorization: url("authorization_endpoint")?,
            token: url("token_endpoint")?,
            takes_posted_secret_only: takes("client_secret_post") && !takes("client_secret_basic"),
            names_itself: document.get("authorization_response_iss_parameter_supported")
                == Some(&Value::Bool(true)),
        })
    }
}

impl LoginKeys {
    /// Derives them from a browser's secret.
    pub fn derive(secret: &str) -> Self {
        let key = secrets::sha256(secret.as_bytes());
        let derived = |purpose: &str| {
            URL_SAFE_NO_PAD.encode(secrets::keyed_hash(&key, &[purpose.as_bytes()]))
        };
        Self {
            state: derived("state"),
            nonce: derived("nonce"),
            verifier: derived("verifier"),
        }
    }

    /// Whether a provider sent back what it was given for this sign-in.
    pub fn is_state(&self, state: &str) -> bool {
        self.state == state
    }
}

impl<'a> LoginClient<'a> {
    pub(super) fn new(provider: &'a Provider) -> Self {
        Self { provider }
    }

    /// Where somebody signs in.
    pub async fn address(
        self,
        keys: &LoginKeys,
        redirect_uri: &str,
        now: Timestamp,
    ) -> Result<Url, LoginRefusal> {
        let config = &self.provider.config;
        let endpoints = self.endpoints(now).await?;
        let challenge = URL_SAFE_NO_PAD.encode(secrets::sha256(keys.verifier.as_bytes()));
        let mut address = endpoints.authorization;
        address
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &config.client_id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("scope", &config.scope)
            .append_pair("state", &keys.state)
            .append_pair("nonce", &keys.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .extend_pairs(&config.login_parameters);
        Ok(address)
    }

    /// Gets the tokens of somebody who came back.
    pub async fn redeem(
        self,
        keys: &LoginKeys,
        back: Return<'_>,
        now: Timestamp,
    ) -> Result<Tokens, LoginRefusal> {
        let endpoints = self.endpoints(now).await?;
        let named = back.issuer.is_some() || endpoints.names_itself;
        if named && back.issuer != Some(self.provider.config.issuer.as_str()) {
            return Err(refused("another issuer sent somebody back"));
        }
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", back.code),
            ("redirect_uri", back.redirect_uri),
            ("code_verifier", &keys.verifier),
        ];
        let answer = self.ask(&endpoints, &grant).await?;
        let identity = answer.id_token.as_deref().unwrap_or_default();
        let identity = self.open(identity, "the identity token", now).await?;
        if !claims::is_identity(&identity, &self.provider.config, &keys.nonce, now) {
            return Err(refused("the identity token is not for this sign-in"));
        }
        self.tokens(answer, None, now).await
    }

    /// Gets the next tokens.
    pub async fn renew(self, refresh: &str, now: Timestamp) -> Result<Tokens, LoginRefusal> {
        let endpoints = self.endpoints(now).await?;
        let grant = [("grant_type", "refresh_token"), ("refresh_token", refresh)];
        let answer = self.ask(&endpoints, &grant).await?;
        self.tokens(answer, Some(refresh), now).await
    }

    async fn endpoints(self, now: Timestamp) -> Result<Endpoints, LoginRefusal> {
        let endpoints = self.provider.endpoints(now).await;
        endpoints.map_err(LoginRefusal::Unavailable)
    }

    async fn ask(
        self,
        endpoints: &Endpoints,
        grant: &[(&str, &str)],
    ) -> Result<TokenAnswer, LoginRefusal> {
        let (authorization, form) = self.form(endpoints, grant);
        let url = endpoints.token.clone();
        let client = &self.provider.client;
        let (status, body) =
            outbound::post_form(client, url, authorization, form, MOST_ANSWER_BYTES)
                .await
                .map_err(LoginRefusal::Unavailable)?;
        if status.is_success() {
            let answer: TokenAnswer = serde_json::from_slice(&body)
                .map_err(|_| refused("the token endpoint's answer is not as it should be"))?;
            if !answer.token_type.eq_ignore_ascii_case("bearer") {
                return Err(refused("the access token is no bearer token"));
            }
            return Ok(answer);
        }
        let code = error_code(&body);
        let failure = match code {
            Some(code) => anyhow!("the token endpoint answers {status}, {code}"),
            None => anyhow!("the token endpoint answers {status}"),
        };
        // Providers refuse by 400 or 401, some by a code of RFC 6749 under another status. Whatever else comes may be of a
        // proxy in front of one, and says nothing of the grant.
        let is_refusal = match status {
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED => true,
            StatusCode::TOO_MANY_REQUESTS => false,
            status => status.is_client_error() && code.is_some(),
        };
        if is_refusal {
            return Err(LoginRefusal::Refused(failure));
        }
        Err(LoginRefusal::Unavailable(failure))
    }

    /// A request for tokens: `Authorization`, if the client says there who it is, and the body.
    fn form(self, endpoints: &Endpoints, grant: &[(&str, &str)]) -> (Option<String>, String) {
        let config = &self.provider.config;
        let mut form = Serializer::new(String::new());
        form.extend_pairs(grant);
        if let Some(resource) = config.login_parameters.get("resource") {
            form.append_pair("resource", resource);
        }
        let mut authorization = None;
        if config.client_secret.is_empty() {
            form.append_pair("client_id", &config.client_id);
        } else if endpoints.takes_posted_secret_only {
            form.append_pair("client_id", &config.client_id);
            form.append_pair("client_secret", &config.client_secret);
        } else {
            // Both are encoded as in a form first (RFC 6749, section 2.3.1).
            let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let pair = format!(
                "{}:{}",
                encoded(&config.client_id),
                encoded(&config.client_secret)
            );
            authorization = Some(format!("Basic {}", STANDARD.encode(pair)));
        }
        (authorization, form.finish())
    }

    /// The tokens of an answer, if the access token is one that opens anything here.
    async fn tokens(
        self,
        answer: TokenAnswer,
        refresh: Option<&str>,
        now: Timestamp,
    ) -> Result<Tokens, LoginRefusal> {
        let opened = self
            .open(&answer.access_token, "the access token", now)
            .await?;
        let claims = claims::read(&opened, &self.provider.config, now).ok_or_else(|| {
            refused("the access token is not for this server: is `audience` what the provider puts into `aud`?")
        })?;
        let fits = |token: &String| token.len() <= MOST_TOKEN_BYTES;
        Ok(Tokens {
            access: answer.access_token,
            // Without a new one the earlier stays good.
            refresh: answer
                .refresh_token
                .filter(fits)
                .or_else(|| refresh.map(str::to_owned)),
            claims,
        })
    }

    async fn open(self, token: &str, name: &str, now: Timestamp) -> Result<Value, LoginRefusal> {
        if token.len() > MOST_TOKEN_BYTES {
            return Err(refused("a token is too long"));
        }
        let opened = self.provider.open(token, now).await;
        opened.map_err(|refusal| match refusal {
            AccessTokenRefusal::Invalid => {
                LoginRefusal::Refused(anyhow!("{name} is no JWT that a key of the issuer signed"))
            }
            AccessTokenRefusal::Unavailable(cause) => LoginRefusal::Unavailable(cause),
        })
    }
}

fn refused(reason: &'static str) -> LoginRefusal {
    LoginRefusal::Refused(anyhow!(reason))
}

/// The code of RFC 6749 in an answer of the token endpoint. Others may have values of somebody's in them.
fn error_code(body: &[u8]) -> Option<&'static str> {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let code = said.get("error").and_then(Value::as_str)?;
    let known = [
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
        "invalid_target",
    ];
    known.into_iter().find(|known| *known == code)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nudge_platform::config::Hidden;
    use serde_json::json;

    use super::*;

    fn configured() -> OidcIssuer {
        OidcIssuer {
            client_id: "console".to_owned(),
            client_secret: Hidden("secret".to_owned()),
            ..OidcIssuer::new("https://id.example", "nudge")
        }
    }

    #[test]
    fn a_configuration_that_makes_no_sense_is_refused() {
        assert!(check(&configured()).is_ok());
        for wrong in [
            OidcIssuer {
                client_id: String::new(),
                ..configured()
            },
            OidcIssuer {
                scope: "profile openid2".to_owned(),
                ..configured()
            },
            OidcIssuer {
                login_parameters: BTreeMap::from([("state".to_owned(), "x".to_owned())]),
                ..configured()
            },
        ] {
            let error = format!("{:#}", check(&wrong).unwrap_err());
            assert!(error.contains("https://id.example"), "{error}");
            assert!(!error.contains("secret") || error.contains("clientSecret"));
            assert!(!format!("{wrong:?}").contains("\"secret\""));
        }
    }

    #[test]
    fn endpoints_are_those_of_the_discovery_document() {
        let read = |document: &Value| Endpoints::read(document.as_object().unwrap(), false);
        let mut document = json!({
            "authorization_endpoint": "https://id.example/auth?tenant=1",
            "token_endpoint": "https://id.example/token",
        });
        let endpoints = read(&document).unwrap();
        assert!(!endpoints.takes_posted_secret_only && !endpoints.names_itself);
        document["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
        document["authorization_response_iss_parameter_supported"] = json!(true);
        let endpoints = read(&document).unwrap();
        assert!(endpoints.takes_posted_secret_only && endpoints.names_itself);
        document["token_endpoint"] = json!("http://id.example/token");
        assert!(read(&document).is_err());
        assert!(read(&json!({})).is_err());
    }

    #[test]
    fn keys_of_one_secret_differ_and_stay() {
        let (one, again, other) = (
            LoginKeys::derive("one"),
            LoginKeys::derive("one"),
            LoginKeys::derive("other"),
        );
        assert!(one.is_state(&again.state) && !one.is_state(&other.state));
        assert_ne!(one.state, one.nonce);
        assert_ne!(one.nonce, one.verifier);
        // RFC 7636, section 4.1.
        assert_eq!(one.verifier.len(), 43);
    }
}
