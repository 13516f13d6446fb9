//! A message with everything filled in.

use nudge_db::Timestamp;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::push::message::Message;
use crate::push::options::Options;

/// A message with everything filled in: the snapshot that retries send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rendered {
    /// The headline.
    pub title: String,
    /// The text.
    pub body: String,
    /// What opening it does.
    pub open_action: Value,
    /// How it is delivered and shown.
    #[serde(default)]
    pub options: Options,
}

impl Rendered {
    /// What providers are given.
    pub fn message(&self, delivery_id: Uuid, created_at: Timestamp, test: bool) -> Message {
        Message {
            delivery_id,
            created_at,
            test,
            title: self.title.clone(),
            body: self.body.clone(),
            open_action: self.open_action.clone(),
            options: self.options.clone(),
        }
    }
}
