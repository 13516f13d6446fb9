//! A browser's service, and browsers that read what it is given. Their keys are derived with another library than the
//! server's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hkdf::Hkdf;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use nudge_platform::clock::Clock;
use serde_json::{Value, json};
use sha2::Sha256;

use super::Authority;
use super::server::{self, Log, Received, Reply, Running};

/// VAPID tokens are good for a day at the most, in seconds (RFC 8292, section 2).
const LIFETIME: i64 = 24 * 3_600;

/// A service that checks each request as browsers' services do.
pub struct Webpush {
    /// Where it is.
    pub url: String,
    log: Log,
    refusals: Refusals,
    _running: Running,
}

/// Paths that are answered otherwise.
type Refusals = Arc<Mutex<HashMap<String, u16>>>;

/// A browser with a subscription.
pub struct Browser {
    path: String,
    endpoint: String,
    secret: PrivateKey,
    auth: [u8; 16],
}

impl Webpush {
    pub(super) async fn start(authority: &Authority, clock: &Clock) -> Self {
        let (listener, address) = server::listen().await;
        let url = format!("https://{address}");
        let (log, refusals) = (Log::default(), Refusals::default());
        let (asked, refused, clock) = (log.clone(), Arc::clone(&refusals), clock.clone());
        let answer = move |request: &Received| {
            if let Some(reply) = asked.take_next() {
                return reply;
            }
            answer(request, clock.now().seconds(), &refused)
        };
        let running = server::serve(listener, authority, log.clone(), Arc::new(answer));
        Self {
            url,
            log,
            refusals,
            _running: running,
        }
    }

    /// A browser that subscribes; those of different numbers differ.
    pub fn browser(&self, number: u8) -> Browser {
        let path = format!("/push/{number}");
        Browser {
            endpoint: format!("{}{path}", self.url),
            path,
            secret: PrivateKey::from_private_key(&ECDH_P256, &[number.max(1); 32]).expect("a key"),
            auth: [number; 16],
        }
    }

    /// Refuses a browser's messages from now on, such as with 410.
    pub fn refuse(&self, browser: &Browser, status: u16) {
        server::lock(&self.refusals).insert(browser.path.clone(), status);
    }

    /// Answers the next request so, whatever it is.
    pub fn reply_next(&self, reply: Reply) {
        self.log.answer_next(reply);
    }

    /// What arrived.
    pub fn received(&self) -> Vec<Received> {
        self.log.received()
    }

    /// What a browser was sent, decrypted.
    pub fn read(&self, browser: &Browser) -> Vec<Value> {
        let all = self.received();
        let own = all.iter().filter(|request| request.path == browser.path);
        own.map(|request| {
            let plain = browser
                .decrypt(&request.body)
                .expect("a message that opens");
            serde_json::from_slice(&plain).expect("a message in JSON")
        })
        .collect()
    }
}

impl Browser {
    /// The parts of a registration.
    pub fn token(&self) -> Value {
        let public = self.secret.compute_public_key().expect("a point");
        json!({"provider": "webpush", "subscription": {
            "endpoint": self.endpoint, "expirationTime": null,
            "keys": {
                "p256dh": URL_SAFE_NO_PAD.encode(&public),
                "auth": URL_SAFE_NO_PAD.encode(self.auth),
            },
        }})
    }

    /// Opens one record of `aes128gcm` (RFC 8188) for this browser (RFC 8291).
    fn decrypt(&self, body: &[u8]) -> Option<Vec<u8>> {
        let (salt, rest) = body.split_at_checked(16)?;
        let (size, rest) = rest.split_at_checked(4)?;
        let (length, rest) = rest.split_at_checked(1)?;
        let (theirs, record) = rest.split_at_checked(usize::from(*length.first()?))?;
        if usize::try_from(u32::from_be_bytes(size.try_into().ok()?)).ok()? < record.len() {
            return None;
        }
        let own = self.secret.compute_public_key().ok()?;
        let info = [b"WebPush: info\0", own.as_ref(), theirs].concat();
        let peer = UnparsedPublicKey::new(&ECDH_P256, theirs);
        let mut material = [0; 32];
        agree(&self.secret, peer, (), |shared| {
            Hkdf::<Sha256>::new(Some(&self.auth), shared)
                .expand(&info, &mut material)
                .map_err(drop)
        })
        .ok()?;
        let derived = Hkdf::<Sha256>::new(Some(salt), &material);
        let (mut key, mut nonce) = ([0; 16], [0; 12]);
        derived
            .expand(b"Content-Encoding: aes128gcm\0", &mut key)
            .ok()?;
        derived
            .expand(b"Content-Encoding: nonce\0", &mut nonce)
            .ok()?;
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).ok()?);
        let mut opened = record.to_vec();
        let opened = key.open_in_place(Nonce::from(&nonce), Aad::empty(), &mut opened);
        let mut plain = opened.ok()?.to_vec();
        while plain.last() == Some(&0) {
            plain.pop();
        }
        (plain.pop() == Some(2)).then_some(plain)
    }
}

fn answer(request: &Received, now: i64, refused: &Refusals) -> Reply {
    let status = |status| Reply {
        status,
        ..Reply::default()
    };
    if !request.path.starts_with("/push/") || request.method != hyper::Method::POST {
        return status(404);
    }
    let known = request.header("content-encoding") == "aes128gcm"
        && request.header("ttl").parse::<u32>().is_ok()
        && request.header("topic").len() <= 32
        && ["very-low", "low", "normal", "high"].contains(&request.header("urgency"));
    if !known {
        return status(400);
    }
    if !is_signed(request, now) {
        return status(403);
    }
    if request.body.len() > 4_096 {
        return status(413);
    }
    if let Some(refused) = server::lock(refused).get(&request.path) {
        return status(*refused);
    }
    let id = format!("{}/messages/{}", request.origin, request.body.len());
    status(201).with("location", &id)
}

/// Whether the request's VAPID token is signed by the key that it names, for here and now (RFC 8292).
fn is_signed(request: &Received, now: i64) -> bool {
    let text = request.header("authorization").strip_prefix("vapid ");
    let parameters: HashMap<&str, &str> = text
        .unwrap_or_default()
        .split(',')
        .filter_map(|part| part.trim().split_once('='))
        .collect();
    let (Some(token), Some(key)) = (parameters.get("t"), parameters.get("k")) else {
        return false;
    };
    let Ok(key) = URL_SAFE_NO_PAD.decode(key) else {
        return false;
    };
    let mut validation = Validation::new(Algorithm::ES256);
    validation.validate_exp = false;
    validation.set_audience(&[&request.origin]);
    let public = DecodingKey::from_ec_der(&key);
    let opened = jsonwebtoken::decode::<Value>(token, &public, &validation);
    opened.is_ok_and(|opened| {
        let expires = opened.claims["exp"].as_i64().unwrap_or(0);
        now < expires && expires <= now + LIFETIME
    })
}
