//! Changing what an app or the server has of plugins. Each change is checked before it is made, made in one
//! transaction, and in force in this process when it is answered.

mod rollout;
pub mod slot;
mod upload;
mod withdraw;

use std::collections::BTreeMap;
use std::time::Instant;

use nudge_db::{Timestamp, Tx};
use serde_json::{Value, json};
use uuid::Uuid;

pub(super) use rollout::{Change, change};
pub(super) use upload::upload;
pub(super) use withdraw::withdraw;

use crate::plugins::references;
use crate::services::Services;
use nudge_platform::audit;
use nudge_platform::field_error::FieldError;
use nudge_plugin_runtime::active::Origin;
use nudge_plugin_runtime::catalogue::{Entry, SERVER};
use nudge_plugin_runtime::loaders::Unloadable;
use nudge_plugin_runtime::rollout::{Impossible, Part};
use nudge_plugin_runtime::workers::Lost;
use nudge_plugin_runtime::{CheckFailed, Refused, store};

/// Plugins an app or the server may have.
pub const MOST_PLUGINS: usize = 50;
/// Versions a plugin may have.
pub const MOST_VERSIONS: usize = 200;
/// How often a change that met another one is tried.
const MOST_TRIES: usize = 5;

/// Apps and the versions as of which a change was checked against them.
type AppVersions = BTreeMap<Uuid, i64>;

/// Whose plugins are changed, and who does it.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The app; [`SERVER`] for the server.
    pub app_id: Uuid,
    /// Who asks for the change.
    pub actor: String,
}

