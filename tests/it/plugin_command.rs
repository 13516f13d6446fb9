//! `nudge plugin new`, `build`, `check`, `test` and `bench`: the program on real projects (contract 16).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{Backend, TestApp, child, site};

/// The folder of the examples.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/examples")
}

/// What all Rust projects of the tests are compiled into: dependencies once.
pub(crate) fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugin-projects")
}

/// The program, with the tools that builds need. The environment is otherwise its own.
pub(crate) fn nudge(arguments: &[&str]) -> Command {
    let mut command = child::program(site!());
    for variable in [
        "PATH",
        "HOME",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
    ] {
        if let Some(value) = std::env::var_os(variable) {
            command.env(variable, value);
        }
    }
    // A plugin that carries an interpreter compiles for long on a machine that has other things to do.
    command
        .env("NUDGE_PLUGINS__COMPILE_SECONDS", "600")
        .env("CARGO_TARGET_DIR", target())
        .args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    nudge(arguments).output().unwrap()
}

fn good(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{errors}");
    text
}

fn good_json(output: &Output) -> Value {
    serde_json::from_str(&good(output)).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A new project, in a folder outside of this repository.
struct Project {
    _parent: TempDir,
    folder: PathBuf,
}

impl Project {
    fn new(name: &str, kind: &str, lang: &str) -> Self {
        let parent = TempDir::with_prefix("nudge-test-").unwrap();
        let folder = parent.path().join(name);
        let arguments = [
            "plugin", "new", name, "--kind", kind, "--lang", lang, "--dir",
        ];
        let output = nudge(&arguments).arg(&folder).output().unwrap();
        assert!(good(&output).contains("nudge plugin test"));
        Self {
            _parent: parent,
            folder,
        }
    }

    fn command(&self, command: &str, more: &[&str]) -> Output {
        let mut arguments = vec!["plugin", command, "--dir", text(&self.folder)];
        arguments.extend(more);
        run(&arguments)
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.folder.join(file);
        let before = std::fs::read_to_string(&path).unwrap();
        assert!(before.contains(from), "{file}: {before}");
        std::fs::write(path, before.replace(from, to)).unwrap();
    }
}

/// Whether a language's tool is there. Without it a test has nothing to show: it says so, and fails where
/// everything must be tested.
#[expect(clippy::print_stderr, reason = "a test that is skipped must say so")]
fn tool(ready: bool, what: &str) -> bool {
    if !ready {
        assert!(
            std::env::var_os("CI").is_none(),
            "{what} must be installed where CI is set"
        );
        eprintln!("SKIPPED: {what} is not installed");
    }
    ready
}

/// A folder with componentize-js, which Node.js finds from every folder below it. Installed once.
pub(crate) fn javascript() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("javascript-projects");
        std::fs::create_dir_all(&folder).unwrap();
        let package = include_str!("../../plugins/examples/high-spender-javascript/package.json");
        let wanted = folder.join("package.json");
        let installed = folder.join("node_modules/@bytecodealliance/componentize-js/package.json");
        if !installed.is_file() || std::fs::read_to_string(&wanted).ok().as_deref() != Some(package)
        {
            std::fs::write(&wanted, package).unwrap();
            let npm = Command::new("npm")
                .args(["install", "--no-fund", "--no-audit", "--loglevel=error"])
                .current_dir(&folder)
                .output();
            if !npm.is_ok_and(|output| output.status.success()) {
                return None;
            }
        }
        Some(folder)
    });
    tool(folder.is_some(), "npm, with componentize-js").then_some(folder.as_deref())?
}

/// A folder with the program componentize-py. Installed once.
pub(crate) fn python() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("componentize-py");
        let requirements = examples().join("high-spender-python/requirements.txt");
        let succeeds =
            |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
        let made = venv.join("bin/componentize-py").is_file()
            || succeeds(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        let ready = made
            && succeeds(
                Command::new(venv.join("bin/python"))
                    .args(["-m", "pip", "install", "--quiet", "--requirement"])
                    .arg(requirements),
            );
        ready.then(|| venv.join("bin"))
    });
    tool(folder.is_some(), "Python, with componentize-py").then_some(folder.as_deref())?
}

