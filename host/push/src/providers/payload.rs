//! What providers are given to deliver: a pure function of the message, so that retries send the same bytes (contract 9).

use std::io::{self, Write};

use nudge_campaigns::push::message::Message;
use nudge_campaigns::push::options::Priority;
use nudge_platform::secrets;
use nudge_records::deliveries::provider::Provider;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::Value;
use uuid::Uuid;

/// The largest payload (contract 9), in bytes.
pub const MOST_PAYLOAD_BYTES: usize = 4_096;
/// What encryption adds to a browser's payload, in bytes: a header with salt, record size and key, a delimiter,
/// and a tag (RFC 8188, section 2).
pub(super) const WEBPUSH_OVERHEAD: usize = 86 + 1 + 16;
/// The most bytes of `apns-collapse-id`.
const MOST_COLLAPSE_ID: usize = 64;

/// How many bytes of [`MOST_PAYLOAD_BYTES`] a message takes at a provider: APNs' JSON, FCM's message without its
/// token, a browser's payload once it is encrypted.
pub fn payload_bytes(provider: Provider, message: &Message) -> usize {
    match provider {
        Provider::Apns => length(&apns(message)),
        Provider::Fcm => length(&fcm(message)),
        Provider::Webpush => length(&web(message)).saturating_add(WEBPUSH_OVERHEAD),
    }
}

/// How many bytes of JSON a value takes. What can't be written fits nowhere.
fn length(value: &impl Serialize) -> usize {
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).map_or(usize::MAX, |()| counter.0)
}

/// Counts what is written.
struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What the SDK reads.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ForSdk<'m> {
    delivery_id: Uuid,
    open_action: &'m Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_url: Option<&'m str>,
}

impl<'m> ForSdk<'m> {
    fn of(message: &'m Message) -> Self {
        Self {
            delivery_id: message.delivery_id,
            open_action: &message.open_action,
            test: message.test.then_some(true),
            image_url: message.options.image_url.as_deref(),
        }
    }
}

/// A value as a text of JSON.
fn as_text<S: Serializer>(value: &impl Serialize, serializer: S) -> Result<S::Ok, S::Error> {
    let text = serde_json::to_string(value).map_err(S::Error::custom)?;
    serializer.serialize_str(&text)
}

/// The body of a request to APNs.
#[derive(Serialize)]
pub(super) struct ForApple<'m> {
    aps: Aps<'m>,
    nudge: ForSdk<'m>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Aps<'m> {
    alert: Alert<'m>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sound: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    badge: Option<u32>,
    /// Lets the app's extension fetch the image before the message is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    mutable_content: Option<u8>,
}

#[derive(Serialize)]
struct Alert<'m> {
    title: &'m str,
    body: &'m str,
}

/// What APNs is given.
pub(super) fn apns(message: &Message) -> ForApple<'_> {
    let options = &message.options;
    ForApple {
        aps: Aps {
            alert: Alert {
                title: &message.title,
                body: &message.body,
            },
            sound: options.sound.as_deref(),
            badge: options.badge,
            mutable_content: options.image_url.as_ref().map(|_| 1),
        },
        nudge: ForSdk::of(message),
    }
}

/// FCM's `message`.
#[derive(Serialize)]
pub(super) struct ForGoogle<'m> {
    notification: Notification<'m>,
    data: Data<'m>,
    android: Android<'m>,
    /// The device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<&'m str>,
}

#[derive(Serialize)]
struct Notification<'m> {
    title: &'m str,
    body: &'m str,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<&'m str>,
}

/// FCM's data has texts for values.
#[derive(Serialize)]
struct Data<'m> {
    #[serde(serialize_with = "as_text")]
    nudge: ForSdk<'m>,
}

#[derive(Serialize)]
struct Android<'m> {
    priority: &'static str,
    notification: Shown<'m>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collapse_key: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<String>,
}

/// How Android shows it.
#[derive(Serialize)]
struct Shown<'m> {
    /// A message that comes twice is shown once.
    tag: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sound: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notification_count: Option<u32>,
}

/// What FCM is given, but for the `token`.
pub(super) fn fcm(message: &Message) -> ForGoogle<'_> {
    let options = &message.options;
    ForGoogle {
        notification: Notification {
            title: &message.title,
            body: &message.body,
            image: options.image_url.as_deref(),
        },
        data: Data {
            nudge: ForSdk::of(message),
        },
        android: Android {
            priority: match options.priority.unwrap_or_default() {
                Priority::High => "HIGH",
                Priority::Normal => "NORMAL",
            },
            notification: Shown {
                tag: collapse_key(message),
                sound: options.sound.as_deref(),
                notification_count: options.badge,
            },
            collapse_key: options.collapse_key.as_deref(),
            ttl: options.ttl_seconds.map(|seconds| format!("{seconds}s")),
        },
        token: None,
    }
}

/// What a browser's service worker is given.
#[derive(Serialize)]
pub(super) struct ForBrowser<'m> {
    title: &'m str,
    body: &'m str,
    tag: String,
    nudge: ForSdk<'m>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    badge: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sound: Option<&'m str>,
}

