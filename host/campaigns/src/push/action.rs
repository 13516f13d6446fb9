//! What opening a message does, ready to be filled in.

use serde_json::{Value, json};

use super::content::{Action, OpenAction};
use super::link::{self, NotAllowed};
use super::template::{Json, Text, UnknownForm};
use super::verdict::Values;

/// An open action whose texts are parsed.
#[derive(Clone, Debug)]
pub struct PreparedAction {
    action: Action,
    url: Option<Text>,
    action_json: Option<Json>,
}

impl PreparedAction {
    /// Parses an open action.
    pub fn new(action: &OpenAction) -> Result<Self, UnknownForm> {
        let json = action.action_json.as_ref().map(Json::parse).transpose();
        Ok(Self {
            action: action.action,
            url: action.url.as_deref().map(Text::parse).transpose()?,
            action_json: json.map_err(|_| UnknownForm)?,
        })
    }

    /// The action with the values of one recipient, unless they make an address of it that nobody may be led to.
    pub fn fill(&self, values: &Values) -> Result<Value, NotAllowed> {
        let mut filled = json!({"action": self.action});
        if let Value::Object(members) = &mut filled {
            if let Some(url) = &self.url {
                let url = url.fill(values);
                link::check_filled(self.action, &url)?;
                members.insert("url".to_owned(), url.into());
            }
            if let Some(json) = &self.action_json {
                members.insert("actionJson".to_owned(), json.fill(values));
            }
        }
        Ok(filled)
    }
}
