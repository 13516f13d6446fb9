//! Signing in at an OpenID provider: there by `/console/login`, and back by `/console/callback` (contract 22).
//!
//! The browser keeps a secret in a cookie of ten minutes, from which `state`, `nonce` and the PKCE verifier are derived: a login
//! goes on in the browser that began it and in no other. The database has its hash and the issuer, so that any process
//! may see somebody come back, once. What goes wrong is told to the page in its fragment, as nobody else can show it.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use nudge_http::oidc::login::{LoginKeys, LoginRefusal, Return};
use nudge_http::{ApiError, Params};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Deserialize;
use strum::IntoStaticStr;

use super::http::OwnHost;
use super::site::{Cookie, Reached};
use super::store::{self, LoginRow};
use super::{CODE_LIFETIME, Secret, secret_hash, sessions};
use crate::auth;
use crate::services::{Services, Shared};

/// The longest place in the console to come back to, in bytes.
const MOST_RETURN: usize = 1_024;
/// What is not itself in a fragment (RFC 3986, section 3.5).
const FRAGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Where somebody wants to sign in.
#[derive(Deserialize)]
pub struct LoginQuery {
    /// May be left out where there is one alone.
    issuer: Option<String>,
    /// A place in the console to come back to.
    r#return: Option<String>,
}

/// With what the provider sends somebody back (RFC 6749, section 4.1.2; RFC 9207).
#[derive(Deserialize)]
pub struct CallbackQuery {
    state: Option<String>,
    code: Option<String>,
    iss: Option<String>,
    error: Option<String>,
}

/// Why nobody is signed in, as the page's fragment says it.
#[derive(Clone, Copy, Debug, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
enum LoginError {
    /// Nobody signs in with this issuer.
    UnknownIssuer,
    /// The provider does not answer.
    ProviderUnavailable,
    /// It was begun in another browser, more than ten minutes ago, or ended already.
    LoginExpired,
    /// The provider, or the person there, said no.
    LoginRefused,
    /// What the provider sent is not good here; the log says why.
    LoginFailed,
    /// Too many from this address.
    RateLimited,
}

impl LoginError {
    fn name(self) -> &'static str {
        self.into()
    }

    /// Tells a refusal to the log, which alone hears what it was.
    fn of(refusal: LoginRefusal, issuer: &str) -> Self {
        let (cause, told) = match refusal {
            LoginRefusal::Refused(cause) => (cause, Self::LoginFailed),
            LoginRefusal::Unavailable(cause) => (cause, Self::ProviderUnavailable),
        };
        let cause = format!("{cause:#}");
        tracing::warn!(issuer, cause, "nobody could be signed in to the console");
        told
    }
}

impl IntoResponse for LoginError {
    fn into_response(self) -> Response {
        Redirect::to(&format!("/console/#error={}", self.name())).into_response()
    }
}

/// Where the provider sends people back to.
fn redirect_uri(reached: &Reached) -> String {
    format!("{}/console/callback", reached.address)
}

/// A place in the console: what begins with a slash, so that it is neither a code nor an error.
fn place(text: Option<String>) -> String {
    text.filter(|text| text.starts_with('/') && text.len() <= MOST_RETURN)
        .unwrap_or_default()
}

