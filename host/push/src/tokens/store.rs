//! Push tokens in the database.

use std::collections::{HashMap, HashSet};

use nudge_db::{Error, IS, Result, Rows, Timestamp, Tx};
use nudge_platform::sealed::{Sealed, SealedColumn};
use nudge_platform::secrets::Secrets;
use nudge_records::deliveries::provider::Provider;
use uuid::Uuid;

use super::Registration;
use crate::providers::{Address, Environment, Target};

/// The table.
pub(super) const TABLE: &str = "push_tokens";

/// A person, and one of its tokens if it has any.
#[derive(nudge_db::FromRow)]
struct PersonRow {
    subject_id: Uuid,
    suppressed: bool,
    messaging_consent: Option<bool>,
    timezone: Option<String>,
    device_id: Option<String>,
    registration: Option<String>,
    provider: Option<String>,
    environment: Option<String>,
    sealed: Option<Sealed>,
}

struct TargetRow {
    subject_id: Uuid,
    device_id: String,
    registration: String,
    provider: String,
    environment: String,
    sealed: Sealed,
}

/// What is shown of a device's token.
#[derive(Debug, nudge_db::FromRow)]
pub struct Shown {
    /// The device.
    pub device_id: String,
    /// The provider's name.
    pub provider: String,
    /// The environment's name.
    pub environment: String,
    /// The token's last characters; empty where there is no token.
    pub token_suffix: String,
    /// `active`, `invalid` or `opted_out`.
    pub status: String,
}

/// Where messages for people go.
#[derive(Debug, Default)]
pub struct Active {
    /// Devices with active tokens, the newest registrations of a person first.
    pub targets: Vec<Target>,
    /// What is known of people; nothing of those that are gone.
    pub people: HashMap<Uuid, Person>,
    /// People with a token that cannot be read, such as one that is sealed with a key that this process lacks.
    pub unreadable: HashSet<Uuid>,
}

/// Whether a person may be sent anything.
#[derive(Clone, Debug)]
pub struct Person {
    /// Whether it is being deleted.
    pub suppressed: bool,
    /// What it says to messages, if it has said it.
    pub consent: Option<bool>,
    /// Its time zone.
    pub timezone: Option<String>,
}

impl Active {
    /// How many devices there are to send to; of those that cannot be read now, one a person.
    pub fn devices(&self) -> usize {
        self.targets.len() + self.unreadable.len()
    }
}

/// Where messages for people go. Nobody who is being deleted has a device. A token that cannot be read concerns nobody but
/// its person; the log names it.
pub async fn active_of(
    tx: &mut Tx,
    secrets: &Secrets,
    app_id: Uuid,
    subject_ids: &[Uuid],
) -> Result<Active> {
    let mut active = Active::default();
    for chunk in subject_ids.chunks(Rows::MOST) {
        let rows: Vec<PersonRow> = tx
            .with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(
                " SELECT s.id AS subject_id, s.suppressed, s.messaging_consent, s.timezone, t.device_id, t.registration, t.provider,
                         t.environment, t.sealed
                  FROM v JOIN subjects s ON s.id = v.id
                  LEFT JOIN push_tokens t ON t.subject_id = s.id AND t.status = 'active' AND t.sealed IS NOT NULL
                                             AND NOT s.suppressed AND t.app_id",
            )
            .push(IS)
            .push_bind(app_id)
            .push(" WHERE s.app_id")
            .push(IS)
            .push_bind(app_id)
            .push(" ORDER BY s.id, t.registered_at DESC, t.device_id")
            .fetch_all()
            .await?;
        for row in rows {
            let person = || Person {
                suppressed: row.suppressed,
                consent: row.messaging_consent,
                timezone: row.timezone.clone(),
            };
            active.people.entry(row.subject_id).or_insert_with(person);
            let Some(row) = row.token() else { continue };
            let (subject_id, registration) = (row.subject_id, row.registration.clone());
            match row.target(secrets) {
                Ok(target) => active.targets.push(target),
                Err(error) => {
                    tracing::warn!(%app_id, registration, error = ?error, "a push token cannot be read");
                    active.unreadable.insert(subject_id);
                }
            }
        }
    }
    Ok(active)
}

impl PersonRow {
    fn token(self) -> Option<TargetRow> {
        Some(TargetRow {
            subject_id: self.subject_id,
            device_id: self.device_id?,
            registration: self.registration?,
            provider: self.provider?,
            environment: self.environment?,
            sealed: self.sealed?,
        })
    }
}

