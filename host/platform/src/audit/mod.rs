//! The audit log: who changed what (contract 13). Entries are added in the transaction of the change and
//! never touched again.

pub mod store;

use nudge_db::{Timestamp, Tx};
use serde_json::Value;
use uuid::Uuid;

/// The actor of what the server does by itself, such as a roll-back.
pub const SERVER: &str = "server";

/// One change.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The app that it concerns.
    pub app_id: Uuid,
    /// Who did it: the subject of an access token, `key/<id>`, or [`SERVER`].
    pub actor: &'a str,
    /// What was done, as `resource.verb`: `plugin.activated`, `key.revoked`.
    pub action: &'static str,
    /// What it was done to: a kind and an id or name, `plugin/cart-abandonment`. Names no person.
    pub resource: String,
    /// What else is worth knowing. Holds no secret, and nothing of a person's data.
    pub detail: Value,
}

/// Adds an entry to the log of its app.
pub async fn record(tx: &mut Tx, entry: &Entry<'_>, now: Timestamp) -> nudge_db::Result<()> {
    store::insert(tx, crate::id::new(now), entry, now).await
}
