//! Push credentials in the database.

use nudge_db::{Error, Result, Timestamp, Tx};
use nudge_platform::sealed::{Sealed, SealedColumn};
use nudge_platform::secrets::Secrets;
use nudge_records::deliveries::provider::Platform;
use uuid::Uuid;

use super::{Identity, PrivateKey, Record, Status};
use crate::providers::Environment;

const TABLE: &str = "push_credentials";

/// A credential with its key as it is stored.
#[derive(Clone, Debug)]
pub struct Stored {
    /// What is public of it.
    pub record: Record,
    sealed: Sealed,
}

#[derive(nudge_db::FromRow)]
struct Row {
    id: String,
    platform: String,
    identity: String,
    fingerprint: String,
    sealed: Sealed,
    status: String,
    status_reason: Option<String>,
    created_at: Timestamp,
}

impl Row {
    fn stored(self) -> Result<Stored> {
        let corrupt = |column, cause: String| Error::corrupt(TABLE, column, cause);
        let parsed = match Platform::of_name(&self.platform) {
            Some(Platform::Ios) => serde_json::from_str(&self.identity).map(Identity::Apple),
            Some(Platform::Android) => serde_json::from_str(&self.identity).map(Identity::Google),
            Some(Platform::Web) => serde_json::from_str(&self.identity).map(Identity::Web),
            None => return Err(corrupt("platform", "an unknown platform".to_owned())),
        };
        let record = Record {
            id: Uuid::parse_str(&self.id).map_err(|cause| corrupt("id", cause.to_string()))?,
            identity: parsed.map_err(|cause| corrupt("identity", cause.to_string()))?,
            fingerprint: self.fingerprint,
            status: match self.status.as_str() {
                "active" => Status::Active,
                _ => Status::Invalid,
            },
            status_reason: self.status_reason,
            created_at: self.created_at,
        };
        Ok(Stored {
            record,
            sealed: self.sealed,
        })
    }
}

impl Stored {
    /// The private key.
    pub fn open(&self, secrets: &Secrets) -> Result<PrivateKey> {
        self.sealed
            .open(secrets, place(&self.record.id.to_string()))
            .map(PrivateKey)
            .map_err(|closed| Error::corrupt(TABLE, "sealed", closed))
    }
}

/// What a credential's key is sealed for.
pub(super) fn place(id: &str) -> SealedColumn<'_> {
    SealedColumn {
        table: TABLE,
        row: id,
    }
}

/// Adds a credential.
pub(super) async fn insert(
    tx: &mut Tx,
    app_id: Uuid,
    record: &Record,
    sealed: Sealed,
) -> Result<()> {
    let identity = serde_json::to_string(&record.identity)
        .map_err(|cause| Error::corrupt(TABLE, "identity", cause))?;
    tx.sql(
        "INSERT INTO push_credentials (id, app_id, platform, environment, identity, fingerprint, sealed, status,
                                       created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(record.id.to_string())
    .bind(app_id)
    .bind(record.identity.platform().name())
    .bind(record.identity.environment().name())
    .bind(identity)
    .bind(record.fingerprint.clone())
    .bind(sealed)
    .bind(record.status.name())
    .bind(record.created_at)
    .execute()
    .await?;
    Ok(())
}

/// The credentials of an app, newest first.
pub async fn list(tx: &mut Tx, app_id: Uuid) -> Result<Vec<Record>> {
    let rows: Vec<Row> = tx
        .sql(
            "SELECT id, platform, identity, fingerprint, sealed, status, status_reason, created_at
             FROM push_credentials WHERE app_id = $1 ORDER BY id DESC",
        )
        .bind(app_id)
        .fetch_all()
        .await?;
    rows.into_iter()
        .map(|row| row.stored().map(|stored| stored.record))
        .collect()
}

/// Which of an app's credentials for a platform is used for an environment: the newest of it, or of the other one.
pub async fn used(
    tx: &mut Tx,
    app_id: Uuid,
    platform: Platform,
    environment: Environment,
) -> Result<Option<Stored>> {
    let row: Option<Row> = tx
        .sql(
            "SELECT id, platform, identity, fingerprint, sealed, status, status_reason, created_at
             FROM push_credentials WHERE app_id = $1 AND platform = $2
             ORDER BY CASE environment WHEN $3 THEN 0 ELSE 1 END, id DESC LIMIT 1",
        )
        .bind(app_id)
        .bind(platform.name())
        .bind(environment.name())
        .fetch_optional()
        .await?;
    row.map(Row::stored).transpose()
}

/// Removes a credential; answers whether it was there.
pub(super) async fn delete(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<bool> {
    let removed = tx
        .sql("DELETE FROM push_credentials WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id.to_string())
        .execute()
        .await?;
    Ok(removed == 1)
}

/// Notes that a provider refused a credential.
pub async fn mark_invalid(tx: &mut Tx, app_id: Uuid, id: Uuid, reason: &str) -> Result<bool> {
    let marked = tx
        .sql(
            "UPDATE push_credentials SET status = 'invalid', status_reason = $3
             WHERE app_id = $1 AND id = $2 AND status = 'active'",
        )
        .bind(app_id)
        .bind(id.to_string())
        .bind(reason.to_owned())
        .execute()
        .await?;
    Ok(marked == 1)
}
