//! Taking a component in.

use bytes::Bytes;
use nudge_campaigns::apps;
use nudge_db::{Timestamp, Tx};
use nudge_plugin_runtime::catalogue::SERVER;
use nudge_plugin_runtime::check::Check;
use nudge_plugin_runtime::inspect::{Inspected, UploadRefusal, inspect};
use nudge_plugin_runtime::rollout::Release;
use nudge_plugin_runtime::store::{self, Version};
use nudge_plugin_runtime::upload_errors;
use nudge_wasm::{Kind, Plugin};
use serde_json::json;
use uuid::Uuid;

use super::{Error, MOST_PLUGINS, MOST_VERSIONS, Owner};
use crate::services::Services;

/// A version that is there after an upload.
#[derive(Debug)]
pub(crate) struct Uploaded {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) version: Version,
    /// Whether it was not there before.
    pub(crate) created: bool,
}

/// Inspects a component in its workspace's turn, and keeps it as a version of the plugin that it says it is.
pub(crate) async fn upload(
    services: &Services,
    owner: &Owner,
    workspace_id: Uuid,
    component: Bytes,
) -> Result<Uploaded, Error> {
    if let Some(known) = known(services, owner, &component).await? {
        return Ok(known);
    }
    let loaders = &services.plugins.loaders;
    let turn = loaders.inspection_turn(workspace_id).await;
    let turn = turn.ok_or_else(|| Error::Busy(anyhow::anyhow!("uploads queue for inspection")))?;
    let bytes = component.clone();
    let inspected = loaders.run(move |engine| {
        let inspected = inspect(engine, &bytes);
        drop(turn);
        inspected
    });
    let inspected = inspected.await?.map_err(|refusal| match refusal {
        UploadRefusal::Rejected(errors) => Error::Rejected(errors),
        UploadRefusal::Unavailable(cause) => Error::Busy(cause),
    })?;
    keep(services, owner, inspected, component).await
}

/// The version with these bytes, if the owner has it: it need not be compiled to be known.
async fn known(
    services: &Services,
    owner: &Owner,
    component: &Bytes,
) -> Result<Option<Uploaded>, Error> {
    let bytes = component.clone();
    let digest = services
        .plugins
        .loaders
        .run(move |_| nudge_wasm::digest(&bytes));
    let digest = digest.await?;
    let mut tx = services.db.read().await?;
    let found = store::with_digest(&mut tx, owner.app_id, &digest).await?;
    let Some((name, version)) = found else {
        return Ok(None);
    };
    let entry = store::find(&mut tx, owner.app_id, &name).await?;
    Ok(entry.map(|entry| Uploaded {
        name,
        kind: entry.kind,
        version,
        created: false,
    }))
}

/// Keeps a component that was inspected, unless its name or version is taken.
async fn keep(
    services: &Services,
    owner: &Owner,
    inspected: Inspected,
    component: Bytes,
) -> Result<Uploaded, Error> {
    let Inspected { plugin, checks } = inspected;
    let name = plugin.description().name.clone();
    let built_in = services.plugins.built_in();
    let mut names = built_in.map(|active| active.plugin.description().name.as_str());
    if names.any(|built_in| built_in == name) {
        let detail = format!("the name `{name}` is a built-in plugin's; choose another");
        return Err(Error::Rejected(upload_errors::refused(
            "reserved_name",
            detail,
        )));
    }
    let now = services.clock.now();
    let kind = plugin.kind();
    let version = version(owner, &plugin, checks, component.len(), now);
    let mut tx = services.db.write().await?;
    store::insert(&mut tx, owner.app_id, &name, kind, now).await?;
    // One that was there may have been removed before it was locked.
    while !store::lock(&mut tx, owner.app_id, &name).await? {
        store::insert(&mut tx, owner.app_id, &name, kind, now).await?;
    }
    // The app may have been deleted while the component was compiled, and what looked for leftovers has ended.
    if owner.app_id != SERVER && !apps::hold(&mut tx, owner.app_id).await? {
        return Err(Error::app_deleted());
    }
    let existing = place(&mut tx, owner.app_id, &name, kind, &version.release).await?;
    let created = existing.is_none();
    if created {
        let digest = &version.release.digest;
        store::insert_component(&mut tx, digest, component.into(), now).await?;
        store::insert_version(&mut tx, owner.app_id, &name, &version).await?;
        let resource = format!("plugin/{name}/{}", version.release.version);
        let detail =
            json!({"digest": digest, "kind": kind.as_str(), "sizeBytes": version.size_bytes});
        owner
            .record(&mut tx, store::UPLOADED, resource, detail, now)
            .await?;
    }
    tx.commit().await?;
    Ok(Uploaded {
        name,
        kind,
        version: existing.unwrap_or(version),
        created,
    })
}

fn version(
    owner: &Owner,
    plugin: &Plugin,
    checks: Vec<Check>,
    size: usize,
    now: Timestamp,
) -> Version {
    let description = plugin.description();
    Version {
        release: Release {
            version: description.version.clone(),
            digest: plugin.digest().to_owned(),
        },
        size_bytes: i64::try_from(size).unwrap_or(i64::MAX),
        description: description.summary.clone(),
        config_schema: description.config_schema.clone(),
        imports: plugin.imports().to_vec(),
        checks,
        uploaded_by: owner.actor.clone(),
        uploaded_at: now,
    }
}

/// Checks that there is a place for a version; answers the version that is there already, with the same bytes.
async fn place(
    tx: &mut Tx,
    app_id: Uuid,
    name: &str,
    kind: Kind,
    release: &Release,
) -> Result<Option<Version>, Error> {
    for scope in [app_id, SERVER] {
        let other = store::find(tx, scope, name).await?;
        if let Some(other) = other.filter(|other| other.kind != kind) {
            let detail = format!(
                "`{name}` is a {} plugin already, and this is a {kind} plugin; give it a name of its own",
                other.kind
            );
            return Err(Error::Rejected(upload_errors::refused(
                "kind_changed",
                detail,
            )));
        }
    }
    if let Some(existing) = store::find_version(tx, app_id, name, &release.version).await? {
        if existing.release.digest != release.digest {
            return Err(Error::VersionExists);
        }
        return Ok(Some(existing));
    }
    if store::count(tx, app_id).await? > MOST_PLUGINS {
        let detail = format!("there are at most {MOST_PLUGINS} plugins; delete one first");
        return Err(Error::TooMany(detail));
    }
    if store::count_versions(tx, app_id, name).await? >= MOST_VERSIONS {
        let detail =
            format!("a plugin has at most {MOST_VERSIONS} versions; delete old ones first");
        return Err(Error::TooMany(detail));
    }
    Ok(None)
}
