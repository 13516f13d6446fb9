//! What the SDKs for JavaScript and Python have of the contract, and where projects may be (contract 16).

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::plugin_command::{javascript, nudge, path_with, python};
use crate::plugin_languages::has_clang;

/// Where projects in a language are, and where the programs that they need are.
struct Workshop {
    folder: TempDir,
    tools: Option<PathBuf>,
}

impl Workshop {
    /// For JavaScript. None where its tools are missing.
    fn of_javascript() -> Option<Self> {
        let folder = TempDir::with_prefix_in("nudge-test-", javascript()?).unwrap();
        let tools = None;
        Some(Self { folder, tools })
    }

    /// For Python. None where its tools are missing.
    fn of_python() -> Option<Self> {
        let folder = TempDir::with_prefix("nudge-test-").unwrap();
        let tools = Some(python()?.to_owned());
        Some(Self { folder, tools })
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = nudge(arguments);
        if let Some(tools) = &self.tools {
            command.env("PATH", path_with(tools));
        }
        command.output().unwrap()
    }

    /// Makes a project with this plugin and these cases, and fails unless they pass.
    fn passes(&self, (language, kind): (&str, &str), source: (&str, &str), case: &Value) {
        let project = self.folder.path().join(kind);
        let dir = project.to_str().unwrap();
        let new = ["plugin", "new", "known", "--kind", kind];
        let made = self.run(&[&new[..], &["--lang", language, "--dir", dir]].concat());
        assert!(made.status.success(), "{made:?}");
        let (path, text) = source;
        std::fs::write(project.join(path), text).unwrap();
        let cases = project.join("cases");
        std::fs::remove_dir_all(&cases).unwrap();
        std::fs::create_dir(&cases).unwrap();
        std::fs::write(cases.join("all.json"), case.to_string()).unwrap();
        passed(&self.run(&["plugin", "test", "--json", "--dir", dir]));
    }
}

/// Fails unless every case passes, by what `nudge plugin test` says.
fn passed(output: &Output) {
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{errors}");
    let tested: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(tested["failed"], 0, "{tested}");
    assert_ne!(tested["passed"], 0, "{tested}");
}

/// Tells what is known of a subject, and sets a timer at an instant. Its state is the number of its visits.
const TRIGGER_IN_JAVASCRIPT: &str = r#"
import { trigger } from "../sdk/nudge.js";

export const triggerPlugin = trigger({
  name: "known",
  version: "0.1.0",
  check: () => ({ events: ["visited"] }),
  onEvent(config, event, subject) {
    const visits = subject.countEvents("visited");
    const known = [subject.heldBack, subject.mergedStates, subject.countEvents("visited", undefined, 2)];
    subject.explain("known", Number.isInteger(subject.number), JSON.stringify(known));
    subject.state = visits + 1;
    if (!subject.hasEvent("visited")) subject.setTimer("at", new Date(subject.now + 60_000));
    return false;
  },
  onTimer: () => true,
});
"#;

/// The same in Python.
const TRIGGER_IN_PYTHON: &str = r#"
import json
from datetime import timedelta

from nudge import Trigger, reads


class TriggerPlugin(Trigger):
    name = "known"
    version = "0.1.0"

    def check(self, config):
        return reads(events=["visited"])

    def on_event(self, config, event, subject):
        visits = subject.count_events("visited")
        known = [subject.held_back, subject.merged_states, subject.count_events("visited", at_most=2)]
        detail = json.dumps(known, separators=(",", ":"))
        subject.explain("known", isinstance(subject.number, int), detail)
        subject.state = visits + 1
        if not subject.has_event("visited"):
            subject.set_timer("at", subject.now + timedelta(minutes=1))
        return False

    def on_timer(self, config, timer, subject):
        return True
"#;