/// Why a change is not made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such plugin, version or kind. What is missing, for people.
    #[error("{0}")]
    NotFound(String),
    /// The plugin is not the caller's to change.
    #[error("the plugin belongs to the server")]
    ReadOnly(Origin),
    /// The version was uploaded with other bytes.
    #[error("the version exists")]
    VersionExists,
    /// Something needs it.
    #[error("the plugin is in use")]
    InUse(String),
    /// The component can't be what it is asked to be.
    #[error("the plugin is rejected")]
    Rejected(Vec<FieldError>),
    /// The request breaks the contract.
    #[error("invalid request")]
    Invalid(Vec<FieldError>),
    /// There is nothing to promote.
    #[error("no candidate")]
    NoCandidate,
    /// There is nothing to go back to.
    #[error("no version before")]
    NoPrevious,
    /// There are as many as there may be.
    #[error("too many")]
    TooMany(String),
    /// It can't be done now.
    #[error("the server is busy")]
    Busy(#[source] anyhow::Error),
    /// A plugin could not be asked.
    #[error("a configuration could not be checked")]
    Check(#[from] CheckFailed),
    /// A version can't be run here.
    #[error("a version can't be loaded")]
    Unloadable(#[source] Unloadable),
    /// The host panicked.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The database.
    #[error("storage failed")]
    Storage(#[from] nudge_db::Error),
}

impl Error {
    /// Nothing has this name.
    pub(super) fn no_plugin(name: &str) -> Self {
        Self::NotFound(format!("there is no plugin `{name}`; upload it first"))
    }

    /// Others change the plugin at the same time: the request is made again, after theirs.
    fn overtaken() -> Self {
        Self::Storage(nudge_db::Error::lost_race())
    }

    /// The app is gone.
    fn app_deleted() -> Self {
        Self::NotFound("the app was deleted".to_owned())
    }

    /// The plugin has no such version.
    pub(super) fn no_version(name: &str, version: &str) -> Self {
        Self::NotFound(format!(
            "the plugin `{name}` has no version {version}; upload it first"
        ))
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Invalid(errors) => Self::Rejected(errors),
            Refused::Check(cause) => Self::Check(cause),
        }
    }
}

impl From<Unloadable> for Error {
    fn from(error: Unloadable) -> Self {
        match error {
            Unloadable::Storage(cause) => Self::Storage(cause),
            Unloadable::Lost(lost) => Self::Lost(lost),
            Unloadable::Refused(cause) => {
                match nudge_plugin_runtime::upload_errors::of_load(&cause) {
                    Some(errors) => Self::Rejected(errors),
                    None => Self::Busy(cause.into()),
                }
            }
            other => Self::Unloadable(other),
        }
    }
}

impl From<Impossible> for Error {
    fn from(impossible: Impossible) -> Self {
        let strategy =
            |detail| Self::Invalid(vec![FieldError::new("/strategy", "invalid", detail)]);
        match impossible {
            Impossible::NothingActive => strategy(
                "no version is active that a candidate could be compared with; activate one with `instant` first",
            ),
            Impossible::ActiveAlready => strategy(
                "this version is active already; try another one, or activate it with `instant`",
            ),
            Impossible::NoCandidate => Self::NoCandidate,
            Impossible::NoPrevious => Self::NoPrevious,
        }
    }
}

impl Owner {
    /// The plugin of this name, if it is the owner's to change.
    async fn entry(&self, services: &Services, tx: &mut Tx, name: &str) -> Result<Entry, Error> {
        if let Some(entry) = store::find(tx, self.app_id, name).await? {
            return Ok(entry);
        }
        let mut built_in = services.plugins.built_in();
        if built_in.any(|active| active.plugin.description().name == name) {
            return Err(Error::ReadOnly(Origin::BuiltIn));
        }
        if self.app_id != SERVER && store::find(tx, SERVER, name).await?.is_some() {
            return Err(Error::ReadOnly(Origin::Server));
        }
        Err(Error::no_plugin(name))
    }

    /// The apps that a change concerns, with their versions.
    async fn versions(&self, tx: &mut Tx) -> nudge_db::Result<Vec<(Uuid, i64)>> {
        if self.app_id == SERVER {
            return nudge_campaigns::apps::versions(tx).await;
        }
        let version = nudge_campaigns::apps::version(tx, self.app_id).await?;
        let version = version.map(|version| (self.app_id, version));
        Ok(version.into_iter().collect())
    }

    /// Those of the apps that have changed since they were seen, with the versions that they have.
    async fn unseen(&self, tx: &mut Tx, seen: &AppVersions) -> nudge_db::Result<AppVersions> {
        let mut versions: AppVersions = self.versions(tx).await?.into_iter().collect();
        versions.retain(|app_id, version| seen.get(app_id) != Some(version));
        Ok(versions)
    }

    /// Notes that snapshots have changed; answers whether nothing else in them has since the apps were seen. What is saved from
    /// now on is checked against what this change makes.
    async fn bump_seen(
        &self,
        tx: &mut Tx,
        seen: &AppVersions,
        now: Timestamp,
    ) -> Result<bool, Error> {
        self.bump_version(tx, now).await?;
        let versions = self.versions(tx).await?;
        if versions.is_empty() && self.app_id != SERVER {
            return Err(Error::app_deleted());
        }
        let is_seen = |(app_id, version): &(Uuid, i64)| seen.get(app_id) == Some(&(version - 1));
        Ok(versions.iter().all(is_seen))
    }

    /// A pointer to what is wrong in an app; operators are told in which.
    fn place(&self, app_id: Uuid, errors: Vec<FieldError>) -> Vec<FieldError> {
        if self.app_id != SERVER {
            return errors;
        }
        let of_app = |error: FieldError| {
            let pointer = format!("/apps/{app_id}{}", error.pointer);
            FieldError { pointer, ..error }
        };
        errors.into_iter().map(of_app).collect()
    }

    /// Notes that snapshots have changed.
    async fn bump_version(&self, tx: &mut Tx, now: Timestamp) -> nudge_db::Result<()> {
        if self.app_id == SERVER {
            nudge_campaigns::apps::touch_all(tx, now).await
        } else {
            nudge_campaigns::apps::bump_version(tx, self.app_id, now).await
        }
    }

    /// Brings a committed change into force in this process.
    async fn refresh(&self, services: &Services) -> nudge_db::Result<()> {
        if self.app_id == SERVER {
            services.apps.refresh_all().await
        } else {
            services.apps.refresh(self.app_id).await.map(drop)
        }
    }

    async fn record(
        &self,
        tx: &mut Tx,
        action: &'static str,
        resource: String,
        detail: Value,
        now: Timestamp,
    ) -> nudge_db::Result<()> {
        let entry = audit::Entry {
            app_id: self.app_id,
            actor: &self.actor,
            action,
            resource,
            detail,
        };
        audit::record(tx, &entry, now).await
    }
}

/// Removes a plugin that nothing needs.
pub(super) async fn delete(services: &Services, owner: &Owner, name: &str) -> Result<(), Error> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    owner.entry(services, &mut tx, name).await?;
    if !store::lock(&mut tx, owner.app_id, name).await? {
        // Somebody else was there first.
        return Err(Error::no_plugin(name));
    }
    // Before it is read what names the plugin: what comes to name it moves the version too, and then looks whether it is there.
    owner.bump_version(&mut tx, now).await?;
    if let Some(detail) = references::of(&mut tx, owner.app_id, name).await? {
        return Err(Error::InUse(detail));
    }
    store::delete(&mut tx, owner.app_id, name).await?;
    let resource = format!("plugin/{name}");
    owner
        .record(&mut tx, "plugin.deleted", resource, json!({}), now)
        .await?;
    tx.commit().await?;
    Ok(owner.refresh(services).await?)
}

/// Removes a version that is not in force.
pub(super) async fn delete_version(
    services: &Services,
    owner: &Owner,
    name: &str,
    version: &str,
) -> Result<(), Error> {
    let now = services.clock.now();
    // A plugin is asked, for which no transaction may wait.
    let refuses = refuses_what_came_after(services, owner, name, version).await?;
    let mut tx = services.db.write().await?;
    owner.entry(services, &mut tx, name).await?;
    store::lock(&mut tx, owner.app_id, name).await?;
    let found = store::find_version(&mut tx, owner.app_id, name, version).await?;
    let found = found.ok_or_else(|| Error::no_version(name, version))?;
    // Read again, now that nobody else changes it.
    let entry = owner.entry(services, &mut tx, name).await?;
    if let Some(part) = entry.rollout.part_of(version) {
        let detail = match part {
            Part::Active => {
                "the version is active; activate another one, or remove the plugin as a whole"
            }
            Part::Candidate => "the version is a candidate; roll it back or promote it first",
            Part::Previous => {
                "a roll-back would bring the version back; it is free once another version was activated"
            }
        };
        return Err(Error::InUse(detail.to_owned()));
    }
    if entry.rolled_back_from() == Some(version) {
        let user = match entry.rollout.active {
            Some(_) => refuses,
            None => references::of(&mut tx, owner.app_id, name).await?,
        };
        if let Some(user) = user {
            return Err(Error::InUse(format!(
                "the version was rolled back, and says which events are kept as dead letters until another is activated: {user}"
            )));
        }
    }
    store::delete_version(&mut tx, owner.app_id, name, &found.release).await?;
    let resource = format!("plugin/{name}/{version}");
    owner
        .record(&mut tx, "plugin_version.deleted", resource, json!({}), now)
        .await?;
    Ok(tx.commit().await?)
}

/// What the active version refuses that the rolled-back one accepted, in words; none: nothing, or another version was rolled back.
async fn refuses_what_came_after(
    services: &Services,
    owner: &Owner,
    name: &str,
    version: &str,
) -> Result<Option<String>, Error> {
    let mut tx = services.db.read().await?;
    let entry = owner.entry(services, &mut tx, name).await?;
    drop(tx);
    let was_it = entry.rolled_back_from() == Some(version);
    let Some(active) = entry.rollout.active.as_ref().filter(|_| was_it) else {
        return Ok(None);
    };
    let loaders = &services.plugins.loaders;
    let plugin = loaders.load(&services.db, &active.digest).await?;
    let mut tx = services.db.read().await?;
    let apps = owner.unseen(&mut tx, &AppVersions::new()).await?;
    drop(tx);
    let started = Instant::now();
    let errors = rollout::refusals(services, owner, &apps, (&entry, None), &plugin, started);
    let first = errors.await?.into_iter().next();
    Ok(first.map(|error| {
        let active = &active.version;
        format!("{active} refuses {}: {}", error.pointer, error.detail)
    }))
}
