//! The ingest request as it comes over the wire. Parsed once, borrowing from the body.

use std::borrow::Cow;
use std::fmt;

use nudge_campaigns::targeting::is_zone;
use nudge_db::Timestamp;
use nudge_http::body::{self, Few};
use nudge_http::{ApiError, Code};
use nudge_platform::clock;
use nudge_platform::field_error::FieldError;
use nudge_platform::json::Text;
use nudge_records::events::{MOST_BYTES, MOST_EVENTS, Origin, Source};
use nudge_records::subjects::current::check_anonymous_id;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::event::EventRejection;
use super::rejected::Said;

/// A delivery names at most this many events (specification 8).
const MOST_DELIVERY_IDS: usize = 20;
/// The longest screen name, in characters (specification 8).
const MOST_SCREEN_NAME: usize = 120;
/// The longest text of a context field, in characters.
const MOST_CONTEXT_TEXT: usize = 256;

/// An ingest request but for its events.
#[derive(Debug)]
pub(super) struct Body<'a> {
    pub context: Option<Context<'a>>,
    pub user_id: Option<Text<'a>>,
    pub delivery: Option<&'a RawValue>,
}

/// The events of a request.
#[derive(Debug)]
pub(super) enum Events<'a> {
    /// Read together with the request, which saves going through them once more: all fields are of their types.
    Read(Vec<EventBody<'a>>),
    /// To be read one by one, so that what is wrong with one is found of that one.
    Apart(Vec<&'a RawValue>),
}

/// A request with events of whichever form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "E: Deserialize<'de>"))]
struct Wire<'a, E> {
    #[serde(borrow)]
    context: Option<Context<'a>>,
    #[serde(borrow)]
    user_id: Option<Text<'a>>,
    events: Option<Few<E, MOST_EVENTS>>,
    #[serde(borrow)]
    delivery: Option<&'a RawValue>,
}

/// What a request says about all its events.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Context<'a> {
    #[serde(borrow)]
    pub anonymous_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub external_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub platform: Option<Text<'a>>,
    #[serde(borrow)]
    pub app_version: Option<Text<'a>>,
    #[serde(borrow)]
    pub locale: Option<Text<'a>>,
    #[serde(borrow)]
    pub timezone: Option<Text<'a>>,
    #[serde(borrow)]
    pub device_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub sdk_version: Option<Text<'a>>,
    /// What the SDK calls its session. Sessions are told apart by silence alone (specification 6.1), so that nothing
    /// follows from it.
    #[serde(borrow)]
    pub session_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub sent_at: Option<Text<'a>>,
}

/// A request for immediate evaluation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delivery {
    pub event_ids: Few<Uuid, MOST_DELIVERY_IDS>,
    pub screen_name: Option<String>,
    pub client_id: Option<Uuid>,
}

/// An event's fields.
#[derive(Debug)]
pub(super) struct EventBody<'a> {
    pub event_id: Field<'a>,
    pub name: Field<'a>,
    pub timestamp: Field<'a>,
    pub anonymous_id: Field<'a>,
    pub external_id: Field<'a>,
    pub properties: Option<&'a RawValue>,
}

/// A field that must be a text if it is there.
#[derive(Debug)]
pub(super) enum Field<'a> {
    /// It is missing or null.
    Missing,
    /// It is a text.
    Text(Cow<'a, str>),
    /// It is anything else.
    Other,
}

/// An event whose fields have their types.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypedEvent<'a> {
    #[serde(borrow)]
    event_id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    anonymous_id: Option<Text<'a>>,
    #[serde(borrow)]
    external_id: Option<Text<'a>>,
    #[serde(borrow)]
    properties: Option<&'a RawValue>,
}

/// An event whose fields may have any type.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UntypedEvent<'a> {
    #[serde(borrow)]
    event_id: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    anonymous_id: Option<&'a RawValue>,
    #[serde(borrow)]
    external_id: Option<&'a RawValue>,
    #[serde(borrow)]
    properties: Option<&'a RawValue>,
}

