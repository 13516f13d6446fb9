//! Webhooks: endpoints of customers that are told of what becomes of push deliveries (specification 2.8, 6.2;
//! contract 10).
//!
//! [`enqueue`](nudge_apps::webhooks::enqueue) writes a message for each endpoint that listens in the transaction of the transition, so that
//! none is lost and none is of what never was; the [`sender`] sends it, at least once, under an id that stays.

pub mod actions;
pub mod clear;
mod fairness;
pub mod http;
mod outcome;
pub mod recover;
pub mod request;
pub mod retry;
mod run;
pub mod sender;
pub mod signature;
pub mod store;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nudge_apps::webhooks::Queued;
use nudge_apps::webhooks::in_hand::MessagesInHand;
use nudge_campaigns::webhooks::EventType;
use nudge_db::{Timestamp, Tx};
use nudge_platform::config;
use nudge_platform::outbound::lookups::Purpose;
use nudge_platform::outbound::{Guard, Lookups, NotAllowed, Rule};
use nudge_platform::sealed::{Closed, Sealed, SealedColumn};
use nudge_platform::secrets::Secrets;
use uuid::Uuid;

/// Endpoints an app may have.
pub const MOST: usize = 100;
/// The longest description, in characters.
pub const MOST_DESCRIPTION: usize = 500;
/// Secrets that sign beside the newest one at the most: of more the oldest go.
const MOST_FORMER_SECRETS: i64 = 10;
/// For a whole request and its answer (contract 10).
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// How long messages and attempts are kept, and so how far back `recover` reaches (contract 10).
pub const KEPT: Duration = Duration::from_hours(14 * 24);

/// An endpoint.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// Its id.
    pub id: Uuid,
    /// The app that it belongs to.
    pub app_id: Uuid,
    /// Where requests go, as it was written.
    pub url: String,
    /// What it is told of.
    pub event_types: Vec<EventType>,
    /// Whether it is told anything.
    pub active: bool,
    /// For people.
    pub description: String,
    /// Grows with each change.
    pub version: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// How it fares.
    pub health: Health,
}

/// How an endpoint fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Failed attempts since the last one that succeeded.
    pub consecutive_failures: i64,
    /// When the first of those was.
    pub failing_since: Option<Timestamp>,
    /// When an attempt succeeded last.
    pub last_success_at: Option<Timestamp>,
    /// When one failed last.
    pub last_failure_at: Option<Timestamp>,
    /// The status that was answered last.
    pub last_status_code: Option<i64>,
    /// Why an attempt failed last.
    pub last_error: Option<String>,
    /// When the server gave the endpoint up.
    pub disabled_at: Option<Timestamp>,
}

/// Why an endpoint was not saved, changed or found.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such endpoint.
    #[error("no such webhook")]
    NotFound,
    /// The app has as many as it may.
    #[error("too many webhooks")]
    TooMany,
    /// Somebody changed it meanwhile.
    #[error("changed meanwhile")]
    VersionMismatch,
    /// Requests may not go to the URL.
    #[error("the URL is not allowed")]
    Url(#[from] NotAllowed),
    /// A secret does not open or can't be sealed.
    #[error("a webhook's secret does not open")]
    Secret(#[from] Closed),
    /// The database.
    #[error("the database refused a webhook")]
    Storage(#[from] nudge_db::Error),
}

/// What sending takes: the rule of addresses, a client that keeps it, and what the [`sender`] has in hand. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct Webhooks {
    /// The rule.
    pub guard: Guard,
    /// The client.
    pub client: reqwest::Client,
    /// The messages that this process is sending.
    pub in_hand: MessagesInHand,
}

impl Webhooks {
    /// Ready to send, by a configuration. `node` is the process.
    pub fn new(config: &config::Webhooks, lookups: &Lookups, node: Uuid) -> anyhow::Result<Self> {
        let rule = Rule {
            allow_http: config.allow_http,
            allow_private_networks: config.allow_private_networks,
            ports: config.ports.clone(),
        };
        let guard = Guard::new(rule, lookups, Purpose::Webhook);
        Ok(Self {
            client: guard.client(TIMEOUT)?,
            guard,
            in_hand: MessagesInHand::new(node),
        })
    }

    /// Has messages sent now rather than at the sender's next look. For after the commit.
    pub fn wake(&self, queued: Queued) {
        if queued.send() {
            self.ring();
        }
    }

    /// Has the sender look for messages now.
    pub fn ring(&self) {
        self.in_hand.wake();
    }
}

/// A secret of an endpoint: the 32 bytes that its requests are signed with.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(***)")
    }
}

