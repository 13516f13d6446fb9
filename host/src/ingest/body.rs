//! The ingest request as it comes over the wire. Parsed once, borrowing from the body.

use std::borrow::Cow;

use nudge_db::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{MOST_EVENTS, Origin, Source};
use crate::clock;
use crate::http::{ApiError, Code, FieldError, body};
use crate::subjects::http::check_anonymous_id;

/// A delivery names at most this many events (specification 8).
const MOST_DELIVERY_IDS: usize = 20;
/// The longest screen name, in characters (specification 8).
const MOST_SCREEN_NAME: usize = 120;
/// The longest text of a context field, in characters.
const MOST_CONTEXT_TEXT: usize = 256;

/// An ingest request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    #[serde(borrow)]
    pub context: Option<Context<'a>>,
    #[serde(borrow)]
    pub user_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub events: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    pub delivery: Option<&'a RawValue>,
}

/// What a request says about all its events.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Context<'a> {
    #[serde(borrow)]
    pub anonymous_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub external_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub platform: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub app_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub locale: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub timezone: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub device_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub sdk_version: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub sent_at: Option<Cow<'a, str>>,
}

/// A request for immediate evaluation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delivery {
    pub event_ids: Vec<Uuid>,
    pub screen_name: Option<String>,
    pub client_id: Option<Uuid>,
}

/// One event, field by field, so that one bad field rejects one event.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventBody<'a> {
    #[serde(borrow)]
    pub event_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub name: Option<&'a RawValue>,
    #[serde(borrow)]
    pub timestamp: Option<&'a RawValue>,
    #[serde(borrow)]
    pub anonymous_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub external_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub properties: Option<&'a RawValue>,
}

impl<'a> Body<'a> {
    /// Parses a request; what breaks the contract as a whole is refused here.
    pub(super) fn parse(text: &'a str) -> Result<Self, ApiError> {
        let parsed: Self = body::parse_quickly(text)?;
        let events = parsed.events.as_deref().unwrap_or_default();
        if events.is_empty() || events.len() > MOST_EVENTS {
            let detail = format!("events must have 1 to {MOST_EVENTS} items");
            return Err(ApiError::field("/events", "out_of_range", detail));
        }
        if let Some(index) = events
            .iter()
            .position(|event| !event.get().starts_with('{'))
        {
            return Err(ApiError::field(
                format!("/events/{index}"),
                "invalid",
                "an event is an object",
            ));
        }
        if let Some(context) = &parsed.context {
            context.check()?;
        }
        Ok(parsed)
    }

    /// What the request says about all its events. One without a context comes from a server.
    pub(super) fn origin(&self) -> Origin {
        let owned = |text: &Option<Cow<'_, str>>| text.as_deref().map(str::to_owned);
        match &self.context {
            Some(context) => Origin {
                platform: owned(&context.platform),
                app_version: owned(&context.app_version),
                locale: owned(&context.locale),
                timezone: owned(&context.timezone),
                device_id: owned(&context.device_id).filter(|id| !id.is_empty()),
                sdk_version: owned(&context.sdk_version),
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
        let value = serde_json::from_str(raw.get())
            .map_err(|error| invalid("/delivery", error.to_string()))?;
        let delivery: Delivery = body::shape(value, "/delivery")
            .map_err(|error| ApiError::fields(Code::InvalidDelivery, vec![error]))?;
        if delivery.event_ids.is_empty() || delivery.event_ids.len() > MOST_DELIVERY_IDS {
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
