//! What became of the cases, for people and for programs.

use std::fmt::Write as _;
use std::time::Duration;

use nudge_plugin_runtime::cases::{BadCase, CaseReport, Difference};
use nudge_wasm::{Failure, Kind, Limits, Plugin};
use serde_json::{Value as Json, json};

use super::super::bench::deadline;
use super::super::style::{self, Style};

/// Longest value that a difference shows, in characters.
const SHOWN: usize = 400;

/// All cases.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) tested: Vec<Tested>,
    pub(super) skipped: usize,
    pub(super) elapsed: Duration,
    /// The limits under which the cases ran.
    pub(super) limits: Limits,
}

/// One case.
#[derive(Debug)]
pub(super) struct Tested {
    pub(super) file: String,
    pub(super) name: String,
    pub(super) outcome: Result<CaseReport, BadCase>,
}

impl Tested {
    fn passed(&self) -> bool {
        self.outcome.as_ref().is_ok_and(CaseReport::good)
    }

    fn title(&self) -> String {
        match self.name.as_str() {
            "" => self.file.clone(),
            name => format!("{}: {name}", self.file),
        }
    }
}

impl Report {
    pub(super) fn failed(&self) -> usize {
        self.tested.iter().filter(|tested| !tested.passed()).count()
    }

    pub(super) fn as_text(&self, plugin: &Plugin, style: Style) -> String {
        let description = plugin.description();
        let count = self.tested.len();
        let mut text = format!(
            "{} {}, {count} {}\n",
            description.name,
            description.version,
            if count == 1 { "case" } else { "cases" }
        );
        for tested in &self.tested {
            let mark = if tested.passed() {
                style.good("passed")
            } else {
                style.bad("FAILED")
            };
            let _ = writeln!(text, "  {mark}  {}", tested.title());
            match &tested.outcome {
                Ok(report) if tested.passed() => {
                    if report.passed.is_none() {
                        let _ = writeln!(
                            text,
                            "          expects nothing; it gave {}",
                            short(&report.output)
                        );
                    }
                }
                Ok(report) => {
                    let limit = exceeded_limit(report.failure, plugin.kind(), &self.limits);
                    describe(&mut text, report, limit.as_deref(), style);
                }
                Err(bad) => {
                    let _ = writeln!(text, "          the case can't be run: {bad}");
                }
            }
        }
        let failed = self.failed();
        let summary = format!(
            "{} passed, {failed} failed, {} skipped, in {}",
            self.tested.len() - failed,
            self.skipped,
            style::time(self.elapsed)
        );
        text.push_str(&if failed == 0 {
            style.good(&summary)
        } else {
            style.bad(&summary)
        });
        text
    }

    pub(super) fn as_json(&self, plugin: &Plugin) -> Json {
        let description = plugin.description();
        let failed = self.failed();
        json!({
            "name": description.name,
            "version": description.version,
            "kind": plugin.kind().as_str(),
            "passed": self.tested.len() - failed,
            "failed": failed,
            "skipped": self.skipped,
            "cases": self.tested.iter().map(tested_as_json).collect::<Vec<_>>(),
        })
    }
}

fn tested_as_json(tested: &Tested) -> Json {
    let mut json = json!({
        "file": tested.file,
        "name": tested.name,
        "passed": tested.passed(),
    });
    let more = match &tested.outcome {
        Ok(report) => json!({
            "output": report.output,
            "differences": report.differences,
            "nondeterministic": report.unsteady,
            "micros": report.cost.total.as_micros(),
            "calls": report.cost.calls,
            "memoryBytes": report.cost.memory_bytes,
            "logs": report.logs.iter()
                .map(|line| json!({"level": line.level.as_str(), "message": line.message}))
                .collect::<Vec<_>>(),
        }),
        Err(bad) => json!({"error": bad.message, "pointer": bad.pointer}),
    };
    if let (Json::Object(json), Json::Object(more)) = (&mut json, more) {
        json.extend(more);
    }
    json
}

/// The limit that a call exceeded, if that is why it failed.
fn exceeded_limit(failure: Option<&str>, kind: Kind, limits: &Limits) -> Option<String> {
    let failure = failure?;
    if failure == Failure::Deadline.code() {
        Some(format!(
            "{} for a decision, {} for `describe` and `check-config`",
            style::time(deadline(kind, limits)),
            style::time(limits.describe_deadline)
        ))
    } else if failure == Failure::Memory.code() {
        Some(format!("{} of memory", style::bytes(limits.memory_bytes)))
    } else if failure == Failure::OutputTooLarge.code() {
        Some(format!("{} of output", style::bytes(limits.output_bytes)))
    } else {
        None
    }
}

