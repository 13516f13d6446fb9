//! What people write of an in-app message (contract 20).

use std::collections::HashSet;

use nudge_platform::field_error::FieldError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::showing::{Form, PreparedButton};
use crate::campaign::Status;
use crate::lifecycle::{Content as _, Error};
use crate::push::action::PreparedAction;
use crate::push::content::{
    MOST_BODY, MOST_DESCRIPTION, MOST_NAME, MOST_TITLE, OpenAction, check_length,
};
use crate::push::template::UnknownForm;
use crate::push::tokens::Tokens;
use crate::surveys::localization::Localization;
use crate::trigger::{self, BY_THE_CALENDAR, Terms};
use crate::{links, theme, variants};

/// Buttons of a message (contract 20).
const MOST_BUTTONS: usize = 2;
/// The longest id and label of a button, in characters.
const MOST_ID: usize = 64;
const MOST_LABEL: usize = 200;
/// The longest time that a message can be on offer: 90 days, as long as a trigger can wait.
const MOST_SECONDS: u32 = 90 * 24 * 3600;

/// The kind of the campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = InAppType)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    /// An in-app message.
    InApp,
}

/// How an in-app message finds its people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = InAppMode)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// An event triggers it.
    #[default]
    Triggered,
    /// A schedule does.
    Scheduled,
}

/// How a message is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = InAppLayout)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// A strip at an edge.
    Banner,
    /// A box above the page.
    Modal,
    /// A box in a corner.
    Card,
    /// All of the screen.
    Fullscreen,
}

/// How much weight a button has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = InAppButtonStyle)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// The one to press.
    Primary,
    /// Another.
    Secondary,
}

/// What people write of an in-app message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = InAppContent)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Content {
    /// Its name.
    pub name: String,
    /// Always `in_app`.
    #[serde(rename = "type")]
    pub kind: Type,
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
    /// When it may be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Value>,
    /// How often a person meets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_cap: Option<Value>,
    /// How long it stays on offer, in seconds: 1 to 7,776,000; 7 days unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after_seconds: Option<u32>,
    /// How it looks, as a survey's theme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub theme: Option<Value>,
}

/// One way to say it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = InAppVariant)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Variant {
    /// Its id; made when it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// Its share of the people, in proportion to the others'.
    #[serde(default = "one")]
    pub weight: f64,
    /// How it is laid out.
    pub layout: Layout,
    /// The headline; may have tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The text; may have tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// An image, at an https address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_url: Option<String>,
    /// What can be pressed, two at the most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<Button>,
    /// Whether a person can close it otherwise.
    #[serde(default = "yes")]
    pub dismissible: bool,
    /// What its tokens stand for, as the personalization plugin reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub personalization: Option<Value>,
    /// What it says in other languages, by the paths `title`, `body` and `buttons/<id>/label`. May have tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub localization: Option<Localization>,
}

/// Something to press.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = InAppButton)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Button {
    /// Its id, which a `clicked` acknowledgement names as `actionId`.
    pub id: String,
    /// What stands on it; may have tokens.
    pub label: String,
    /// How much weight it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<Style>,
    /// What pressing it does.
    #[serde(default)]
    pub open_action: OpenAction,
}

fn one() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

impl Content {
    /// What a trigger plugin decides by.
    pub fn terms(&self) -> Terms<'_> {
        let scheduled = self.mode == Mode::Scheduled;
        let by_the_calendar = scheduled.then_some(&*BY_THE_CALENDAR);
        Terms {
            trigger: self.trigger.as_ref().or(by_the_calendar),
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

    fn check(&self, before: Option<&Self>) -> Result<Vec<FieldError>, Error> {
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
        if let Some(seconds) = self.expires_after_seconds
            && !(1..=MOST_SECONDS).contains(&seconds)
        {
            let detail = format!("must be 1 to {MOST_SECONDS}");
            errors.push(FieldError::new(
                "/expiresAfterSeconds",
                "out_of_range",
                detail,
            ));
        }
        variants::check_all(&self.variants, &mut errors);
        errors.extend(self.compile().err().unwrap_or_default());
        if let Some(shown) = &self.theme
            && before.is_none_or(|before| before.theme.as_ref() != Some(shown))
        {
            theme::check(shown, &mut errors)?;
        }
        Ok(errors)
    }
}

impl variants::Variant for Variant {
    const SAYS: &'static str = "a title, a body or an image";

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
        let is_blank =
            |text: &Option<String>| text.as_ref().is_none_or(|text| text.trim().is_empty());
        is_blank(&self.title) && is_blank(&self.body) && self.image_url.is_none()
    }

