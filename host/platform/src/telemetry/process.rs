//! What the operating system says of this process, under the names that client libraries of Prometheus have for it.
//!
//! CPU time has fractions, which the recorder's counters do not take: so these families are written here.

use std::fmt::Write as _;
use std::fs;
use std::sync::OnceLock;

use nudge_db::Timestamp;
use rustix::time::{ClockId, clock_gettime};

use super::families::{FAMILIES, Kind};
use crate::clock::Clock;

/// When the process asked for its metrics first, which it does when it starts.
static STARTED: OnceLock<Timestamp> = OnceLock::new();

/// Notes that the process has started.
pub(super) fn started() {
    STARTED.get_or_init(|| Clock::default().now());
}

/// Appends the families in Prometheus' text format. What the system does not tell is left out.
pub(super) fn write(text: &mut String) {
    for family in FAMILIES {
        let Kind::Process = family.kind else { continue };
        let Some(value) = value(family.name) else {
            continue;
        };
        let (name, help) = (family.name, family.help);
        let kind = if name.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        };
        // Writing to a String can't fail.
        let _ = write!(
            text,
            "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n\n"
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "a metric is a float")]
fn value(name: &str) -> Option<f64> {
    match name {
        "process_cpu_seconds_total" => {
            let time = clock_gettime(ClockId::ProcessCPUTime);
            Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
        }
        "process_resident_memory_bytes" => status("VmRSS:").map(|kib| kib * 1024.0),
        "process_virtual_memory_bytes" => status("VmSize:").map(|kib| kib * 1024.0),
        "process_threads" => status("Threads:"),
        "process_open_fds" => Some(fs::read_dir("/proc/self/fd").ok()?.count() as f64),
        "process_max_fds" => max_files(),
        "process_start_time_seconds" => STARTED.get().map(|started| started.millis() as f64 / 1e3),
        _ => None,
    }
}

/// A number of `/proc/self/status` (proc(5)).
fn status(field: &str) -> Option<f64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The soft limit of open files, of `/proc/self/limits` (proc(5)).
fn max_files() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_everything_of_this_process() {
        started();
        let mut text = String::new();
        write(&mut text);
        for family in FAMILIES {
            if let Kind::Process = family.kind {
                let line = format!("\n{} ", family.name);
                let value = text.split_once(&line).unwrap().1.lines().next().unwrap();
                assert!(value.parse::<f64>().unwrap() > 0.0, "{line}{value}");
            }
        }
    }
}
