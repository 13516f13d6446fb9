//! Endpoints and their secrets in the database; messages and attempts are in [`messages`](nudge_records::webhooks::messages) and [`queue`].

pub mod queue;

use nudge_campaigns::webhooks::parse;
use nudge_db::{Error, Result, Timestamp, Tx};
use nudge_platform::sealed::Sealed;
use uuid::Uuid;

use super::{Health, Webhook};

#[derive(nudge_db::FromRow)]
struct Row {
    id: Uuid,
    app_id: Uuid,
    url: String,
    event_types: String,
    active: bool,
    description: String,
    version: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
    consecutive_failures: i64,
    failing_since: Option<Timestamp>,
    last_success_at: Option<Timestamp>,
    last_failure_at: Option<Timestamp>,
    last_status_code: Option<i64>,
    last_error: Option<String>,
    disabled_at: Option<Timestamp>,
}

/// A sealed secret and what it is bound to.
#[derive(Debug, nudge_db::FromRow)]
pub(super) struct SecretRow {
    pub name: String,
    pub sealed: Sealed,
}

impl Row {
    fn read(self) -> Result<Webhook> {
        Ok(Webhook {
            id: self.id,
            app_id: self.app_id,
            url: self.url,
            event_types: parse(&self.event_types)?,
            active: self.active,
            description: self.description,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
            health: Health {
                consecutive_failures: self.consecutive_failures,
                failing_since: self.failing_since,
                last_success_at: self.last_success_at,
                last_failure_at: self.last_failure_at,
                last_status_code: self.last_status_code,
                last_error: self.last_error,
                disabled_at: self.disabled_at,
            },
        })
    }
}

fn event_types(webhook: &Webhook) -> Result<String> {
    serde_json::to_string(&webhook.event_types)
        .map_err(|cause| Error::corrupt("webhooks", "event_types", cause))
}

