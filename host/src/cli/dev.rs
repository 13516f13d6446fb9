//! `nudge dev`: an embedded server with a demo app, ready for the first event.

mod demo_app;
mod introduction;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use nudge_apps::console::{Grants, links};
use nudge_db::Tx;
use nudge_http::issuer::Role;
use nudge_platform::config::{Config, Telemetry};
use nudge_platform::telemetry::Logs;
use serde::Serialize;
use uuid::Uuid;

use self::demo_app::{Choice, DemoApp};
use super::ServerArguments;
use crate::server::Server;
use crate::services::Services;

/// How long the printed tokens are good for.
const TOKEN_LIFETIME: Duration = Duration::from_hours(720);
/// What is logged unless somebody says otherwise.
const LOG_FILTER: &str = "warn,nudge_http::request=info";
/// Who the command's tokens and links speak for.
const SUBJECT: &str = "nudge dev";

/// Arguments of the command.
#[derive(Debug, Default, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Also write what is printed to a file, as JSON, with all keys and tokens.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print the keys and tokens on a terminal too.
    #[arg(long)]
    show_keys: bool,
    /// Open the first page in the browser.
    #[arg(long)]
    open: bool,
    /// Use this app, by its id or name, also of a database that `nudge dev` did not make; where there is none yet, make
    /// one of this name.
    #[arg(long, value_name = "APP")]
    app: Option<String>,
}

/// What a newcomer needs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Access {
    /// Where the API is.
    pub base_url: String,
    /// Where the console is, with a code that signs in once.
    pub console_url: String,
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
    let is_chosen = |key: &str| config.server.chosen.contains(key);
    let chosen = arguments.server.listen.is_some() || is_chosen("listen");
    // Embedded mode has the operators' routes on its main address. They have one of their own only if somebody chose
    // it, so that two servers on one machine don't compete for the default.
    if arguments.server.ops_listen.is_none() && !is_chosen("opsListen") {
        config.server.ops_listen = String::new();
    }
    arguments.server.apply(&mut config);
    if !chosen && is_taken(&config.server.listen) {
        super::say(format_args!(
            "{} is taken by another program: this server takes a free port (choose one with --listen)",
            config.server.listen
        ));
        "127.0.0.1:0".clone_into(&mut config.server.listen);
    }
    let logs = logs(&mut config.telemetry)?;
    let (stop, gone) = (super::stop_signal()?, super::terminal_gone()?);
    let data_dir = config.server.data_dir.clone();
    let before = DemoApp::read(&data_dir)?;
    let choice = demo_app::choose(&config, before.as_ref(), arguments.app.as_deref()).await?;
    let server = super::start_with_logs(config, logs, true).await?;
    let access = {
        let keep = |app: &DemoApp| app.keep(&data_dir);
        make(&server, &choice, before.as_ref(), keep).await?
    };
    if let Some(address) = server.operations_address() {
        super::say(format_args!("operations on http://{address}"));
    }
    let is_embedded = server.services().access_tokens.are_embedded();
    let all = arguments.show_keys || !io::stdout().is_terminal();
    super::say(introduction::text(&access, all));
    if !is_embedded {
        super::say("Access tokens come from the issuers of `auth.issuers`.");
    }
    if let Some(path) = &arguments.json {
        // It has keys and tokens.
        demo_app::write_private(path, &access)?;
    }
    if arguments.open {
        introduction::open(&access.console_url);
    }
    tokio::select! {
        () = stop => {}
        () = gone => {}
    }
    server.stop().await;
    Ok(())
}

/// Whether another program listens on an address.
fn is_taken(address: &str) -> bool {
    let listening = std::net::TcpListener::bind(address);
    listening.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

/// A newcomer reads the introduction, and then what requests come to; who sets a filter gets what it says.
fn logs(telemetry: &mut Telemetry) -> anyhow::Result<Logs> {
    if telemetry.log_filter != Config::defaults()?.telemetry.log_filter {
        return Logs::new(telemetry);
    }
    LOG_FILTER.clone_into(&mut telemetry.log_filter);
    Ok(Logs::new(telemetry)?.with_short_requests())
}

/// Makes the demo app, or new keys for the first app of the database, and tokens.
pub async fn access(server: &Server) -> anyhow::Result<Access> {
    make(server, &Choice::First, None, |_| Ok(())).await
}

async fn make(
    server: &Server,
    choice: &Choice,
    before: Option<&DemoApp>,
    keep: impl FnOnce(&DemoApp) -> anyhow::Result<()>,
) -> anyhow::Result<Access> {
    let services = server.services();
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let app = DemoApp::make(&mut tx, choice, before, now).await?;
    let console_url = console_url(services, &mut tx, app.workspace_id).await?;
    keep(&app)?;
    tx.commit().await?;
    services.apps.refresh(app.app_id).await?;
    // Set once: the shop stays with the app that it has begun with.
    let _ = services.demo_app.set(app.app_id);
    let workspace_id = app.workspace_id;
    Ok(Access {
        base_url: services.public_url.clone(),
        console_url,
        workspace_id,
        app_id: app.app_id,
        write_key: app.write_key,
        server_key: app.server_key,
        api_token: app.api_token,
        admin_token: token(services, workspace_id, Role::Admin, false)?,
        editor_token: token(services, workspace_id, Role::Editor, false)?,
        viewer_token: token(services, workspace_id, Role::Viewer, false)?,
        operator_token: token(services, workspace_id, Role::Admin, true)?,
    })
}

/// A link to the console that signs its first user in as admin and operator. Where access tokens come from elsewhere,
/// people sign in there.
async fn console_url(
    services: &Services,
    tx: &mut Tx,
    workspace_id: Uuid,
) -> nudge_db::Result<String> {
    if !services.access_tokens.are_embedded() {
        return Ok(format!("{}/console/", services.public_url));
    }
    let grants = Grants {
        roles: BTreeMap::from([(workspace_id, Role::Admin)]),
        operator: true,
    };
    let now = services.clock.now();
    links::create(tx, &services.public_url, SUBJECT, &grants, now).await
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
        SUBJECT,
        roles,
        operator,
        services.clock.now(),
        TOKEN_LIFETIME,
    )
}
