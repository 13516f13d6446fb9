//! `nudge dev`: an embedded server with a demo app, ready for the first event.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use nudge_apps as apps;
use nudge_apps::key::Kind;
use nudge_apps::keys;
use nudge_http::issuer::Role;
use nudge_platform::config::Config;
use serde::Serialize;
use tempfile::NamedTempFile;
use uuid::Uuid;

use super::ServerArguments;
use crate::server::Server;
use crate::services::Services;

/// How long the printed tokens are good for.
const TOKEN_LIFETIME: Duration = Duration::from_hours(720);

/// What people see as the name of the command's keys.
const KEY_NAME: &str = "nudge dev";
/// Keys of earlier starts that still work.
const KEYS_KEPT: i64 = 30;

/// Arguments of the command.
#[derive(Debug, Default, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Also write what is printed to a file, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What a newcomer needs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Access {
    /// Where the API is.
    pub base_url: String,
    /// The demo workspace.
    pub workspace_id: Uuid,
    /// The demo app.
    pub app_id: Uuid,
    /// For SDKs.
    pub write_key: String,
    /// For servers.
    pub server_key: String,
    /// For tools.
    pub api_token: String,
    /// A token of each role in the workspace; empty where access tokens come from elsewhere.
    pub admin_token: String,
    /// A token of each role in the workspace.
    pub editor_token: String,
    /// A token of each role in the workspace.
    pub viewer_token: String,
    /// A token for the operator routes.
    pub operator_token: String,
}

/// Runs the embedded server until it is asked to stop.
pub(super) async fn run(mut config: Config, arguments: Arguments) -> anyhow::Result<()> {
    let chosen = arguments.server.listen.is_some();
    let default = Config::defaults()?.server.ops_listen;
    // Embedded mode has the operators' routes on its main address. They have one of their own only if somebody chose
    // it, so that two servers on one machine don't compete for the default.
    if arguments.server.ops_listen.is_none() && config.server.ops_listen == default {
        config.server.ops_listen = String::new();
    }
    arguments.server.apply(&mut config);
    if !chosen && std::net::TcpListener::bind(&config.server.listen).is_err() {
        "127.0.0.1:0".clone_into(&mut config.server.listen);
    }
    config.telemetry.log_filter = quiet(&config.telemetry.log_filter);
    let stop = super::stop_signal()?;
    let server = super::start(config, true).await?;
    let access = access(&server).await?;
    if let Some(address) = server.operations_address() {
        super::say(format_args!("operations on http://{address}"));
    }
    introduce(&access);
    if !server.services().access_tokens.are_embedded() {
        super::say("Access tokens come from the issuers of `auth.issuers`.");
    }
    if let Some(path) = &arguments.json {
        write_json(path, &access)?;
    }
    stop.await;
    server.stop().await
}

/// A newcomer reads the introduction, not a line a request; who sets a filter gets what it says.
fn quiet(filter: &str) -> String {
    let default = Config::defaults()
        .map(|config| config.telemetry.log_filter)
        .unwrap_or_default();
    if filter == default {
        "warn".to_owned()
    } else {
        filter.to_owned()
    }
}

/// Makes the demo app, or new keys for the one of an earlier start, and tokens.
pub async fn access(server: &Server) -> anyhow::Result<Access> {
    let services = server.services();
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let (app_id, workspace_id) = if let Some(app) = nudge_campaigns::apps::first(&mut tx).await? {
        (app.id, app.workspace_id)
    } else {
        let workspace_id = nudge_platform::id::new(now);
        (
            apps::create(&mut tx, workspace_id, "Demo", now).await?,
            workspace_id,
        )
    };
    keys::store::revoke_older(&mut tx, app_id, KEY_NAME, KEYS_KEPT, now).await?;
    let mut keys = Vec::new();
    for kind in [Kind::Write, Kind::Server, Kind::Api] {
        keys.push(
            apps::create_key(
                &mut tx,
                app_id,
                workspace_id,
                kind,
                KEY_NAME,
                kind.scopes(),
                now,
            )
            .await?
            .text,
        );
    }
    tx.commit().await?;
    services.apps.refresh(app_id).await?;
    let [write_key, server_key, api_token] =
        <[String; 3]>::try_from(keys).map_err(|_| anyhow::anyhow!("three keys"))?;
    Ok(Access {
        base_url: services.public_url.clone(),
        workspace_id,
        app_id,
        write_key,
        server_key,
        api_token,
        admin_token: token(services, workspace_id, Role::Admin, false)?,
        editor_token: token(services, workspace_id, Role::Editor, false)?,
        viewer_token: token(services, workspace_id, Role::Viewer, false)?,
        operator_token: token(services, workspace_id, Role::Admin, true)?,
    })
}

fn token(
    services: &Services,
    workspace_id: Uuid,
    role: Role,
    operator: bool,
) -> anyhow::Result<String> {
    if !services.access_tokens.are_embedded() {
        return Ok(String::new());
    }
    let roles = BTreeMap::from([(workspace_id, role)]);
    services.issuer.issue(
        "nudge dev",
        roles,
        operator,
        services.clock.now(),
        TOKEN_LIFETIME,
    )
}

fn introduce(access: &Access) {
    super::say(format_args!(
        "Nudge is running. See it at work in a shop:\n\n\
         {}/demo/\n\n\
         base URL        {}\n\
         API pages       {}/docs\n\
         workspace       {}\n\
         app             {}\n\
         write key       {}\n\
         server key      {}\n\
         API token       {}\n\
         admin token     {}\n\
         editor token    {}\n\
         viewer token    {}\n\
         operator token  {}\n",
        access.base_url,
        access.base_url,
        access.base_url,
        access.workspace_id,
        access.app_id,
        access.write_key,
        access.server_key,
        access.api_token,
        access.admin_token,
        access.editor_token,
        access.viewer_token,
        access.operator_token,
    ));
    super::say(format_args!(
        "Send a first event:\n\n\
         curl {}/v1/sdk/ingest -H 'Authorization: Bearer {}' -H 'Content-Type: application/json' \\\n  \
         -d '{{\"userId\": \"ada\", \"events\": [{{\"name\": \"cart_updated\", \"timestamp\": \"'$(date -u +%FT%TZ)'\", \
         \"properties\": {{\"total\": 42}}}}]}}'\n\n\
         Another key of the app:\n\n\
         curl {}/v1/apps/{}/keys -H 'Authorization: Bearer {}' -H 'Content-Type: application/json' \\\n  \
         -d '{{\"kind\": \"write\", \"name\": \"Phone\"}}'\n\n\
         Ctrl-C stops.",
        access.base_url, access.server_key, access.base_url, access.app_id, access.admin_token,
    ));
}

/// Writes the file whole: who waits for it never sees half of it. It has keys and tokens, so that nobody else may
/// read it.
fn write_json(path: &Path, access: &Access) -> anyhow::Result<()> {
    let text = serde_json::to_vec_pretty(access)?;
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