/// What is wrong with a case, place by place.
fn describe(text: &mut String, report: &CaseReport, limit: Option<&str>, style: Style) {
    // Where something else happened than what the case is about, that is what to read.
    for key in ["detail", "problems"] {
        if let Some(found) = report.output.get(key) {
            let _ = writeln!(
                text,
                "          {}",
                style.bad(&format!("{key}: {}", short(found)))
            );
        }
    }
    if let Some(limit) = limit {
        let _ = writeln!(text, "          the limit: {limit}");
    }
    for difference in &report.differences {
        show(text, difference, ["expected", "actual"], style);
    }
    if !report.unsteady.is_empty() {
        let _ = writeln!(
            text,
            "          the same input gave another output the second time:"
        );
        for difference in &report.unsteady {
            show(text, difference, ["first", "second"], style);
        }
    }
    for line in &report.logs {
        let line = format!("log {}: {}", line.level.as_str(), line.message);
        let _ = writeln!(text, "          {}", style.faint(&line));
    }
}

fn show(text: &mut String, difference: &Difference, [one, other]: [&str; 2], style: Style) {
    let value = |value: &Option<Json>| value.as_ref().map_or_else(|| "nothing".to_owned(), short);
    let width = one.len().max(other.len());
    let expected = format!("{one:<width$}  {}", value(&difference.expected));
    let actual = format!("{other:<width$}  {}", value(&difference.actual));
    let _ = writeln!(
        text,
        "          at {}\n            {}\n            {}",
        if difference.pointer.is_empty() {
            "the output"
        } else {
            &difference.pointer
        },
        style.good(&expected),
        style.bad(&actual)
    );
}

fn short(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nudge_plugin_runtime::cases::{Cost, compare};

    fn failed(output: &Json, expected: &Json) -> String {
        let report = CaseReport {
            output: output.clone(),
            failure: None,
            passed: Some(false),
            differences: compare(expected, output),
            unsteady: Vec::new(),
            cost: Cost::default(),
            logs: Vec::new(),
        };
        let mut text = String::new();
        describe(&mut text, &report, None, Style::plain());
        text
    }

    #[test]
    fn a_limit_that_a_call_exceeded_is_told() {
        let limits = Limits::default();
        let told = |failure: Failure, kind| exceeded_limit(Some(failure.code()), kind, &limits);
        assert_eq!(
            told(Failure::Deadline, Kind::Validation).unwrap(),
            "20.00 ms for a decision, 1.0 s for `describe` and `check-config`"
        );
        let memory = told(Failure::Memory, Kind::Trigger);
        assert_eq!(memory.as_deref(), Some("64.0 MiB of memory"));
        let output = told(Failure::OutputTooLarge, Kind::Trigger);
        assert_eq!(output.as_deref(), Some("256.0 KiB of output"));
        assert_eq!(told(Failure::Unavailable, Kind::Trigger), None);
        assert_eq!(exceeded_limit(None, Kind::Trigger, &limits), None);

        let report = CaseReport {
            output: json!({"failure": "memory", "detail": "the plugin ran out of memory"}),
            failure: Some("memory"),
            passed: Some(false),
            differences: Vec::new(),
            unsteady: Vec::new(),
            cost: Cost::default(),
            logs: Vec::new(),
        };
        let mut text = String::new();
        describe(&mut text, &report, memory.as_deref(), Style::plain());
        assert_eq!(
            text,
            "          detail: \"the plugin ran out of memory\"\n          the limit: 64.0 MiB of memory\n"
        );
    }

    #[test]
    fn a_difference_names_its_place_and_both_values() {
        let text = failed(
            &json!({"fired": [{"event": 1}]}),
            &json!({"fired": [{"event": 2}, {"event": 3}]}),
        );
        assert_eq!(
            text,
            "          at /fired/0/event\n            expected  2\n            actual    1\n          \
             at /fired/1\n            expected  {\"event\":3}\n            actual    nothing\n"
        );
    }

    #[test]
    fn an_unexpected_refusal_is_shown_first() {
        let text = failed(
            &json!({"problems": [{"pointer": "/minimum"}]}),
            &json!({"fired": []}),
        );
        assert!(
            text.trim_start()
                .starts_with(r#"problems: [{"pointer":"/minimum"}]"#),
            "{text}"
        );
    }

    #[test]
    fn long_values_are_cut_at_a_character() {
        let shown = short(&Json::String("é".repeat(1000)));
        assert_eq!(shown.chars().count(), SHOWN + 1);
        assert!(shown.ends_with('…'));
    }
}
