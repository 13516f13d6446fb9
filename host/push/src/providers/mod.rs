//! The push services of Apple, Google and browsers, behind one function: [`Providers::send`].
//!
//! What is sent is a pure function of message and target ([`payload`]), so that a retry sends the same bytes.

mod apns;
pub(crate) mod encryption;
mod fcm;
mod hand_over;
mod http;
mod jws;
mod opened;
pub mod payload;
mod send;
mod used;
mod webpush;

use std::time::Duration;
use strum::{EnumString, IntoStaticStr};

use nudge_records::deliveries::provider::{Platform, Provider};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

pub use http::check_certificates;
pub use payload::{MOST_PAYLOAD_BYTES, payload_bytes};
pub use send::Providers;

/// Which of a provider's environments a token is good for. Only APNs has two.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    ToSchema,
    EnumString,
    IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "snake_case")]
pub enum Environment {
    /// Of released apps.
    #[default]
    Production,
    /// Of apps in development.
    Sandbox,
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
pub enum PushOutcome {
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
    /// Nobody knows: it was handed over, and no answer came. It is never sent again.
    Unknown,
    /// The provider does not take the app's credential, which is marked so until another is uploaded.
    CredentialInvalid {
        /// Why.
        reason: String,
    },
    /// The app has no credential for the device's platform.
    NoCredential,
}

impl Environment {
    /// The name, as the API has it.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The environment of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        name.parse().ok()
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