/// Four visits. People were merged into the subject when its state was 1; theirs is 42.
fn case_of_a_trigger() -> Value {
    let campaign = "ffffffff-ffff-ffff-ffff-ffffffffffff";
    let merged = json!({campaign: {"own": "31", "others": ["3432"]}});
    let visit = |at: &str| json!({"name": "visited", "at": at});
    let known =
        |known: Value| json!({"check": "known", "passed": true, "detail": known.to_string()});
    json!({
        "input": {
            "config": {},
            "subject": {"facts": {"held_back": {campaign: "that event"}, "merged_states": merged}},
            "events": [visit("+0s"), visit("+10s"), visit("+20s"), visit("+30s")],
        },
        "expect": {
            "fired": [{"timer": "at", "at": "+1m"}],
            "explanations": [
                known(json!(["that event", [], 0])),
                known(json!(["that event", [42], 1])),
                known(json!(["that event", [], 2])),
                known(json!(["that event", [], 2])),
            ],
        },
    })
}

/// Finds fault with every event, and tells when it happened and when it was decided about.
const VALIDATION_IN_JAVASCRIPT: &str = r#"
import { validation } from "../sdk/nudge.js";

export const validationPlugin = validation({
  name: "known",
  version: "0.1.0",
  check: () => ({}),
  validate: (config, event) => [{ code: "seen", expected: String(event.now / 1000), actual: event.timestamp / 1000 }],
});
"#;

/// The same in Python.
const VALIDATION_IN_PYTHON: &str = r#"
from nudge import Validation, Violation, reads


class ValidationPlugin(Validation):
    name = "known"
    version = "0.1.0"

    def check(self, config):
        return reads()

    def find(self, config, event):
        return [Violation("seen", expected=f"{event.now.timestamp():.0f}", actual=event.timestamp.timestamp())]
"#;

fn case_of_a_validation() -> Value {
    let seconds = "1769938200";
    json!({
        "input": {"config": {}, "now": "2026-02-01T09:30:00Z", "properties": {}},
        "expect": {"violations": [{"code": "seen", "expected": seconds, "actual": seconds}]},
    })
}

/// Resolves to the events that values come from, and to whether random numbers are those of the recipient.
const PERSONALIZATION_IN_JAVASCRIPT: &str = r#"
import { personalization } from "../sdk/nudge.js";

const of = (event) => (event === undefined ? { issue: "missing" } : { value: event.id, event });

export const personalizationPlugin = personalization({
  name: "known",
  version: "0.1.0",
  check: () => ({}),
  resolve(config, recipient) {
    const [first, again, other] = [recipient.random(), recipient.random(0), recipient.random(1)];
    const [bought] = recipient.recentEvents("bought", { limit: 1 });
    const steady = first === again && first !== other && first >= 0 && first < 1;
    return { cause: of(recipient.triggerEvent), bought: of(bought), steady: { value: steady } };
  },
});
"#;

/// The same in Python.
const PERSONALIZATION_IN_PYTHON: &str = r#"
from nudge import Personalization, Resolution, reads


def of(event):
    return Resolution(issue="missing") if event is None else Resolution(event.id, event=event)


class PersonalizationPlugin(Personalization):
    name = "known"
    version = "0.1.0"

    def check(self, config):
        return reads()

    def values(self, config, recipient):
        first, again, other = recipient.random(), recipient.random(0), recipient.random(1)
        bought = recipient.recent_events("bought", limit=1)
        return {
            "cause": of(recipient.trigger_event),
            "bought": of(bought[0] if bought else None),
            "steady": Resolution(first == again != other and 0 <= first < 1),
        }
"#;

/// A recipient with an event that caused the message, and one without.
fn case_of_a_personalization() -> Value {
    let of =
        |id: &str, timestamp: &str| json!({"value": id, "event_id": id, "timestamp": timestamp});
    let missing = json!({"value": null, "issue": "missing"});
    json!({
        "input": {
            "config": {},
            "recipients": [
                {"name": "ana", "trigger": {}, "history": [{"name": "bought", "at": "-1h"}]},
                {"name": "ben"},
            ],
        },
        "expect": {"values": {
            "ana": {
                "cause": of("7fffffff-ffff-ffff-ffff-ffffffffffff", "2026-01-01T00:00:00.000Z"),
                "bought": of("ffffffff-ffff-ffff-ffff-ffffffffffff", "2025-12-31T23:00:00.000Z"),
                "steady": {"value": true},
            },
            "ben": {"cause": missing, "bought": missing, "steady": {"value": true}},
        }},
    })
}

