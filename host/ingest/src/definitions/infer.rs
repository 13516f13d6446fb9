//! Proposing a definition from recent events (contract 11).

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use nudge_apps::auth::Editor;
use nudge_campaigns::definitions::{AdditionalProperties, Enforcement};
use nudge_http::{ApiError, Data, Json};
use nudge_platform::clock;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::http::check_name;
use super::{dry_run, recent};
use crate::collection::ORIGINAL_NAME;
use crate::services::Shared;

/// Definitions that follow from events.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(infer_event_definition))
}

/// Hours that are looked back unless the request says otherwise.
const HOURS: u32 = 24;
/// Events that a proposal is made from.
const MOST_EVENTS: usize = 1_000;
/// Properties that a proposal has: what a definition may have. Of those past them, so many are named.
const MOST_PROPERTIES: usize = 256;
/// The longest name of a property in a definition, in characters.
const MOST_NAME: usize = 200;
/// Distinct values of a list that is proposed.
const MOST_VALUES: usize = 10;
/// How often a list's property must have been there, and how often each of its values on average.
const LEAST_OCCURRENCES: (usize, usize) = (20, 5);
/// The longest value of a list that is proposed, in characters.
const MOST_VALUE: usize = 60;

/// Which events to look at.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InferRequest {
    /// Their name.
    event_name: String,
    /// Those that arrived within so many hours, 1 to 720; 24 unless given.
    since_hours: Option<u32>,
}

/// A proposal. Without what it was made from, it can be declared as it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProposalView {
    name: String,
    enforcement: Enforcement,
    additional_properties: AdditionalProperties,
    properties: Vec<Value>,
    based_on: BasisView,
}

/// What a proposal was made from.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BasisView {
    /// Events of the name.
    events: usize,
    /// Events of the server that were looked at to find them, from the newest on.
    looked_at: i64,
    /// Whether these are all in the time asked for.
    complete: bool,
    /// Properties that a definition can't describe: of several types, objects or lists, and those past the 256th.
    left_out: Vec<String>,
}

/// Proposes a definition from recent events. Nothing is declared.
#[utoipa::path(post, path = "/v1/apps/{appId}/event-definitions/infer", tag = "event definitions",
    params(("appId" = Uuid, Path)), request_body = InferRequest,
    responses((status = 200, body = Data<ProposalView>)))]
pub async fn infer_event_definition(
    Editor(scope): Editor,
    State(services): State<Shared>,
    Json(request): Json<InferRequest>,
) -> Result<Data<ProposalView>, ApiError> {
    let name = request.event_name;
    check_name("/eventName", &name)?;
    let hours = request.since_hours.unwrap_or(HOURS);
    let since = dry_run::since(hours, services.clock.now())?;
    let recent = recent::find(&services.db, scope.app.id, &name, since, MOST_EVENTS).await?;
    let events = recent
        .events
        .iter()
        .filter_map(|stored| serde_json::from_str(&stored.event.properties).ok());
    let (properties, left_out) = infer(events);
    Ok(Data {
        data: ProposalView {
            name,
            // What follows from a sample is looked at before it rejects anything.
            enforcement: Enforcement::Observe,
            additional_properties: AdditionalProperties::Allow,
            properties,
            based_on: BasisView {
                events: recent.events.len(),
                looked_at: recent.looked_at,
                complete: recent.complete,
                left_out,
            },
        },
    })
}

/// What is known of a property.
#[derive(Debug, Default)]
struct PropertyStatistics {
    texts: usize,
    numbers: usize,
    booleans: usize,
    others: usize,
    /// Texts that are dates.
    dates: usize,
    /// Distinct texts, one more than a list may have at the most.
    values: BTreeSet<String>,
}

impl PropertyStatistics {
    fn take(&mut self, value: Value) {
        match value {
            Value::Null => {}
            Value::Bool(_) => self.booleans += 1,
            Value::Number(_) => self.numbers += 1,
            Value::Array(_) | Value::Object(_) => self.others += 1,
            Value::String(text) => {
                self.texts += 1;
                self.dates += usize::from(is_date(&text));
                if self.values.len() <= MOST_VALUES {
                    self.values.insert(text);
                }
            }
        }
    }

