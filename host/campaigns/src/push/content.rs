//! What people write of a push campaign (specification 2.5; contract 9).

use nudge_platform::field_error::FieldError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::IntoStaticStr;
use utoipa::ToSchema;
use uuid::Uuid;

use super::action::PreparedAction;
use super::link;
use super::sending::Form;
use crate::campaign::Status;
use crate::lifecycle::{Content as _, Error};
use crate::push::options::Options;
use crate::push::template::{Text, UnknownForm};
use crate::push::tokens::Tokens;
use crate::trigger::{self, BY_THE_CALENDAR, Terms};
use crate::{links, variants};

/// The longest name, title and body, in characters. What is sent has a limit of its own.
pub(crate) const MOST_NAME: usize = 200;
pub(crate) const MOST_DESCRIPTION: usize = 2_000;
pub(crate) const MOST_TITLE: usize = 4_096;
pub(crate) const MOST_BODY: usize = 16_384;
/// The longest URL, in characters.
const MOST_URL: usize = 2_048;
/// The longest collapse key and name of a sound, in bytes.
const MOST_KEY: usize = 64;
const MOST_SOUND: usize = 100;
/// How long a provider can be asked to keep trying: 28 days, in seconds.
const MOST_TTL: u32 = 28 * 24 * 3600;

/// The kind of a campaign. The route is there for other kinds too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = CampaignKind)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A push message.
    #[default]
    Push,
}

/// How a campaign finds its people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = CampaignMode)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A backend asks for each message.
    Transactional,
    /// An event triggers it.
    #[default]
    Triggered,
    /// A schedule does.
    Scheduled,
    /// It goes to its audience once.
    Broadcast,
}

/// What people write of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Content {
    /// Its name.
    pub name: String,
    /// Always `push`.
    #[serde(default, rename = "type")]
    pub kind: Kind,
    /// How it finds its people.
    #[serde(default)]
    pub mode: Mode,
    /// Where it stands.
    #[serde(default)]
    pub status: Status,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Which comes first when several fire; higher first.
    #[serde(default)]
    pub priority: i32,
    /// What it says; a person always gets the same one.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// What triggers it, as the trigger plugin reads it.
    #[serde(
        default,
        deserialize_with = "trigger::read",
        skip_serializing_if = "Option::is_none"
    )]
    pub trigger: Option<Value>,
    /// Whom it is for, as the trigger plugin reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Value>,
    /// When it may be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Value>,
    /// How often a person gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_cap: Option<Value>,
    /// How it is delivered and shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Options>,
}

/// One way to say it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Variant {
    /// Its id; made when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// The headline; may have tokens.
    #[serde(default)]
    pub title: String,
    /// The text; may have tokens.
    #[serde(default)]
    pub body: String,
    /// Its share of the people, in proportion to the others'.
    #[serde(default = "one")]
    pub weight: f64,
    /// What opening it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_action: Option<OpenAction>,
    /// What its tokens stand for, as the personalization plugin reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub personalization: Option<Value>,
}

fn one() -> f64 {
    1.0
}

/// What opening a message does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OpenAction {
    /// What.
    pub action: Action,
    /// Where to: of `url` a page of the web, of `deep_link` any address but of what would run as a program
    /// (`javascript:`, `data:`, `file:` …). May have tokens; what they make of it is held to the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What the app gets, of `json`; its values may be tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_json: Option<Value>,
}

/// What opening a message does.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Action {
    /// Nothing.
    None,
    /// It opens the app.
    #[default]
    OpenApp,
    /// It opens a page.
    Url,
    /// It opens a place in the app.
    DeepLink,
    /// The app gets some JSON.
    Json,
}

impl Action {
    /// The name, as the API has it.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Content {
    /// What a trigger plugin decides by.
    pub fn terms(&self) -> Terms<'_> {
        let named =
            |trigger: &&Value| trigger.get("kind").and_then(Value::as_str) == Some("plugin");
        let trigger = match self.mode {
            Mode::Transactional | Mode::Triggered => self.trigger.as_ref(),
            Mode::Scheduled => self.trigger.as_ref().or(Some(&BY_THE_CALENDAR)),
            // Whatever it would wait for: it goes to its audience once.
            Mode::Broadcast => {
                let named = self.trigger.as_ref().filter(named);
                named.or(Some(&BY_THE_CALENDAR))
            }
        };
        Terms {
            trigger,
            audience: self.audience.as_ref(),
        }
    }
}

