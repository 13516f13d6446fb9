//! One message: from its JSON to what it says.

use std::collections::BTreeMap;
use std::sync::Arc;

use nudge_campaigns::targeting::is_zone;
use nudge_db::Timestamp;
use nudge_platform::field_error::FieldError;
use nudge_platform::{clock, id, secrets};
use nudge_records::events::{MOST_PROPERTIES, Origin, Source};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use uuid::Uuid;

use super::MessageKind;
use super::name::snake_case;
use crate::event::skew;

/// What is wrong with a message.
pub(super) type MessageError = FieldError;

/// The longest text of a context that is kept, in characters, as in ingest.
const MOST_CONTEXT_TEXT: usize = 256;
/// Where an event says what its name was before it became snake case.
pub(crate) const ORIGINAL_NAME: &str = "$original_name";
/// Clients that send what is refused again for ever, and nothing else meanwhile, by `context.library.name`: `RudderStack`'s
/// first ones for Android and iOS.
const NEVER_GIVING_UP: [&str; 2] = ["com.rudderstack.android.sdk.core", "rudder-ios-library"];

/// A message as it comes. Each field may be of any type, so that what is wrong with one message is found of that one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    message_id: Option<&'a RawValue>,
    #[serde(borrow)]
    user_id: Option<&'a RawValue>,
    #[serde(borrow)]
    anonymous_id: Option<&'a RawValue>,
    #[serde(borrow)]
    previous_id: Option<&'a RawValue>,
    #[serde(borrow)]
    group_id: Option<&'a RawValue>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    category: Option<&'a RawValue>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    original_timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    sent_at: Option<&'a RawValue>,
    #[serde(borrow)]
    properties: Option<&'a RawValue>,
    #[serde(borrow)]
    traits: Option<&'a RawValue>,
    #[serde(borrow)]
    context: Option<&'a RawValue>,
}

/// Parts of a context that are read. What can't be is left out.
#[derive(Default, Deserialize)]
struct Context<'a> {
    #[serde(borrow)]
    app: Option<&'a RawValue>,
    #[serde(borrow)]
    device: Option<&'a RawValue>,
    #[serde(borrow)]
    os: Option<&'a RawValue>,
    #[serde(borrow)]
    library: Option<&'a RawValue>,
    #[serde(borrow)]
    locale: Option<&'a RawValue>,
    #[serde(borrow)]
    timezone: Option<&'a RawValue>,
    #[serde(borrow)]
    page: Option<&'a RawValue>,
    #[serde(borrow)]
    traits: Option<&'a RawValue>,
}

/// A part of a context.
#[derive(Default, Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    version: Option<&'a RawValue>,
}

/// What a request says for all its messages. It is read once: its text may be long, and its messages many.
#[derive(Clone, Debug)]
pub(super) struct Common<'a> {
    pub(super) app_id: Uuid,
    /// Where they come from.
    pub(super) origin: Arc<Origin>,
    pub(super) sent_at: Option<&'a RawValue>,
    pub(super) received_at: Timestamp,
}

/// A message that can be read.
#[derive(Debug)]
pub(super) struct Message<'a> {
    /// Its place in the request.
    pub(super) index: usize,
    /// The JSON pointer to it.
    pub(super) pointer: String,
    /// How long its text is.
    pub(super) bytes: usize,
    pub(super) user_id: Option<String>,
    pub(super) anonymous_id: Option<String>,
    /// The id that it is known by when it is sent again.
    pub(super) id: Option<Uuid>,
    /// When, as the client says it.
    pub(super) timestamp: String,
    /// Whether that is the message's own word.
    pub(super) is_timed: bool,
    /// When the client sent it.
    pub(super) sent_at: Option<Timestamp>,
    /// Where it comes from, as it says itself.
    pub(super) own_origin: Origin,
    /// Where it comes from, as its request says of all.
    common_origin: Arc<Origin>,
    pub(super) content: Content<'a>,
}

/// What a message says.
#[derive(Debug)]
pub(super) enum Content<'a> {
    /// An event: its name and properties.
    Event(Option<String>, Option<Box<RawValue>>),
    /// Traits of a person, of which the later ones win.
    Traits(Vec<&'a RawValue>),
}

