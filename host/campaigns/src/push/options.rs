//! How a push message is delivered and shown.

use serde::Deserialize;
use serde::Serialize;
use utoipa::ToSchema;

/// How a message is delivered and shown (contract 9).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Options {
    /// A later message with the same key takes this one's place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collapse_key: Option<String>,
    /// How long the provider keeps trying, in seconds. 0: now or never. Absent: as long as the provider does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u32>,
    /// How urgent it is. Absent: high.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// The name of a sound that the app has, or `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sound: Option<String>,
    /// The number on the app's icon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub badge: Option<u32>,
    /// An image to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_url: Option<String>,
}

/// How urgent a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// At once, waking the device.
    #[default]
    High,
    /// When it suits the device.
    Normal,
}