/// The program's path, with a folder of tools before all others.
pub(crate) fn path_with(folder: &Path) -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).unwrap()
}

#[test]
fn a_new_rust_project_of_every_kind_builds_and_passes_its_own_cases() {
    for kind in ["trigger", "validation", "personalization"] {
        let project = Project::new(&format!("my-{kind}"), kind, "rust");
        let tested = good_json(&project.command("test", &["--json"]));
        assert_eq!(tested["name"], format!("my-{kind}"), "{tested}");
        assert_eq!(tested["kind"], kind);
        assert_eq!(tested["failed"], 0, "{tested}");
        assert!(tested["passed"].as_u64().unwrap() >= 2);
        for case in tested["cases"].as_array().unwrap() {
            assert_eq!(case["nondeterministic"], json!([]), "{case}");
        }
        let built = good_json(&project.command("build", &["--json"]));
        assert_eq!(built["version"], "0.1.0");
        assert!(Path::new(built["path"].as_str().unwrap()).is_file());
        let measured = good_json(&project.command("bench", &["--time", "1", "--json"]));
        for row in measured["measurements"].as_array().unwrap() {
            assert!(row["medianMicros"].as_f64().unwrap() > 0.0, "{row}");
            assert!(row["hostCalls"].as_u64().unwrap() > 0, "{row}");
        }
    }
}

