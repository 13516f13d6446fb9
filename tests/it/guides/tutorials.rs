//! The tutorials, from their first command to the last, on servers that they start themselves.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tests::app::MASTER_KEY;
use tests::{child, postgres, site};

use super::good;
use crate::plugin_command;

const PLUGIN: &str = include_str!("../../../host/docs/tutorials/plugin.md");
const PRODUCTION: &str = include_str!("../../../host/docs/tutorials/production.md");
const SURVEY: &str = include_str!("../../../host/docs/tutorials/survey.md");

/// How long a tutorial may take, in seconds: far longer than it does.
const LONGEST: &str = "900";
/// What a shell does before a tutorial's commands: at its end, the servers that it started are stopped.
const BEGIN: &str = "set -euo pipefail
TOP=$PWD
trap 'kill $(jobs -p); wait' EXIT
";

/// A tutorial's commands as one script. Those that its reader types in another terminal (`sh server`) run in the
/// background; a server that says where it is has said so before the next command.
fn script(tutorial: &str) -> String {
    let mut script = BEGIN.to_owned();
    for (number, block) in tutorial.split("```").skip(1).step_by(2).enumerate() {
        let (info, commands) = block.split_once('\n').unwrap();
        match info {
            "sh" => script.push_str(commands),
            "sh server" => {
                let command = commands.trim();
                assert_eq!(command.lines().count(), 1, "{command}");
                let _ = writeln!(
                    script,
                    "(cd \"$TOP\"; exec {command}) > \"$TOP/server-{number}.log\" 2>&1 &"
                );
                if command.contains("dev.json") {
                    script.push_str(
                        "until [ -s \"$TOP/dev.json\" ]; do kill -0 $!; sleep 0.1; done\n",
                    );
                }
            }
            _ => {}
        }
    }
    script
}

/// Ports of this machine in place of those that a tutorial names.
fn with_free_ports(script: String) -> String {
    // Held together, so that no two are the same.
    let named = [":8481", ":8482", ":9481", ":9482"];
    let held = named.map(|name| (name, TcpListener::bind("127.0.0.1:0").unwrap()));
    held.iter().fold(script, |script, (name, listener)| {
        assert!(script.contains(name), "{name}");
        let port = listener.local_addr().unwrap().port();
        script.replace(name, &format!(":{port}"))
    })
}

/// Does what a tutorial says, in a folder, with `nudge` on the path; answers what was printed.
async fn done(folder: &Path, script: String, variables: &[(&str, &str)]) -> String {
    let programs = folder.join("programs");
    std::fs::create_dir(&programs).unwrap();
    let program = child::program(site!());
    std::os::unix::fs::symlink(program.get_program(), programs.join("nudge")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("timeout");
    // What keeps the program to the tests, beside the reader's own environment.
    for (name, value) in program.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    shell
        .args(["--kill-after=10", LONGEST, "bash", "-c", &script])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("NUDGE_PLUGINS__COMPILE_SECONDS", "600")
        .env("CARGO_TARGET_DIR", plugin_command::target())
        .envs(variables.iter().copied());
    let output = tokio::task::spawn_blocking(move || shell.output());
    let output = output.await.unwrap().unwrap();
    let logs = logs(folder);
    assert!(output.status.success(), "{output:?}\n{logs}");
    good(&output)
}

/// What the servers of a tutorial printed.
fn logs(folder: &Path) -> String {
    let files = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let logs = files.filter(|path| path.extension().is_some_and(|end| end == "log"));
    logs.map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
}

fn folder() -> TempDir {
    TempDir::with_prefix("nudge-test-").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_event_leads_to_a_survey_in_a_page() {
    let folder = folder();
    // The page finds the script, and the script the server.
    let mut script = script(SURVEY);
    script.push_str(
        "curl -sS --fail --output sdk.js $(sed -n 's/.*script src=\"\\([^\"]*\\)\".*/\\1/p' shop.html)\n",
    );
    let variables = [("NUDGE_SERVER__LISTEN", "127.0.0.1:0")];
    let said = done(folder.path(), script, &variables).await;
    let shown = said.matches("\"kind\":\"survey\"").count();
    assert_eq!(shown, 2, "in the answer, and in the poll: {said}");
    let page = std::fs::read_to_string(folder.path().join("shop.html")).unwrap();
    assert!(page.contains("writeKey: \"wk_"), "{page}");
    let sdk = std::fs::read_to_string(folder.path().join("sdk.js")).unwrap();
    assert!(sdk.contains("Nudge"), "{sdk}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_comes_from_nothing_to_a_canary() {
    let folder = folder();
    let variables = [("NUDGE_SERVER__LISTEN", "127.0.0.1:0")];
    let said = done(folder.path(), script(PLUGIN), &variables).await;
    assert!(
        said.contains("as expected: the cases say otherwise"),
        "{said}"
    );
    assert_eq!(said.matches("\"accepted\":1").count(), 5, "{said}");
    for part in ["0.2.0 in the shadow since", "20 %", "0.1.0"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_a_database() {
    let folder = folder();
    let url = postgres::database().await;
    let cache = folder.path().join("cache");
    let variables = [
        ("NUDGE_DATABASE__URL", &*url),
        // The key is the tutorial's own, and what is compiled is sealed with it.
        ("NUDGE_PLUGINS__CACHE_DIR", cache.to_str().unwrap()),
    ];
    let script = with_free_ports(script(PRODUCTION));
    let said = done(folder.path(), script, &variables).await;
    assert!(said.contains("\"accepted\":1"), "{said}");
    assert!(said.contains("\"name\":\"order_placed\""), "{said}");
    let key = std::fs::read_to_string(folder.path().join("master.key")).unwrap();
    assert_ne!(key.trim(), MASTER_KEY);
}

/// Commands that nothing runs would grow old.
#[test]
fn every_document_with_commands_is_run() {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/docs");
    let mut left = vec![book.clone()];
    let mut found = BTreeSet::new();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let entries = path.read_dir().unwrap().map(|entry| entry.unwrap().path());
            left.extend(entries);
        } else if path.extension().is_some_and(|end| end == "md") {
            let text = std::fs::read_to_string(&path).unwrap();
            if text.contains("```sh\n") {
                found.insert(path.strip_prefix(&book).unwrap().to_owned());
            }
        }
    }
    // `backup.md` in `backups`, the guides one level up, the tutorials here.
    let run = [
        "backup.md",
        "guides/api.md",
        "guides/dead-letters.md",
        "guides/identity.md",
        "guides/keys.md",
        "guides/segment.md",
        "guides/web-push.md",
        "guides/webhooks.md",
        "tutorials/plugin.md",
        "tutorials/production.md",
        "tutorials/survey.md",
    ];
    assert_eq!(found, run.map(PathBuf::from).into());
}