    fn times(&self) -> usize {
        self.texts + self.numbers + self.booleans + self.others
    }

    /// The type and, of a list, the values; none: no type describes it.
    fn rule(&self) -> Option<(&'static str, Option<Vec<&str>>)> {
        let times = self.times();
        if times == 0 {
            return None;
        }
        if self.numbers == times {
            return Some(("number", None));
        }
        if self.booleans == times {
            return Some(("boolean", None));
        }
        if self.texts != times {
            return None;
        }
        if self.dates == times {
            return Some(("date", None));
        }
        let (least, each) = LEAST_OCCURRENCES;
        let distinct = self.values.len();
        // One value alone says little about which others there are.
        let is_list = (2..=MOST_VALUES).contains(&distinct)
            && times >= least.max(each * distinct)
            && self
                .values
                .iter()
                .all(|value| value.chars().count() <= MOST_VALUE);
        if is_list {
            let values = self.values.iter().map(String::as_str).collect();
            return Some(("enum", Some(values)));
        }
        Some(("string", None))
    }
}

/// A date, or a date and time with or without an offset, as the validation plugin reads them.
fn is_date(text: &str) -> bool {
    // The clock reads a space for the `T` too, spaces between numbers, and numbers of one digit. The plugin does not.
    let shape = b"0000-00-00T00:00";
    let has_shape = text.bytes().zip(shape).all(|(byte, of_shape)| {
        if *of_shape == b'0' {
            byte.is_ascii_digit()
        } else {
            byte.eq_ignore_ascii_case(of_shape)
        }
    });
    (text.len() == "0000-00-00".len() || text.len() >= shape.len())
        && has_shape
        && !text.contains(char::is_whitespace)
        && ["", "Z", "T00:00:00Z"]
            .iter()
            .any(|rest| clock::from_text(&format!("{text}{rest}")).is_some())
}