impl TargetRow {
    fn target(self, secrets: &Secrets) -> Result<Target> {
        let corrupt = |column, cause: &str| Error::corrupt(TABLE, column, cause);
        let provider = Provider::of_name(&self.provider)
            .ok_or_else(|| corrupt("provider", "an unknown provider"))?;
        let environment = Environment::of_name(&self.environment)
            .ok_or_else(|| corrupt("environment", "an unknown environment"))?;
        let opened = self
            .sealed
            .open(secrets, place(&self.registration))
            .map_err(|closed| Error::corrupt(TABLE, "sealed", closed))?;
        let address = match provider {
            Provider::Apns | Provider::Fcm => String::from_utf8(opened).ok().map(Address::Token),
            Provider::Webpush => serde_json::from_slice(&opened)
                .ok()
                .map(Address::Subscription),
        };
        Ok(Target {
            subject_id: self.subject_id,
            device_id: self.device_id,
            platform: provider.platform(),
            provider,
            environment,
            registration: self.registration,
            address: address.ok_or_else(|| corrupt("sealed", "not an address"))?,
        })
    }
}

/// What a registration's token is sealed for.
pub(super) fn place(registration: &str) -> SealedColumn<'_> {
    SealedColumn {
        table: TABLE,
        row: registration,
    }
}

/// Removes a token from whoever has it, but for this device of this person.
pub(super) async fn take_from_others(
    tx: &mut Tx,
    app_id: Uuid,
    (subject_id, device_id): (Uuid, &str),
    token_hash: &str,
) -> Result<()> {
    tx.sql(
        "DELETE FROM push_tokens
         WHERE app_id = $1 AND token_hash = $2 AND (subject_id <> $3 OR device_id <> $4)",
    )
    .bind(app_id)
    .bind(token_hash.to_owned())
    .bind(subject_id)
    .bind(device_id.to_owned())
    .execute()
    .await?;
    Ok(())
}

/// Adds the token of a person's device, or puts it in the place of the one before. What others have registered for a
/// device of that name is theirs.
pub(super) async fn put(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    registration: &Registration,
    now: Timestamp,
) -> Result<()> {
    tx.sql(
        "INSERT INTO push_tokens (app_id, device_id, subject_id, registration, provider, environment, token_hash,
                                  token_suffix, sealed, status, registered_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (app_id, subject_id, device_id) DO UPDATE SET
            registration = excluded.registration, provider = excluded.provider, environment = excluded.environment,
            token_hash = excluded.token_hash, token_suffix = excluded.token_suffix, sealed = excluded.sealed,
            status = excluded.status, registered_at = excluded.registered_at",
    )
    .bind(app_id)
    .bind(registration.device_id.clone())
    .bind(subject_id)
    .bind(registration.id.clone())
    .bind(registration.provider.name())
    .bind(registration.environment.name())
    .bind(registration.token_hash.clone())
    .bind(registration.token_suffix.clone())
    .bind(registration.sealed.clone())
    .bind(registration.status.name())
    .bind(now)
    .execute()
    .await?;
    Ok(())
}

/// Removes what is more than some tokens of a person, the oldest registrations first.
pub(super) async fn forget(tx: &mut Tx, app_id: Uuid, subject_id: Uuid, most: i64) -> Result<()> {
    tx.sql(
        "DELETE FROM push_tokens WHERE app_id = $1 AND subject_id = $2 AND registration NOT IN (
            SELECT registration FROM push_tokens WHERE app_id = $1 AND subject_id = $2
            ORDER BY registered_at DESC, registration DESC LIMIT $3)",
    )
    .bind(app_id)
    .bind(subject_id)
    .bind(most)
    .execute()
    .await?;
    Ok(())
}

/// Removes a person's device's token; answers whether there was one.
pub(super) async fn remove(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    device_id: &str,
) -> Result<bool> {
    let removed = tx
        .sql("DELETE FROM push_tokens WHERE app_id = $1 AND subject_id = $2 AND device_id = $3")
        .bind(app_id)
        .bind(subject_id)
        .bind(device_id.to_owned())
        .execute()
        .await?;
    Ok(removed == 1)
}

/// Retires the token of a registration. One that was registered anew meanwhile stays.
pub async fn retire(tx: &mut Tx, app_id: Uuid, registration: &str) -> Result<bool> {
    let retired = tx
        .sql(
            "UPDATE push_tokens SET status = 'invalid'
             WHERE app_id = $1 AND registration = $2 AND status = 'active'",
        )
        .bind(app_id)
        .bind(registration.to_owned())
        .execute()
        .await?;
    Ok(retired == 1)
}

/// What is shown of the tokens of a person's devices.
pub async fn shown(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<Vec<Shown>> {
    tx.sql(
        "SELECT device_id, provider, environment, token_suffix, status FROM push_tokens
         WHERE subject_id = $2 AND app_id = $1 ORDER BY registered_at DESC, device_id",
    )
    .bind(app_id)
    .bind(subject_id)
    .fetch_all()
    .await
}
