//! The push services of Apple, Google and browsers, behind one function: [`Providers::send`].
//!
//! What is sent is a pure function of message and target ([`payload`]), so that a retry sends the same bytes.

mod apns;
pub(crate) mod encryption;
mod fcm;
mod http;
mod jws;
mod opened;
pub mod payload;
mod send;
mod webpush;

use std::time::Duration;

use nudge_db::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

pub use http::check_certificates;
pub use payload::{MOST_PAYLOAD_BYTES, payload_bytes};
pub use send::Providers;

/// A push service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Apple Push Notification service.
    Apns,
    /// Firebase Cloud Messaging, HTTP v1.
    Fcm,
    /// Web Push (RFC 8030, 8291, 8292).
    Webpush,
}

/// What a device runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    /// Apple's systems, reached by APNs.
    Ios,
    /// Android, reached by FCM.
    Android,
    /// Browsers, reached by Web Push.
    Web,
}

/// Which of a provider's environments a token is good for. Only APNs has two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// Of released apps.
    #[default]
    Production,
    /// Of apps in development.
    Sandbox,
}

/// A resolved message for one delivery. It is the same on each retry.
#[derive(Clone, Debug)]
pub struct Message {
    /// The delivery, which beacons name.
    pub delivery_id: Uuid,
    /// When the delivery was queued: `ttlSeconds` counts from here.
    pub created_at: Timestamp,
    /// Whether somebody tries the campaign out.
    pub test: bool,
    /// The headline.
    pub title: String,
    /// The text.
    pub body: String,
    /// What opening it does: `{action, url?, actionJson?}`, resolved.
    pub open_action: Value,
    /// How it is delivered.
    pub options: Options,
}

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

/// A device with a push token, as it was registered last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Whose device it is.
    pub subject_id: Uuid,
    /// What its SDK calls it.
    pub device_id: String,
    /// What it runs.
    pub platform: Platform,
    /// Which service reaches it.
    pub provider: Provider,
    /// Which environment of the service.
    pub environment: Environment,
    /// The registration, which no other shares.
    pub registration: String,
    /// Where the service finds it.
    pub address: Address,
}

/// Where a service finds a device. Whoever has it can send to it: it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub enum Address {
    /// A token of APNs or FCM.
    Token(String),
    /// A browser's subscription.
    Subscription(Subscription),
}

/// A browser's push subscription, checked: where to send, and the keys to encrypt with (RFC 8291).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Where messages are posted to.
    pub endpoint: String,
    /// The browser's public key: a point of P-256, uncompressed.
    pub p256dh: Vec<u8>,
    /// The authentication secret: 16 bytes.
    pub auth: Vec<u8>,
}

/// What became of a message. Reasons are in snake case, the provider's own where it gives one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The provider has it.
    Accepted {
        /// What the provider calls it.
        provider_message_id: Option<String>,
    },
    /// The token is good for nothing any longer; it is retired.
    Unregistered {
        /// Why.
        reason: String,
    },
    /// The provider will never take this message for this device.
    Rejected {
        /// Why.
        reason: String,
    },
    /// It may be taken later.
    Retry {
        /// Not before so long, where the provider says so.
        after: Option<Duration>,
        /// Why.
        reason: String,
    },
    /// The provider does not take the app's credential, which is marked so until another is uploaded.
    CredentialInvalid {
        /// Why.
        reason: String,
    },
    /// The app has no credential for the device's platform.
    NoCredential,
}

impl Provider {
    /// The name, as the API has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Apns => "apns",
            Self::Fcm => "fcm",
            Self::Webpush => "webpush",
        }
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
        let all = [Self::Apns, Self::Fcm, Self::Webpush];
        all.into_iter().find(|provider| provider.name() == name)
    }
}

impl Platform {
    /// The name, as the API has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ios => "ios",
            Self::Android => "android",
            Self::Web => "web",
        }
    }

    /// The platform of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        let all = [Self::Ios, Self::Android, Self::Web];
        all.into_iter().find(|platform| platform.name() == name)
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

impl Environment {
    /// The name, as the API has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Production => "production",
            Self::Sandbox => "sandbox",
        }
    }

    /// The environment of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        let all = [Self::Production, Self::Sandbox];
        all.into_iter()
            .find(|environment| environment.name() == name)
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Address(***)")
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Subscription(***)")
    }
}