/// The properties that describe events, by name, and the names of those that none describes. A name with dots is one as it
/// stands: a definition finds such a key first.
fn infer(events: impl Iterator<Item = Map<String, Value>>) -> (Vec<Value>, Vec<String>) {
    let mut count = 0;
    let mut seen: BTreeMap<String, PropertyStatistics> = BTreeMap::new();
    let mut left_out = BTreeSet::new();
    for event in events {
        count += 1;
        for (name, value) in event {
            // The server adds the original name, and not to all events.
            if name == ORIGINAL_NAME || !(1..=MOST_NAME).contains(&name.chars().count()) {
                continue;
            }
            if seen.len() < MOST_PROPERTIES || seen.contains_key(&name) {
                seen.entry(name).or_default().take(value);
            } else if left_out.len() < MOST_PROPERTIES {
                left_out.insert(name);
            }
        }
    }
    let mut properties = Vec::new();
    for (name, seen) in seen {
        let Some((kind, values)) = seen.rule() else {
            left_out.insert(name);
            continue;
        };
        let mut property = json!({"name": name, "type": kind, "required": seen.times() == count});
        if let (Some(values), Some(property)) = (values, property.as_object_mut()) {
            property.insert("enumValues".to_owned(), json!(values));
        }
        properties.push(property);
    }
    (properties, left_out.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(events: Vec<Value>) -> (Vec<Value>, Vec<String>) {
        infer(events.into_iter().map(|event| match event {
            Value::Object(event) => event,
            other => panic!("{other}"),
        }))
    }

    #[test]
    fn types_and_requirements_follow_from_what_is_there() {
        let (properties, left_out) = of(vec![
            json!({"n": 1, "t": "a", "b": true, "d": "2026-01-31", "mixed": 1, "o": {}, "null": null, "a.b": 1,
                "$original_name": "Order Completed"}),
            json!({"n": 2.5, "t": "b", "b": null, "d": "2026-01-31T09:30:00Z", "mixed": "1", "o": [], "a.b": 2,
                "$original_name": "Order Completed"}),
        ]);
        assert_eq!(
            properties,
            [
                json!({"name": "a.b", "type": "number", "required": true}),
                json!({"name": "b", "type": "boolean", "required": false}),
                json!({"name": "d", "type": "date", "required": true}),
                json!({"name": "n", "type": "number", "required": true}),
                json!({"name": "t", "type": "string", "required": true}),
            ]
        );
        assert_eq!(left_out, ["mixed", "null", "o"]);
    }

    #[test]
    fn a_date_is_what_the_validation_plugin_takes_for_one() {
        for text in [
            "2026-01-31",
            "2026-01-31T09:30",
            "2026-01-31t09:30:00.5",
            "2026-01-31T09:30:00+01:00",
            "2026-01-31T09:30+0100",
        ] {
            assert!(is_date(text), "{text}");
        }
        for text in [
            "2026-01-31 09:30:00",
            "2026-01-31 09:30:00Z",
            "2026-01-31T09:30:00 Z",
            "2026-01-31T9:30",
            "2026-01-31T09:3",
            "2026-1-31T09:30",
            "2026-01-31T",
            "2026-02-30",
            "2026-01",
            "",
        ] {
            assert!(!is_date(text), "{text}");
        }
    }

    #[test]
    fn few_values_over_many_events_are_a_list() {
        let events = |count: usize, values: usize| {
            (0..count)
                .map(|number| json!({"p": format!("v{}", number % values)}))
                .collect()
        };
        let kind = |count, values| of(events(count, values)).0[0]["type"].clone();
        assert_eq!(kind(20, 2), "enum");
        assert_eq!(kind(19, 2), "string");
        assert_eq!(kind(50, 10), "enum");
        assert_eq!(kind(49, 10), "string");
        assert_eq!(kind(500, 11), "string");
        assert_eq!(kind(500, 1), "string");
        let (properties, _) = of(events(20, 2));
        assert_eq!(properties[0]["enumValues"], json!(["v0", "v1"]));
    }

    #[test]
    fn a_proposal_is_no_longer_than_a_definition() {
        let wide: Map<String, Value> = (0..300).map(|n| (format!("p{n}"), json!(n))).collect();
        let mut expected: Vec<String> = wide.keys().cloned().collect();
        let (properties, left_out) = of(vec![Value::Object(wide)]);
        assert_eq!(properties.len(), MOST_PROPERTIES);
        let proposed = properties.iter().map(|property| property["name"].as_str());
        let mut named: Vec<String> = proposed.map(|name| name.unwrap().to_owned()).collect();
        named.extend(left_out);
        named.sort_unstable();
        expected.sort_unstable();
        assert_eq!(named, expected, "what is not proposed is left out");
        let wide = (0..1_000).map(|n| (format!("p{n}"), json!(n))).collect();
        assert_eq!(of(vec![Value::Object(wide)]).1.len(), MOST_PROPERTIES);
        assert_eq!(
            of(vec![json!({"x".repeat(201): 1, "": 1})]),
            (vec![], vec![])
        );
    }

    proptest! {
        /// Whatever is proposed, every event that it was made from has what is required, of the type.
        #[test]
        fn a_proposal_fits_its_events(events in prop::collection::vec(
            prop::collection::btree_map("[a-c]", prop_oneof![
                Just(Value::Null), any::<bool>().prop_map(Value::from), any::<i32>().prop_map(Value::from),
                "[a-b]".prop_map(Value::from), Just(json!("2026-01-31")), Just(json!([])),
            ], 0..3), 1..60)) {
            let events: Vec<Value> = events.into_iter().map(|event| json!(event)).collect();
            let (properties, _) = of(events.clone());
            for property in &properties {
                let name = property["name"].as_str().unwrap();
                for event in &events {
                    let value = &event[name];
                    let fits = match property["type"].as_str().unwrap() {
                        "number" => value.is_number(),
                        "boolean" => value.is_boolean(),
                        "enum" => property["enumValues"].as_array().unwrap().contains(value),
                        _ => value.is_string(),
                    };
                    let absent = value.is_null() && property["required"] == false;
                    prop_assert!(fits || absent, "{property} {event}");
                }
            }
        }
    }
}
