//! What came of a backtest.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use strum::IntoStaticStr;

use nudge_db::{Db, Tx};
use nudge_platform::clock;
use nudge_records::events::store::Stored;
use nudge_records::subjects;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Input, KIND, MOST_BYTES, MOST_FAILURES, Match};

/// Differences that are shown.
const SAMPLES: usize = 50;

/// Why a backtest ended before its window did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Stopped {
    /// As many events as were asked for were run.
    Limit,
    /// The simulation would take too much memory.
    Memory,
    /// A version failed too often.
    Failures,
    /// More timers fell due than events were to be run.
    Timers,
}

impl Stopped {
    fn name(self) -> &'static str {
        self.into()
    }
}

/// What both versions made of an event, or of a timer.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    /// What the active version fired (the numbers of its targets); none: it failed.
    pub active: Option<BTreeSet<usize>>,
    /// The same of the candidate.
    pub candidate: Option<BTreeSet<usize>>,
}

/// Counts, and differences that a person can look at.
#[derive(Debug)]
pub(super) struct Report {
    active: Value,
    candidate: Value,
    ids: Vec<Option<Uuid>>,
    limit: u64,
    pub events: u64,
    same: u64,
    only_active: u64,
    only_candidate: u64,
    failed: u64,
    active_failed: u64,
    pub approximate: u64,
    /// Timers that fell due.
    pub timers: u64,
    samples: Vec<Value>,
    pub stopped: Option<Stopped>,
}

impl Report {
    pub(super) fn new(versions: &Match, input: &Input) -> Self {
        let shown = |plugin: &nudge_wasm::Plugin| {
            let description = plugin.description();
            json!({"name": description.name, "version": description.version, "digest": plugin.digest()})
        };
        Self {
            active: shown(&versions.active),
            candidate: shown(&versions.candidate),
            ids: versions.targets.iter().map(|target| target.id).collect(),
            limit: input.limit,
            events: 0,
            same: 0,
            only_active: 0,
            only_candidate: 0,
            failed: 0,
            active_failed: 0,
            approximate: 0,
            timers: 0,
            samples: Vec::new(),
            stopped: None,
        }
    }

    /// Counts an event that at least one version was asked about.
    pub(super) fn event(&mut self, event: &Stored, subject: Option<Uuid>, verdicts: &Verdicts) {
        // The rest of the request with which it stopped.
        if self.stopped.is_some() {
            return;
        }
        self.events += 1;
        if self.compare(event, subject, None, verdicts) {
            self.same += 1;
        }
        if self.events >= self.limit {
            self.stop(Stopped::Limit);
        }
    }

    /// Counts a timer that fell due. One that has the same outcome on both sides is no event of its own.
    pub(super) fn timer(&mut self, event: &Stored, subject: Uuid, key: &str, verdicts: &Verdicts) {
        self.timers += 1;
        self.compare(event, Some(subject), Some(key), verdicts);
        if self.timers >= self.limit {
            self.stop(Stopped::Timers);
        }
    }

    /// Notes how much memory the simulation takes.
    pub(super) fn measure(&mut self, bytes: usize) {
        if bytes > MOST_BYTES {
            self.stop(Stopped::Memory);
        }
    }

    fn stop(&mut self, why: Stopped) {
        self.stopped.get_or_insert(why);
    }

    /// Whether both did the same; otherwise counts what they did.
    fn compare(
        &mut self,
        event: &Stored,
        subject: Option<Uuid>,
        timer: Option<&str>,
        verdicts: &Verdicts,
    ) -> bool {
        if verdicts.candidate.is_none() {
            self.failed += 1;
        }
        if verdicts.active.is_none() {
            self.active_failed += 1;
        }
        if self.failed.max(self.active_failed) >= MOST_FAILURES {
            self.stop(Stopped::Failures);
        }
        let (Some(active), Some(candidate)) = (&verdicts.active, &verdicts.candidate) else {
            return false;
        };
        let only_active: Vec<usize> = active.difference(candidate).copied().collect();
        let only_candidate: Vec<usize> = candidate.difference(active).copied().collect();
        self.only_active += u64::from(!only_active.is_empty());
        self.only_candidate += u64::from(!only_candidate.is_empty());
        for (side, targets) in [("active", &only_active), ("candidate", &only_candidate)] {
            for target in targets {
                self.sample(event, subject, timer, side, *target);
            }
        }
        only_active.is_empty() && only_candidate.is_empty()
    }

