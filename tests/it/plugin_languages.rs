//! `nudge plugin` for projects in C, JavaScript and Python: what their tools make of them (contract 16).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tests::{child, site};

use crate::plugin_command::{javascript, path_with, python};

const KINDS: [&str; 3] = ["trigger", "validation", "personalization"];

/// The program, with a path of its own.
fn nudge(path: Option<&Path>, arguments: &[&str]) -> Output {
    let mut command = child::program(site!());
    // A plugin that carries an interpreter compiles for long on a machine that has other things to do.
    command.env("NUDGE_PLUGINS__COMPILE_SECONDS", "600");
    let path = path.map_or_else(|| std::env::var_os("PATH"), |path| Some(path.into()));
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.args(arguments).output().unwrap()
}

fn good_json(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{errors}");
    serde_json::from_str(&text).unwrap()
}

/// A new project in C.
fn project(folder: &TempDir, kind: &str) -> PathBuf {
    let name = format!("c-{kind}");
    let project = folder.path().join(&name);
    let dir = project.to_str().unwrap();
    let arguments = ["plugin", "new", &name, "--kind", kind, "--lang", "c"];
    let made = nudge(None, &[&arguments[..], &["--dir", dir]].concat());
    assert!(made.status.success(), "{made:?}");
    project
}

/// Whether clang and its linker are there. Without them a test has nothing to show: it says so, and fails where
/// everything must be tested.
#[expect(clippy::print_stderr, reason = "a test that is skipped must say so")]
pub(crate) fn has_clang() -> bool {
    let is_there = |program: &str| {
        Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let ready = is_there("clang") && is_there("wasm-ld");
    if !ready {
        assert!(
            std::env::var_os("CI").is_none(),
            "clang and lld must be installed where CI is set"
        );
        eprintln!("SKIPPED: clang or wasm-ld is not installed");
    }
    ready
}

#[test]
fn a_new_project_in_c_of_every_kind_passes_its_cases_and_the_check() {
    if !has_clang() {
        return;
    }
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    for kind in KINDS {
        let project = project(&folder, kind);
        let dir = project.to_str().unwrap();
        let tested = good_json(&nudge(None, &["plugin", "test", "--json", "--dir", dir]));
        assert_eq!(tested["kind"], kind);
        assert_eq!(tested["failed"], 0, "{tested}");
        assert!(tested["passed"].as_u64().unwrap() >= 2, "{tested}");
        for case in tested["cases"].as_array().unwrap() {
            assert_eq!(case["nondeterministic"], json!([]), "{case}");
        }
        let checked = good_json(&nudge(None, &["plugin", "check", "--json", "--dir", dir]));
        for import in checked["imports"].as_array().unwrap() {
            let name = import["name"].as_str().unwrap();
            assert!(name.starts_with("nudge:plugin/"), "{name}");
        }
        let size = std::fs::metadata(project.join("build/plugin.wasm"))
            .unwrap()
            .len();
        assert!(size < 100 * 1024, "{size}");
    }
}

#[test]
fn an_error_in_c_is_told_with_its_line() {
    if !has_clang() {
        return;
    }
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let project = project(&folder, "trigger");
    let source = project.join("src/plugin.c");
    let before = std::fs::read_to_string(&source).unwrap();
    let line = before.lines().count() + 1;
    std::fs::write(&source, format!("{before}int broken = ;\n")).unwrap();
    let output = nudge(
        None,
        &["plugin", "build", "--dir", project.to_str().unwrap()],
    );
    assert!(!output.status.success());
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(
        complaint.contains(&format!("plugin.c:{line}:")),
        "{complaint}"
    );
}

#[test]
fn a_trap_in_c_names_its_function() {
    if !has_clang() {
        return;
    }
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let project = project(&folder, "trigger");
    let source = project.join("src/plugin.c");
    let before = std::fs::read_to_string(&source).unwrap();
    let after = before.replace("    (void)refusal;\n", "    (void)refusal;\n    abort();\n");
    assert_ne!(before, after);
    std::fs::write(&source, after).unwrap();
    let dir = project.to_str().unwrap();
    let output = nudge(None, &["plugin", "test", "--dir", dir]);
    assert!(!output.status.success());
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(
        report.contains(", in abort called by exports_plugin_evaluate"),
        "{report}"
    );
}

#[test]
fn without_clang_one_line_says_what_to_install() {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let project = project(&folder, "trigger");
    let output = nudge(
        Some(folder.path()),
        &["plugin", "build", "--dir", project.to_str().unwrap()],
    );
    let complaint = child::complaint(&output);
    assert!(
        complaint.contains("`clang` is not installed"),
        "{complaint}"
    );
    assert!(
        complaint.contains("apt-get install clang lld"),
        "{complaint}"
    );
}

/// Tests a project with these cases alone; answers what came out.
fn tested(path: Option<&Path>, project: &Path, cases: &Value) -> Value {
    let folder = project.join("cases");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("all.json"), cases.to_string()).unwrap();
    let dir = project.to_str().unwrap();
    good_json(&nudge(path, &["plugin", "test", "--json", "--dir", dir]))
}

