//! What is kept of events that are refused, for the feed (contract 21).

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use nudge_apps::App;
use nudge_campaigns::settings::Privacy;
use nudge_db::Timestamp;
use nudge_platform::{clock, id};
use nudge_records::events::{self, Event, Origin, Source, is_name};
use nudge_records::rejected::RejectedEvent;
use nudge_records::subjects::NOBODY;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use uuid::Uuid;

use crate::body::EventBody;
use crate::owner::Owner;
use crate::submission::Rejection;

/// The longest name that is kept, in characters.
const MOST_NAME: usize = 200;

/// What an event said that was refused, as far as it could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    name: Option<String>,
    timestamp: Option<Timestamp>,
    /// The text of a JSON object that could be an event's properties.
    properties: Option<String>,
}

impl Said {
    /// What an event says that could not be read to its end.
    pub(super) fn by(body: &EventBody<'_>) -> Self {
        let name = body.name.text().map(|name| {
            if is_name(name) {
                return name.to_owned();
            }
            let kept = name.chars().filter(|one| !one.is_control());
            kept.take(MOST_NAME).collect()
        });
        let properties = body.properties.map(RawValue::get);
        let properties = properties.filter(|text| events::check_properties(text).is_ok());
        Self {
            name,
            timestamp: body.timestamp.text().and_then(clock::from_text),
            properties: properties.map(str::to_owned),
        }
    }

    /// What a checked event says.
    pub(super) fn of(event: &Event) -> Self {
        Self {
            name: Some(event.name.to_string()),
            timestamp: Some(event.timestamp),
            properties: Some(event.properties.to_string()),
        }
    }
}

/// Why an event was refused, as the feed shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reason<'a> {
    code: &'static str,
    message: Cow<'a, str>,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_id: Option<Uuid>,
}

/// What is kept of a request's refused events: nothing of somebody who was deleted, and nothing of events that are
/// `there` already.
pub(super) fn kept(
    app: &App,
    owner: &Owner,
    origin: &Arc<Origin>,
    received_at: Timestamp,
    rejections: &[Rejection],
    there: &HashSet<Uuid>,
) -> Vec<RejectedEvent> {
    if owner.alias == NOBODY {
        return Vec::new();
    }
    let privacy = &app.settings.privacy;
    let is_there =
        |it: &Rejection| it.is_about_content() && it.event_id.is_some_and(|id| there.contains(&id));
    let mut kept: Vec<&Rejection> = rejections
        .iter()
        .filter(|it| it.code != "suppressed_subject" && !is_there(it))
        .collect();
    // In the order of the request.
    kept.sort_by_key(|rejection| rejection.index);
    let row = |rejection: &Rejection| {
        let said = rejection.said.as_deref().cloned().unwrap_or_default();
        let properties = said.properties;
        RejectedEvent {
            id: id::new(received_at),
            app_id: app.id,
            alias: owner.alias,
            event_id: rejection.event_id,
            name: said.name,
            timestamp: said.timestamp,
            received_at,
            properties: properties.and_then(|text| allowed(&text, privacy, origin.source)),
            origin: Arc::clone(origin),
            errors: reasons(rejection, privacy),
            letter: rejection.dead_letter_id,
        }
    };
    kept.into_iter().map(row).collect()
}

/// Why an event was refused, in JSON. What a sentence says of a property that the policy denies is left out.
fn reasons(rejection: &Rejection, privacy: &Privacy) -> String {
    let message = &rejection.message;
    let tells = |key: &String| message.contains(key.as_str());
    let reason = Reason {
        code: rejection.code,
        message: if privacy.deny_keys.iter().any(tells) {
            Cow::Borrowed("it is about a property that the privacy policy denies")
        } else {
            Cow::Borrowed(message)
        },
        retryable: rejection.retryable,
        dead_letter_id: rejection.dead_letter_id,
    };
    serde_json::to_string(&[reason]).unwrap_or_else(|_| "[]".to_owned())
}

/// Properties without what the policy denies: its keys at whichever depth, and from backends all that it does not
/// allow. None: they can't be read.
fn allowed(text: &str, privacy: &Privacy, source: Source) -> Option<String> {
    let only = privacy.allow_keys.as_ref();
    let only = only.filter(|_| source == Source::Server);
    if privacy.deny_keys.is_empty() && only.is_none() {
        return Some(text.to_owned());
    }
    let mut members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
    members.retain(|key, _| only.is_none_or(|only| only.contains(key)));
    let members = to_raw_value(&members).ok()?;
    without(&members, &privacy.deny_keys).map(|rest| rest.get().to_owned())
}

/// A value without members of some keys. Values nest 64 levels at the most.
fn without(value: &RawValue, denied: &[String]) -> Option<Box<RawValue>> {
    let text = value.get();
    if text.starts_with('{') {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
        let rest = members.into_iter().filter(|(key, _)| !denied.contains(key));
        let rest = rest.map(|(key, value)| Some((key, without(value, denied)?)));
        return to_raw_value(&rest.collect::<Option<BTreeMap<_, _>>>()?).ok();
    }
    if text.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
        let rest = items.into_iter().map(|item| without(item, denied));
        return to_raw_value(&rest.collect::<Option<Vec<_>>>()?).ok();
    }
    Some(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_policy_denies_is_left_out_at_every_depth() {
        let policy = |allow: Option<&[&str]>, deny: &[&str]| Privacy {
            allow_keys: allow.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect()),
            deny_keys: deny.iter().map(|key| (*key).to_owned()).collect(),
        };
        let text = r#"{"plan":"pro","email":"a@b","list":[{"email":"c@d","n":1.50}],"in":{"email":1,"x":"email"}}"#;
        let rest = r#"{"in":{"x":"email"},"list":[{"n":1.50}],"plan":"pro"}"#;
        let denied = allowed(text, &policy(None, &["email"]), Source::Sdk);
        assert_eq!(denied.as_deref(), Some(rest));
        let nothing = allowed(text, &policy(None, &[]), Source::Sdk);
        assert_eq!(nothing.as_deref(), Some(text));
        let only = policy(Some(&["plan", "email"]), &["email"]);
        let allowed_only = allowed(text, &only, Source::Server);
        assert_eq!(allowed_only.as_deref(), Some(r#"{"plan":"pro"}"#));
    }
}
