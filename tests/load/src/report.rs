//! Numbers into tables.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

/// The value in the middle.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// The value that such a part of the values is not above.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a place in a list"
)]
pub(crate) fn quantile(values: impl IntoIterator<Item = f64>, part: f64) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let place = ((sorted.len().saturating_sub(1)) as f64 * part).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// A quantile of durations, in microseconds.
pub(crate) fn micros(times: &[Duration], part: f64) -> f64 {
    quantile(times.iter().map(|time| time.as_secs_f64() * 1e6), part)
}

/// How long something took, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Latency {
    pub(crate) fn of(times: &[Duration]) -> Self {
        Self {
            p50: micros(times, 0.5),
            p99: micros(times, 0.99),
        }
    }
}

/// So many a second.
#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark")]
pub(crate) fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// A markdown table that grows by rows.
#[derive(Debug)]
pub(crate) struct Table(String);

impl Table {
    pub(crate) fn new(columns: &[&str]) -> Self {
        let mut table = Self(String::new());
        table.row(columns);
        table.row(&vec!["---"; columns.len()]);
        table
    }

    pub(crate) fn row<T: AsRef<str>>(&mut self, cells: &[T]) {
        for cell in cells {
            // Writing to a String can't fail.
            let _ = write!(self.0, "| {} ", cell.as_ref());
        }
        self.0.push_str("|\n");
    }

    pub(crate) fn print(&self) -> std::io::Result<()> {
        let mut output = std::io::stdout().lock();
        writeln!(output, "\n{}", self.0)?;
        output.flush()
    }
}

/// Prints a line at once: a run takes minutes.
pub(crate) fn say(line: impl std::fmt::Display) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}

/// Whether a goal is met.
pub(crate) fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "NOT MET" }
}
