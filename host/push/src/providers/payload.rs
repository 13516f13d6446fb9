//! What providers are given to deliver: a pure function of the message, so that retries send the same bytes.

use nudge_campaigns::push::message::Message;
use nudge_campaigns::push::options::Priority;
use nudge_platform::secrets;
use nudge_records::deliveries::provider::Provider;
use serde_json::{Map, Value, json};
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
        Provider::Apns => apns(message).to_string().len(),
        Provider::Fcm => Value::Object(fcm(message)).to_string().len(),
        Provider::Webpush => web(message).to_string().len() + WEBPUSH_OVERHEAD,
    }
}

/// What the SDK reads.
fn for_sdk(message: &Message) -> Value {
    let mut nudge = json!({
        "deliveryId": message.delivery_id,
        "openAction": message.open_action,
    });
    set(&mut nudge, "test", message.test.then_some(true));
    set(&mut nudge, "imageUrl", message.options.image_url.as_deref());
    nudge
}

/// The body of a request to APNs.
pub(super) fn apns(message: &Message) -> Value {
    let options = &message.options;
    let mut aps = json!({"alert": {"title": message.title, "body": message.body}});
    set(&mut aps, "sound", options.sound.as_deref());
    set(&mut aps, "badge", options.badge);
    // Lets the app's extension fetch the image before the message is shown.
    set(
        &mut aps,
        "mutable-content",
        options.image_url.as_ref().map(|_| 1),
    );
    json!({"aps": aps, "nudge": for_sdk(message)})
}

/// FCM's `message`, but for its `token`.
pub(super) fn fcm(message: &Message) -> Map<String, Value> {
    let options = &message.options;
    let mut notification = json!({"title": message.title, "body": message.body});
    set(&mut notification, "image", options.image_url.as_deref());
    // A message that comes twice is shown once.
    let mut shown = json!({"tag": collapse_key(message)});
    set(&mut shown, "sound", options.sound.as_deref());
    set(&mut shown, "notification_count", options.badge);
    let priority = match options.priority.unwrap_or_default() {
        Priority::High => "HIGH",
        Priority::Normal => "NORMAL",
    };
    let mut android = json!({"priority": priority, "notification": shown});
    set(
        &mut android,
        "collapse_key",
        options.collapse_key.as_deref(),
    );
    let ttl = options.ttl_seconds.map(|seconds| format!("{seconds}s"));
    set(&mut android, "ttl", ttl);
    let mut whole = Map::new();
    whole.insert("notification".to_owned(), notification);
    // FCM's data has texts for values.
    let data = json!({"nudge": for_sdk(message).to_string()});
    whole.insert("data".to_owned(), data);
    whole.insert("android".to_owned(), android);
    whole
}

/// What a browser's service worker is given.
pub(super) fn web(message: &Message) -> Value {
    let options = &message.options;
    let mut shown = json!({
        "title": message.title,
        "body": message.body,
        "tag": collapse_key(message),
        "nudge": for_sdk(message),
    });
    set(&mut shown, "image", options.image_url.as_deref());
    set(&mut shown, "badge", options.badge);
    set(&mut shown, "sound", options.sound.as_deref());
    shown
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

fn set(object: &mut Value, key: &str, value: Option<impl Into<Value>>) {
    if let (Some(object), Some(value)) = (object.as_object_mut(), value) {
        object.insert(key.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use nudge_db::Timestamp;

    use super::*;
    use nudge_campaigns::push::options::Options;

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
        let apns = apns(&message);
        assert_eq!(
            apns["aps"],
            json!({"alert": {"title": "Hello", "body": "There"}, "sound": "default", "badge": 3, "mutable-content": 1})
        );
        assert_eq!(apns["nudge"]["openAction"]["url"], "https://shop.example");
        let fcm = Value::Object(fcm(&message));
        assert_eq!(
            fcm["android"],
            json!({"priority": "NORMAL", "collapse_key": "cart", "ttl": "60s",
                "notification": {"tag": "cart", "sound": "default", "notification_count": 3}})
        );
        assert_eq!(fcm["notification"]["image"], "https://shop.example/a.png");
        let data: Value = serde_json::from_str(fcm["data"]["nudge"].as_str().unwrap()).unwrap();
        assert_eq!(data, apns["nudge"]);
        assert_eq!(web(&message)["nudge"], apns["nudge"]);
        assert!(apns["nudge"].get("test").is_none());
    }

    #[test]
    fn what_is_sent_twice_is_the_same() {
        let once = message(Options::default());
        assert_eq!(apns(&once).to_string(), apns(&once.clone()).to_string());
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
    }
}