/// What a project in C does with an item: says how many tags its event has and which is the last, and the numbers.
const SHOWN_IN_C: &str = r#"
        plugin_string_t whole, tag_count = text("tags"), last_tag = text("last"), one_number = text("number");
        host_method_batch_event_json(batch, item, &whole);
        const json_t *properties = json_read(whole), *tags = json_member(properties, "tags");
        double count = 0;
        text_t last = text("");
        for (const json_t *tag = tags->first; tag != NULL; tag = tag->next, count++) last = tag->text;
        text_t shown = text_of_number(count);
        host_method_batch_explain(batch, campaign, item, &tag_count, true, &shown);
        host_method_batch_explain(batch, campaign, item, &last_tag, true, &last);
        const json_t *numbers = json_member(properties, "numbers");
        for (const json_t *number = numbers->first; number != NULL; number = number->next) {
            shown = text_of_number(number->number);
            host_method_batch_explain(batch, campaign, item, &one_number, true, &shown);
        }
"#;

#[test]
fn a_large_event_is_read_in_c_and_numbers_have_their_digits() {
    if !has_clang() {
        return;
    }
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let project = project(&folder, "trigger");
    let source = project.join("src/plugin.c");
    let before = std::fs::read_to_string(&source).unwrap();
    let item = "uint32_t item = items.ptr[row];";
    assert!(before.contains(item), "{before}");
    let edited = before.replace(item, &format!("{item}{SHOWN_IN_C}"));
    std::fs::write(&source, edited).unwrap();

    let mut tags = vec!["ab"; 10_000];
    tags.push(r#"a "quoted" \ tag"#);
    let numbers = json!([
        0,
        -42,
        20.5,
        0.000_001,
        -0.000_000_1,
        1_234.000_5,
        9e12,
        -9.1e12,
        9_876_543_210_987.5,
        4_111_111_111_111_111_u64,
        1e20,
        -1e21
    ]);
    let shown = [
        "0",
        "-42",
        "20.5",
        "0.000001",
        "0",
        "1234.0005",
        "9000000000000",
        "-9100000000000",
        "9876543210987.5",
        "4111111111111111",
        "100000000000000000000",
        "-1000000000000000000000",
    ];
    let mut expected = vec![
        json!({"check": "tags", "detail": "10001"}),
        json!({"check": "last", "detail": tags.last().unwrap()}),
    ];
    let number = |text: &&str| json!({"check": "number", "detail": text});
    expected.extend(shown.iter().map(number));
    let case = json!({
        "input": {
            "config": {"minimum": 1},
            "events": [{"name": "purchase_completed", "properties": {"tags": tags, "numbers": numbers}}],
        },
        "expect": {"explanations": expected},
    });
    let tested = tested(None, &project, &case);
    assert_eq!(tested["passed"], 1, "{tested}");
}

const SHOWN_IN_PYTHON: &str = r#"
from nudge import Personalization, Resolution, reads


class PersonalizationPlugin(Personalization):
    name = "py-shown"
    version = "0.1.0"

    def check(self, config):
        return reads(subject_properties=config["keys"])

    def values(self, config, recipient):
        return {key: Resolution(recipient.get_property(key)) for key in config["keys"]}
"#;

/// The same plugin in JavaScript.
const SHOWN_IN_JAVASCRIPT: &str = r#"
import { personalization } from "../sdk/nudge.js";

export const personalizationPlugin = personalization({
  name: "js-shown",
  version: "0.1.0",
  check: ({ keys }) => ({ subjectProperties: keys }),
  resolve: ({ keys }, recipient) =>
    Object.fromEntries(keys.map((key) => [key, { value: recipient.property(key) }])),
});
"#;

/// A project in a language whose plugin gives each property as a value, and says no text for it.
fn shown(folder: &TempDir, language: &str, source: (&str, &str)) -> PathBuf {
    let name = format!("{language}-shown");
    let project = folder.path().join(&name);
    let dir = project.to_str().unwrap();
    let new = ["plugin", "new", &name, "--kind", "personalization"];
    let new = [&new[..], &["--lang", language, "--dir", dir]].concat();
    assert!(nudge(None, &new).status.success());
    let (path, text) = source;
    std::fs::write(project.join(path), text).unwrap();
    project
}

/// What values of each type have to stand as.
fn case_of_shown_values() -> Value {
    let properties = json!({
        "whole": 42, "part": 12.5, "large": 4_111_111_111_111_111_u64, "yes": true, "no": false, "none": null,
        "text": "42.0", "list": [1, "é", true], "object": {"n": 1}, "marked": "\u{feff}text",
    });
    let shown = json!({
        "whole": "42", "part": "12.5", "large": "4111111111111111", "yes": "true", "no": "false", "none": "",
        "text": "42.0", "list": r#"[1,"é",true]"#, "object": r#"{"n":1}"#, "marked": "\u{feff}text",
    });
    let texts = shown.as_object().unwrap().iter();
    let texts = texts.map(|(key, text)| (key.clone(), json!({"text": text})));
    let texts: Map<String, Value> = texts.collect();
    let keys: Vec<&String> = texts.keys().collect();
    json!({
        "input": {"config": {"keys": keys}, "recipients": [{"name": "ana", "properties": properties}]},
        "expect": {"values": {"ana": texts}},
    })
}

/// As they are with plugins in other languages.
#[test]
fn values_of_a_plugin_in_python_stand_in_messages_as_they_were_sent() {
    let Some(tools) = python() else { return };
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let project = shown(&folder, "python", ("src/plugin.py", SHOWN_IN_PYTHON));
    let path = path_with(tools);
    let tested = tested(Some(Path::new(&path)), &project, &case_of_shown_values());
    assert_eq!(tested["passed"], 1, "{tested}");
}

#[test]
fn values_of_a_plugin_in_javascript_stand_in_messages_as_they_were_sent() {
    let Some(tools) = javascript() else { return };
    let folder = TempDir::with_prefix_in("nudge-test-", tools).unwrap();
    let project = shown(&folder, "js", ("src/plugin.js", SHOWN_IN_JAVASCRIPT));
    let tested = tested(None, &project, &case_of_shown_values());
    assert_eq!(tested["passed"], 1, "{tested}");
}

/// What else this shell works with is no part of a project in Python.
#[test]
fn a_project_in_python_is_built_of_its_own_packages() {
    let Some(tools) = python() else { return };
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let project = folder.path().join("py-alone");
    let dir = project.to_str().unwrap();
    let new = [
        "plugin", "new", "py-alone", "--kind", "trigger", "--lang", "python", "--dir", dir,
    ];
    assert!(nudge(None, &new).status.success());
    let source = project.join("src/plugin.py");
    let text = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&source, format!("import stray\n{text}")).unwrap();
    let packages = folder.path().join("venv/lib/python3.11/site-packages");
    let path = folder.path().join("path");
    for place in [&packages, &path] {
        std::fs::create_dir_all(place).unwrap();
        std::fs::write(place.join("stray.py"), "").unwrap();
    }
    let built = child::program(site!())
        .env("PATH", path_with(tools))
        .env("PYTHONPATH", &path)
        .env("VIRTUAL_ENV", folder.path().join("venv"))
        .args(["plugin", "build", "--dir", dir])
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&built.stderr);
    assert!(!built.status.success(), "{complaint}");
    assert!(complaint.contains("stray"), "{complaint}");
}

