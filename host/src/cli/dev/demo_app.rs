//! The app of `nudge dev`: which one of the database it is, and its keys, so that each start has the same ones.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use nudge_apps::key::{self, Kind};
use nudge_apps::keys::store;
use nudge_campaigns::apps;
use nudge_db::{Db, Schema, Timestamp, Tx};
use nudge_platform::config::Config;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use uuid::Uuid;

use crate::opening;

/// The file in the data directory that has the app's id and keys; its owner alone can read it.
const FILE: &str = "dev.json";
/// The name of the app that is made, unless another is asked for.
const APP_NAME: &str = "Demo";
/// What people see as the name of the command's keys.
const KEY_NAME: &str = "nudge dev";
/// Keys of earlier starts that still work.
const KEYS_KEPT: i64 = 30;

/// The app and its keys, whose text the database does not have.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DemoApp {
    pub app_id: Uuid,
    pub workspace_id: Uuid,
    pub write_key: String,
    pub server_key: String,
    pub api_token: String,
}

/// Which app of a database it is to be.
#[derive(Clone, Debug)]
pub(super) enum Choice {
    /// The first, or a new one where there is none.
    First,
    /// One that is there.
    This(Uuid),
    /// One of this name, in a database that has none.
    New(String),
}

impl DemoApp {
    /// The one of an earlier start; none at the first.
    pub(super) fn read(data_dir: &Path) -> anyhow::Result<Option<Self>> {
        let path = data_dir.join(FILE);
        match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map(Some).with_context(|| {
                format!(
                    "{} can't be read: remove it, and new keys are made",
                    path.display()
                )
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    /// Takes the app, or the first of the database, or makes one; of the keys those that still work.
    pub(super) async fn make(
        tx: &mut Tx,
        choice: &Choice,
        before: Option<&Self>,
        now: Timestamp,
    ) -> nudge_db::Result<Self> {
        let (found, name) = match choice {
            Choice::This(id) => (apps::find(tx, *id).await?, APP_NAME),
            Choice::First => (apps::first(tx).await?, APP_NAME),
            Choice::New(name) => (None, name.as_str()),
        };
        let (app_id, workspace_id) = if let Some(app) = found {
            (app.id, app.workspace_id)
        } else {
            let workspace_id = nudge_platform::id::new(now);
            let app_id = nudge_apps::create(tx, workspace_id, name, now).await?;
            (app_id, workspace_id)
        };
        store::revoke_older(tx, app_id, KEY_NAME, KEYS_KEPT, now).await?;
        let mut key = async |kind: Kind, before: Option<&String>| {
            if let Some(text) = before
                && works(tx, app_id, text).await?
            {
                return Ok(text.clone());
            }
            let (name, scopes) = (KEY_NAME, kind.scopes());
            let key = nudge_apps::create_key(tx, app_id, workspace_id, kind, name, scopes, now);
            nudge_db::Result::Ok(key.await?.text)
        };
        Ok(Self {
            app_id,
            workspace_id,
            write_key: key(Kind::Write, before.map(|it| &it.write_key)).await?,
            server_key: key(Kind::Server, before.map(|it| &it.server_key)).await?,
            api_token: key(Kind::Api, before.map(|it| &it.api_token)).await?,
        })
    }

    /// Keeps it for the next start. Done before the commit: a file that names an app which was never made is of no
    /// consequence, an app that no file names is not recognised again.
    pub(super) fn keep(&self, data_dir: &Path) -> anyhow::Result<()> {
        write_private(&data_dir.join(FILE), self)
    }
}

/// Whether a key is the app's and not revoked.
async fn works(tx: &mut Tx, app_id: Uuid, text: &str) -> nudge_db::Result<bool> {
    let Some(hash) = key::hash(text) else {
        return Ok(false);
    };
    let found = store::find_by_hashes(tx, std::iter::once(&hash)).await?;
    let owner = found.get(&hash);
    Ok(owner.is_some_and(|owner| owner.app_id == app_id && !owner.revoked))
}

/// Chooses the app of a database that has apps already: the one that is asked for by its id or name, or the one that an
/// earlier start made. Any other database is refused before anything in it is changed: it may be a production's.
pub(super) async fn choose(
    config: &Config,
    before: Option<&DemoApp>,
    wanted: Option<&str>,
) -> anyhow::Result<Choice> {
    let url = config.database_url();
    let file = nudge_db::sqlite_path(&url);
    if file.is_some_and(|path| !path.exists()) {
        return in_empty(wanted, true);
    }
    let db = opening::open(config, 1).await?;
    let chosen = choose_in(config, &db, before, wanted, file.is_some()).await;
    db.close().await;
    chosen
}

async fn choose_in(
    config: &Config,
    db: &Db,
    before: Option<&DemoApp>,
    wanted: Option<&str>,
    own_file: bool,
) -> anyhow::Result<Choice> {
    if opening::schema(config, db).await? == Schema::Empty {
        return in_empty(wanted, own_file);
    }
    let mut tx = db.read().await?;
    let Some(oldest) = apps::oldest(&mut tx).await? else {
        return in_empty(wanted, own_file);
    };
    if let Some(wanted) = wanted {
        return match *apps::named(&mut tx, wanted).await? {
            [app] => Ok(Choice::This(app)),
            [] => bail!("the database has no app `{wanted}`"),
            _ => bail!("several apps are called `{wanted}`: name the id"),
        };
    }
    if let Some(before) = before
        && apps::exists(&mut tx, before.app_id).await?
    {
        return Ok(Choice::This(before.app_id));
    }
    // Earlier versions kept no file; their keys tell.
    if own_file && store::has_named(&mut tx, oldest, KEY_NAME).await? {
        return Ok(Choice::This(oldest));
    }
    bail!(
        "the database has apps that `nudge dev` did not make, and it would make keys without limits in one of them: run \
         `nudge serve`, choose another folder with --data-dir, or name the app with `nudge dev --app NAME`"
    )
}

/// In a database without apps. One that is no file of the command's own may be meant for something else.
fn in_empty(wanted: Option<&str>, own_file: bool) -> anyhow::Result<Choice> {
    match wanted {
        None if own_file => Ok(Choice::First),
        None => {
            bail!(
                "`nudge dev` did not make this database: name the app to make with `nudge dev --app NAME`, or run `nudge serve`"
            )
        }
        Some(id) if id.parse::<Uuid>().is_ok() => bail!("the database has no app `{id}`"),
        Some(name) => Ok(Choice::New(name.to_owned())),
    }
}

/// Writes a file whole, for its owner alone: who waits for it never sees half of it.
pub(super) fn write_private(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_vec_pretty(value)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let write = || {
        let mut temporary = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        temporary.write_all(&text)?;
        temporary.persist(path).map_err(|error| error.error)
    };
    write()
        .map(drop)
        .with_context(|| format!("can't write {}", path.display()))
}
