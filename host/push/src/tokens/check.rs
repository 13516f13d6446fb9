//! What a provider's tokens look like, so that nothing else is ever asked to deliver to.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nudge_http::ApiError;
use nudge_platform::outbound::Guard;
use nudge_records::deliveries::provider::Provider;

use super::NewToken;
use super::http::{Permission, RegisterRequest, SubscriptionRequest};
use crate::providers::{Address, Subscription, encryption};

/// The longest device id, in characters, as in ingest.
const MOST_DEVICE_ID: usize = 256;
/// Hexadecimal digits of an APNs token: 64 as yet, but Apple asks not to count on it.
const APNS_DIGITS: std::ops::RangeInclusive<usize> = 16..=400;
/// The longest FCM token, in characters.
const MOST_FCM: usize = 4_096;
/// Bytes of a subscription's authentication secret (RFC 8291, section 3.2).
const AUTH_BYTES: usize = 16;

/// A registration as an SDK sends it, checked.
///
/// Of a browser's endpoint only what is written is checked: scheme, host, port, and addresses that are written as such.
/// Its name is looked up when a message goes there, and at no other time: a look-up here would tell everybody who has
/// a write key which names exist where only this server looks, by its answer or by the time that it takes.
pub(super) fn check(request: RegisterRequest, guard: &Guard) -> Result<NewToken, ApiError> {
    let granted = request.permission.is_none_or(Permission::is_granted);
    let length = request.device_id.chars().count();
    if !(1..=MOST_DEVICE_ID).contains(&length) || request.device_id.chars().any(char::is_control) {
        let detail =
            format!("deviceId has 1 to {MOST_DEVICE_ID} characters and no control characters");
        return Err(ApiError::field("/deviceId", "invalid", detail));
    }
    let address = match (request.provider, request.token, request.subscription) {
        (_, None, None) if !granted => None,
        (Provider::Webpush, None, Some(subscription)) => {
            Some(Address::Subscription(checked(&subscription, guard)?))
        }
        (Provider::Apns, Some(token), None) => Some(Address::Token(apns(&token)?)),
        (Provider::Fcm, Some(token), None) => Some(Address::Token(fcm(token)?)),
        (Provider::Webpush, ..) => {
            let detail = "webpush takes a subscription and no token";
            return Err(ApiError::field("/subscription", "required", detail));
        }
        (Provider::Apns | Provider::Fcm, ..) => {
            let detail = "apns and fcm take a token and no subscription";
            return Err(ApiError::field("/token", "required", detail));
        }
    };
    Ok(NewToken {
        device_id: request.device_id,
        provider: request.provider,
        environment: request.environment.unwrap_or_default(),
        address,
        granted,
    })
}

fn apns(token: &str) -> Result<String, ApiError> {
    let is_hex = token.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex && APNS_DIGITS.contains(&token.len()) && token.len().is_multiple_of(2) {
        // One spelling, so that the same token is known again.
        return Ok(token.to_ascii_lowercase());
    }
    let (least, most) = (APNS_DIGITS.start(), APNS_DIGITS.end());
    let detail = format!("an APNs token has {least} to {most} hexadecimal digits, two a byte");
    Err(ApiError::field("/token", "invalid", detail))
}

fn fcm(token: String) -> Result<String, ApiError> {
    let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain && (1..=MOST_FCM).contains(&token.len()) {
        return Ok(token);
    }
    let detail = format!("an FCM token has 1 to {MOST_FCM} visible ASCII characters");
    Err(ApiError::field("/token", "invalid", detail))
}

fn checked(subscription: &SubscriptionRequest, guard: &Guard) -> Result<Subscription, ApiError> {
    let decode = |text: &str| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
    let p256dh = decode(&subscription.keys.p256dh)
        .filter(|key| encryption::is_point(key))
        .ok_or_else(|| {
            let detail = "p256dh is a point of P-256, uncompressed, in URL-safe Base64";
            ApiError::field("/subscription/keys/p256dh", "invalid", detail)
        })?;
    let auth = decode(&subscription.keys.auth)
        .filter(|auth| auth.len() == AUTH_BYTES)
        .ok_or_else(|| {
            let detail = format!("auth is {AUTH_BYTES} bytes in URL-safe Base64");
            ApiError::field("/subscription/keys/auth", "invalid", detail)
        })?;
    let url = guard.check(&subscription.endpoint).map_err(|refusal| {
        ApiError::field(
            "/subscription/endpoint",
            refusal.code(),
            refusal.to_string(),
        )
    })?;
    Ok(Subscription {
        endpoint: url.into(),
        p256dh,
        auth,
    })
}
