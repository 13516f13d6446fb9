//! Google's service: access tokens, and messages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use nudge_platform::clock::Clock;
use serde_json::{Value, json};

use super::Authority;
use super::server::{self, Hold, Log, Received, Reply, Running};

/// The Firebase project.
pub const PROJECT: &str = "shop-1234";
/// The service account.
pub const ACCOUNT: &str = "sender@shop-1234.iam.gserviceaccount.com";
/// What Google calls its key.
pub const KEY_ID: &str = "0123456789abcdef";
const SCOPE: &str = "https://www.googleapis.com/auth/firebase.messaging";
/// How long access tokens are good for, in seconds.
const LIFETIME: i64 = 3_600;

/// A service that checks each request as Google does.
pub struct Fcm {
    /// Where it is.
    pub url: String,
    private_key: String,
    messages: Log,
    grants: Log,
    state: Arc<Mutex<State>>,
    _running: Running,
}

#[derive(Default)]
struct State {
    /// Access tokens and when they end, in seconds.
    granted: HashMap<String, i64>,
    /// Registration tokens that are answered otherwise.
    refusals: HashMap<String, Reply>,
    /// How many access tokens there ever were.
    grants: usize,
    sent: usize,
}

impl Fcm {
    pub(super) async fn start(authority: &Authority, clock: &Clock) -> Self {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).expect("a key");
        let der: Pkcs8V1Der<'_> = pair.as_der().expect("a key in PKCS #8");
        let public = DecodingKey::from_rsa_der(pair.public_key().as_ref());
        let (listener, address) = server::listen().await;
        let url = format!("https://{address}");
        let (messages, grants) = (Log::default(), Log::default());
        let state = Arc::<Mutex<State>>::default();
        let service = Service {
            tokens: format!("{url}/token"),
            public,
            clock: clock.clone(),
            messages: messages.clone(),
            grants: grants.clone(),
            state: Arc::clone(&state),
        };
        let answer = move |request: &Received| service.answer(request);
        let running = server::serve(listener, authority, Log::default(), Arc::new(answer));
        Self {
            url,
            private_key: pem(der.as_ref()),
            messages,
            grants,
            state,
            _running: running,
        }
    }

    /// The body that uploads a credential which the service takes.
    pub fn credential(&self) -> Value {
        json!({"platform": "android", "serviceAccount": {
            "type": "service_account", "project_id": PROJECT, "private_key_id": KEY_ID,
            "private_key": self.private_key, "client_email": ACCOUNT, "client_id": "1",
            "token_uri": format!("{}/token", self.url),
        }})
    }

    /// The parts of a registration whose token the service takes.
    pub fn token(&self, number: u32) -> Value {
        json!({"provider": "fcm", "token": registration_token(number)})
    }

    /// Refuses a registration token from now on, such as with 404 and `UNREGISTERED`.
    pub fn refuse(&self, token: &str, status: u16, code: &str) {
        let mut state = server::lock(&self.state);
        state
            .refusals
            .insert(token.to_owned(), refusal(status, code));
    }

    /// Answers the next message so, whatever it is.
    pub fn answer_next(&self, status: u16, code: &str) {
        self.reply_next(refusal(status, code));
    }

    /// Answers the next message so, whatever it is.
    pub fn reply_next(&self, reply: Reply) {
        self.messages.answer_next(reply);
    }

    /// Answers the next request for an access token so, such as with 400 and `invalid_grant`.
    pub fn refuse_grant(&self, status: u16, error: &str) {
        self.refuse_grant_saying(status, error, "refused by the test");
    }

    /// Answers the next request for an access token so, with a description.
    pub fn refuse_grant_saying(&self, status: u16, error: &str, description: &str) {
        let body = json!({"error": error, "error_description": description});
        self.grants.answer_next(Reply::json(status, &body));
    }

    /// Answers the next request for an access token with 503, once it is let go.
    pub fn hold_grant(&self, hold: &Hold) {
        self.grants
            .answer_next(Reply::json(503, &json!({})).held(hold));
    }

    /// Takes all access tokens back.
    pub fn revoke(&self) {
        server::lock(&self.state).granted.clear();
    }

    /// Messages that arrived.
    pub fn received(&self) -> Vec<Received> {
        self.messages.received()
    }

    /// Requests for access tokens that arrived.
    pub fn granted(&self) -> Vec<Received> {
        self.grants.received()
    }
}