#[test]
fn plugins_in_javascript_know_what_the_contract_tells() {
    let Some(workshop) = Workshop::of_javascript() else {
        return;
    };
    for (kind, source, case) in [
        ("trigger", TRIGGER_IN_JAVASCRIPT, case_of_a_trigger()),
        (
            "validation",
            VALIDATION_IN_JAVASCRIPT,
            case_of_a_validation(),
        ),
        (
            "personalization",
            PERSONALIZATION_IN_JAVASCRIPT,
            case_of_a_personalization(),
        ),
    ] {
        workshop.passes(("js", kind), ("src/plugin.js", source), &case);
    }
}

#[test]
fn plugins_in_python_know_what_the_contract_tells() {
    let Some(workshop) = Workshop::of_python() else {
        return;
    };
    for (kind, source, case) in [
        ("trigger", TRIGGER_IN_PYTHON, case_of_a_trigger()),
        ("validation", VALIDATION_IN_PYTHON, case_of_a_validation()),
        (
            "personalization",
            PERSONALIZATION_IN_PYTHON,
            case_of_a_personalization(),
        ),
    ] {
        workshop.passes(("python", kind), ("src/plugin.py", source), &case);
    }
}

/// Answers as the configuration says, which need not be an answer of the contract.
const CARELESS_IN_JAVASCRIPT: &str = r#"
import { trigger } from "../sdk/nudge.js";

export const triggerPlugin = trigger({
  name: "known",
  version: "0.1.0",
  check({ answer }) {
    if (answer === "misspelt") return { eventNames: ["visited"] };
    if (answer === "list") return [];
    return { events: ["visited"] };
  },
  onEvent: ({ answer }) => answer,
});
"#;

/// The same of an event in Python.
const CARELESS_IN_PYTHON: &str = r#"
from nudge import Trigger, reads


class TriggerPlugin(Trigger):
    name = "known"
    version = "0.1.0"

    def check(self, config):
        return reads(events=["visited"])

    def on_event(self, config, event, subject):
        return config["answer"]
"#;

/// A value that only counts as true, and a name that nothing reads, would fire for nobody.
#[test]
fn an_answer_that_the_contract_has_no_place_for_is_told() {
    let case = |answer: Value, expect: Value| json!({"input": {"config": {"answer": answer}, "events": [{"name": "visited"}]}, "expect": expect});
    let problem = |message: &str| json!({"problems": [{"code": "exception", "pointer": "", "message": message}]});
    let told = "the plugin refused (exception): TypeError: `onEvent` must answer true or false, and answered 1";
    let misspelt = "TypeError: `check` answered `eventNames`, which is none of events, properties, subjectProperties, history";
    let list = "TypeError: `check` must answer an object, and answered []; problems are thrown";
    let answers = |truthy: Value| {
        vec![
            case(json!(1), truthy),
            case(json!(true), json!({"fired": [{"event": 0}]})),
            case(json!(false), json!({"fired": []})),
            case(Value::Null, json!({"fired": []})),
        ]
    };
    if let Some(workshop) = Workshop::of_javascript() {
        let mut cases = answers(json!({"failure": "refused", "detail": told}));
        cases.push(case(json!("misspelt"), problem(misspelt)));
        cases.push(case(json!("list"), problem(list)));
        let source = ("src/plugin.js", CARELESS_IN_JAVASCRIPT);
        workshop.passes(("js", "trigger"), source, &Value::Array(cases));
    }
    if let Some(workshop) = Workshop::of_python() {
        let cases = answers(json!({"failure": "refused"}));
        let source = ("src/plugin.py", CARELESS_IN_PYTHON);
        workshop.passes(("python", "trigger"), source, &Value::Array(cases));
    }
}

