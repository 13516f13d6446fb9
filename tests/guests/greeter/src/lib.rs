//! A personalization plugin that says `hello` for every binding. Tests make version 0.2.0 of it by changing its bytes,
//! which treats people by their property `mood`: it says something else, or nothing, where version 0.1.0 says `hello`
//! or nothing, or breaks down.

use std::hint::black_box;

use nudge_guest::personalization::{Personalizer, Recipient, Resolution};
use nudge_guest::serde_json::Value as Json;
use nudge_guest::{Description, Problem, Reads, Refusal, Value, export};

/// The version, and what it is found by.
const VERSION: &str = "greeter-version=0.1.0";

/// The plugin.
pub struct Greeter;

impl Personalizer for Greeter {
    type Config = Json;

    fn describe(description: Description) -> Description {
        Description {
            version: version().to_owned(),
            ..description
        }
    }

    fn check(_: &Json) -> Result<Reads, Vec<Problem>> {
        Ok(Reads::new().subject_properties(["mood"]))
    }

    fn resolve(
        config: &Json,
        recipient: &Recipient<'_>,
        resolutions: &mut Vec<Resolution>,
    ) -> Result<(), Refusal> {
        let Some(greeting) = greeting(recipient.property("mood").text().unwrap_or_default()) else {
            return Ok(());
        };
        let bindings = config.get("bindings").and_then(Json::as_array);
        let ids = bindings
            .into_iter()
            .flatten()
            .filter_map(|binding| binding.get("id")?.as_str());
        resolutions.extend(ids.map(|id| Resolution {
            binding: id.to_owned(),
            value: Some(Value::Text(greeting.to_owned())),
            text: greeting.to_owned(),
            ..Resolution::default()
        }));
        Ok(())
    }
}

/// What somebody in this mood is told.
fn greeting(mood: &str) -> Option<&'static str> {
    let new = version() != "0.1.0";
    assert!(!(new && mood == "bad"), "this version can't stand the mood");
    match (new, mood) {
        (true, "curious") => Some("hi"),
        (true, "quiet") | (false, "sleepy") => None,
        _ => Some("hello"),
    }
}

fn version() -> &'static str {
    let version = black_box(VERSION).split_once('=');
    version.map_or("", |(_, version)| version)
}

export!(Greeter: personalization);