/// A new trigger plugin in a language.
fn trigger(folder: &TempDir, path: Option<&Path>, language: &str) -> PathBuf {
    let name = format!("{language}-new");
    let project = folder.path().join(&name);
    let dir = project.to_str().unwrap();
    let new = ["plugin", "new", &name, "--kind", "trigger"];
    let new = [&new[..], &["--lang", language, "--dir", dir]].concat();
    assert!(nudge(path, &new).status.success());
    project
}

#[test]
fn an_exception_in_javascript_is_logged_with_its_message_and_place() {
    let Some(tools) = javascript() else { return };
    let folder = TempDir::with_prefix_in("nudge-test-", tools).unwrap();
    let project = trigger(&folder, None, "js");
    let source = project.join("src/plugin.js");
    let before = std::fs::read_to_string(&source).unwrap();
    let total = r#"const total = event.get("total");"#;
    assert!(before.contains(total), "{before}");
    let edited = before.replace(
        total,
        &format!("{total} if (total === 66) total.missing();"),
    );
    std::fs::write(&source, edited).unwrap();
    let case = json!({
        "input": {
            "config": {"minimum": 1},
            "events": [{"name": "purchase_completed", "properties": {"total": 66}}],
        },
        "expect": {"failure": "refused"},
    });
    let tested = tested(None, &project, &case);
    assert_eq!(tested["passed"], 1, "{tested}");
    let message = "TypeError: total.missing is not a function";
    let case = &tested["cases"][0];
    assert_eq!(case["logs"][0]["message"], message, "{case}");
    let place = case["logs"][1]["message"].as_str().unwrap();
    assert!(place.contains("src/plugin.js"), "{case}");
    let detail = format!("the plugin refused (exception): {message}");
    assert_eq!(case["output"]["detail"], detail, "{case}");
}