impl<'a> Message<'a> {
    /// Reads a message. `kind`: that of its path.
    pub(super) fn read(
        raw: &'a RawValue,
        kind: MessageKind,
        (index, pointer): (usize, String),
        common: &Common<'a>,
    ) -> Result<Self, MessageError> {
        let wrong = |member: &str, detail: &str| {
            MessageError::new(format!("{pointer}{member}"), "invalid", detail)
        };
        if !raw.get().starts_with('{') {
            return Err(wrong("", "a message is an object"));
        }
        let wire: Wire<'_> =
            serde_json::from_str(raw.get()).map_err(|_| wrong("", "a member is there twice"))?;
        let kind = match kind {
            MessageKind::Batch => text(wire.kind)
                .and_then(|name| MessageKind::parse(&name))
                .filter(|kind| *kind != MessageKind::Batch)
                .ok_or_else(|| {
                    let kinds = "type is track, identify, page, screen, alias or group";
                    wrong("/type", kinds)
                })?,
            kind => kind,
        };
        let context: Context<'_> = part(wire.context);
        let sent_text = text(common.sent_at).or_else(|| text(wire.sent_at));
        let sent_at = sent_text.as_deref().and_then(clock::from_text);
        let time = time(&wire, skew(sent_at, common.received_at) != 0);
        let now = || clock::to_text(common.received_at);
        let is_timed = time.is_some();
        let id = match text(wire.message_id) {
            Some(text) => Some(message_id(common.app_id, &text)),
            // An id that followed from when it came would be that of its like beside it, and another one the next time.
            None if !is_timed && sent_text.is_none() => Some(id::new(common.received_at)),
            None => None,
        };
        let message = Self {
            index,
            bytes: raw.get().len(),
            user_id: text(wire.user_id),
            anonymous_id: text(wire.anonymous_id),
            id,
            timestamp: time.or(sent_text).unwrap_or_else(now),
            is_timed,
            sent_at,
            own_origin: origin(&context, common.origin.source),
            common_origin: Arc::clone(&common.origin),
            content: content(&wire, kind, &context)
                .ok_or_else(|| wrong("/properties", "properties and traits are objects"))?,
            pointer,
        };
        Ok(message)
    }

    /// What it says of where it comes from, or else what its request says.
    fn said(&self, one: fn(&Origin) -> Option<&str>) -> Option<&str> {
        one(&self.own_origin).or_else(|| one(&self.common_origin))
    }

    /// The platform that it comes from.
    pub(super) fn platform(&self) -> Option<&str> {
        self.said(|origin| origin.platform.as_deref())
    }

    /// Where it comes from: its request says it where the message does not.
    pub(super) fn origin(&self) -> Origin {
        let said = |one: fn(&Origin) -> Option<&str>| self.said(one).map(str::to_owned);
        Origin {
            platform: said(|origin| origin.platform.as_deref()),
            app_version: said(|origin| origin.app_version.as_deref()),
            locale: said(|origin| origin.locale.as_deref()),
            timezone: said(|origin| origin.timezone.as_deref()),
            device_id: said(|origin| origin.device_id.as_deref()),
            sdk_version: said(|origin| origin.sdk_version.as_deref()),
            session_id: None,
            source: self.own_origin.source,
        }
    }

    /// Whether its client sends what is refused again for ever.
    pub(super) fn never_gives_up(&self) -> bool {
        let library = self.said(|origin| origin.sdk_version.as_deref());
        let name = library.and_then(|library| library.split('/').next());
        name.is_some_and(|name| NEVER_GIVING_UP.contains(&name))
    }

    /// Whether it or its client says when it is of.
    pub(super) fn is_dated(&self) -> bool {
        self.is_timed || self.sent_at.is_some()
    }

    /// When it is of by the server's clock, if it or its client says so.
    pub(super) fn moment(&self, received_at: Timestamp) -> Option<Timestamp> {
        let said = clock::from_text(&self.timestamp).filter(|_| self.is_dated())?;
        let skew = skew(self.sent_at, received_at);
        Some(Timestamp(said.0.saturating_add(skew)))
    }
}

/// When a message says that it is of. A `timestamp` beside an `originalTimestamp` is that one put right by somebody on the way:
/// where the client's clock is off, the original is what is still to be shifted.
fn time(wire: &Wire<'_>, is_off: bool) -> Option<String> {
    let (time, original) = (text(wire.timestamp), text(wire.original_timestamp));
    let readable = |text: &String| clock::from_text(text).is_some();
    match original {
        Some(original) if time.is_none() || is_off && readable(&original) => Some(original),
        _ => time,
    }
}

/// The id of the event, or of the update, that a message with an id becomes.
fn message_id(app_id: Uuid, text: &str) -> Uuid {
    Uuid::parse_str(text).unwrap_or_else(|_| {
        let hash = secrets::hash(&[b"message", app_id.as_bytes(), text.as_bytes()]);
        id::derived(Timestamp::default(), &hash)
    })
}

