//! Apple's service.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use nudge_platform::clock::Clock;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Value, json};

use super::Authority;
use super::server::{self, Log, Received, Reply, Running};

/// What Apple calls the key.
pub const KEY_ID: &str = "ABC123DEFG";
/// Whose key it is.
pub const TEAM_ID: &str = "DEF123GHIJ";
/// Another key that the service knows.
pub const OTHER_KEY_ID: &str = "GHI456JKLM";
/// Another team that the service knows.
pub const OTHER_TEAM_ID: &str = "JKL456MNOP";
/// The app.
pub const BUNDLE_ID: &str = "com.example.shop";
/// A token is good for an hour, in seconds.
const LIFETIME: i64 = 3_600;

/// A service that checks each request as Apple does.
pub struct Apns {
    /// Where it is.
    pub url: String,
    environment: &'static str,
    p8: String,
    log: Log,
    refusals: Refusals,
    _running: Running,
}

/// Device tokens that are answered otherwise.
type Refusals = Arc<Mutex<HashMap<String, (u16, &'static str)>>>;

/// Who signed the token of each connection's first request.
type Firsts = Mutex<HashMap<usize, Signer>>;

/// Who signed a token.
#[derive(Clone, Debug)]
struct Signer {
    key_id: String,
    team_id: String,
}

impl Apns {
    pub(super) async fn start(
        authority: &Authority,
        clock: &Clock,
        environment: &'static str,
    ) -> Self {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
        let (listener, address) = server::listen().await;
        let (log, refusals) = (Log::default(), Refusals::default());
        let (asked, refused, clock) = (log.clone(), Arc::clone(&refusals), clock.clone());
        let public = DecodingKey::from_ec_der(key.public_key_raw());
        let firsts = Firsts::default();
        let answer = move |request: &Received| {
            if let Some(reply) = asked.take_next() {
                return reply;
            }
            answer(request, &public, clock.now().seconds(), &firsts, &refused)
        };
        let running = server::serve(listener, authority, log.clone(), Arc::new(answer));
        Self {
            url: format!("https://{address}"),
            environment,
            p8: key.serialize_pem(),
            log,
            refusals,
            _running: running,
        }
    }

    /// The body that uploads a credential which the service takes.
    pub fn credential(&self) -> Value {
        self.credential_of(KEY_ID, TEAM_ID)
    }

    /// The same of a key and a team that the service knows.
    pub fn credential_of(&self, key_id: &str, team_id: &str) -> Value {
        json!({
            "platform": "ios", "p8": self.p8, "keyId": key_id, "teamId": team_id, "bundleId": BUNDLE_ID,
            "environment": self.environment,
        })
    }

    /// The parts of a registration whose token the service takes; tokens of different numbers differ.
    pub fn token(&self, number: u32) -> Value {
        json!({"provider": "apns", "token": device_token(number), "environment": self.environment})
    }

    /// Refuses a device's token from now on, such as with 410 and `Unregistered`.
    pub fn refuse(&self, device_token: &str, status: u16, reason: &'static str) {
        server::lock(&self.refusals).insert(device_token.to_owned(), (status, reason));
    }

    /// Answers the next request so, whatever it is.
    pub fn answer_next(&self, status: u16, reason: &str) {
        self.reply_next(refusal(status, reason));
    }

    /// Answers the next request so, whatever it is.
    pub fn reply_next(&self, reply: Reply) {
        self.log.answer_next(reply);
    }

    /// What arrived.
    pub fn received(&self) -> Vec<Received> {
        self.log.received()
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.log.connections()
    }
}

/// A device token of 64 digits.
pub fn device_token(number: u32) -> String {
    format!("{number:064x}")
}

fn refusal(status: u16, reason: &str) -> Reply {
    Reply::json(status, &json!({"reason": reason}))
}

fn answer(
    request: &Received,
    public: &DecodingKey,
    now: i64,
    firsts: &Firsts,
    refused: &Refusals,
) -> Reply {
    let Some(device) = request.path.strip_prefix("/3/device/") else {
        return refusal(404, "BadPath");
    };
    if request.method != hyper::Method::POST {
        return refusal(405, "MethodNotAllowed");
    }
    let signer = check_token(request, public, now);
    if let Err((status, reason)) = signer.and_then(|signer| check_first(request, &signer, firsts)) {
        return refusal(status, reason);
    }
    if let Some(reason) = check_headers(request) {
        return refusal(400, reason);
    }
    if request.body.len() > 4_096 {
        return refusal(413, "PayloadTooLarge");
    }
    if request.json()["aps"]["alert"].is_null() {
        return refusal(400, "PayloadEmpty");
    }
    if let Some((status, reason)) = server::lock(refused).get(device) {
        return refusal(*status, reason);
    }
    Reply {
        status: 200,
        ..Reply::default()
    }
    .with("apns-id", request.header("apns-id"))
}

fn check_token(
    request: &Received,
    public: &DecodingKey,
    now: i64,
) -> Result<Signer, (u16, &'static str)> {
    let bearer = request.header("authorization").strip_prefix("Bearer ");
    let token = bearer.ok_or((403, "MissingProviderToken"))?;
    let mut validation = Validation::new(Algorithm::ES256);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    let opened = jsonwebtoken::decode::<Value>(token, public, &validation);
    let opened = opened.map_err(|_| (403, "InvalidProviderToken"))?;
    let signer = Signer {
        key_id: opened.header.kid.unwrap_or_default(),
        team_id: opened.claims["iss"].as_str().unwrap_or_default().to_owned(),
    };
    if ![KEY_ID, OTHER_KEY_ID].contains(&signer.key_id.as_str())
        || ![TEAM_ID, OTHER_TEAM_ID].contains(&signer.team_id.as_str())
    {
        return Err((403, "InvalidProviderToken"));
    }
    let issued_at = opened.claims["iat"].as_i64().unwrap_or(0);
    if !(now - LIFETIME..=now).contains(&issued_at) {
        return Err((403, "ExpiredProviderToken"));
    }
    Ok(signer)
}

/// On a connection Apple takes the tokens of one team and of one key.
fn check_first(
    request: &Received,
    signer: &Signer,
    firsts: &Firsts,
) -> Result<(), (u16, &'static str)> {
    let mut firsts = server::lock(firsts);
    let first = firsts
        .entry(request.connection)
        .or_insert_with(|| signer.clone());
    if first.team_id != signer.team_id {
        return Err((403, "InvalidProviderToken"));
    }
    if first.key_id != signer.key_id {
        return Err((403, "UnrelatedKeyIdInToken"));
    }
    Ok(())
}

fn check_headers(request: &Received) -> Option<&'static str> {
    if request.header("apns-topic") != BUNDLE_ID {
        return Some("DeviceTokenNotForTopic");
    }
    if request.header("apns-push-type") != "alert" {
        return Some("InvalidPushType");
    }
    if !["", "5", "10"].contains(&request.header("apns-priority")) {
        return Some("BadPriority");
    }
    if request.header("apns-collapse-id").len() > 64 {
        return Some("BadCollapseId");
    }
    if uuid::Uuid::parse_str(request.header("apns-id")).is_err() {
        return Some("BadMessageId");
    }
    let expiration = request.header("apns-expiration");
    if !expiration.is_empty() && expiration.parse::<i64>().is_err() {
        return Some("BadExpirationDate");
    }
    None
}