/// Writes another text in place of one that stands in a project's source once.
fn edit(project: &Path, source: &str, text: &str, other: &str) {
    let source = project.join(source);
    let before = std::fs::read_to_string(&source).unwrap();
    assert_eq!(before.matches(text).count(), 1, "{before}");
    std::fs::write(&source, before.replace(text, other)).unwrap();
}

/// A purchase over which a plugin is to refuse its batch.
fn case_of_a_refusal(total: u32) -> Value {
    json!({
        "input": {
            "config": {"minimum": 1},
            "events": [{"name": "purchase_completed", "properties": {"total": total}}],
        },
        "expect": {"failure": "refused"},
    })
}

/// A purchase of somebody whose firing was held back, which a plugin tells under its campaign's id: that of all cases.
fn case_of_a_held_back_firing() -> Value {
    let campaign = "ffffffff-ffff-ffff-ffff-ffffffffffff";
    json!({
        "input": {
            "config": {"minimum": 1},
            "subject": {"facts": {"held_back": {campaign: "that event"}}},
            "events": [{"name": "purchase_completed", "properties": {"total": 66}}],
        },
        "expect": {"explanations": [{"check": campaign, "detail": "that event"}]},
    })
}

#[test]
fn a_plugin_in_javascript_knows_what_facts_say_of_its_campaign() {
    let Some(tools) = javascript() else { return };
    let folder = TempDir::with_prefix_in("nudge-test-", tools).unwrap();
    let project = trigger(&folder, None, "js");
    let total = r#"const total = event.get("total");"#;
    let known = r#"const held = subject.fact("held_back")[subject.campaignId];"#;
    let told = "subject.explain(subject.campaignId, true, held);";
    let edited = format!("{total} {known} {told}");
    edit(&project, "src/plugin.js", total, &edited);
    let tested = tested(None, &project, &case_of_a_held_back_firing());
    assert_eq!(tested["passed"], 1, "{tested}");
}

#[test]
fn a_plugin_in_python_knows_what_facts_say_of_its_campaign() {
    let Some(tools) = python() else { return };
    let path = path_with(tools);
    let path = Some(Path::new(&path));
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let project = trigger(&folder, path, "python");
    let total = r#"total = event.get("total")"#;
    let known = r#"held = subject.fact("held_back")[subject.campaign_id]"#;
    let told = "subject.explain(subject.campaign_id, True, held)";
    let edited = format!("{total}; {known}; {told}");
    edit(&project, "src/plugin.py", total, &edited);
    let tested = tested(path, &project, &case_of_a_held_back_firing());
    assert_eq!(tested["passed"], 1, "{tested}");
}

/// A promise is no `true`: such a plugin would fire for nobody, and say nothing.
#[test]
fn a_plugin_in_javascript_that_is_async_says_so() {
    let Some(tools) = javascript() else { return };
    let folder = TempDir::with_prefix_in("nudge-test-", tools).unwrap();
    let project = trigger(&folder, None, "js");
    edit(&project, "src/plugin.js", "  onEvent(", "  async onEvent(");
    let tested = tested(None, &project, &case_of_a_refusal(66));
    assert_eq!(tested["passed"], 1, "{tested}");
    let detail = "the plugin refused (exception): TypeError: `onEvent` must answer at once: it can't be async";
    assert_eq!(tested["cases"][0]["output"]["detail"], detail, "{tested}");
}