/// A text, or a number as one; nothing for an empty one.
fn text(raw: Option<&RawValue>) -> Option<String> {
    let raw = raw?.get();
    let text = match raw.as_bytes().first()? {
        b'"' => serde_json::from_str(raw).ok()?,
        b'-' | b'0'..=b'9' => raw.to_owned(),
        _ => return None,
    };
    Some(text).filter(|text: &String| !text.is_empty())
}

/// An object, or what it is without one.
fn part<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    let object = raw.filter(|raw| raw.get().starts_with('{'));
    let read = object.and_then(|raw| serde_json::from_str(raw.get()).ok());
    read.unwrap_or_default()
}

/// What a request says about where all its messages come from.
pub(super) fn common_origin(context: Option<&RawValue>, source: Source) -> Origin {
    origin(&part(context), source)
}

/// What a context says about where messages come from.
fn origin(context: &Context<'_>, source: Source) -> Origin {
    let kept = |text: String| {
        let is_short = text.chars().count() <= MOST_CONTEXT_TEXT;
        (is_short && !text.chars().any(char::is_control)).then_some(text)
    };
    let library: Part<'_> = part(context.library);
    let library = text(library.name).map(|name| match text(library.version) {
        Some(version) => format!("{name}/{version}"),
        None => name,
    });
    Origin {
        platform: platform(context),
        app_version: text(part::<Part<'_>>(context.app).version).and_then(kept),
        locale: text(context.locale).and_then(kept),
        timezone: text(context.timezone)
            .and_then(kept)
            .filter(|name| is_zone(name)),
        device_id: text(part::<Part<'_>>(context.device).id).and_then(kept),
        sdk_version: library.and_then(kept),
        session_id: None,
        source,
    }
}

/// The platform, by the device and the system, or `web` where there is a page.
fn platform(context: &Context<'_>) -> Option<String> {
    let named = [
        part::<Part<'_>>(context.device).kind,
        part::<Part<'_>>(context.os).name,
    ];
    let named = named.into_iter().find_map(|raw| {
        let name = text(raw)?.to_lowercase();
        match name.as_str() {
            "ios" | "ipados" => Some("ios"),
            "android" => Some("android"),
            _ => None,
        }
    });
    let page = context.page.is_some_and(|page| page.get().starts_with('{'));
    named.or(page.then_some("web")).map(str::to_owned)
}

fn content<'a>(wire: &Wire<'a>, kind: MessageKind, context: &Context<'a>) -> Option<Content<'a>> {
    let named = |name: &str, raw| Some((name.to_owned(), to_raw_value(&text(raw)?).ok()?));
    let event = |name: &str, properties, more: &[Option<(String, Box<RawValue>)>]| {
        let properties = with(properties, more.iter().flatten())?;
        Some(Content::Event(Some(name.to_owned()), properties))
    };
    match kind {
        MessageKind::Identify => {
            let traits = [context.traits, wire.traits];
            Some(Content::Traits(traits.into_iter().flatten().collect()))
        }
        MessageKind::Page | MessageKind::Screen => {
            let name = match kind {
                MessageKind::Page => "page_viewed",
                _ => "screen_viewed",
            };
            let more = [named("name", wire.name), named("category", wire.category)];
            event(name, wire.properties, &more)
        }
        MessageKind::Alias => {
            let more = [named("previousId", wire.previous_id)];
            event("alias", wire.properties, &more)
        }
        MessageKind::Group => {
            let more = [named("groupId", wire.group_id)];
            event("group", wire.traits, &more)
        }
        MessageKind::Track | MessageKind::Batch => {
            let Some(original) = text(wire.event) else {
                return Some(Content::Event(None, None));
            };
            let name = snake_case(&original);
            let is_other = name != original;
            let more = is_other.then(|| to_raw_value(&original).ok()).flatten();
            let more = more.map(|original| (ORIGINAL_NAME.to_owned(), original));
            event(&name, wire.properties, &[more])
        }
    }
}

/// Properties with some more that they do not have, as far as there is room. None: they are no object.
#[expect(clippy::option_option, reason = "outside: read; inside: there")]
fn with<'m>(
    properties: Option<&RawValue>,
    more: impl Iterator<Item = &'m (String, Box<RawValue>)>,
) -> Option<Option<Box<RawValue>>> {
    let mut more = more.peekable();
    if more.peek().is_none() {
        return Some(properties.map(ToOwned::to_owned));
    }
    let mut members: BTreeMap<String, Box<RawValue>> = match properties.map(RawValue::get) {
        None | Some("null") => BTreeMap::new(),
        Some(text) => serde_json::from_str(text).ok()?,
    };
    for (key, value) in more {
        if members.len() < MOST_PROPERTIES {
            members.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    to_raw_value(&members).ok().map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn common() -> Common<'static> {
        Common {
            app_id: Uuid::nil(),
            origin: Arc::new(common_origin(None, Source::Server)),
            sent_at: None,
            received_at: clock::from_text("2026-03-01T12:00:00Z").unwrap(),
        }
    }

    fn read(kind: MessageKind, message: &serde_json::Value, look: impl FnOnce(Message<'_>)) {
        let raw = RawValue::from_string(message.to_string()).unwrap();
        look(Message::read(&raw, kind, (0, String::new()), &common()).unwrap());
    }

    fn event(kind: MessageKind, message: &serde_json::Value) -> (String, serde_json::Value) {
        let mut found = None;
        read(kind, message, |message| {
            let Content::Event(name, properties) = message.content else {
                panic!("no event");
            };
            let properties =
                properties.map_or(json!(null), |raw| serde_json::from_str(raw.get()).unwrap());
            found = Some((name.unwrap_or_default(), properties));
        });
        found.unwrap()
    }

    #[test]
    fn messages_become_events() {
        let original = json!({"total": 3, "$original_name": "Order Completed"});
        let order = json!({"event": "Order Completed", "properties": {"total": 3}});
        assert_eq!(
            event(MessageKind::Track, &order),
            ("order_completed".to_owned(), original)
        );
        let plain = json!({"event": "opened", "properties": {"a": 1}});
        assert_eq!(
            event(MessageKind::Track, &plain),
            ("opened".to_owned(), json!({"a": 1}))
        );
        let page =
            json!({"name": "Home", "category": "Docs", "properties": {"name": "own", "path": "/"}});
        let expected = json!({"name": "own", "category": "Docs", "path": "/"});
        assert_eq!(
            event(MessageKind::Page, &page),
            ("page_viewed".to_owned(), expected)
        );
        let screen = (MessageKind::Screen, json!({"name": "Cart"}));
        let expected = ("screen_viewed".to_owned(), json!({"name": "Cart"}));
        assert_eq!(event(screen.0, &screen.1), expected);
        let group = json!({"groupId": "g", "traits": {"plan": "pro"}});
        let expected = ("group".to_owned(), json!({"groupId": "g", "plan": "pro"}));
        assert_eq!(event(MessageKind::Group, &group), expected);
        let alias = json!({"previousId": "old", "userId": "new"});
        assert_eq!(
            event(MessageKind::Alias, &alias),
            ("alias".to_owned(), json!({"previousId": "old"}))
        );
        assert_eq!(
            event(MessageKind::Track, &json!({})),
            (String::new(), json!(null))
        );
    }

    #[test]
    fn ids_are_texts_whatever_they_came_as() {
        let message = json!({"userId": 17, "anonymousId": "", "messageId": "node-1", "event": "x"});
        read(MessageKind::Track, &message, |message| {
            assert_eq!(message.user_id.as_deref(), Some("17"));
            assert_eq!(message.anonymous_id, None);
            assert_eq!(message.id, Some(message_id(Uuid::nil(), "node-1")));
            assert!(!message.is_timed);
        });
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        assert_eq!(message_id(Uuid::nil(), id).to_string(), id);
        assert_ne!(message_id(Uuid::nil(), "a"), message_id(Uuid::nil(), "b"));
        assert_ne!(message_id(Uuid::nil(), "a"), message_id(Uuid::max(), "a"));
    }

    #[test]
    fn what_was_put_right_is_not_shifted_again() {
        let (right, original) = ("2026-03-01T11:59:50Z", "2026-03-01T10:59:50Z");
        let (hour_ago, now) = ("2026-03-01T11:00:00Z", "2026-03-01T12:00:00Z");
        for (time, first, sent, expected) in [
            (Some(right), Some(original), Some(hour_ago), right),
            (Some(right), Some(original), Some(now), right),
            (Some(right), Some(original), None, right),
            (Some(right), Some("then"), Some(now), right),
            (Some(original), None, Some(hour_ago), right),
            (None, Some(original), Some(hour_ago), right),
            (None, Some(original), Some(now), original),
        ] {
            let message = json!({"event": "x", "timestamp": time, "originalTimestamp": first, "sentAt": sent});
            read(MessageKind::Track, &message, |message| {
                let moment = message.moment(common().received_at);
                let expected = clock::from_text(expected);
                assert_eq!(moment, expected, "{time:?} {first:?} {sent:?}");
            });
        }
    }

    #[test]
    fn contexts_say_where_messages_come_from() {
        let context = json!({
            "app": {"version": "1.2"}, "device": {"id": "d", "type": "iOS"}, "os": {"name": "iPadOS"},
            "library": {"name": "analytics-node", "version": "3.1.0"}, "locale": "de-AT", "timezone": "Europe/Vienna",
        });
        let message = json!({"event": "x", "context": context});
        read(MessageKind::Track, &message, |message| {
            let origin = message.origin();
            assert_eq!(origin.platform.as_deref(), Some("ios"));
            assert_eq!(origin.app_version.as_deref(), Some("1.2"));
            assert_eq!(origin.device_id.as_deref(), Some("d"));
            assert_eq!(origin.sdk_version.as_deref(), Some("analytics-node/3.1.0"));
            assert_eq!(origin.locale.as_deref(), Some("de-AT"));
            assert_eq!(origin.timezone.as_deref(), Some("Europe/Vienna"));
        });
        let odd = json!({"event": "x", "context": {"app": 7, "page": {"url": "/"}, "locale": "x".repeat(300)}});
        read(MessageKind::Track, &odd, |message| {
            assert_eq!(message.origin().platform.as_deref(), Some("web"));
            assert_eq!(message.origin().locale, None);
        });
    }

    #[test]
    fn a_request_says_where_messages_come_from_that_do_not() {
        let context = json!({"locale": "fr", "app": {"version": "1.2"}, "library": {"name": "x"}});
        let context = RawValue::from_string(context.to_string()).unwrap();
        let common = Common {
            origin: Arc::new(common_origin(Some(&context), Source::Sdk)),
            ..common()
        };
        let message = json!({"event": "x", "context": {"locale": "de", "os": {"name": "iOS"}}});
        let raw = RawValue::from_string(message.to_string()).unwrap();
        let read = Message::read(&raw, MessageKind::Track, (0, String::new()), &common).unwrap();
        let expected = Origin {
            platform: Some("ios".to_owned()),
            locale: Some("de".to_owned()),
            app_version: Some("1.2".to_owned()),
            sdk_version: Some("x".to_owned()),
            ..Origin::default()
        };
        assert_eq!(read.origin(), expected);
    }

    #[test]
    fn clients_that_never_give_up_are_known_by_their_library() {
        let android = json!({"name": "com.rudderstack.android.sdk.core", "version": "1.20.1"});
        let similar = json!({"name": "rudder-ios-library-2", "version": "1"});
        for (library, expected) in [
            (android, true),
            (json!({"name": "rudder-ios-library"}), true),
            (similar, false),
            (json!({"name": "analytics-node", "version": "3"}), false),
            (json!(null), false),
        ] {
            let message = json!({"event": "x", "context": {"library": library}});
            read(MessageKind::Track, &message, |message| {
                assert_eq!(message.never_gives_up(), expected, "{library}");
            });
        }
    }

    #[test]
    fn what_says_neither_its_id_nor_a_time_is_known_by_no_other() {
        let id = |message: serde_json::Value| {
            let mut found = None;
            read(MessageKind::Track, &message, |message| found = message.id);
            found
        };
        let untimed = || json!({"event": "x"});
        assert!(id(untimed()).is_some());
        assert_ne!(id(untimed()), id(untimed()));
        for member in ["timestamp", "originalTimestamp", "sentAt"] {
            let message = json!({"event": "x", member: "2026-03-01T12:00:00Z"});
            assert_eq!(id(message), None, "{member}");
        }
    }

    #[test]
    fn what_is_added_takes_no_room_from_the_clients_own() {
        let message = |count: usize| {
            let members = (0..count).map(|number| (format!("k{number}"), json!(number)));
            let members: serde_json::Map<String, serde_json::Value> = members.collect();
            json!({"event": "Order Completed", "name": "Home", "category": "Docs", "properties": members})
        };
        let keys = |kind, count| {
            let (_, properties) = event(kind, &message(count));
            let members = properties.as_object().unwrap();
            let own = members.keys().filter(|key| key.starts_with('k')).count();
            assert_eq!(own, count);
            members.len()
        };
        let most = MOST_PROPERTIES;
        assert_eq!(keys(MessageKind::Track, most), most);
        assert_eq!(keys(MessageKind::Track, most - 1), most);
        assert_eq!(keys(MessageKind::Page, most), most);
        assert_eq!(keys(MessageKind::Page, most - 1), most);
        assert_eq!(keys(MessageKind::Page, most - 2), most);
    }
}
