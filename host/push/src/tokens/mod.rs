//! Push tokens: where people's devices are reached (contract 9).
//!
//! A person's device has one token, and a token is one person's device's: whoever shows the same token has it from then on,
//! and nobody else. What an SDK calls a device proves nothing: it changes no registration of others, who may call
//! theirs the same. Tokens are sealed; a keyed hash tells that two are the same.

mod check;
pub mod http;
pub mod store;

use nudge_apps::subject_token::SubjectToken;
use nudge_db::{Db, Kind, Timestamp};
use nudge_platform::sealed::{self, Closed, Sealed};
use nudge_platform::secrets::{self, Secrets};
use nudge_records::deliveries::provider::Provider;
use nudge_records::subjects::NOBODY;
use nudge_records::subjects::current::{self, TokenRefusal};
use strum::IntoStaticStr;
use uuid::Uuid;

use super::providers::{Address, Environment};
use crate::services::Services;

/// Tokens that are kept of one person, those that were registered last.
const MOST: i64 = 100;
/// How often a registration that met another one is tried.
const TRIES: usize = 5;
/// Characters of a token that are shown.
const SUFFIX: usize = 6;

/// Tells tokens that are the same, and nothing else of them. The key never changes.
#[derive(Clone)]
pub struct Hashes {
    key: [u8; 32],
}

/// Whether a device may be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Status {
    /// It may.
    Active,
    /// Its provider does not know the token any longer.
    Invalid,
    /// The person does not want to.
    OptedOut,
}

/// A device's token as an SDK registers it.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// What the SDK calls the device.
    pub device_id: String,
    /// Which service reaches it.
    pub provider: Provider,
    /// Which environment of the service.
    pub environment: Environment,
    /// Where the service finds it. None: the person refused, and there is no token.
    pub address: Option<Address>,
    /// Whether the person lets the app show messages.
    pub granted: bool,
}

/// A token as it is stored.
#[derive(Debug)]
struct Registration {
    id: String,
    device_id: String,
    provider: Provider,
    environment: Environment,
    token_hash: Option<String>,
    token_suffix: String,
    sealed: Option<Sealed>,
    status: Status,
}

/// Why a token was not registered or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The subject token does not work any longer.
    #[error("the subject token is revoked")]
    TokenRevoked,
    /// The anonymous id is another person's.
    #[error("the anonymous id is not the subject's")]
    SubjectMismatch,
    /// The person has no such device.
    #[error("no such device")]
    NotFound,
    /// The token can't be sealed.
    #[error("a push token can't be sealed")]
    Seal(#[from] Closed),
    /// The database.
    #[error("the database refused a push token")]
    Storage(#[from] nudge_db::Error),
}

impl From<TokenRefusal> for Error {
    fn from(refusal: TokenRefusal) -> Self {
        match refusal {
            TokenRefusal::Revoked => Self::TokenRevoked,
            TokenRefusal::Mismatch => Self::SubjectMismatch,
            TokenRefusal::Storage(cause) => Self::Storage(cause),
        }
    }
}

impl std::fmt::Debug for Hashes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Hashes(***)")
    }
}

impl Hashes {
    /// Reads the key from the database, where it is sealed under the master key; makes it at the first start.
    pub async fn open(db: &Db, secrets: &Secrets) -> anyhow::Result<Self> {
        let key = sealed::server_secret(db, secrets, "push tokens").await?;
        Ok(Self { key })
    }

    fn of(&self, app_id: Uuid, provider: Provider, address: &Address) -> String {
        use base64::Engine as _;
        let parts = [
            app_id.as_bytes(),
            provider.name().as_bytes(),
            address.name().as_bytes(),
        ];
        let hash = secrets::keyed_hash(&self.key, &parts);
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(hash)
    }
}

impl Status {
    /// The name, as the API has it.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Address {
    /// What tells it from others: the token, or a subscription's endpoint.
    fn name(&self) -> &str {
        match self {
            Self::Token(token) => token,
            Self::Subscription(subscription) => &subscription.endpoint,
        }
    }

