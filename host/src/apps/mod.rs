//! Apps: the tenants. Their settings, keys, and the snapshot that requests and the pipeline work with.

pub mod deletion;
pub mod http;
pub mod key;
mod lookups;
pub mod registry;
pub mod settings;
pub mod store;

pub use registry::{App, Holder, Registry};
pub use settings::Settings;

use nudge_db::{Timestamp, Tx};
use uuid::Uuid;

use crate::keys;
use key::{Kind, NewKey};

/// Apps of a workspace.
pub const MOST: i64 = 1_000;

/// Creates an app with the default settings.
pub async fn create(
    tx: &mut Tx,
    workspace_id: Uuid,
    name: &str,
    now: Timestamp,
) -> nudge_db::Result<Uuid> {
    let id = crate::id::new(now);
    store::insert(tx, id, workspace_id, name, &Settings::default(), now).await?;
    Ok(id)
}

/// Creates a key that does not expire; the only time that its text is known.
pub async fn create_key(
    tx: &mut Tx,
    app_id: Uuid,
    workspace_id: Uuid,
    kind: Kind,
    name: &str,
    scopes: &[&str],
    now: Timestamp,
) -> nudge_db::Result<NewKey> {
    let key = NewKey::generate(kind);
    let row = keys::store::NewRow {
        id: crate::id::new(now),
        app_id,
        workspace_id,
        name,
        scopes,
        expires_at: None,
    };
    keys::store::insert(tx, &row, &key, now).await?;
    store::touch(tx, app_id, now).await?;
    Ok(key)
}