#[test]
fn a_new_rust_project_passes_its_native_test() {
    let project = Project::new("native", "trigger", "rust");
    let output = Command::new(env!("CARGO"))
        .arg("test")
        .current_dir(&project.folder)
        .env("CARGO_TARGET_DIR", target())
        .output()
        .unwrap();
    let text = good(&output);
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn every_example_in_rust_passes_its_cases() {
    for name in [
        "cart-abandonment",
        "churn-risk",
        "cross-field",
        "currency-price",
    ] {
        let folder = examples().join(name);
        let tested = good_json(&run(&["plugin", "test", "--json", "--dir", text(&folder)]));
        assert_eq!(tested["name"], name);
        assert_eq!(tested["failed"], 0, "{tested}");
    }
}

#[test]
fn javascript_projects_and_the_example_pass_their_cases() {
    let Some(folder) = javascript() else { return };
    for (name, kind) in [
        ("js-trigger", "trigger"),
        ("js-validation", "validation"),
        ("js-personalization", "personalization"),
    ] {
        let project = folder.join(name);
        drop(std::fs::remove_dir_all(&project));
        let mut new = nudge(&[
            "plugin", "new", name, "--kind", kind, "--lang", "js", "--dir",
        ]);
        good(&new.arg(&project).output().unwrap());
        let tested = good_json(&run(&["plugin", "test", "--json", "--dir", text(&project)]));
        assert_eq!(tested["failed"], 0, "{tested}");
        assert_eq!(tested["kind"], kind);
    }
    decides_within_the_limits(&folder.join("js-trigger"));
    let project = folder.join("high-spender-javascript");
    drop(std::fs::remove_dir_all(&project));
    copy(&examples().join("high-spender-javascript"), &project);
    let wit = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../wit")
        .canonicalize()
        .unwrap();
    let manifest = format!(
        "kind = \"trigger\"\nlanguage = \"javascript\"\nwit = {:?}\n",
        text(&wit)
    );
    std::fs::write(project.join("nudge-plugin.toml"), manifest).unwrap();
    add_case_of_many_purchases(&project);
    let tested = good_json(&run(&["plugin", "test", "--json", "--dir", text(&project)]));
    assert_eq!(tested["failed"], 0, "{tested}");
    fires_on_a_server(&project);
}

#[test]
fn a_syntax_error_in_javascript_is_told_with_its_line() {
    let Some(folder) = javascript() else { return };
    let project = folder.join("js-broken");
    drop(std::fs::remove_dir_all(&project));
    let arguments = [
        "plugin",
        "new",
        "js-broken",
        "--kind",
        "trigger",
        "--lang",
        "js",
        "--dir",
    ];
    good(&nudge(&arguments).arg(&project).output().unwrap());
    let source = project.join("src/plugin.js");
    let before = std::fs::read_to_string(&source).unwrap();
    let lines = before.lines().count();
    std::fs::write(&source, format!("{before}const broken = ;\n")).unwrap();
    let output = run(&["plugin", "build", "--dir", text(&project)]);
    assert!(!output.status.success());
    let complaint = String::from_utf8(output.stderr).unwrap();
    let place = format!("plugin.js:{}", lines + 1);
    assert!(complaint.contains(&place), "{complaint}");
    assert!(complaint.contains("SyntaxError"), "{complaint}");
}

#[test]
fn the_javascript_example_has_the_helper_as_it_is() {
    let copy = include_str!("../../plugins/examples/high-spender-javascript/sdk/nudge.js");
    assert_eq!(copy, include_str!("../../guest-sdk/javascript/nudge.js"));
    let types = include_str!("../../plugins/examples/high-spender-javascript/sdk/nudge.d.ts");
    assert_eq!(types, include_str!("../../guest-sdk/javascript/nudge.d.ts"));
}

#[test]
fn python_projects_and_the_example_pass_their_cases() {
    let Some(tools) = python() else { return };
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let with_tools = |arguments: &[&str]| {
        let mut command = nudge(arguments);
        command.env("PATH", path_with(tools)).output().unwrap()
    };
    for kind in ["trigger", "validation", "personalization"] {
        let project = folder.path().join(kind);
        let name = format!("py-{kind}");
        let arguments = [
            "plugin", "new", &name, "--kind", kind, "--lang", "python", "--dir",
        ];
        good(&nudge(&arguments).arg(&project).output().unwrap());
        let tested = good_json(&with_tools(&[
            "plugin",
            "test",
            "--json",
            "--dir",
            text(&project),
        ]));
        assert_eq!(tested["failed"], 0, "{tested}");
        assert_eq!(tested["kind"], kind);
    }
    decides_within_the_limits(&folder.path().join("trigger"));
    let example = folder.path().join("high-spender-python");
    copy(&examples().join("high-spender-python"), &example);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap();
    let manifest = format!(
        "kind = \"trigger\"\nlanguage = \"python\"\nsdk = {:?}\nwit = {:?}\n",
        root.join("guest-sdk/python"),
        root.join("wit")
    );
    std::fs::write(example.join("nudge-plugin.toml"), manifest).unwrap();
    add_case_of_many_purchases(&example);
    let tested = good_json(&with_tools(&[
        "plugin",
        "test",
        "--json",
        "--dir",
        text(&example),
    ]));
    assert_eq!(tested["failed"], 0, "{tested}");
    fires_on_a_server(&example);
}

/// Adds a case to an example: somebody bought more often than the SDKs ask for unless they are told to, and reached the sum
/// long ago.
fn add_case_of_many_purchases(project: &Path) {
    let purchase = json!({"name": "purchase_completed", "at": "-1h", "properties": {"total": 1}});
    let case = json!({
        "input": {
            "config": {"sum": 201},
            "subject": {"history": vec![purchase; 250]},
            "events": [{"name": "purchase_completed", "properties": {"total": 1}}],
        },
        "expect": {"fired": [], "explanations": [{"detail": "251 of 201"}]},
    });
    std::fs::write(project.join("cases/many.json"), case.to_string()).unwrap();
}

/// The example is uploaded, activated, named by a survey, and fires at the purchase that reaches the sum.
fn fires_on_a_server(project: &Path) {
    let component = std::fs::read(project.join("build/plugin.wasm")).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let app = TestApp::start(site!(), Backend::Sqlite).await;
        let uploaded = app
            .upload(&app.path("/plugins"), &app.admin(), component)
            .await
            .data(201);
        let name = uploaded["name"].as_str().unwrap();
        let path = app.path(&format!("/plugins/{name}/activate"));
        let body = json!({"version": uploaded["version"]});
        app.post(&path, &app.admin(), &body).await.ok();
        app.survey(&json!({"kind": "plugin", "plugin": name, "config": {"sum": 100}}))
            .await;
        let ada = app.session("ada").await;
        for (total, fires) in [(60, 0), (40, 1), (40, 0)] {
            let properties = json!({"total": total});
            assert_eq!(
                app.fires(&ada, "purchase_completed", &properties).await,
                fires,
                "{total}"
            );
        }
        app.finish().await;
    });
}

