//! An OpenID provider that says whatever a test wants it to, and keys that sign tokens.

use std::sync::{Arc, Mutex};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair,
};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A key that signs tokens.
#[derive(Clone)]
pub(crate) struct Signer {
    key: Arc<Key>,
    /// Its public half.
    pub(crate) jwk: Value,
}

enum Key {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Signer {
    /// A key for RS256.
    pub(crate) fn rsa(kid: &str) -> Self {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let n = encode(
            pair.public_key()
                .modulus()
                .big_endian_without_leading_zero(),
        );
        let e = encode(
            pair.public_key()
                .exponent()
                .big_endian_without_leading_zero(),
        );
        let jwk = json!({"kty": "RSA", "use": "sig", "alg": "RS256", "kid": kid, "n": n, "e": e});
        Self::new(Key::Rsa(pair), jwk)
    }

    /// A key for ES256.
    pub(crate) fn ec(kid: &str) -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let point = pair.public_key().as_ref();
        let (x, y) = (encode(&point[1..33]), encode(&point[33..]));
        // What it is for is said or not (RFC 7517, section 4.2).
        let jwk = json!({"kty": "EC", "crv": "P-256", "alg": "ES256", "kid": kid, "x": x, "y": y});
        Self::new(Key::Ec(pair), jwk)
    }

    /// A key for `EdDSA`.
    pub(crate) fn ed(kid: &str) -> Self {
        let pair = Ed25519KeyPair::generate().unwrap();
        let x = encode(pair.public_key().as_ref());
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": kid, "x": x});
        Self::new(Key::Ed(pair), jwk)
    }

    fn new(key: Key, jwk: Value) -> Self {
        Self {
            key: Arc::new(key),
            jwk,
        }
    }

    /// Signs claims.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        self.sign_as(
            &json!({"typ": "JWT", "alg": self.jwk["alg"], "kid": self.jwk["kid"]}),
            claims,
        )
    }

    /// Signs claims under a header that need not be true.
    pub(crate) fn sign_as(&self, header: &Value, claims: &Value) -> String {
        let unsigned = unsigned(header, claims);
        let message = unsigned.as_bytes();
        let random = SystemRandom::new();
        let signature = match &*self.key {
            Key::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .unwrap();
                signature
            }
            Key::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Key::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        };
        format!("{unsigned}.{}", encode(&signature))
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |part: &Value| encode(part.to_string().as_bytes());
    format!("{}.{}", part(header), part(claims))
}

/// A token with any signature.
pub(crate) fn token(header: &Value, claims: &Value, signature: &[u8]) -> String {
    format!("{}.{}", unsigned(header, claims), encode(signature))
}

/// A token signed with a shared secret.
pub(crate) fn hmac(header: &Value, claims: &Value, secret: &[u8]) -> String {
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret);
    let signature = aws_lc_rs::hmac::sign(&key, unsigned(header, claims).as_bytes());
    token(header, claims, signature.as_ref())
}

/// The provider; it ends when it is dropped.
pub(crate) struct FakeIssuer {
    /// Its identifier.
    pub(crate) url: String,
    said: Said,
    // Ends with it.
    _tasks: JoinSet<()>,
}

type Said = Arc<Mutex<Documents>>;

#[derive(Default)]
struct Documents {
    discovery: Value,
    keys: Value,
    status: Option<u16>,
    asked: usize,
    /// What the token endpoint answers, and has been asked: the body, and `Authorization`.
    tokens: Value,
    token_status: u16,
    token_requests: Vec<(String, String)>,
}

impl FakeIssuer {
    /// Starts a provider without keys.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let said = Said::default();
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/jwks", get(keys))
            .route("/token", post(tokens))
            .with_state(Arc::clone(&said));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        let issuer = Self {
            url,
            said,
            _tasks: tasks,
        };
        issuer.publish(&[]);
        issuer
    }

    /// Publishes the keys of signers, and no others.
    pub(crate) fn publish(&self, signers: &[Signer]) {
        let keys: Vec<&Value> = signers.iter().map(|signer| &signer.jwk).collect();
        self.publish_documents(&json!({}), &json!({"keys": keys}));
    }

    /// Publishes a key set, and the discovery document with changes.
    pub(crate) fn publish_documents(&self, discovery: &Value, keys: &Value) {
        let mut document = json!({"issuer": self.url, "jwks_uri": format!("{}/jwks", self.url)});
        nudge_platform::json::merge::apply(&mut document, discovery.clone());
        let mut said = self.said.lock().unwrap();
        said.discovery = document;
        said.keys = keys.clone();
    }

    /// Answers with this status and nothing else from now on.
    pub(crate) fn fail(&self, status: Option<u16>) {
        self.said.lock().unwrap().status = status;
    }

    /// Publishes the keys of signers, and where people sign in, with changes.
    pub(crate) fn publish_login(&self, signers: &[Signer], change: &Value) {
        let keys: Vec<&Value> = signers.iter().map(|signer| &signer.jwk).collect();
        let mut document = json!({
            "authorization_endpoint": format!("{}/auth", self.url),
            "token_endpoint": format!("{}/token", self.url),
        });
        nudge_platform::json::merge::apply(&mut document, change.clone());
        self.publish_documents(&document, &json!({"keys": keys}));
    }

    /// Answers this at the token endpoint from now on.
    pub(crate) fn answer_tokens(&self, status: u16, body: &Value) {
        let mut said = self.said.lock().unwrap();
        (said.token_status, said.tokens) = (status, body.clone());
    }

    /// What the token endpoint was asked: bodies, and `Authorization`.
    pub(crate) fn token_requests(&self) -> Vec<(String, String)> {
        self.said.lock().unwrap().token_requests.clone()
    }

    /// How often the keys were asked for.
    pub(crate) fn asked(&self) -> usize {
        self.said.lock().unwrap().asked
    }
}

async fn discovery(State(said): State<Said>) -> Result<Json<Value>, StatusCode> {
    let said = said.lock().unwrap();
    match said.status {
        Some(status) => Err(StatusCode::from_u16(status).unwrap()),
        None => Ok(Json(said.discovery.clone())),
    }
}

async fn keys(State(said): State<Said>) -> Result<Json<Value>, StatusCode> {
    let mut said = said.lock().unwrap();
    said.asked += 1;
    match said.status {
        Some(status) => Err(StatusCode::from_u16(status).unwrap()),
        None => Ok(Json(said.keys.clone())),
    }
}

async fn tokens(
    State(said): State<Said>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, Json<Value>) {
    let authorization = headers.get("authorization");
    let authorization = authorization.map_or("", |value| value.to_str().unwrap());
    let answer = {
        let mut said = said.lock().unwrap();
        said.token_requests.push((body, authorization.to_owned()));
        let status = StatusCode::from_u16(said.token_status).unwrap();
        (status, Json(said.tokens.clone()))
    };
    // Long enough for others to come meanwhile.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    answer
}
