//! Cases: what a plugin is given, and what it should make of it.
//!
//! A case is `{"name"?, "input", "expect"?}`. The input's shape follows from the plugin's kind: [`trigger`],
//! [`validation`] and [`personalization`] describe theirs, and `guest-sdk/cases.schema.json` is the same as a
//! JSON Schema. [`run`] knows no server, no database and no clock; every decision is made twice, because the
//! same input must give the same answer.
//!
//! `expect` is a part of the output: what it does not name is not compared, arrays are compared whole
//! ([`mod@compare`]).

mod bench;
mod compare;
mod personalization;
mod subject;
#[cfg(test)]
mod tests;
mod time;
mod trigger;
mod validation;

use std::time::Duration;

use nudge_wasm::{Call, Failed, Failure, Kind, LogLine, Plugin, Problem, Reads};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use utoipa::ToSchema;

pub use bench::{Bench, Measured, bench};
pub use compare::{Difference, compare, exactly};

/// One case.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// For people; may be empty.
    #[serde(default)]
    pub name: String,
    /// Where editors find the schema; read by nothing here.
    #[serde(default, rename = "$schema")]
    pub schema: Option<String>,
    /// What the plugin is given.
    pub input: Json,
    /// The part of the output that matters. None: the case only shows what comes out.
    #[serde(default)]
    pub expect: Option<Json>,
}

/// A case that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at `{pointer}`)")]
pub struct BadCase {
    /// A JSON pointer into the case.
    pub pointer: String,
    /// What to change.
    pub message: String,
}

impl BadCase {
    fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
        }
    }
}

/// What became of a case.
#[derive(Clone, Debug)]
pub struct CaseReport {
    /// What the plugin decided: its output, `{"problems": […]}` where it refused the configuration, or
    /// `{"failure": code, "detail": text}` where a call failed.
    pub output: Json,
    /// The failure's code, where a call failed.
    pub failure: Option<&'static str>,
    /// Whether the output is as expected. None: the case expects nothing.
    pub passed: Option<bool>,
    /// Where the output is not as expected.
    pub differences: Vec<Difference>,
    /// Where the second run's output was not that of the first: the plugin is not deterministic.
    pub unsteady: Vec<Difference>,
    /// What it cost.
    pub cost: Cost,
    /// What the plugin logged in the first run.
    pub logs: Vec<LogLine>,
}

impl CaseReport {
    /// Whether nothing is wrong: as expected, and the same twice. Without an expectation, no call failed.
    pub fn good(&self) -> bool {
        self.passed.unwrap_or(self.failure.is_none()) && self.unsteady.is_empty()
    }
}

/// What the calls of a case cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Decisions.
    pub calls: u32,
    /// Wall-clock time of all decisions.
    pub total: Duration,
    /// Wall-clock time of the slowest one.
    pub slowest: Duration,
    /// The most linear memory that any of them had, in bytes.
    pub memory_bytes: usize,
}

impl Cost {
    fn add(&mut self, call: &Call) {
        self.calls += 1;
        self.total += call.elapsed;
        self.slowest = self.slowest.max(call.elapsed);
        self.memory_bytes = self.memory_bytes.max(call.memory_bytes);
    }
}

/// What one run of a case gave.
#[derive(Debug, Default)]
struct Run {
    output: Json,
    failure: Option<&'static str>,
    cost: Cost,
    logs: Vec<LogLine>,
}

impl Run {
    fn note(&mut self, call: Call) {
        self.cost.add(&call);
        self.logs.extend(call.logs);
    }

    fn fail(mut self, failed: Failed) -> Self {
        self.failure = Some(failed.failure.code());
        self.output = json!({
            "failure": failed.failure.code(),
            "detail": failed.failure.to_string(),
        });
        self.note(*failed.call);
        self
    }

    fn refuse(mut self, problems: &[Problem]) -> Self {
        let problems = problems.iter().map(|problem| {
            json!({
                "code": problem.code,
                "pointer": problem.pointer,
                "message": problem.message,
            })
        });
        self.output = json!({"problems": problems.collect::<Vec<_>>()});
        self
    }
}

/// Runs a case. Blocks for as long as the plugin takes.
pub fn run(plugin: &Plugin, case: &Case) -> Result<CaseReport, BadCase> {
    let mut expect = case.expect.clone();
    let (first, second) = match plugin.kind() {
        Kind::Trigger => {
            let input = trigger::Prepared::new(read(&case.input)?)?;
            if let Some(expect) = &mut expect {
                input.resolve_times(expect);
            }
            twice(|| input.run(plugin))?
        }
        Kind::Validation => {
            let input: validation::Input = read(&case.input)?;
            twice(|| input.run(plugin))?
        }
        Kind::Personalization => {
            let input: personalization::Input = read(&case.input)?;
            twice(|| input.run(plugin))?
        }
    };
    let unsteady = compare::exactly(&first.output, &second.output);
    let differences = expect
        .as_ref()
        .map(|expect| compare(expect, &first.output))
        .unwrap_or_default();
    Ok(CaseReport {
        passed: expect.map(|_| differences.is_empty()),
        output: first.output,
        failure: first.failure,
        differences,
        unsteady,
        cost: first.cost,
        logs: first.logs,
    })
}

/// Runs something twice, and once more where the second run alone passed its time limit: a busy machine is no other output.
/// If it passes the limit again, that is what came out.
fn twice(run: impl Fn() -> Result<Run, BadCase>) -> Result<(Run, Run), BadCase> {
    let late = Some(Failure::Deadline.code());
    let (mut first, mut second) = (run()?, run()?);
    if first.failure.is_none() && second.failure == late {
        second = run()?;
        if second.failure == late {
            second.output = json!({
                "failure": second.failure,
                "detail": "the second run passed its time limit",
            });
            first.output = second.output.clone();
            first.failure = second.failure;
        }
    }
    Ok((first, second))
}

/// What `check-config` makes of a case's configuration; otherwise the run that ends there.
fn check(plugin: &Plugin, config: &Json, run: Run) -> Result<(Reads, Run), Run> {
    match plugin.check_config(&config.to_string()) {
        Ok(Ok(reads)) => Ok((reads, run)),
        Ok(Err(problems)) => Err(run.refuse(&problems)),
        Err(failed) => Err(run.fail(failed)),
    }
}

/// Reads an input; what is wrong with it is named by its place in the case.
fn read<T: DeserializeOwned>(input: &Json) -> Result<T, BadCase> {
    use serde_path_to_error::Segment;
    serde_path_to_error::deserialize(input).map_err(|error| {
        let mut pointer = "/input".to_owned();
        for segment in error.path() {
            match segment {
                Segment::Seq { index } => pointer.extend(["/", &index.to_string()]),
                Segment::Map { key } => pointer.extend(["/", key]),
                Segment::Enum { .. } | Segment::Unknown => {}
            }
        }
        BadCase::new(pointer, error.into_inner().to_string())
    })
}

/// The text of a JSON object, as events and requests have it.
fn object(properties: &serde_json::Map<String, Json>) -> std::sync::Arc<str> {
    serde_json::to_string(properties).unwrap_or_default().into()
}