/// Sends somebody to a provider.
pub async fn begin_login(
    OwnHost(reached): OwnHost,
    State(services): State<Shared>,
    client: auth::Stranger,
    Params(query): Params<LoginQuery>,
) -> Result<Response, ApiError> {
    let known: Vec<&str> = services.access_tokens.login_issuers().collect();
    let issuer = match (&query.issuer, known.as_slice()) {
        (Some(issuer), _) => issuer.as_str(),
        (None, [only]) => only,
        (None, _) => return Ok(LoginError::UnknownIssuer.into_response()),
    };
    let Some(provider) = services.access_tokens.login_client(issuer) else {
        return Ok(LoginError::UnknownIssuer.into_response());
    };
    // Each is a row that somebody unknown has made.
    if client.charge(&services).is_err() {
        return Ok(LoginError::RateLimited.into_response());
    }
    let now = services.clock.now();
    let secret = Secret::generate();
    let keys = LoginKeys::derive(&secret.text);
    let address = match provider.address(&keys, &redirect_uri(&reached), now).await {
        Ok(address) => address,
        Err(refusal) => return Ok(LoginError::of(refusal, issuer).into_response()),
    };
    let login = LoginRow {
        issuer: issuer.to_owned(),
        return_to: place(query.r#return),
    };
    let mut tx = services.db.write().await?;
    store::insert_login(&mut tx, &secret.hash, &login, now.plus(CODE_LIFETIME)).await?;
    tx.commit().await?;
    let cookie = reached.write(Cookie::Login, Some(&secret.text));
    let headers = [(header::SET_COOKIE, cookie)];
    Ok((headers, Redirect::to(address.as_str())).into_response())
}

/// Signs somebody in who comes back from a provider.
pub async fn finish_login(
    OwnHost(reached): OwnHost,
    State(services): State<Shared>,
    headers: HeaderMap,
    Params(query): Params<CallbackQuery>,
) -> Result<Response, ApiError> {
    let forget = reached.write(Cookie::Login, None);
    match sign_in(&services, &reached, &headers, &query).await? {
        Ok((secret, place)) => {
            let cookie = reached.write(Cookie::Session, Some(&secret));
            let cookies =
                AppendHeaders([(header::SET_COOKIE, cookie), (header::SET_COOKIE, forget)]);
            let place = utf8_percent_encode(&place, FRAGMENT).to_string();
            let fragment = if place.is_empty() { "" } else { "#" };
            let there = Redirect::to(&format!("/console/{fragment}{place}"));
            Ok((cookies, there).into_response())
        }
        Err(error) => Ok(([(header::SET_COOKIE, forget)], error).into_response()),
    }
}

/// The session's secret and where to go on.
async fn sign_in(
    services: &Services,
    reached: &Reached,
    headers: &HeaderMap,
    query: &CallbackQuery,
) -> Result<Result<(String, String), LoginError>, ApiError> {
    let secret = reached.read(headers, Cookie::Login);
    let hash = secret.and_then(secret_hash);
    let (Some(secret), Some(hash)) = (secret, hash) else {
        return Ok(Err(LoginError::LoginExpired));
    };
    let keys = LoginKeys::derive(secret);
    if !query
        .state
        .as_deref()
        .is_some_and(|state| keys.is_state(state))
    {
        return Ok(Err(LoginError::LoginExpired));
    }
    // It is used up before the provider is asked: what happens then, nobody goes on with it.
    let mut tx = services.db.write().await?;
    let login = store::take_login(&mut tx, &hash, services.clock.now()).await?;
    tx.commit().await?;
    let Some(login) = login else {
        return Ok(Err(LoginError::LoginExpired));
    };
    let (None, Some(code)) = (&query.error, &query.code) else {
        return Ok(Err(LoginError::LoginRefused));
    };
    let issuer = login.issuer.as_str();
    let Some(provider) = services.access_tokens.login_client(issuer) else {
        return Ok(Err(LoginError::UnknownIssuer));
    };
    let back = Return {
        code,
        issuer: query.iss.as_deref(),
        redirect_uri: &redirect_uri(reached),
    };
    let tokens = match provider.redeem(&keys, back, services.clock.now()).await {
        Ok(tokens) => tokens,
        Err(refusal) => return Ok(Err(LoginError::of(refusal, issuer))),
    };
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let secret = sessions::begin_by_login(services, &mut tx, issuer, &tokens, now).await?;
    tx.commit().await?;
    Ok(Ok((secret, login.return_to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_comes_back_to_a_place_in_the_console_only() {
        let encoded = |text: &str| {
            let place = place(Some(text.to_owned()));
            utf8_percent_encode(&place, FRAGMENT).to_string()
        };
        assert_eq!(
            encoded("/surveys/1?tab=results&q=ü"),
            "/surveys/1?tab=results&q=%C3%BC"
        );
        assert_eq!(encoded("/a b\r\n#x"), "/a%20b%0D%0A%23x");
        assert_eq!(encoded("//evil.example"), "//evil.example");
        for nowhere in ["", "login=abc", "https://evil.example", "#/x"] {
            assert_eq!(encoded(nowhere), "", "{nowhere}");
        }
        assert_eq!(encoded(&format!("/{}", "x".repeat(MOST_RETURN))), "");
    }
}