/// A registration token.
pub fn registration_token(number: u32) -> String {
    format!("dGVzdA{number}:APA91b-{number:032x}")
}

fn pem(der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")
}

/// Google's error model.
fn refusal(status: u16, code: &str) -> Reply {
    let name = match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    let mut error = json!({"code": status, "message": "refused", "status": name});
    if !code.is_empty() {
        let detail = json!({"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code});
        if let Some(error) = error.as_object_mut() {
            error.insert("details".to_owned(), json!([detail]));
        }
    }
    Reply::json(status, &json!({"error": error}))
}

struct Service {
    tokens: String,
    public: DecodingKey,
    clock: Clock,
    messages: Log,
    grants: Log,
    state: Arc<Mutex<State>>,
}

impl Service {
    fn answer(&self, request: &Received) -> Reply {
        if request.path == "/token" {
            self.grants.note(request);
            return self
                .grants
                .take_next()
                .unwrap_or_else(|| self.grant(request));
        }
        self.messages.note(request);
        self.messages
            .take_next()
            .unwrap_or_else(|| self.send(request))
    }

    fn grant(&self, request: &Received) -> Reply {
        let refused = |error: &str| Reply::json(400, &json!({"error": error}));
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let Ok(form) = reqwest::Url::parse(&format!("form:?{body}")) else {
            return refused("invalid_request");
        };
        let form: HashMap<String, String> = form.query_pairs().into_owned().collect();
        let grant = form.get("grant_type").map(String::as_str);
        if grant != Some("urn:ietf:params:oauth:grant-type:jwt-bearer") {
            return refused("unsupported_grant_type");
        }
        let assertion = form.get("assertion").cloned().unwrap_or_default();
        let mut validation = Validation::new(Algorithm::RS256);
        validation.validate_exp = false;
        validation.set_audience(&[&self.tokens]);
        let opened = jsonwebtoken::decode::<Value>(&assertion, &self.public, &validation);
        let Ok(opened) = opened else {
            return refused("invalid_grant");
        };
        let (claims, now) = (opened.claims, self.clock.now().seconds());
        let (from, to) = (claims["iat"].as_i64(), claims["exp"].as_i64());
        let in_time = from
            .zip(to)
            .is_some_and(|(from, to)| from <= now && now < to && to - from <= LIFETIME);
        let known = claims["iss"] == ACCOUNT && opened.header.kid.as_deref() == Some(KEY_ID);
        if !in_time || !known || claims["scope"] != SCOPE {
            return refused("invalid_grant");
        }
        let mut state = server::lock(&self.state);
        state.grants += 1;
        let token = format!("ya29.{}", state.grants);
        state.granted.insert(token.clone(), now + LIFETIME);
        let body = json!({"access_token": token, "expires_in": LIFETIME, "token_type": "Bearer"});
        Reply::json(200, &body)
    }

    fn send(&self, request: &Received) -> Reply {
        let mut state = server::lock(&self.state);
        let bearer = request.header("authorization").strip_prefix("Bearer ");
        let until = bearer.and_then(|token| state.granted.get(token));
        if until.is_none_or(|until| *until <= self.clock.now().seconds()) {
            return refusal(401, "");
        }
        if request.path != format!("/v1/projects/{PROJECT}/messages:send") {
            return refusal(403, "");
        }
        let body = request.json();
        let (token, title) = (
            body["message"]["token"].as_str(),
            body["message"]["notification"]["title"].as_str(),
        );
        let (Some(token), Some(_)) = (token, title) else {
            return refusal(400, "INVALID_ARGUMENT");
        };
        if let Some(reply) = state.refusals.get(token) {
            return reply.clone();
        }
        state.sent += 1;
        let name = format!("projects/{PROJECT}/messages/{}", state.sent);
        Reply::json(200, &json!({"name": name}))
    }
}