/// A new trigger is tried with the configuration that its schema asks for. Languages with a run-time system of their own must
/// fit into the limits that servers have by default.
fn decides_within_the_limits(project: &Path) {
    let component = project.join("build/plugin.wasm");
    let checked = good_json(&run(&["plugin", "check", "--json", text(&component)]));
    let tried = r#"evaluate answers a made-up batch under the configuration {"minimum":1}"#;
    assert_eq!(checked["decision"], tried, "{checked}");
    for limit in ["sizeBytes", "memoryBytes"] {
        let percent = checked["limits"][limit]["percent"].as_f64().unwrap();
        assert!(percent < 50.0, "{limit}: {checked}");
    }
    for import in checked["imports"].as_array().unwrap() {
        let name = import["name"].as_str().unwrap();
        assert!(name.starts_with("nudge:plugin/"), "{name}");
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_case_that_fails_shows_place_expected_and_actual() {
    let project = Project::new("failing", "trigger", "rust");
    project.edit(
        "cases/fires.json",
        "\"event\": 1, \"at\": \"+1m\"",
        "\"event\": 0, \"at\": \"+2m\"",
    );
    let output = project.command("test", &[]);
    assert_eq!(output.status.code(), Some(1));
    let report = String::from_utf8(output.stdout).unwrap();
    for line in [
        "  FAILED  fires.json: a large purchase fires, a small one does not",
        "          at /fired/0/at",
        "            expected  \"2026-01-01T00:02:00.000Z\"",
        "            actual    \"2026-01-01T00:01:00.000Z\"",
        "          at /fired/0/event",
        "3 passed, 1 failed, 0 skipped",
    ] {
        assert!(report.contains(line), "{line}\n{report}");
    }
    // Not a terminal: nothing is coloured.
    assert!(!report.contains('\x1b'), "{report:?}");
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(
        complaint.ends_with("nudge: 1 of 4 cases failed\n"),
        "{complaint}"
    );

    let filtered = good_json(&project.command("test", &["--filter", "quiet", "--json"]));
    assert_eq!(filtered["passed"], 1);
    assert_eq!(filtered["skipped"], 3);
    let none = project.command("test", &["--filter", "no such case"]);
    assert_eq!(none.status.code(), Some(1));

    project.edit("cases/fires.json", "\"events\": [", "\"evnts\": [");
    let report = project.command("test", &[]);
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(
        report.contains("the case can't be run: unknown field `evnts`"),
        "{report}"
    );
    std::fs::write(project.folder.join("cases/fires.json"), "{").unwrap();
    let broken = String::from_utf8(project.command("test", &[]).stderr).unwrap();
    assert!(broken.contains("cases/fires.json"), "{broken}");
    std::fs::write(project.folder.join("cases/fires.json"), "[7]").unwrap();
    let broken = String::from_utf8(project.command("test", &[]).stderr).unwrap();
    assert!(
        broken.contains("case 1 is no object with an `input`"),
        "{broken}"
    );
}

#[test]
fn a_plugin_that_breaks_down_fails_its_case_with_what_it_logged() {
    let project = Project::new("breaking", "trigger", "rust");
    project.edit(
        "src/lib.rs",
        "if event.number(\"total\")",
        "assert!(event.number(\"total\").is_some(), \"no total at all\");\n        if event.number(\"total\")",
    );
    let tested = project.command("test", &["--json"]);
    assert_eq!(tested.status.code(), Some(1));
    let tested: Value = serde_json::from_slice(&tested.stdout).unwrap();
    let cases = tested["cases"].as_array().unwrap();
    let broken: Vec<&Value> = cases
        .iter()
        .filter(|case| case["passed"] == false)
        .collect();
    assert_eq!(broken.len(), 1, "{tested}");
    assert_eq!(broken[0]["output"]["failure"], "trap");
    assert!(
        broken[0]["logs"].to_string().contains("no total at all"),
        "{tested}"
    );
}

#[test]
fn check_refuses_as_a_server_does() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let file = folder.path().join("plugin.wasm");
    let complaint = |bytes: &[u8], variables: &[(&str, &str)]| {
        std::fs::write(&file, bytes).unwrap();
        let mut command = nudge(&["plugin", "check", text(&file)]);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
        assert_eq!(complaint.matches("nudge: ").count(), 1, "{complaint}");
        complaint
    };
    assert!(complaint(b"hello", &[]).contains("not a WebAssembly component; send the bytes"));
    assert!(
        complaint(b"\0asm\x01\0\0\0", &[]).contains("a core WebAssembly module, not a component")
    );
    assert!(complaint(b"\0asm\x0d\0\x01\0", &[]).contains("exports nothing"));
    assert!(complaint(b"\0asm\x0d\0\x01\0nonsense", &[]).contains("does not compile"));
    let small = [("NUDGE_PLUGINS__MEMORY_BYTES", "65536")];
    let curious = test_guests::CURIOUS;
    assert!(complaint(curious, &small).contains("would be refused"));

    let reserved = crate::guests::renamed(b"default-plugin-000000", b"1.0.1000001");
    assert!(complaint(&reserved, &[]).contains("would be refused: the name `default-plugin"));

    let complained = complaint(&crate::guests::versioned(1, 999_998), &[]);
    assert!(
        complained.contains("`evaluate` with made-up batches"),
        "{complained}"
    );
    assert!(
        complained.contains("breaks down over events"),
        "{complained}"
    );

    std::fs::write(&file, curious).unwrap();
    let checked = good_json(&run(&["plugin", "check", "--json", text(&file)]));
    assert_eq!(checked["kind"], "trigger");
    assert!(
        checked["limits"]["compileSeconds"]["used"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    let exports = checked["exports"].to_string();
    assert!(
        exports.contains("nudge:plugin/trigger-plugin@1.0.0"),
        "{exports}"
    );
    let report = good(&run(&["plugin", "check", text(&file)]));
    assert!(report.contains("a server would take it"), "{report}");
    assert!(report.contains("no files are there"), "{report}");
}

#[test]
fn names_and_folders_that_can_not_be_are_refused_in_one_line() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let full = folder.path().join("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("notes"), "mine").unwrap();
    let complaint = |arguments: &[&str]| {
        let output = nudge(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for name in ["Cart", "2carts", "../cart", "fn", "default-x", ""] {
        let line = complaint(&["plugin", "new", name, "--kind", "trigger"]);
        assert!(
            line.starts_with("nudge: ") && line.lines().count() == 1,
            "{line}"
        );
    }
    assert!(complaint(&["plugin", "new", "full", "--kind", "trigger"]).contains("not empty"));
    assert_eq!(std::fs::read(full.join("notes")).unwrap(), b"mine");
    assert!(complaint(&["plugin", "new", "cart", "--kind", "cart"]).contains("trigger"));
    assert!(complaint(&["plugin", "test"]).contains("nudge plugin new"));
    assert!(complaint(&["plugin", "build", "--dir", "nowhere"]).contains("nowhere"));

    // Without its tool, a language says in one line how to get it.
    for (lang, missing) in [
        ("rust", "rustup.rs"),
        ("js", "nodejs.org"),
        ("python", "python.org"),
    ] {
        let project = folder.path().join(lang);
        let arguments = [
            "plugin", "new", "toolless", "--kind", "trigger", "--lang", lang, "--dir",
        ];
        good(&nudge(&arguments).arg(&project).output().unwrap());
        let mut build = nudge(&["plugin", "build", "--dir", text(&project)]);
        let output = build.env("PATH", folder.path()).output().unwrap();
        let line = String::from_utf8(output.stderr).unwrap();
        let line = line.lines().last().unwrap();
        assert!(!output.status.success() && line.contains(missing), "{line}");
    }
}
