//! `nudge doctor`: looks at a server that runs and at its database, and says what to do next.

mod database;
mod finding;
mod server;

use anyhow::bail;
use clap::Args;
use nudge_http::oidc::AccessTokens;
use nudge_platform::clock::Clock;
use nudge_platform::config::Config;
use nudge_platform::outbound::Lookups;

use self::finding::{Finding, Level};
use super::ServerArguments;
use super::serve::check_configuration;
use crate::operations::disk::Disk;

/// Less free space than this share of a disk is a warning.
const LITTLE_SPACE: f64 = 0.1;
/// What to do where the database's folder or file is missing.
const NAME_THE_FOLDER: &str = "Name the server's folder with --data-dir, or start the server once.";

/// Arguments of the command.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Where a server has /readyz and /metrics; once for each server. `server.opsListen` unless given.
    #[arg(long = "operations", value_name = "URL")]
    operations: Vec<String>,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

/// Prints what is found. Fails if anything keeps the server from working.
pub(super) async fn run(mut config: Config, arguments: Arguments) -> anyhow::Result<()> {
    arguments.server.apply(&mut config);
    let mut findings = look_at_configuration(&config).await;
    findings.extend(look_at_disk(&config));
    findings.extend(database::look(&config).await);
    for urls in addresses(&config, arguments.operations) {
        findings.extend(server::look(&urls).await);
    }
    if arguments.json {
        super::say(serde_json::to_string_pretty(&findings)?);
    } else {
        for finding in &findings {
            super::say(finding);
        }
    }
    let problems = finding::count(&findings, Level::Problem);
    if problems > 0 {
        bail!("{problems} of {} findings are problems", findings.len());
    }
    Ok(())
}

/// Where servers answer operators: for each server the addresses of which the first that answers is meant. `nudge dev` has
/// these routes at the API's address unless somebody chose another.
fn addresses(config: &Config, given: Vec<String>) -> Vec<Vec<String>> {
    if !given.is_empty() {
        return given
            .into_iter()
            .map(|url| vec![with_scheme(url)])
            .collect();
    }
    let server = &config.server;
    if server.ops_listen.is_empty() {
        return Vec::new();
    }
    let default = Config::defaults().map(|config| config.server.ops_listen);
    let mut urls = vec![url(&server.ops_listen)];
    if default.is_ok_and(|default| default == server.ops_listen) {
        urls.push(url(&server.listen));
    }
    vec![urls]
}

/// A URL whose scheme may be left out, since `--ops-listen` has none.
fn with_scheme(given: String) -> String {
    if given.contains("://") {
        given
    } else {
        url(&given)
    }
}

/// The URL of an address that is listened on. A server that listens everywhere is reached here.
fn url(listen: &str) -> String {
    let everywhere = ["0.0.0.0:", "[::]:"];
    let port = everywhere.iter().find_map(|all| listen.strip_prefix(all));
    match port {
        Some(port) => format!("http://127.0.0.1:{port}"),
        None => format!("http://{listen}"),
    }
}

async fn look_at_configuration(config: &Config) -> Vec<Finding> {
    let lookups = Lookups::system(config.server.lookup_threads);
    let mut findings = Vec::new();
    match check_configuration(config, &lookups).await {
        Ok(()) => findings.push(Finding::good("configuration", "is complete")),
        Err(error) => findings.push(Finding::problem(
            "configuration",
            format!("{error:#}"),
            "Mend the key; `nudge config` says what each may be.",
        )),
    }
    if config.auth.issuers.is_empty() {
        return findings;
    }
    let reached = async {
        let tokens = AccessTokens::new(&config.auth, &lookups)?;
        tokens.reach(Clock::default().now()).await
    };
    findings.push(match reached.await {
        Ok(()) => Finding::good("issuers", "answer"),
        Err(error) => Finding::problem(
            "issuers",
            format!("{error:#}"),
            "Until the issuer answers nobody signs in anew: see that this machine reaches its URL.",
        ),
    });
    findings
}

fn look_at_disk(config: &Config) -> Vec<Finding> {
    let Some(folder) = &config.database_folder() else {
        // The disk that matters is another machine's.
        return Vec::new();
    };
    let disk = match Disk::of(folder) {
        Ok(disk) => disk,
        Err(error) => {
            return vec![Finding::problem(
                "disk",
                format!(
                    "the database's folder {} can't be looked at: {error}",
                    folder.display()
                ),
                NAME_THE_FOLDER,
            )];
        }
    };
    let share = disk.free_share() * 100.0;
    let said = format!(
        "{} MiB of {} MiB are free where {} is ({share:.0} %)",
        disk.free_bytes / 1_048_576,
        disk.size_bytes / 1_048_576,
        folder.display()
    );
    vec![if disk.free_bytes < config.database.min_free_bytes {
        Finding::problem(
            "disk",
            said,
            "Make room: a database on a full disk takes no events.",
        )
    } else if disk.free_share() < LITTLE_SPACE {
        Finding::warning(
            "disk",
            said,
            "Make room, or shorten `settings.retention` of the largest apps.",
        )
    } else {
        Finding::good("disk", said)
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_where_it_listens_for_operators() {
        let mut config = Config::defaults().unwrap();
        let asked = |config: &Config| addresses(config, Vec::new());
        assert_eq!(
            asked(&config),
            [["http://127.0.0.1:9464", "http://127.0.0.1:8480"]]
        );
        "0.0.0.0:9000".clone_into(&mut config.server.ops_listen);
        assert_eq!(asked(&config), [["http://127.0.0.1:9000"]]);
        config.server.ops_listen.clear();
        assert!(asked(&config).is_empty());
        let given = vec!["http://a:1".to_owned(), "b:1".to_owned()];
        assert_eq!(addresses(&config, given), [["http://a:1"], ["http://b:1"]]);
    }
}