impl variants::Content for Content {
    type Variant = Variant;

    fn variants(&self) -> &[Variant] {
        &self.variants
    }

    fn variants_mut(&mut self) -> &mut [Variant] {
        &mut self.variants
    }

    fn is_triggered(&self) -> bool {
        self.mode == Mode::Triggered
    }

    fn check(&self, _before: Option<&Self>) -> Result<Vec<FieldError>, Error> {
        let mut errors = Vec::new();
        let description = self.description.as_deref().unwrap_or_default();
        check_length("/name", &self.name, 1, MOST_NAME, &mut errors);
        check_length(
            "/description",
            description,
            0,
            MOST_DESCRIPTION,
            &mut errors,
        );
        variants::check_all(&self.variants, &mut errors);
        if let Some(options) = &self.options {
            check_options(options, &mut errors);
        }
        errors.extend(self.compile().err().unwrap_or_default());
        Ok(errors)
    }
}

impl variants::Variant for Variant {
    const SAYS: &'static str = "a title or a body";

    type Form = Form;

    fn id(&self) -> Option<Uuid> {
        self.id
    }

    fn set_id(&mut self, id: Uuid) {
        self.id = Some(id);
    }

    fn weight(&self) -> f64 {
        self.weight
    }

    fn personalization(&self) -> Option<&Value> {
        self.personalization.as_ref()
    }

    fn says_nothing(&self) -> bool {
        self.title.trim().is_empty() && self.body.trim().is_empty()
    }

    fn check_form(&self, place: &str, tokens: &mut Tokens, errors: &mut Vec<FieldError>) {
        let action = self.open_action.clone().unwrap_or_default();
        action.check(place, errors);
        let texts = [
            ("title", &self.title, MOST_TITLE),
            ("body", &self.body, MOST_BODY),
        ];
        for (name, text, most) in texts {
            tokens.text(text, most, format!("{place}/{name}"), errors);
        }
        action.read_tokens(place, tokens, errors);
    }

    fn form(&self) -> Result<Form, UnknownForm> {
        let action = self.open_action.clone().unwrap_or_default();
        Ok(Form {
            title: Text::parse(&self.title)?,
            body: Text::parse(&self.body)?,
            action: PreparedAction::new(&action)?,
        })
    }
}

/// Checks how many characters a text has.
pub(crate) fn check_length(
    place: &str,
    text: &str,
    least: usize,
    most: usize,
    errors: &mut Vec<FieldError>,
) {
    if !(least..=most).contains(&text.chars().count()) {
        let detail = format!("must have {least} to {most} characters");
        errors.push(FieldError::new(place, "invalid", detail));
    }
}

impl OpenAction {
    /// Reads the tokens in the `openAction` of what stands at `place`.
    pub(crate) fn read_tokens(
        &self,
        place: &str,
        tokens: &mut Tokens,
        errors: &mut Vec<FieldError>,
    ) {
        if let Some(url) = &self.url {
            tokens.text(url, MOST_URL, format!("{place}/openAction/url"), errors);
        }
        if let Some(json) = &self.action_json {
            tokens.json(json, format!("{place}/openAction/actionJson"), errors);
        }
    }

    /// Checks the `openAction` of what stands at `place`, but for its tokens.
    pub(crate) fn check(&self, place: &str, errors: &mut Vec<FieldError>) {
        let place = format!("{place}/openAction");
        let takes_url = matches!(self.action, Action::Url | Action::DeepLink);
        let mut part = |name: &str, wanted: bool, there: bool, fits: Result<(), &str>| {
            let place = format!("{place}/{name}");
            let action = self.action.name();
            if wanted && !there {
                let detail = format!("the action `{action}` has `{name}`");
                errors.push(FieldError::new(place, "required", detail));
            } else if there && !wanted {
                let detail = format!("the action `{action}` has no `{name}`");
                errors.push(FieldError::new(place, "not_allowed", detail));
            } else if let Err(detail) = fits {
                errors.push(FieldError::new(place, "invalid", detail));
            }
        };
        let url = self.url.as_deref();
        let fits = url.map_or(Ok(()), |url| match Text::parse(url) {
            Ok(text) => link::check(self.action, &text),
            // That is said of its tokens.
            Err(_) => Ok(()),
        });
        part("url", takes_url, url.is_some(), fits);
        let json = self.action_json.as_ref();
        part(
            "actionJson",
            self.action == Action::Json,
            json.is_some(),
            match json {
                Some(json) if !json.is_object() => Err("`actionJson` is an object"),
                _ => Ok(()),
            },
        );
    }
}