    /// The end of it, which people may see: never more than a quarter.
    fn suffix(&self) -> String {
        let name = self.name();
        let shown = SUFFIX.min(name.len() / 4);
        name.get(name.len() - shown..)
            .unwrap_or_default()
            .to_owned()
    }
}

impl NewToken {
    fn status(&self) -> Status {
        if self.granted {
            Status::Active
        } else {
            Status::OptedOut
        }
    }

    fn sealed(
        &self,
        services: &Services,
        app_id: Uuid,
        now: Timestamp,
    ) -> Result<Registration, Closed> {
        let id = nudge_platform::id::new(now).to_string();
        let seal = |address: &Address| {
            let bytes = match address {
                Address::Token(token) => token.clone().into_bytes(),
                Address::Subscription(keys) => serde_json::to_vec(keys).map_err(|_| Closed)?,
            };
            Sealed::seal(&services.secrets, store::place(&id), &bytes)
        };
        let sealed = self.address.as_ref().map(seal).transpose()?;
        let hash = |address| {
            services
                .push_token_hashes
                .of(app_id, self.provider, address)
        };
        Ok(Registration {
            id,
            device_id: self.device_id.clone(),
            provider: self.provider,
            environment: self.environment,
            token_hash: self.address.as_ref().map(hash),
            token_suffix: self
                .address
                .as_ref()
                .map(Address::suffix)
                .unwrap_or_default(),
            sealed,
            status: self.status(),
        })
    }
}

/// Registers a device's token for the subject of a token.
pub async fn register(
    services: &Services,
    app_id: Uuid,
    subject: &SubjectToken,
    anonymous_id: &str,
    token: &NewToken,
) -> Result<Status, Error> {
    let mut left = TRIES;
    loop {
        left -= 1;
        match try_register(services, app_id, subject, anonymous_id, token).await {
            // Somebody else registered the same token at the same time; whoever is last has it.
            Err(Error::Storage(error))
                if left > 0 && matches!(error.kind(), Kind::Conflict | Kind::Serialization) => {}
            // Many do: the request is a lost race, which is answered once more.
            Err(Error::Storage(error)) if error.kind() == Kind::Conflict => {
                return Err(nudge_db::Error::lost_race().into());
            }
            result => return result,
        }
    }
}

async fn try_register(
    services: &Services,
    app_id: Uuid,
    subject: &SubjectToken,
    anonymous_id: &str,
    token: &NewToken,
) -> Result<Status, Error> {
    let now = services.clock.now();
    let registration = token.sealed(services, app_id, now)?;
    let mut tx = services.db.write().await?;
    let subject_id = find(&mut tx, subject, Some(anonymous_id)).await?;
    if let Some(hash) = &registration.token_hash {
        let device = (subject_id, token.device_id.as_str());
        store::take_from_others(&mut tx, app_id, device, hash).await?;
    }
    store::put(&mut tx, app_id, subject_id, &registration, now).await?;
    store::forget(&mut tx, app_id, subject_id, MOST).await?;
    let platform = token.provider.platform().name();
    nudge_pipeline::devices::registered(
        &mut tx,
        app_id,
        subject_id,
        &token.device_id,
        platform,
        now,
    )
    .await?;
    tx.commit().await?;
    Ok(registration.status)
}

/// Removes the token of a device of the subject of a token.
pub async fn remove(
    services: &Services,
    app_id: Uuid,
    subject: &SubjectToken,
    device_id: &str,
) -> Result<(), Error> {
    let mut tx = services.db.write().await?;
    let subject_id = find(&mut tx, subject, None).await?;
    if !store::remove(&mut tx, app_id, subject_id, device_id).await? {
        return Err(Error::NotFound);
    }
    Ok(tx.commit().await?)
}

/// The subject, locked, so that it is not merged into another meanwhile.
async fn find(
    tx: &mut nudge_db::Tx,
    token: &SubjectToken,
    anonymous_id: Option<&str>,
) -> Result<Uuid, Error> {
    if token.alias == NOBODY {
        return Err(Error::TokenRevoked);
    }
    let standing = match anonymous_id {
        Some(anonymous_id) => current::lock_of(tx, token, anonymous_id).await?,
        None => current::lock(tx, token).await?,
    };
    Ok(standing.subject_id)
}
