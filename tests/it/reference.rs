//! The reference pages of the book are what the program says of itself. Where one is older,
//! `NUDGE_WRITE_REFERENCE=1 cargo test -p tests --test it -- reference::` writes it anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use nudge_platform::config::DEFAULTS;
use nudge_platform::telemetry::families::{FAMILIES, Kind};
use serde_json::Value;
use tests::{Backend, Credential, TestApp, child, site};

/// Set to anything, the tests write the pages instead of comparing them.
const WRITE: &str = "NUDGE_WRITE_REFERENCE";
/// The program that the tests run, and what its users call it.
const NAMES: (&str, &str) = ("nudge-under-test", "nudge");

/// A path in the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Compares a page with what it should be.
fn is_up_to_date(name: &str, text: &str) {
    let text = format!("{}\n", text.trim_end());
    let path = repository("host/docs/reference").join(name);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(path, text).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(path).unwrap();
    assert!(
        committed == text,
        "host/docs/reference/{name} is older than the program: {WRITE}=1 cargo test -p tests --test it -- reference:: writes it anew"
    );
}

/// A cell of a table.
fn cell(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace('|', "\\|").replace('<', "&lt;")
}

#[test]
fn every_key_of_the_configuration_is_in_the_book() {
    let mut page = String::from("# Configuration\n\n");
    let mut sections = DEFAULTS.split("\n[");
    for line in sections.next().unwrap().lines() {
        let _ = writeln!(page, "{}", line.trim_start_matches(['#', ' ']));
    }
    let _ = writeln!(page, "`nudge config` prints the same.");
    for section in sections {
        let name = section.split(']').next().unwrap();
        let _ = write!(
            page,
            "\n## {name}\n\n```toml\n[{}\n```\n",
            section.trim_end()
        );
    }
    is_up_to_date("configuration.md", &page);
}

/// A command's help, and those of its subcommands.
fn help(command: &[&str], page: &mut String) {
    let mut arguments = command.to_vec();
    arguments.push("--help");
    let output = child::run(site!(), &arguments);
    assert!(output.status.success(), "{arguments:?}");
    let text = String::from_utf8(output.stdout)
        .unwrap()
        .replace(NAMES.0, NAMES.1);
    let (about, usage) = text.split_once("\n\nUsage:").unwrap();
    let name = [&["nudge"], command].concat().join(" ");
    let usage = usage.trim();
    let _ = write!(
        page,
        "\n## {name}\n\n{about}\n\n```text\nUsage: {usage}\n```\n"
    );
    let commands = usage
        .split_once("\nCommands:\n")
        .map_or("", |(_, commands)| commands);
    for line in commands.lines().take_while(|line| line.starts_with("  ")) {
        let name = line.split_whitespace().next().unwrap();
        // What goes on in the next line stands further in.
        if name != "help" && !line.starts_with("   ") {
            help(&[command, &[name]].concat(), page);
        }
    }
}

#[test]
fn every_command_is_in_the_book() {
    let mut page = String::from(
        "# Command line\n\nWhat `--help` says of each command. `nudge man DIRECTORY` writes the same as manual pages, `nudge completions SHELL` has a shell complete it.\n",
    );
    help(&[], &mut page);
    for name in [
        "nudge plugin activate",
        "nudge repeat-deletions",
        "nudge secrets reseal",
    ] {
        assert!(page.contains(&format!("\n## {name}\n")), "{name}");
    }
    is_up_to_date("command-line.md", &page);
}

#[test]
fn every_metric_is_in_the_book() {
    let mut page = String::from(
        "# Metrics\n\nAt `/metrics` of `server.opsListen`, for Prometheus. [The runbook](../runbook.md) has the alerts on them.\n\n| metric | kind | what it means |\n|---|---|---|\n",
    );
    for family in FAMILIES {
        let kind = match family.kind {
            Kind::Counter(_) => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
            Kind::Process => "process",
        };
        let _ = writeln!(
            page,
            "| `{}` | {kind} | {} |",
            family.name,
            cell(family.help)
        );
    }
    is_up_to_date("metrics.md", &page);
}

/// A file of the repository, as a section.
fn file(page: &mut String, title: &str, path: &str, language: &str) {
    let text = std::fs::read_to_string(repository(path)).unwrap();
    assert!(!text.contains("```"), "{path} would end its block");
    let _ = write!(
        page,
        "\n## {title}\n\n```{language}\n{}\n```\n",
        text.trim_end()
    );
}

#[test]
fn the_contract_of_plugins_is_in_the_book() {
    let mut page = String::from(
        "# Contract of plugins\n\nWhat a plugin is told, and what it may ask for, in [WIT](https://component-model.bytecodealliance.org/design/wit.html). \
         `cargo doc -p nudge-guest --open` has the same for authors in Rust; the last section for those in JavaScript, \
         `sdk/nudge.py` of a project for those in Python.\n\n\
         Facts that the contract does not name: `timezone` is a text such as `Europe/Vienna`. `merged_states`, of trigger plugins, is a \
         JSON object: by campaign `own`, what the plugin keeps of the subject, and `others`, a list of what it kept of people who were \
         merged into the subject since, in hexadecimal digits. It is as of before the batch: heed it while the state is still `own`; a \
         state that is stored follows from all of them.\n",
    );
    for name in ["types", "trigger", "validation", "personalization"] {
        file(&mut page, name, &format!("wit/{name}.wit"), "wit");
    }
    file(
        &mut page,
        "JavaScript",
        "guest-sdk/javascript/nudge.d.ts",
        "ts",
    );
    is_up_to_date("plugins.md", &page);
}

