//! The push services that deliveries go to.

use serde::Deserialize;
use serde::Serialize;
use strum::{EnumString, IntoStaticStr};
use utoipa::ToSchema;

/// A push service.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "snake_case")]
pub enum Provider {
    /// Apple Push Notification service.
    Apns,
    /// Firebase Cloud Messaging, HTTP v1.
    Fcm,
    /// Web Push (RFC 8030, 8291, 8292).
    Webpush,
}

/// What a device runs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "snake_case")]
pub enum Platform {
    /// Apple's systems, reached by APNs.
    Ios,
    /// Android, reached by FCM.
    Android,
    /// Browsers, reached by Web Push.
    Web,
}

impl Provider {
    /// The name, as the API has it.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What the devices run that it reaches.
    pub fn platform(self) -> Platform {
        match self {
            Self::Apns => Platform::Ios,
            Self::Fcm => Platform::Android,
            Self::Webpush => Platform::Web,
        }
    }

    /// The provider of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

impl Platform {
    /// The name, as the API has it.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The platform of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// The service that reaches it.
    pub fn provider(self) -> Provider {
        match self {
            Self::Ios => Provider::Apns,
            Self::Android => Provider::Fcm,
            Self::Web => Provider::Webpush,
        }
    }
}