fn check_options(options: &Options, errors: &mut Vec<FieldError>) {
    let mut check = |name: &str, good: bool, detail: &str| {
        if !good {
            errors.push(FieldError::new(
                format!("/options/{name}"),
                "out_of_range",
                detail,
            ));
        }
    };
    let within = |text: &Option<String>, most: usize| {
        text.as_ref()
            .is_none_or(|text| (1..=most).contains(&text.len()))
    };
    check(
        "collapseKey",
        within(&options.collapse_key, MOST_KEY),
        "must have 1 to 64 bytes",
    );
    check(
        "sound",
        within(&options.sound, MOST_SOUND),
        "must have 1 to 100 bytes",
    );
    let ttl = options
        .ttl_seconds
        .is_none_or(|seconds| seconds <= MOST_TTL);
    check("ttlSeconds", ttl, "must be 0 to 2419200");
    let image = options.image_url.as_ref();
    let image = image.is_none_or(|url| url.starts_with("https://") && links::Kind::Web.has(url));
    check(
        "imageUrl",
        image,
        "must be an https URL of at most 2048 bytes",
    );
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(variant: Value) -> Vec<(String, String)> {
        let variant: Variant = serde_json::from_value(variant).unwrap();
        let errors = variants::check_one(&variant, "/v");
        errors
            .into_iter()
            .map(|error| (error.pointer, error.code))
            .collect()
    }

    fn personalization() -> Value {
        json!({"version": 1, "sources": [{"id": "s", "kind": "send_data"}],
            "bindings": [{"id": "code", "sourceId": "s", "key": "code", "type": "string"}]})
    }

    #[test]
    fn every_token_needs_a_binding() {
        let variant = json!({"title": "{{p.code}}", "body": "{{p.other}} {{code}}",
            "openAction": {"action": "json", "actionJson": {"a": ["{{p.none}}"], "b": "{{p.code}}"}},
            "personalization": personalization()});
        let pointer = |pointer: &str, code: &str| (pointer.to_owned(), code.to_owned());
        assert_eq!(
            wrong(variant),
            [
                pointer("/v/body", "unknown_token"),
                pointer("/v/openAction/actionJson/a/0", "unknown_binding")
            ]
        );
        assert_eq!(
            wrong(json!({"title": "{{p.code}}"})),
            [pointer("/v/title", "unknown_binding")]
        );
        let bad = json!({"title": "{{p.code}}", "personalization": {"version": 2}});
        assert_eq!(
            wrong(bad),
            [pointer("/v/personalization/version", "unknown_version")]
        );
    }

    #[test]
    fn an_action_has_what_it_takes() {
        let action = |action: Value| wrong(json!({"title": "t", "openAction": action}));
        for (good, parts) in [
            (true, json!({"action": "none"})),
            (true, json!({"action": "open_app"})),
            (
                true,
                json!({"action": "url", "url": "https://shop.example"}),
            ),
            (true, json!({"action": "json", "actionJson": {}})),
            (false, json!({"action": "url"})),
            (false, json!({"action": "deep_link", "url": ""})),
            (true, json!({"action": "deep_link", "url": "shop://7"})),
            (false, json!({"action": "url", "url": "shop://7"})),
            (
                false,
                json!({"action": "url", "url": "javascript:alert(1)"}),
            ),
            (
                false,
                json!({"action": "deep_link", "url": "data:text/html,x"}),
            ),
            (
                false,
                json!({"action": "deep_link", "url": "file:///etc/passwd"}),
            ),
            (false, json!({"action": "json"})),
            (false, json!({"action": "json", "actionJson": []})),
            (
                false,
                json!({"action": "none", "url": "https://shop.example"}),
            ),
        ] {
            assert_eq!(action(parts.clone()).is_empty(), good, "{parts}");
        }
    }
}
