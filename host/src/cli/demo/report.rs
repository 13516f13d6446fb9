//! The demo's numbers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::checks::Check;
use super::client::DeadLetter;
use super::firings::{Example, SurveyCount};
use super::message::Shown;
use super::metrics::PluginTime;
use super::replay::Replayed;
use super::segment::Entered;

/// Everything that was measured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub build: &'static str,
    pub processors: usize,
    pub traffic: Traffic,
    pub dead_letters: Vec<DeadLetterCount>,
    pub surveys: Vec<SurveyCount>,
    pub examples: Vec<Example>,
    pub message: Shown,
    pub segment: Entered,
    pub seconds: Seconds,
    pub plugins: Vec<PluginTime>,
    pub checks: Vec<Check>,
    pub kept: Option<PathBuf>,
}

/// What was sent, and what came back.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Traffic {
    pub people: usize,
    pub sent: usize,
    pub accepted: usize,
    pub accepted_again: usize,
    pub rejected: usize,
    pub reasons: BTreeMap<String, usize>,
    pub with_delivery: Requests,
    pub without_delivery: Requests,
}

/// How long requests took.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Requests {
    pub count: usize,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Wall time.
#[derive(Debug, Serialize)]
pub(super) struct Seconds {
    /// Of the server's start, with the compilation of its plugins.
    pub start: f64,
    /// From the first request to the last answer.
    pub send: f64,
    /// From the last answer until the last event was evaluated.
    pub settle: f64,
    /// Of polling as everybody.
    pub poll: f64,
}

/// Dead letters that have the same wrong with them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeadLetterCount {
    pub event_name: String,
    pub reason: String,
    pub violation: String,
    pub count: usize,
}

impl From<Replayed> for Traffic {
    fn from(replayed: Replayed) -> Self {
        Self {
            people: replayed.people.len(),
            sent: replayed.sent,
            accepted: replayed.accepted,
            accepted_again: replayed.again,
            rejected: replayed.rejected,
            reasons: replayed.reasons,
            with_delivery: Requests::of(replayed.with_delivery),
            without_delivery: Requests::of(replayed.without_delivery),
        }
    }
}

impl Requests {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let quantile = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).saturating_sub(1);
            let micros = times.get(rank).map_or(0, Duration::as_micros);
            u32::try_from(micros).map_or(f64::INFINITY, f64::from) / 1e3
        };
        Self {
            count: times.len(),
            p50_ms: quantile(50),
            p99_ms: quantile(99),
        }
    }
}

/// Counts dead letters by what is wrong with them.
pub(super) fn group(letters: Vec<DeadLetter>) -> Vec<DeadLetterCount> {
    let mut counts: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for letter in letters {
        let violations = letter.violations.iter();
        let violations: Vec<String> = violations
            .map(|violation| format!("{} {}", violation.property, violation.code))
            .collect();
        let key = (letter.event_name, letter.reason, violations.join(", "));
        *counts.entry(key).or_default() += 1;
    }
    let count = |((event_name, reason, violation), count)| DeadLetterCount {
        event_name,
        reason,
        violation,
        count,
    };
    counts.into_iter().map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        let requests = Requests::of((1..=200).rev().map(Duration::from_millis).collect());

        assert!((requests.p50_ms - 100.0).abs() < 1e-9);
        assert!((requests.p99_ms - 198.0).abs() < 1e-9);
        assert!(Requests::of(Vec::new()).p99_ms.abs() < 1e-9);
    }
}