impl Secret {
    /// A random one.
    pub fn random() -> Self {
        Self(nudge_platform::secrets::random())
    }

    /// From its bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes, the key of HMACs.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// As customers get it: `whsec_` and the Base64 of the bytes, as Standard Webhooks has it.
    pub fn text(&self) -> String {
        format!("whsec_{}", STANDARD.encode(self.0))
    }

    /// Sealed, for the row of a name.
    fn seal(&self, secrets: &Secrets, name: &str) -> Result<Sealed, Closed> {
        Sealed::seal(secrets, place(name), &self.0)
    }

    /// Opens one that was sealed for the row of a name.
    fn open(sealed: &Sealed, secrets: &Secrets, name: &str) -> Result<Self, Closed> {
        let bytes = sealed.open(secrets, place(name))?;
        Ok(Self(bytes.try_into().map_err(|_| Closed)?))
    }
}

fn place(name: &str) -> SealedColumn<'_> {
    SealedColumn {
        table: "webhook_secrets",
        row: name,
    }
}

/// Adds an endpoint with its first secret.
pub async fn create(
    tx: &mut Tx,
    secrets: &Secrets,
    webhook: &Webhook,
    secret: &Secret,
) -> Result<(), Error> {
    // Before the count, so that two at once can't both find room.
    nudge_campaigns::apps::bump_version(tx, webhook.app_id, webhook.created_at).await?;
    if store::count(tx, webhook.app_id).await? >= MOST {
        return Err(Error::TooMany);
    }
    store::insert(tx, webhook).await?;
    add_secret(tx, secrets, webhook, secret, webhook.created_at).await
}

/// Replaces an endpoint if nobody else did since it was read.
pub async fn update(tx: &mut Tx, webhook: &Webhook) -> Result<(), Error> {
    if !store::update(tx, webhook).await? {
        return Err(Error::VersionMismatch);
    }
    Ok(nudge_campaigns::apps::bump_version(tx, webhook.app_id, webhook.updated_at).await?)
}

/// Removes an endpoint with its secrets. Its messages are left to the job [`clear`].
pub async fn delete(tx: &mut Tx, app_id: Uuid, id: Uuid, now: Timestamp) -> Result<(), Error> {
    if !store::delete(tx, app_id, id).await? {
        return Err(Error::NotFound);
    }
    Ok(nudge_campaigns::apps::bump_version(tx, app_id, now).await?)
}

/// Lets an endpoint begin anew that was disabled.
pub async fn enable(tx: &mut Tx, app_id: Uuid, id: Uuid, now: Timestamp) -> Result<Webhook, Error> {
    store::enable(tx, app_id, id).await?;
    nudge_campaigns::apps::bump_version(tx, app_id, now).await?;
    store::find(tx, app_id, id).await?.ok_or(Error::NotFound)
}

/// Gives an endpoint a new secret; the one before signs beside it for a while, and those before that as long as they
/// were to. Without a while none does.
pub async fn rotate(
    tx: &mut Tx,
    secrets: &Secrets,
    webhook: &Webhook,
    secret: &Secret,
    grace: Duration,
    now: Timestamp,
) -> Result<(), Error> {
    if grace.is_zero() {
        store::delete_secrets(tx, webhook).await?;
    } else {
        store::expire_newest(tx, webhook, now.plus(grace)).await?;
        store::forget_secrets(tx, webhook, now, MOST_FORMER_SECRETS).await?;
    }
    add_secret(tx, secrets, webhook, secret, now).await
}

async fn add_secret(
    tx: &mut Tx,
    secrets: &Secrets,
    webhook: &Webhook,
    secret: &Secret,
    now: Timestamp,
) -> Result<(), Error> {
    let name = format!("{}/{}", webhook.id, nudge_platform::id::new(now));
    let sealed = secret.seal(secrets, &name)?;
    Ok(store::insert_secret(tx, webhook, name, sealed).await?)
}

/// The secrets that an endpoint's requests are signed with now, the newest first.
pub async fn secrets_of(
    tx: &mut Tx,
    secrets: &Secrets,
    webhook_id: Uuid,
    now: Timestamp,
) -> Result<Vec<Secret>, Error> {
    let rows = store::secrets(tx, webhook_id, now).await?;
    let opened = rows
        .iter()
        .map(|row| Secret::open(&row.sealed, secrets, &row.name));
    Ok(opened.collect::<Result<_, _>>()?)
}