    fn sample(
        &mut self,
        event: &Stored,
        subject: Option<Uuid>,
        timer: Option<&str>,
        side: &str,
        target: usize,
    ) {
        if self.samples.len() >= SAMPLES {
            return;
        }
        let mut sample = json!({
            "eventId": event.event.id,
            "name": &*event.event.name,
            "timestamp": clock::to_text(event.event.timestamp),
            "only": side,
        });
        let parts = [
            ("subjectId", subject.map(|id| json!(id))),
            (
                "campaignId",
                self.ids.get(target).and_then(|id| id.map(|id| json!(id))),
            ),
            ("timer", timer.map(|key| json!(key))),
        ];
        if let Some(sample) = sample.as_object_mut() {
            for (key, part) in parts {
                sample.extend(part.map(|part| (key.to_owned(), part)));
            }
        }
        self.samples.push(sample);
    }

    /// The job's result.
    pub(super) fn result(&self) -> Value {
        let mut result = json!({
            "events": self.events,
            "same": self.same,
            "onlyActive": self.only_active,
            "onlyCandidate": self.only_candidate,
            "failed": self.failed,
            "activeFailed": self.active_failed,
            "approximate": self.approximate,
            "timers": self.timers,
            "samples": self.samples,
            "active": self.active,
            "candidate": self.candidate,
        });
        if let (Some(why), Some(result)) = (self.stopped, result.as_object_mut()) {
            result.insert("stopped".to_owned(), why.name().into());
        }
        result
    }
}

/// A result without the samples of people who are not there any longer, or are about to be erased. While a backtest runs its
/// samples are in memory, out of the reach of a deletion.
pub(super) async fn without_gone(
    db: &Db,
    app_id: Uuid,
    mut result: Value,
) -> nudge_db::Result<Value> {
    let Some(samples) = result.get_mut("samples").and_then(Value::as_array_mut) else {
        return Ok(result);
    };
    let mut tx = db.read().await?;
    let mut there: HashMap<Uuid, bool> = HashMap::new();
    for id in samples.iter().filter_map(subject_of) {
        if let Entry::Vacant(place) = there.entry(id) {
            let alias_view = subjects::store::of_subject(&mut tx, app_id, id).await?;
            place.insert(alias_view.is_some_and(|alias_view| !alias_view.suppressed));
        }
    }
    let is_there = |sample: &Value| {
        let subject = subject_of(sample);
        subject.is_some_and(|id| there.get(&id) == Some(&true))
    };
    samples.retain(is_there);
    Ok(result)
}

/// Whom a sample is of. None: they were gone when it was taken.
fn subject_of(sample: &Value) -> Option<Uuid> {
    sample.get("subjectId")?.as_str()?.parse().ok()
}

/// Removes a subject's samples from the results of an app's backtests; answers how many results had some.
pub async fn erase_subject(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> nudge_db::Result<u64> {
    #[derive(nudge_db::FromRow)]
    struct ResultRow {
        id: Uuid,
        result: String,
    }
    let rows: Vec<ResultRow> = tx
        .sql("SELECT id, result FROM jobs WHERE app_id = $1 AND kind = $2 AND result LIKE $3")
        .bind(app_id)
        .bind(KIND)
        .bind(format!("%{subject_id}%"))
        .fetch_all()
        .await?;
    let mut changed = 0;
    for row in rows {
        let mut result: Value = serde_json::from_str(&row.result)
            .map_err(|cause| nudge_db::Error::corrupt("jobs", "result", cause))?;
        if let Some(samples) = result.get_mut("samples").and_then(Value::as_array_mut) {
            samples.retain(|sample| sample.get("subjectId") != Some(&json!(subject_id)));
        }
        changed += tx
            .sql("UPDATE jobs SET result = $3 WHERE app_id = $1 AND id = $2")
            .bind(app_id)
            .bind(row.id)
            .bind(result.to_string())
            .execute()
            .await?;
    }
    Ok(changed)
}