    fn check_form(&self, place: &str, tokens: &mut Tokens, errors: &mut Vec<FieldError>) {
        let is_image = |url: &String| url.starts_with("https://") && links::Kind::Web.has(url);
        if self
            .image_url
            .as_ref()
            .is_some_and(|url| !is_image(url) || url.contains("{{"))
        {
            let pointer = format!("{place}/imageUrl");
            let detail = "must be an https URL of at most 2048 bytes, without tokens";
            errors.push(FieldError::new(pointer, "invalid", detail));
        }
        for (name, text, most) in [
            ("title", &self.title, MOST_TITLE),
            ("body", &self.body, MOST_BODY),
        ] {
            if let Some(text) = text {
                tokens.text(text, most, format!("{place}/{name}"), errors);
            }
        }
        self.check_buttons(place, tokens, errors);
        if let Some(localization) = &self.localization {
            let wrong = localization.check(&self.texts()).into_iter();
            errors.extend(wrong.map(|error| FieldError {
                pointer: format!("{place}{}", error.pointer),
                ..error
            }));
            for (locale, texts) in &localization.translations {
                for (path, text) in texts {
                    let path = nudge_platform::json::escaped(path);
                    let pointer = format!("{place}/localization/translations/{locale}/{path}");
                    tokens.text(text, MOST_BODY, pointer, errors);
                }
            }
        }
    }

    fn form(&self) -> Result<Form, UnknownForm> {
        let buttons = self.buttons.iter().map(|button| {
            Ok(PreparedButton {
                id: button.id.clone(),
                style: button.style,
                action: PreparedAction::new(&button.open_action)?,
            })
        });
        Ok(Form {
            layout: self.layout,
            texts: self.texts(),
            image_url: self.image_url.clone(),
            buttons: buttons.collect::<Result<_, UnknownForm>>()?,
            dismissible: self.dismissible,
            localization: self.localization.clone(),
        })
    }
}

impl Variant {
    /// Its texts, by the paths of a localization.
    fn texts(&self) -> Value {
        let mut texts = serde_json::Map::new();
        for (name, text) in [("title", &self.title), ("body", &self.body)] {
            if let Some(text) = text {
                texts.insert(name.to_owned(), Value::from(text.as_str()));
            }
        }
        let label = |button: &Button| json!({"id": button.id, "label": button.label});
        let buttons = self.buttons.iter().map(label).collect();
        texts.insert("buttons".to_owned(), Value::Array(buttons));
        Value::Object(texts)
    }

    fn check_buttons(&self, place: &str, tokens: &mut Tokens, errors: &mut Vec<FieldError>) {
        if self.buttons.len() > MOST_BUTTONS {
            let detail = format!("at most {MOST_BUTTONS} buttons");
            let pointer = format!("{place}/buttons");
            errors.push(FieldError::new(pointer, "out_of_range", detail));
        }
        let mut ids = HashSet::new();
        for (index, button) in self.buttons.iter().enumerate().take(MOST_BUTTONS) {
            let place = format!("{place}/buttons/{index}");
            check_length(&format!("{place}/id"), &button.id, 1, MOST_ID, errors);
            if !ids.insert(button.id.as_str()) {
                let detail = "another button has this id";
                let pointer = format!("{place}/id");
                errors.push(FieldError::new(pointer, "duplicate_id", detail));
            }
            if button.label.trim().is_empty() {
                let pointer = format!("{place}/label");
                errors.push(FieldError::new(pointer, "required", "a button has a label"));
            }
            let label = format!("{place}/label");
            tokens.text(&button.label, MOST_LABEL, label, errors);
            button.open_action.check(&place, errors);
            button.open_action.read_tokens(&place, tokens, errors);
        }
    }
}
