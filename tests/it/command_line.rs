//! The program: its commands, its configuration, its end (contract 16, 17).

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::child::{self, Child, complaint};
use tests::client;
use tests::site;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

fn standard_output(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn config_prints_every_key_with_its_default() {
    let output = child::run(site!(), &["config"]);
    assert!(output.status.success());
    assert_eq!(
        standard_output(&output).trim_end(),
        nudge_platform::config::DEFAULTS.trim_end()
    );
}

#[test]
fn unknown_keys_and_bad_values_are_refused_in_one_line() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let file = folder.path().join("nudge.toml");
    let data = folder.path().join("data");
    let check = || {
        let (file, data) = (file.to_str().unwrap(), data.to_str().unwrap());
        child::run(site!(), &["check", "--config", file, "--data-dir", data])
    };
    for (text, part) in [
        ("[server]\nlistn = \"x\"", "server.listn"),
        ("[sever]\nlisten = \"x\"", "sever"),
        ("[server]\nlisten = 7", "listen"),
        ("[ingest]\nqueueSize = \"many\"", "queueSize"),
        ("this is not TOML", "nudge.toml"),
        ("[telemetry]\nlogFormat = \"xml\"", "telemetry.logFormat"),
        ("[telemetry]\nlogFilter = \"a=b=c\"", "telemetry.logFilter"),
        (
            "[telemetry]\nlogFilter = \"[request]=debug\"",
            "telemetry.logFilter",
        ),
        ("[telemetry]\nlogFilter = \"inof\"", "`inof` is no level"),
        ("[server]\nmaxConnections = -1", "number of 0 or more in"),
        ("[webhooks]\nports = 443", "a list in `webhooks.ports`"),
        ("[server]\nlisten = \"nonsense\"", "server.listen"),
        ("[server]\nopsListen = \"nonsense\"", "server.opsListen"),
        (
            "[plugins]\nfiles = [\"/nowhere/own.wasm\"]",
            "/nowhere/own.wasm",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = check();
        assert!(!output.status.success(), "{text}");
        let complaint = complaint(&output);
        assert!(complaint.contains(part), "{text}: {complaint}");
    }
    std::fs::write(&file, "[ingest]\nqueueSize = 7").unwrap();
    assert!(check().status.success());

    let output = child::program(site!())
        .env("NUDGE_INGEST__QUEUE", "7")
        .args(["check", "--data-dir"])
        .arg(&data)
        .output()
        .unwrap();
    assert!(complaint(&output).contains("NUDGE_INGEST__QUEUE"));
    let missing = child::run(site!(), &["check", "--config", "/nowhere/nudge.toml"]);
    assert!(complaint(&missing).contains("/nowhere/nudge.toml"));
}

#[test]
fn wrong_arguments_are_refused_in_one_line() {
    for (arguments, part) in [
        (vec!["foo"], "'foo'"),
        (vec!["token"], "--workspace <ID> --role <ROLE>"),
        (vec!["serve", "--nope"], "'--nope'"),
    ] {
        let output = child::run(site!(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let complaint = complaint(&output);
        assert!(complaint.contains(part), "{arguments:?}: {complaint}");
    }
    let help = child::run(site!(), &["token", "--help"]);
    assert!(help.status.success() && standard_output(&help).contains("--workspace"));
}

/// Whatever is wrong with a secret, what is said of it does not have it.
#[test]
fn complaints_repeat_no_secret() {
    const KEY: &str = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTMyISE";
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let (file, data) = (folder.path().join("nudge.toml"), folder.path().join("data"));
    let complaint_of = |variable: (&str, &str)| {
        let mut program = child::program(site!());
        // It would come before the file's.
        program.env_remove("NUDGE_SECRETS__MASTER_KEY");
        program.env(variable.0, variable.1);
        program.args(["check", "--config"]).arg(&file);
        let text = complaint(&program.arg("--data-dir").arg(&data).output().unwrap());
        assert!(!text.contains("c2Vjcm"), "{text}");
        text
    };
    let list = format!("[\"{KEY}\"]");
    std::fs::write(&file, "").unwrap();
    for (variable, value) in [
        ("NUDGE_SECRETS__PREVIOUS_KEYS", KEY),
        ("NUDGE_SECRETS__PREVIOUS_KEYS", &list),
        ("NUDGE_SECRETS__PREVIOUS_KEYS", &list[1..]),
        ("NUDGE_SECRETS__MASTER_KEY", KEY),
        ("NUDGE_DATABASE__URL", KEY),
    ] {
        complaint_of((variable, value));
    }
    for text in [
        format!("[secrets]\npreviousKeys = \"{KEY}\""),
        format!("[secrets]\npreviousKeys = {list}"),
        format!("[secrets]\nmasterKey = {list}"),
        format!("secrets = \"{KEY}\""),
        format!("[plugin]\ntoken = {list}"),
    ] {
        std::fs::write(&file, &text).unwrap();
        complaint_of(("NUDGE_UNRELATED", "x"));
    }
    std::fs::write(&file, format!("[secrets]\npreviousKeys = \"{KEY}\"")).unwrap();
    assert!(complaint_of(("NUDGE_UNRELATED", "x")).contains("previousKeys"));
}

#[test]
fn mistakes_end_with_a_line_and_a_status() {
    for arguments in [
        &["serv"][..],
        &["serve", "--listen"],
        &["token"],
        &["dev", "--nope"],
    ] {
        let output = child::run(site!(), arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let data = folder.path().to_str().unwrap();
    let output = child::run(
        site!(),
        &["serve", "--data-dir", data, "--listen", "nonsense"],
    );
    assert!(complaint(&output).contains("nonsense"));
    let output = child::run(
        site!(),
        &[
            "serve",
            "--data-dir",
            "/proc/nowhere",
            "--listen",
            "127.0.0.1:0",
        ],
    );
    assert!(complaint(&output).contains("/proc/nowhere"));
    let unreachable = "postgres://nobody:secret@127.0.0.1:1/nothing";
    let output = child::run(
        site!(),
        &["check", "--data-dir", data, "--database-url", unreachable],
    );
    assert!(!complaint(&output).contains("secret"));
}

#[test]
fn migrate_and_check_agree_on_a_new_database() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let data = folder.path().to_str().unwrap();
    for command in ["migrate", "migrate", "check"] {
        let output = child::run(site!(), &[command, "--data-dir", data]);
        assert!(output.status.success(), "{command}: {output:?}");
    }
}

#[test]
fn what_can_not_be_seen_is_not_said_to_be_missing() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let file = folder.path().join("data");
    std::fs::write(&file, "").unwrap();
    let (data, backup) = (file.to_str().unwrap(), folder.path().join("backup"));
    let backup = backup.to_str().unwrap();
    let workspace = "018f2f2e-5b4a-7c3d-8e9f-0123456789ab";
    let grant = ["--workspace", workspace, "--role", "viewer"];
    let recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";
    for (command, unseen) in [
        (["secrets", "status"].to_vec(), "master.key"),
        ([&["token"][..], &grant].concat(), "master.key"),
        ([&["console-link"][..], &grant].concat(), "nudge.db"),
        (vec!["backup", backup, "--recipient", recipient], "nudge.db"),
    ] {
        let mut program = child::program(site!());
        program.env("NUDGE_SECRETS__MASTER_KEY", "");
        program.args(&command).args(["--data-dir", data]);
        let told = complaint(&program.output().unwrap());
        let place = file.join(unseen).display().to_string();
        assert!(told.contains(&format!("{place}: ")), "{command:?}: {told}");
        assert!(
            !told.contains("start the server once"),
            "{command:?}: {told}"
        );
    }
}

#[test]
fn plugins_of_one_kind_are_not_dropped_in_silence() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (one, two, file) = (path("one.wasm"), path("two.wasm"), path("nudge.toml"));
    std::fs::write(&one, test_guests::MISBEHAVING).unwrap();
    std::fs::write(&two, test_guests::VERSIONED).unwrap();
    let check = |files: &str, flags: &[&str]| {
        std::fs::write(&file, format!("[plugins]\nfiles = [{files}]")).unwrap();
        let (data, mut program) = (path("data"), child::program(site!()));
        program.args(["check", "--config", &file, "--data-dir", &data]);
        program.args(flags).output().unwrap()
    };
    let refusal = format!("{one} and {two} are both trigger plugins; name one");
    let told = complaint(&check("", &["--plugin", &one, "--plugin", &two]));
    assert!(told.contains(&refusal), "{told}");
    let told = complaint(&check(&format!("{one:?}, {two:?}"), &[]));
    assert!(told.contains(&refusal), "{told}");
    let output = check(&format!("{one:?}"), &["--plugin", &two]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn check_reads_what_the_configuration_names() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("roots.pem"));
    let check = |variable: &str, value: &str| {
        let mut program = child::program(site!());
        program.env(variable, value).args(["check", "--data-dir"]);
        program.arg(&data).output().unwrap()
    };
    let certificates = || {
        check(
            "NUDGE_PUSH__EXTRA_ROOT_CERTIFICATES",
            file.to_str().unwrap(),
        )
    };

    assert!(complaint(&certificates()).contains("push.extraRootCertificates: "));
    for (text, problem) in [
        ("", "there is no certificate in it"),
        ("not PEM", "there is no certificate in it"),
        (
            "-----BEGIN CERTIFICATE-----\nbm9ib2R5\n-----END CERTIFICATE-----\n",
            "not every certificate in it can be read",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let complaint = complaint(&certificates());
        assert!(
            complaint.contains("push.extraRootCertificates: "),
            "{complaint}"
        );
        assert!(complaint.contains(problem), "{text:?}: {complaint}");
    }
    let authority = rcgen::generate_simple_self_signed(["authority.example".to_owned()]).unwrap();
    std::fs::write(&file, authority.cert.pem()).unwrap();
    assert!(certificates().status.success());

    let headers = |text: &str| {
        let mut program = child::program(site!());
        program
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
            .env("OTEL_EXPORTER_OTLP_HEADERS", text)
            .args(["check", "--data-dir"]);
        program.arg(&data).output().unwrap()
    };
    assert!(headers("api-key=s3cret").status.success());
    let complaint = complaint(&headers("s3cret"));
    assert!(complaint.contains("telemetry.otlpHeaders"), "{complaint}");
    assert!(!complaint.contains("s3cret"), "{complaint}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dev_serves_until_it_is_asked_to_stop() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let child = Child::start(site!(), folder.path());
    for key in [
        "baseUrl",
        "workspaceId",
        "appId",
        "writeKey",
        "serverKey",
        "apiToken",
        "adminToken",
        "editorToken",
        "viewerToken",
        "operatorToken",
    ] {
        assert!(!child.text(key).is_empty(), "{key}");
    }
    assert!(child.text("writeKey").starts_with("wk_"));
    assert!(child.text("serverKey").starts_with("sk_"));
    assert!(child.text("apiToken").starts_with("at_"));
    assert!(!child.text("baseUrl").ends_with(":0"));

    let http = client::build();
    let surveys = format!(
        "{}/v1/apps/{}/surveys",
        child.text("baseUrl"),
        child.text("appId")
    );
    let workspace = child.text("workspaceId");
    let data = folder.path().to_str().unwrap();
    let issued = child::run(
        site!(),
        &[
            "token",
            "--workspace",
            workspace,
            "--role",
            "viewer",
            "--ttl",
            "5m",
            "--data-dir",
            data,
        ],
    );
    assert!(issued.status.success(), "{issued:?}");
    let token = standard_output(&issued).trim().to_owned();
    client::send(http.get(&surveys).bearer_auth(&token))
        .await
        .ok();
    let answer = client::send(http.post(&surveys).bearer_auth(&token).json(&Value::Null)).await;
    answer.refused(403, "insufficient_role");

    let second = child::run(
        site!(),
        &["serve", "--listen", "127.0.0.1:0", "--data-dir", data],
    );
    assert!(complaint(&second).contains("another server uses the data directory"));

    // A long poll in hand is no reason to wait.
    assert_eq!(child.terminate(), Some(0));
}

#[test]
fn serve_prints_the_port_that_it_picked() {
    use std::io::{BufRead as _, BufReader};
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut process = child::program(site!())
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--ops-listen",
            "127.0.0.1:0",
            "--data-dir",
        ])
        .arg(folder.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    for expected in [
        "listening on http://127.0.0.1:",
        "operations on http://127.0.0.1:",
    ] {
        let line = lines.next().unwrap().unwrap();
        let port = line
            .strip_prefix(expected)
            .unwrap_or_else(|| panic!("{line}"));
        assert!(port.parse::<u16>().is_ok_and(|port| port > 0), "{line}");
    }
    let id = process.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

/// In embedded mode the operators' routes are on the main address, and on another one that somebody chooses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dev_has_the_operators_routes_twice_if_asked() {
    use std::io::{BufRead as _, BufReader};
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let any = "127.0.0.1:0";
    let file = folder.path().join("access.json");
    let mut process = child::program(site!())
        .args(["dev", "--listen", any, "--ops-listen", any, "--data-dir"])
        .arg(folder.path())
        .arg("--json")
        .arg(&file)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let printed: Vec<String> = lines
        .map(Result::unwrap)
        .take_while(|line| !line.starts_with("Ctrl-C"))
        .collect();
    let url = |name: &str| {
        let line = printed.iter().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{printed:?}")).trim()
    };
    let http = client::build();
    for base in [url("base URL"), url("operations on")] {
        let answer = client::send(http.get(format!("{base}/livez"))).await;
        assert_eq!(
            (answer.status, answer.text.as_str()),
            (200, "ok\n"),
            "{base}"
        );
    }
    // Refusals are the same everywhere (contract 14).
    let operations = url("operations on");
    for (request, status, code) in [
        (http.get(format!("{operations}/nope")), 404, "not_found"),
        (
            http.post(format!("{operations}/livez")),
            405,
            "method_not_allowed",
        ),
    ] {
        let answer = client::send(request).await;
        answer.refused(status, code);
        assert!(!answer.header("x-request-id").is_empty());
    }
    // Asked to stop, it finishes what is on its way, and says so to whoever balances requests.
    let access = std::fs::read(&file).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let access: Value = serde_json::from_slice(&access).unwrap();
    let main = url("base URL").strip_prefix("http://").unwrap();
    let mut begun = TcpStream::connect(main).await.unwrap();
    let key = access["writeKey"].as_str().unwrap();
    let head = format!(
        "POST /v1/sdk/session HTTP/1.1\r\nhost: {main}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: 21\r\nconnection: close\r\n\r\n"
    );
    begun.write_all(head.as_bytes()).await.unwrap();
    begun.write_all(b"{\"anonymousId\"").await.unwrap();
    // Its head was read once a later request was answered.
    client::send(http.get(format!("{}/livez", url("base URL")))).await;
    let id = process.id().to_string();
    let asked = std::process::Command::new("kill")
        .args(["-TERM", &id])
        .status();
    assert!(asked.unwrap().success());
    let ready = format!("{operations}/readyz");
    let stopping = async {
        while client::send(http.get(&ready)).await.text != "stopping\n" {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let limit = std::time::Duration::from_secs(20);
    tokio::time::timeout(limit, stopping).await.unwrap();
    begun.write_all(b":\"ada\"}").await.unwrap();
    let mut answer = String::new();
    begun.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

/// What the README says of a server in production: a token, an app, a key, an event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn production_begins_with_a_token() {
    use std::io::{BufRead as _, BufReader};
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let data = folder.path().to_str().unwrap();
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--ops-listen",
        "",
        "--data-dir",
        data,
    ];
    let logs = TempDir::with_prefix("nudge-test-").unwrap();
    let log = logs.path().join("log");
    let mut process = child::program(site!())
        .env("NUDGE_TELEMETRY__LOG_FORMAT", "json")
        .args(arguments)
        .stdout(std::process::Stdio::piped())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let base = line.trim().strip_prefix("listening on ").unwrap();
    let workspace = "0b8f4d0e-3f0e-4c43-9b3f-0f5f8f1f6f10";
    let issued = child::run(
        site!(),
        &[
            "token",
            "--workspace",
            workspace,
            "--role",
            "admin",
            "--data-dir",
            data,
        ],
    );
    let admin = standard_output(&issued).trim().to_owned();
    let http = client::build();
    let post = async |path: &str, token: &str, body: Value| {
        let request = http
            .post(format!("{base}{path}"))
            .bearer_auth(token)
            .json(&body);
        client::send(request).await
    };

    let made = post("/v1/apps", &admin, json!({"name": "Shop"})).await;
    // Limits are on in production.
    assert!(
        made.header("ratelimit").starts_with("\"principal\";r="),
        "{:?}",
        made.headers
    );
    let made = made.data(201);
    assert_eq!(made["workspaceId"], workspace);
    let path = format!("/v1/apps/{}/keys", made["id"].as_str().unwrap());
    let key = json!({"kind": "server", "name": "Backend", "scopes": ["events.write"]});
    let key = post(&path, &admin, key).await.data(201);
    let event = json!({"userId": "ada", "events": [{"name": "opened", "timestamp": nudge_platform::clock::to_text(nudge_platform::clock::Clock::default().now())}]});
    let taken = post("/v1/sdk/ingest", key["key"].as_str().unwrap(), event)
        .await
        .ok();
    assert_eq!(taken["accepted"], 1);

    let id = process.id().to_string();
    let asked = std::process::Command::new("kill")
        .args(["-TERM", &id])
        .status();
    assert!(asked.unwrap().success());
    assert_eq!(process.wait().unwrap().code(), Some(0));

    // What the log says of all that.
    let log = std::fs::read_to_string(log).unwrap();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["fields"].clone())
        .collect();
    let line = |what: &str| {
        let found = lines.iter().find(|line| line["message"] == what);
        found.unwrap_or_else(|| panic!("no line `{what}` in {log}"))
    };
    let started = line("the server has started");
    assert_eq!(started["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(line("the server has stopped")["node"], started["node"]);
    let ingested = lines
        .iter()
        .find(|line| line["http.route"] == "/v1/sdk/ingest")
        .unwrap();
    assert_eq!(ingested["app.id"], made["id"]);
    assert_eq!(ingested["key.id"], key["id"]);
    assert_eq!(ingested["client.address"], "127.0.0.1");
    assert_eq!(ingested["http.status"], 200);
    let keys = lines
        .iter()
        .find(|line| line["http.route"] == "/v1/apps/{appId}/keys")
        .unwrap();
    assert_eq!(keys["app.id"], made["id"]);
    let secret = key["key"].as_str().unwrap();
    assert!(!log.contains(secret) && !log.contains(&admin), "{log}");
}

/// What packages install beside the program.
#[test]
fn shells_and_manual_pages_know_every_command() {
    let commands = ["serve", "doctor", "secrets", "plugin"];
    for shell in ["bash", "zsh", "fish"] {
        let script = standard_output(&child::run(site!(), &["completions", shell]));
        for command in commands {
            assert!(script.contains(command), "{command} in {shell}");
        }
    }
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let pages = folder.path().join("man1");
    let written = child::run(site!(), &["man", pages.to_str().unwrap()]);
    assert!(written.status.success(), "{written:?}");
    for command in commands {
        let page = std::fs::read_to_string(pages.join(format!("nudge-{command}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
    }
    assert!(pages.join("nudge-plugin-push.1").exists());
    assert!(!pages.join("nudge-compile-component.1").exists());
}