/// What the tool says of the plugin is told without its own stack.
#[test]
fn a_plugin_in_javascript_that_fails_as_it_is_loaded_is_told_with_its_line() {
    let Some(workshop) = Workshop::of_javascript() else {
        return;
    };
    let project = new_project(workshop.folder.path(), "js");
    let source = project.join("src/plugin.js");
    let text = std::fs::read_to_string(&source).unwrap();
    let line = text.lines().count() + 1;
    std::fs::write(&source, format!("{text}missing();\n")).unwrap();
    let built = workshop.run(&["plugin", "build", "--dir", project.to_str().unwrap()]);
    let complaint = String::from_utf8_lossy(&built.stderr);
    assert!(!built.status.success(), "{complaint}");
    let told = format!("src/plugin.js:{line}:1 ReferenceError: missing is not defined");
    assert!(complaint.contains(&told), "{complaint}");
    assert!(!complaint.contains("at componentize ("), "{complaint}");
}

/// A new trigger plugin's project; the command says how to get there.
fn new_project(folder: &Path, language: &str) -> PathBuf {
    let project = folder.join(format!("my {language} plugin"));
    let dir = project.to_str().unwrap();
    let new = ["plugin", "new", "cart", "--kind", "trigger", "--lang"];
    let mut command = nudge(&[&new[..], &[language, "--dir", dir]].concat());
    let made = command.output().unwrap();
    let text = String::from_utf8_lossy(&made.stdout);
    assert!(made.status.success(), "{made:?}");
    assert!(text.contains(&format!("cd '{dir}'\n")), "{text}");
    project
}

/// Runs a project's own cases.
fn run_cases(project: &Path) -> Output {
    let dir = project.to_str().unwrap();
    let mut command = nudge(&["plugin", "test", "--json", "--dir", dir]);
    // Where pip finds packages.
    command.envs(std::env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy().to_uppercase();
        name.starts_with("PIP_") || name.ends_with("_PROXY")
    }));
    command.output().unwrap()
}

#[test]
fn projects_build_in_folders_with_spaces() {
    let folder = TempDir::with_prefix("nudge test ").unwrap();
    passed(&run_cases(&new_project(folder.path(), "rust")));
    if has_clang() {
        passed(&run_cases(&new_project(folder.path(), "c")));
    }
    if let Some(tools) = javascript() {
        let folder = TempDir::with_prefix_in("nudge test ", tools).unwrap();
        passed(&run_cases(&new_project(folder.path(), "js")));
    }
}

/// Marks the plugin as changed, so that it is built again.
fn touch(project: &Path) {
    let source = project.join("src/plugin.py");
    let text = std::fs::read_to_string(&source).unwrap();
    std::fs::write(source, format!("{text}\n")).unwrap();
}

/// Scripts of a project's own environment name the folder that it was made in, and its Python is a link.
#[test]
fn a_project_in_python_is_built_where_it_was_moved_to_and_without_its_python() {
    if python().is_none() {
        return;
    }
    let folder = TempDir::with_prefix("nudge test ").unwrap();
    let first = new_project(folder.path(), "python");
    passed(&run_cases(&first));
    let project = folder.path().join("elsewhere");
    std::fs::rename(&first, &project).unwrap();
    let installed = || {
        let noted = std::fs::metadata(project.join(".venv/bin/.installed"));
        noted.and_then(|noted| noted.modified()).unwrap()
    };
    let before = installed();
    touch(&project);
    passed(&run_cases(&project));
    assert_eq!(installed(), before, "installed once");

    let program = project.join(".venv/bin/python");
    std::fs::remove_file(&program).unwrap();
    std::os::unix::fs::symlink(folder.path().join("gone"), &program).unwrap();
    touch(&project);
    passed(&run_cases(&project));
    assert_ne!(installed(), before, "installed anew");
}