/// What a browser is given, before it is encrypted.
pub(super) fn web(message: &Message) -> ForBrowser<'_> {
    let options = &message.options;
    ForBrowser {
        title: &message.title,
        body: &message.body,
        tag: collapse_key(message),
        nudge: ForSdk::of(message),
        image: options.image_url.as_deref(),
        badge: options.badge,
        sound: options.sound.as_deref(),
    }
}

/// What a later message takes the place of. A delivery that is sent twice takes its own.
pub(super) fn collapse_key(message: &Message) -> String {
    match &message.options.collapse_key {
        Some(key) => key.clone(),
        None => message.delivery_id.to_string(),
    }
}

/// The `apns-collapse-id`: the key, or its digest where that is too long.
pub(super) fn collapse_id(message: &Message) -> String {
    let key = collapse_key(message);
    let fits = key.len() <= MOST_COLLAPSE_ID && key.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { key } else { digest(&key) }
}

/// The `Topic` of Web Push: at most 32 characters of URL-safe Base64 (RFC 8030, section 5.4).
pub(super) fn topic(message: &Message) -> String {
    let mut topic = digest(&collapse_key(message));
    topic.truncate(32);
    topic
}

/// The `apns-id`, by which APNs knows a message that is sent twice.
pub(super) fn apns_id(message: &Message, device_id: &str) -> Uuid {
    let hash = secrets::hash(&[message.delivery_id.as_bytes(), device_id.as_bytes()]);
    let bytes = hash.first_chunk().copied().unwrap_or_default();
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// 43 characters of URL-safe Base64.
fn digest(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(secrets::hash(&[text.as_bytes()]))
}

#[cfg(test)]
mod tests {
    use nudge_db::Timestamp;
    use serde_json::json;

    use super::*;
    use nudge_campaigns::push::options::Options;

    fn value(payload: impl Serialize) -> Value {
        serde_json::to_value(payload).unwrap()
    }

    fn message(options: Options) -> Message {
        Message {
            delivery_id: Uuid::from_u128(7),
            created_at: Timestamp(0),
            test: false,
            title: "Hello".to_owned(),
            body: "There".to_owned(),
            open_action: json!({"action": "url", "url": "https://shop.example"}),
            options,
        }
    }

    fn everything() -> Options {
        Options {
            collapse_key: Some("cart".to_owned()),
            ttl_seconds: Some(60),
            priority: Some(Priority::Normal),
            sound: Some("default".to_owned()),
            badge: Some(3),
            image_url: Some("https://shop.example/a.png".to_owned()),
        }
    }

    #[test]
    fn each_provider_gets_what_it_calls_things() {
        let message = message(everything());
        let apns = value(apns(&message));
        assert_eq!(
            apns["aps"],
            json!({"alert": {"title": "Hello", "body": "There"}, "sound": "default", "badge": 3, "mutable-content": 1})
        );
        assert_eq!(apns["nudge"]["openAction"]["url"], "https://shop.example");
        let fcm = value(fcm(&message));
        assert_eq!(
            fcm["android"],
            json!({"priority": "NORMAL", "collapse_key": "cart", "ttl": "60s",
                "notification": {"tag": "cart", "sound": "default", "notification_count": 3}})
        );
        assert_eq!(fcm["notification"]["image"], "https://shop.example/a.png");
        let data: Value = serde_json::from_str(fcm["data"]["nudge"].as_str().unwrap()).unwrap();
        assert_eq!(data, apns["nudge"]);
        assert_eq!(value(web(&message))["nudge"], apns["nudge"]);
        assert!(apns["nudge"].get("test").is_none());
    }

    #[test]
    fn what_is_sent_twice_is_the_same() {
        let once = message(Options::default());
        assert_eq!(value(apns(&once)), value(apns(&once.clone())));
        assert_eq!(collapse_id(&once), once.delivery_id.to_string());
        assert_eq!(apns_id(&once, "a"), apns_id(&once, "a"));
        assert_ne!(apns_id(&once, "a"), apns_id(&once, "b"));
    }

    #[test]
    fn keys_fit_where_they_go() {
        let long = |length: usize| {
            message(Options {
                collapse_key: Some("k".repeat(length)),
                ..Options::default()
            })
        };
        assert_eq!(collapse_id(&long(64)), "k".repeat(64));
        assert_eq!(collapse_id(&long(65)).len(), 43);
        assert_ne!(collapse_id(&long(65)), collapse_id(&long(66)));
        assert_eq!(topic(&long(1)).len(), 32);
    }

    #[test]
    fn the_size_is_that_of_the_bytes() {
        let message = message(Options::default());
        for provider in [Provider::Apns, Provider::Fcm, Provider::Webpush] {
            let before = payload_bytes(provider, &message);
            let longer = Message {
                body: format!("{}é", message.body),
                ..message.clone()
            };
            assert_eq!(payload_bytes(provider, &longer), before + 2);
        }
        for (provider, payload) in [
            (Provider::Apns, value(apns(&message))),
            (Provider::Fcm, value(fcm(&message))),
        ] {
            let bytes = payload.to_string().len();
            assert_eq!(payload_bytes(provider, &message), bytes);
        }
    }
}