/// Neither a text that is thrown nor what can't be kept is a trap, or nothing.
#[test]
fn whatever_a_plugin_in_javascript_throws_is_told() {
    let Some(tools) = javascript() else { return };
    let folder = TempDir::with_prefix_in("nudge-test-", tools).unwrap();
    let project = trigger(&folder, None, "js");
    let total = r#"const total = event.get("total");"#;
    let careless = format!(
        r#"{total} if (total === 66) throw "too much"; if (total === 77) subject.state = () => 1;"#
    );
    edit(&project, "src/plugin.js", total, &careless);
    let problems = "const problems = [];";
    let careless = format!(
        r#"{problems} if (minimum === 5) throw {{ code: "odd", message: "must be even" }};"#
    );
    edit(&project, "src/plugin.js", problems, &careless);
    for (total, told) in [
        (66, "too much"),
        (77, "TypeError: what is kept must be JSON, and is () => 1"),
    ] {
        let tested = tested(None, &project, &case_of_a_refusal(total));
        assert_eq!(tested["passed"], 1, "{tested}");
        let case = &tested["cases"][0];
        assert_eq!(case["logs"][0]["message"], told, "{case}");
        let detail = format!("the plugin refused (exception): {told}");
        assert_eq!(case["output"]["detail"], detail, "{case}");
    }
    let problem = json!({"code": "odd", "pointer": "", "message": "must be even"});
    let case = json!({
        "input": {"config": {"minimum": 5}, "events": []},
        "expect": {"problems": [problem]},
    });
    let tested = tested(None, &project, &case);
    assert_eq!(tested["passed"], 1, "{tested}");
}

/// What a plugin in Python does with three purchases that its author did not think through.
const CARELESS: &str = r#"    async def later(self):
        return True

    def on_event(self, config, event, subject):
        if event.get("total") == 66:
            subject.explain(5, True)
        if event.get("total") == 77:
            return self.later()
        if event.get("total") == 88:
            return event.gets("total")
"#;

#[test]
fn a_plugin_in_python_that_is_async_or_gives_what_is_no_text_or_breaks_down_says_so() {
    let Some(tools) = python() else { return };
    let path = path_with(tools);
    let path = Some(Path::new(&path));
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let project = trigger(&folder, path, "python");
    let method = "    def on_event(self, config, event, subject):\n";
    edit(&project, "src/plugin.py", method, CARELESS);
    let source = std::fs::read_to_string(project.join("src/plugin.py")).unwrap();
    let mut lines = source.lines();
    let line = 1 + lines.position(|line| line.contains("event.gets")).unwrap();
    let cases = json!([
        case_of_a_refusal(66),
        case_of_a_refusal(77),
        case_of_a_refusal(88)
    ]);
    let tested = tested(path, &project, &cases);
    assert_eq!(tested["passed"], 3, "{tested}");
    for (case, words) in [
        "a check must be a str, and is 5",
        "`on_event` must answer at once",
        &format!("plugin.py, line {line}, in on_event"),
    ]
    .iter()
    .enumerate()
    {
        let said = tested["cases"][case].to_string();
        assert!(said.contains(words), "{tested}");
    }
}

#[test]
fn an_error_in_python_is_told_with_its_line_and_without_the_tools_own_stack() {
    let Some(tools) = python() else { return };
    let path = path_with(tools);
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let project = trigger(&folder, Some(Path::new(&path)), "python");
    let source = project.join("src/plugin.py");
    let before = std::fs::read_to_string(&source).unwrap();
    let line = before.lines().count() + 1;
    std::fs::write(&source, format!("{before}def broken(:\n")).unwrap();
    let built = child::program(site!())
        .env("PATH", &path)
        .env("RUST_BACKTRACE", "1")
        .args(["plugin", "build", "--dir", project.to_str().unwrap()])
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&built.stderr);
    assert!(!built.status.success(), "{complaint}");
    assert!(
        complaint.contains(&format!("\"/0/plugin.py\", line {line}")),
        "{complaint}"
    );
    assert!(complaint.contains("`/0` above is its src"), "{complaint}");
    assert!(!complaint.contains("Stack backtrace"), "{complaint}");
}
