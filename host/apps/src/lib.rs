//! Apps in memory, the credentials that open them, and the management of keys and plugins.
//!
//! # Invariants
//!
//! - **A snapshot is immutable** ([`registry`]). Keys, settings, definitions and campaigns with the routes of their plugins are one `Arc<App>`. The process
//!   that changes an app reads it anew before it answers, others within `pipeline.pollMs`. Routing costs one hash look-up an event.
//! - **Who may ask waits for no plugin.** While the plugins of a newer version are loaded, a snapshot has that version's keys, settings and webhooks with
//!   what decided before, and keeps its own number: what needs the newer version waits for all of it.
//! - **A swap of a plugin is the replacement of a snapshot.** A batch ends on the snapshot, and so on the versions, that it began on. An
//!   activation is checked against every configuration that the version would serve, and loads the version, before it commits. A version that can't be
//!   loaded leaves the one before in force, and an error in the log.
//! - **A handler's signature says who may call it** ([`auth`]): the extractor is the credential.
//! - **A session opens what its access token would** ([`console`]), on routes of management, for the server's own pages.
//! - **A change and its audit entry are one transaction.** A change that is committed elsewhere, a replay, has its entry before it begins.
//! - **A key that this process has not met is looked up**, whatever failed at the same address before ([`registry`]). All that wait are one query.
//! - **Uses of keys never wait for the database** ([`keys`]): notes in memory, written by a task. A crash loses half a second of them.
//! - **An app is gone when its row is.** A job removes the rest in bounded steps and forgets at its end which app it was about.
//! - **Answers follow the app of their key** ([`cors`]). Credentials of SDKs are in headers that a page must know, never in cookies: these routes look at no
//!   cookie, and cross-origin rules guard no session; they keep a public write key from being useful on other people's pages. A preflight carries no key: it is answered for every
//!   origin that any app of the server allows.

pub mod audit;
pub mod auth;
pub mod campaigns;
pub mod console;
pub mod cors;
pub mod deletion;
pub mod http;
pub mod identity_keys;
pub mod key;
pub mod keys;
mod lookups;
pub mod plugins;
pub mod registry;
pub mod router;
pub mod segments;
pub mod services;
pub mod settings;
pub mod subject_token;
pub mod tasks;
pub mod webhooks;

use nudge_campaigns::apps as store;
use nudge_campaigns::settings::Settings;
use nudge_db::{Timestamp, Tx};
use uuid::Uuid;

pub use registry::{App, Holder, Registry};

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
    let id = nudge_platform::id::new(now);
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
        id: nudge_platform::id::new(now),
        app_id,
        workspace_id,
        name,
        scopes,
        expires_at: None,
    };
    keys::store::insert(tx, &row, &key, now).await?;
    store::bump_version(tx, app_id, now).await?;
    Ok(key)
}