impl<'a> Events<'a> {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Read(events) => events.len(),
            Self::Apart(events) => events.len(),
        }
    }

    /// Whether one may have an external id.
    pub(super) fn may_name_external(&self) -> bool {
        match self {
            Self::Read(events) => events
                .iter()
                .any(|event| !matches!(event.external_id, Field::Missing)),
            // With a backslash its key may be written in another way.
            Self::Apart(events) => events.iter().any(|event| {
                let text = event.get();
                text.contains("\"externalId\"") || text.contains('\\')
            }),
        }
    }

    /// The place of the first that is no object.
    fn first_misshapen(&self) -> Option<usize> {
        match self {
            Self::Read(_) => None,
            Self::Apart(events) => events
                .iter()
                .position(|event| !event.get().starts_with('{')),
        }
    }

    /// Each event's fields, or why it has none.
    pub(super) fn each(self) -> impl Iterator<Item = Result<EventBody<'a>, Unread>> {
        let (read, apart) = match self {
            Self::Read(events) => (events, Vec::new()),
            Self::Apart(events) => (Vec::new(), events),
        };
        let read = read.into_iter().map(Ok);
        read.chain(apart.into_iter().map(EventBody::read))
    }
}

/// Why something is no event, and what it says.
pub(super) type Unread = Box<(EventRejection, Said)>;

impl<'a> EventBody<'a> {
    /// Reads one event; or says why it can't be one, and what it says.
    pub(super) fn read(raw: &'a RawValue) -> Result<Self, Unread> {
        let event: UntypedEvent<'_> = serde_json::from_str(raw.get()).map_err(|error| {
            let refusal = (None, "invalid_properties", error.to_string());
            Box::new((refusal, Said::default()))
        })?;
        let event = Self {
            event_id: Field::of(event.event_id),
            name: Field::of(event.name),
            timestamp: Field::of(event.timestamp),
            anonymous_id: Field::of(event.anonymous_id),
            external_id: Field::of(event.external_id),
            properties: event.properties,
        };
        if raw.get().len() > MOST_BYTES {
            let message = format!("an event has at most {MOST_BYTES} bytes");
            let refusal = (event.id(), "event_too_large", message);
            // So much is not kept.
            let named = Self {
                properties: None,
                ..event
            };
            return Err(Box::new((refusal, Said::by(&named))));
        }
        Ok(event)
    }

    /// Its id, if it has one.
    pub(super) fn id(&self) -> Option<Uuid> {
        Uuid::parse_str(self.event_id.text()?).ok()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for EventBody<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = TypedEvent<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an event")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                TypedEvent::deserialize(MapAccessDeserializer::new(map))
            }
        }
        // Not as a struct, which could be written as an array of its fields.
        let event = deserializer.deserialize_map(Object)?;
        let field =
            |text: Option<Text<'de>>| text.map_or(Field::Missing, |Text(text)| Field::Text(text));
        Ok(Self {
            event_id: field(event.event_id),
            name: field(event.name),
            timestamp: field(event.timestamp),
            anonymous_id: field(event.anonymous_id),
            external_id: field(event.external_id),
            properties: event.properties,
        })
    }
}

impl<'a> Field<'a> {
    /// A field of whichever type; a text is borrowed where it has no escapes.
    fn of(raw: Option<&'a RawValue>) -> Self {
        let Some(raw) = raw else {
            return Self::Missing;
        };
        let inner = raw.get().strip_prefix('"');
        match inner.and_then(|text| text.strip_suffix('"')) {
            None => Self::Other,
            Some(text) if text.contains('\\') => serde_json::from_str(raw.get())
                .map_or(Self::Other, |text| Self::Text(Cow::Owned(text))),
            Some(text) => Self::Text(Cow::Borrowed(text)),
        }
    }

    /// The text, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Missing | Self::Other => None,
        }
    }
}

