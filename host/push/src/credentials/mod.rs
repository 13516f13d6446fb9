//! Push credentials: what an app proves itself with to the push services (specification 2.7, contract 9).
//!
//! Of a platform and environment the newest counts, also while its provider refuses it; deleting it brings the one
//! before back. Apple's keys serve both environments unless they were restricted: where an app has none for an
//! environment, that of the other is used.

pub mod http;
pub mod parse;
pub mod store;

use nudge_db::{Timestamp, Tx};
use nudge_platform::sealed::{Closed, Sealed};
use nudge_platform::secrets::Secrets;
use nudge_records::deliveries::provider::Platform;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use uuid::Uuid;

use super::providers::Environment;

/// Credentials of an app.
pub const MOST: usize = 100;

/// What is public of a credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Identity {
    /// Apple's.
    Apple(Apple),
    /// Google's.
    Google(Google),
    /// A VAPID key's (RFC 8292).
    Web(Web),
}

/// What is public of a key for APNs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Apple {
    /// What Apple calls the key.
    pub key_id: String,
    /// Whose key it is.
    pub team_id: String,
    /// The app's bundle, which is the topic of messages.
    pub bundle_id: String,
    /// Which devices it is for.
    pub environment: Environment,
}

/// What is public of a service account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Google {
    /// The Firebase project.
    pub project_id: String,
    /// The account.
    pub client_email: String,
    /// What Google calls the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key_id: Option<String>,
    /// Where the account says that tokens are granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_uri: Option<String>,
}

/// What is public of a VAPID key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Web {
    /// What browsers subscribe with: the point of P-256, uncompressed, in URL-safe Base64.
    pub public_key: String,
    /// How push services reach whoever sends: a `mailto:` or `https:` URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// A credential as it was checked: ready to be stored.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What is public.
    pub identity: Identity,
    /// SHA-256 of the public key's `SubjectPublicKeyInfo`, in hexadecimal digits.
    pub fingerprint: String,
    /// The private key.
    pub key: PrivateKey,
}

/// A private key, in PKCS #8. Never printed.
#[derive(Clone)]
pub struct PrivateKey(pub Vec<u8>);

/// Whether a credential works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Status {
    /// As far as is known.
    Active,
    /// Its provider has refused it.
    Invalid,
}

/// A credential without its key.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its id.
    pub id: Uuid,
    /// What is public.
    pub identity: Identity,
    /// SHA-256 of the public key's `SubjectPublicKeyInfo`, in hexadecimal digits.
    pub fingerprint: String,
    /// Whether it works.
    pub status: Status,
    /// Why it does not.
    pub status_reason: Option<String>,
    /// When it was uploaded.
    pub created_at: Timestamp,
}

/// Why a credential was not stored or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none of this id.
    #[error("no such credential")]
    NotFound,
    /// The app has as many as it may.
    #[error("too many credentials")]
    TooMany,
    /// The key can't be sealed.
    #[error("a push credential can't be sealed")]
    Seal(#[from] Closed),
    /// The database.
    #[error("the database refused a push credential")]
    Storage(#[from] nudge_db::Error),
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("PrivateKey(***)")
    }
}

impl Identity {
    /// What the devices run that it reaches.
    pub fn platform(&self) -> Platform {
        match self {
            Self::Apple(_) => Platform::Ios,
            Self::Google(_) => Platform::Android,
            Self::Web(_) => Platform::Web,
        }
    }

    /// Which devices it is for; all but Apple's are for all.
    pub fn environment(&self) -> Environment {
        match self {
            Self::Apple(apple) => apple.environment,
            Self::Google(_) | Self::Web(_) => Environment::Production,
        }
    }
}

impl Status {
    /// The name, as the API has it.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Stores a credential, which counts from the commit on.
pub async fn create(
    tx: &mut Tx,
    secrets: &Secrets,
    app_id: Uuid,
    checked: Checked,
    now: Timestamp,
) -> Result<Record, Error> {
    // Locks the app's row before the count, so that two at once can't both find room.
    nudge_campaigns::apps::bump_version(tx, app_id, now).await?;
    if store::list(tx, app_id).await?.len() >= MOST {
        return Err(Error::TooMany);
    }
    let record = Record {
        id: nudge_platform::id::new(now),
        identity: checked.identity,
        fingerprint: checked.fingerprint,
        status: Status::Active,
        status_reason: None,
        created_at: now,
    };
    let row = record.id.to_string();
    let sealed = Sealed::seal(secrets, store::place(&row), &checked.key.0)?;
    store::insert(tx, app_id, &record, sealed).await?;
    Ok(record)
}