#[test]
fn the_types_of_the_web_sdk_are_in_the_book() {
    let mut page = String::from(
        "# Types of the web SDK\n\n[A page in ten minutes](../tutorials/survey.md). The [README of the package](../../web-sdk/README.md) says what each call promises.\n",
    );
    file(&mut page, "The SDK", "host/web-sdk/src/core/types.ts", "ts");
    file(
        &mut page,
        "Surveys and messages",
        "host/web-sdk/src/surveys/host.ts",
        "ts",
    );
    is_up_to_date("web-sdk.md", &page);
}

/// The credentials that an operation takes: several at once, or one of several.
fn credentials(operation: &Value) -> String {
    let Some(ways) = operation["security"].as_array() else {
        return String::new();
    };
    let ways = ways.iter().map(|way| {
        let parts = way.as_object().unwrap().iter().map(|(name, scopes)| {
            let scopes = scopes.as_array().unwrap().iter().filter_map(Value::as_str);
            let scopes: Vec<&str> = scopes.collect();
            if scopes.is_empty() {
                name.clone()
            } else {
                format!("{name} ({})", scopes.join(", "))
            }
        });
        parts.collect::<Vec<_>>().join(" and ")
    });
    ways.collect::<Vec<_>>().join("; or ")
}

/// A table of operations.
fn operations(page: &mut String, description: &Value, tag: &str) -> usize {
    page.push_str("| operation | does | credential |\n|---|---|---|\n");
    let mut found = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["tags"][0] != tag {
                continue;
            }
            found += 1;
            let summary = operation["summary"]
                .as_str()
                .or(operation["description"].as_str());
            let summary = summary.unwrap().split("\n\n").next().unwrap();
            let (id, method) = (
                operation["operationId"].as_str().unwrap(),
                method.to_uppercase(),
            );
            let _ = writeln!(
                page,
                "| [`{method} {path}`](/docs#/op/{id}) | {} | {} |",
                cell(summary),
                credentials(operation)
            );
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_and_every_error_is_in_the_book() {
    let app = TestApp::start(site!(), Backend::Sqlite).await;
    let description = app.get("/openapi.json", &Credential::none()).await.json();
    let mut page = String::from(
        "# HTTP API\n\nEvery operation with what it takes and answers is at [/docs](/docs), from which requests can be sent; the description for tools is at \
         [/openapi.json](/openapi.json). [Keys, tokens and roles](../guides/keys.md) says who holds which credential.\n",
    );
    let mut found = 0;
    for tag in description["tags"].as_array().unwrap() {
        let (name, about) = (tag["name"].as_str().unwrap(), &tag["description"]);
        let _ = write!(page, "\n## {name}\n\n{}\n\n", about.as_str().unwrap());
        found += operations(&mut page, &description, name);
    }
    let paths = description["paths"].as_object().unwrap().values();
    let all: usize = paths.map(|item| item.as_object().unwrap().len()).sum();
    assert_eq!(found, all, "each operation has one of the tags");
    page.push_str(
        "\n## Webhooks\n\n[When they are sent, and how they are verified](../guides/webhooks.md).\n\n| event | its `data` |\n|---|---|\n",
    );
    for (name, webhook) in description["webhooks"].as_object().unwrap() {
        let body = &webhook["post"]["requestBody"]["content"]["application/json"]["schema"];
        let data = body["allOf"][1]["properties"]["data"]["$ref"]
            .as_str()
            .unwrap();
        let (_, schema) = data.rsplit_once('/').unwrap();
        let _ = writeln!(page, "| `{name}` | [`{schema}`](/docs#/schema/{schema}) |");
    }
    is_up_to_date("api.md", &page);

    let codes = app.get("/v1/errors", &Credential::none()).await.ok();
    let mut page = String::from(
        "# Errors\n\nAn answer that is no success is `application/problem+json`: `code` is one of these and stays what it is, `detail` is for people and says what to do, `errors` has the places in the \
         body, `requestId` the request's id, which finds it in the log. Those of status 200 are of single events: an answer to an ingest names them for each that is rejected. \
         `GET /v1/errors` has the same list.\n\n| code | status | meaning |\n|---|---|---|\n",
    );
    for code in codes.as_array().unwrap() {
        let (name, meaning) = (
            code["code"].as_str().unwrap(),
            code["meaning"].as_str().unwrap(),
        );
        let _ = writeln!(
            page,
            "| `{name}` | {} | {} |",
            code["status"],
            cell(meaning)
        );
    }
    is_up_to_date("errors.md", &page);
    app.finish().await;
}