impl<'a> Body<'a> {
    /// Parses a request; what breaks the contract as a whole is refused here.
    pub(super) fn parse(text: &'a str) -> Result<(Self, Events<'a>), ApiError> {
        // No event of so short a request is too large.
        let short = text.len() <= MOST_BYTES;
        let together = short.then(|| body::parse_good(text)).flatten();
        let (body, events, count) = match together {
            Some(wire) => Self::of(wire, Events::Read),
            None => Self::of(body::parse_quickly(text)?, Events::Apart),
        };
        if count == 0 || count > MOST_EVENTS {
            let detail = format!("events must have 1 to {MOST_EVENTS} items");
            return Err(ApiError::field("/events", "out_of_range", detail));
        }
        if let Some(index) = events.first_misshapen() {
            return Err(ApiError::field(
                format!("/events/{index}"),
                "invalid",
                "an event is an object",
            ));
        }
        if let Some(context) = &body.context {
            context.check()?;
        }
        Ok((body, events))
    }

    /// The request, its events, and how many it has, which may be more.
    fn of<E>(
        wire: Wire<'a, E>,
        events: impl FnOnce(Vec<E>) -> Events<'a>,
    ) -> (Self, Events<'a>, usize) {
        let body = Self {
            context: wire.context,
            user_id: wire.user_id,
            delivery: wire.delivery,
        };
        let Few { items, count } = wire.events.unwrap_or_default();
        (body, events(items), count)
    }

    /// What the request says about all its events. One without a context comes from a server.
    pub(super) fn origin(&self) -> Origin {
        // An empty text says nothing, and leaves what is known.
        let owned = |text: &Option<Text<'_>>| {
            let said = text.as_deref().filter(|text| !text.is_empty());
            said.map(str::to_owned)
        };
        match &self.context {
            Some(context) => Origin {
                platform: owned(&context.platform),
                app_version: owned(&context.app_version),
                locale: owned(&context.locale),
                timezone: owned(&context.timezone).filter(|name| is_zone(name)),
                device_id: owned(&context.device_id),
                sdk_version: owned(&context.sdk_version),
                session_id: owned(&context.session_id),
                source: Source::Sdk,
            },
            None => Origin {
                source: Source::Server,
                ..Origin::default()
            },
        }
    }

    /// When the client sent the request, by its own clock.
    pub(super) fn sent_at(&self) -> Option<Timestamp> {
        let context = self.context.as_ref()?;
        clock::from_text(context.sent_at.as_deref()?)
    }

    /// The delivery object, checked.
    pub(super) fn delivery(&self) -> Result<Option<Delivery>, ApiError> {
        let Some(raw) = self.delivery else {
            return Ok(None);
        };
        let invalid = |pointer: &str, detail: String| {
            ApiError::fields(
                Code::InvalidDelivery,
                vec![FieldError::new(pointer, "invalid", detail)],
            )
        };
        let delivery: Delivery = body::shape_text(raw.get(), "/delivery")
            .map_err(|error| ApiError::fields(Code::InvalidDelivery, vec![error]))?;
        let count = delivery.event_ids.count;
        if count == 0 || count > MOST_DELIVERY_IDS {
            let detail = format!("eventIds must have 1 to {MOST_DELIVERY_IDS} ids");
            return Err(invalid("/delivery/eventIds", detail));
        }
        if delivery
            .screen_name
            .as_ref()
            .is_some_and(|name| name.chars().count() > MOST_SCREEN_NAME)
        {
            let detail = format!("screenName has at most {MOST_SCREEN_NAME} characters");
            return Err(invalid("/delivery/screenName", detail));
        }
        Ok(Some(delivery))
    }
}

impl Context<'_> {
    fn check(&self) -> Result<(), ApiError> {
        if let Some(anonymous_id) = &self.anonymous_id {
            check_anonymous_id("/context/anonymousId", anonymous_id)?;
        }
        let fields = [
            ("platform", &self.platform),
            ("appVersion", &self.app_version),
            ("locale", &self.locale),
            ("timezone", &self.timezone),
            ("deviceId", &self.device_id),
            ("sessionId", &self.session_id),
            ("sdkVersion", &self.sdk_version),
            ("externalId", &self.external_id),
        ];
        for (name, value) in fields {
            let Some(text) = value else { continue };
            if text.chars().count() > MOST_CONTEXT_TEXT || text.chars().any(char::is_control) {
                let detail = format!(
                    "{name} has at most {MOST_CONTEXT_TEXT} characters and no control characters"
                );
                return Err(ApiError::field(
                    format!("/context/{name}"),
                    "invalid",
                    detail,
                ));
            }
        }
        Ok(())
    }
}