/// How many endpoints an app has.
pub(super) async fn count(tx: &mut Tx, app_id: Uuid) -> Result<usize> {
    let count: i64 = tx
        .sql("SELECT count(*) AS count FROM webhooks WHERE app_id = $1")
        .bind(app_id)
        .fetch_scalar()
        .await?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Adds an endpoint.
pub(super) async fn insert(tx: &mut Tx, webhook: &Webhook) -> Result<()> {
    tx.sql(
        "INSERT INTO webhooks (id, app_id, url, event_types, active, description, version, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)",
    )
    .bind(webhook.id)
    .bind(webhook.app_id)
    .bind(webhook.url.clone())
    .bind(event_types(webhook)?)
    .bind(webhook.active)
    .bind(webhook.description.clone())
    .bind(webhook.version)
    .bind(webhook.created_at)
    .execute()
    .await?;
    Ok(())
}

/// Replaces an endpoint that is of the version before; answers whether it was. The failures of another URL, or of the time
/// before it was switched off, are none of its own any longer; one that was given up stays so.
pub(super) async fn update(tx: &mut Tx, webhook: &Webhook) -> Result<bool> {
    let updated = tx
        .sql(
            "UPDATE webhooks SET url = $3, event_types = $4, active = $5, description = $6, version = $7, updated_at = $8,
                    consecutive_failures = CASE WHEN disabled_at IS NULL AND (url <> $3 OR $5 AND NOT active)
                                           THEN 0 ELSE consecutive_failures END,
                    failing_since = CASE WHEN disabled_at IS NULL AND (url <> $3 OR $5 AND NOT active)
                                    THEN NULL ELSE failing_since END
             WHERE app_id = $1 AND id = $2 AND version = $7 - 1",
        )
        .bind(webhook.app_id)
        .bind(webhook.id)
        .bind(webhook.url.clone())
        .bind(event_types(webhook)?)
        .bind(webhook.active)
        .bind(webhook.description.clone())
        .bind(webhook.version)
        .bind(webhook.updated_at)
        .execute()
        .await?;
    Ok(updated == 1)
}

/// Removes an endpoint and its secrets; answers whether it was there.
pub(super) async fn delete(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<bool> {
    tx.sql("DELETE FROM webhook_secrets WHERE app_id = $1 AND webhook_id = $2")
        .bind(app_id)
        .bind(id)
        .execute()
        .await?;
    let removed = tx
        .sql("DELETE FROM webhooks WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .execute()
        .await?;
    Ok(removed == 1)
}

/// Finds an endpoint.
pub async fn find(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<Webhook>> {
    let row: Option<Row> = tx
        .sql(
            "SELECT id, app_id, url, event_types, active, description, version, created_at, updated_at,
                    consecutive_failures, failing_since, last_success_at, last_failure_at, last_status_code,
                    last_error, disabled_at
             FROM webhooks WHERE app_id = $1 AND id = $2",
        )
        .bind(app_id)
        .bind(id)
        .fetch_optional()
        .await?;
    row.map(Row::read).transpose()
}

/// Lists endpoints of an app, newest first, from below an id on.
pub(super) async fn list(
    tx: &mut Tx,
    app_id: Uuid,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Webhook>> {
    let rows: Vec<Row> = tx
        .sql(
            "SELECT id, app_id, url, event_types, active, description, version, created_at, updated_at,
                    consecutive_failures, failing_since, last_success_at, last_failure_at, last_status_code,
                    last_error, disabled_at
             FROM webhooks WHERE app_id = $1",
        )
        .bind(app_id)
        .newest_below(before, limit)
        .fetch_all()
        .await?;
    rows.into_iter().map(Row::read).collect()
}

/// Locks an endpoint until the transaction ends; answers whether it is there.
pub(super) async fn lock(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<bool> {
    let for_update = tx.dialect().for_update();
    let row: Option<Uuid> = tx
        .sql("SELECT id FROM webhooks WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .push(for_update)
        .fetch_value()
        .await?;
    Ok(row.is_some_and(|row| row == id))
}

/// Lets an endpoint begin anew if it is disabled.
pub(super) async fn enable(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<()> {
    tx.sql(
        "UPDATE webhooks SET consecutive_failures = 0, failing_since = NULL, disabled_at = NULL
         WHERE app_id = $1 AND id = $2 AND disabled_at IS NOT NULL",
    )
    .bind(app_id)
    .bind(id)
    .execute()
    .await?;
    Ok(())
}

/// Adds a secret that does not expire.
pub(super) async fn insert_secret(
    tx: &mut Tx,
    webhook: &Webhook,
    name: String,
    sealed: Sealed,
) -> Result<()> {
    tx.sql(
        "INSERT INTO webhook_secrets (name, app_id, webhook_id, sealed) VALUES ($1, $2, $3, $4)",
    )
    .bind(name)
    .bind(webhook.app_id)
    .bind(webhook.id)
    .bind(sealed)
    .execute()
    .await?;
    Ok(())
}

/// Lets the newest secret of an endpoint expire at an instant. Those before it keep the instants that they have.
pub(super) async fn expire_newest(tx: &mut Tx, webhook: &Webhook, at: Timestamp) -> Result<()> {
    tx.sql(
        "UPDATE webhook_secrets SET expires_at = $3 WHERE app_id = $1 AND webhook_id = $2 AND expires_at IS NULL",
    )
    .bind(webhook.app_id)
    .bind(webhook.id)
    .bind(at)
    .execute()
    .await?;
    Ok(())
}

/// Forgets the secrets of an endpoint that expire by an instant, and all but so many of the others.
pub(super) async fn forget_secrets(
    tx: &mut Tx,
    webhook: &Webhook,
    by: Timestamp,
    most: i64,
) -> Result<()> {
    tx.sql(
        "DELETE FROM webhook_secrets WHERE app_id = $1 AND webhook_id = $2 AND (expires_at <= $3 OR name IN (
            SELECT s.name FROM webhook_secrets s WHERE s.webhook_id = $2 AND s.expires_at > $3
            ORDER BY s.name DESC LIMIT 1000 OFFSET $4))",
    )
    .bind(webhook.app_id)
    .bind(webhook.id)
    .bind(by)
    .bind(most)
    .execute()
    .await?;
    Ok(())
}

/// Forgets all secrets of an endpoint.
pub(super) async fn delete_secrets(tx: &mut Tx, webhook: &Webhook) -> Result<()> {
    tx.sql("DELETE FROM webhook_secrets WHERE app_id = $1 AND webhook_id = $2")
        .bind(webhook.app_id)
        .bind(webhook.id)
        .execute()
        .await?;
    Ok(())
}

/// The secrets of an endpoint that have not expired, the newest first.
pub(super) async fn secrets(
    tx: &mut Tx,
    webhook_id: Uuid,
    now: Timestamp,
) -> Result<Vec<SecretRow>> {
    tx.sql(
        "SELECT name, sealed FROM webhook_secrets
         WHERE webhook_id = $1 AND (expires_at IS NULL OR expires_at > $2)
         ORDER BY CASE WHEN expires_at IS NULL THEN 0 ELSE 1 END, name DESC",
    )
    .bind(webhook_id)
    .bind(now)
    .fetch_all()
    .await
}
