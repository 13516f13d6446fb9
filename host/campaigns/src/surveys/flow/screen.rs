//! What a survey shows at its end.

use nudge_platform::field_error::FieldError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::question::{LABEL, TEXT, TITLE, check_text, is_link, is_web_address};

/// What is shown at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndScreen {
    /// Its id within the flow.
    pub id: String,
    /// Its headline.
    pub title: String,
    /// Its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// A button below the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub button: Option<Button>,
}

/// A button of an end screen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Button {
    /// What it says.
    pub label: String,
    /// What it does.
    pub action: ButtonAction,
    /// Where it leads, unless it only closes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What a button does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ButtonAction {
    /// Closes the survey.
    Close,
    /// Opens a web page.
    Url,
    /// Opens a place within an app.
    DeepLink,
}

impl EndScreen {
    /// What is wrong with it, except for its id.
    pub(super) fn check(&self, pointer: &str, errors: &mut Vec<FieldError>) {
        check_text(&format!("{pointer}/title"), &self.title, TITLE, errors);
        if let Some(body) = &self.body {
            check_text(&format!("{pointer}/body"), body, TEXT, errors);
        }
        let Some(button) = &self.button else { return };
        let pointer = format!("{pointer}/button");
        check_text(&format!("{pointer}/label"), &button.label, LABEL, errors);
        let url = button.url.as_deref();
        let (fits, detail) = match button.action {
            ButtonAction::Close => (url.is_none(), "a button that closes has no `url`"),
            ButtonAction::Url => (
                url.is_some_and(is_web_address),
                "`url` is an http or https address of at most 2,048 characters",
            ),
            ButtonAction::DeepLink => (
                url.is_some_and(is_link),
                "`url` is an address with a scheme, of at most 2,048 characters",
            ),
        };
        if !fits {
            errors.push(FieldError::new(format!("{pointer}/url"), "invalid", detail));
        }
    }
}
