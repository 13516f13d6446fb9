//! Every metric family: its name, its kind and what it means.
//!
//! A name ends in its unit (`_seconds`, `_bytes`), a counter's in `_total`. A test holds this list to the names in the code,
//! and alerts, dashboard and runbook in `host/ops` and `host/docs` to this list.

use metrics::Unit;

/// A metric family.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// How it moves.
    pub kind: Kind,
    /// What it means: the text of `HELP`.
    pub help: &'static str,
}

/// How a family moves.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// It only grows. Series with these labels begin at 0 when the process starts, so that their first increase shows.
    Counter(&'static [&'static [(&'static str, &'static str)]]),
    /// It goes up and down.
    Gauge,
    /// It counts values up to each of these bounds.
    Histogram(&'static [f64]),
    /// The operating system has its value.
    Process,
}

impl Family {
    /// The unit that the name ends in.
    pub fn unit(&self) -> Option<Unit> {
        let name = self.name.strip_suffix("_total").unwrap_or(self.name);
        if name.ends_with("_seconds") {
            Some(Unit::Seconds)
        } else if name.ends_with("_bytes") {
            Some(Unit::Bytes)
        } else {
            None
        }
    }
}

/// Upper bounds of durations, in seconds.
const SECONDS: &[f64] = &[
    0.000_01, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 10.0,
];
/// Upper bounds of how many requests are together.
const REQUESTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

const ONE: Kind = Kind::Counter(&[&[]]);
const SOME: Kind = Kind::Counter(&[]);

const fn family(name: &'static str, kind: Kind, help: &'static str) -> Family {
    Family { name, kind, help }
}

/// All families.
#[rustfmt::skip]
pub const FAMILIES: &[Family] = &[
    family("nudge_build_info", Kind::Gauge, "1, with the version that runs and the id of the node."),
    family("nudge_ready", Kind::Gauge, "Whether /readyz answers 200 (1) or 503 (0)."),
    family("nudge_disk_size_bytes", Kind::Gauge, "Size of the file system that has the data directory."),
    family("nudge_disk_free_bytes", Kind::Gauge, "What of it is free for this process."),

    family("nudge_http_requests_total", SOME, "Requests answered, by method, route and status."),
    family("nudge_http_request_seconds", Kind::Histogram(SECONDS), "How long requests took to be answered, by method and route."),
    family("nudge_http_requests_repeated_total", ONE, "Requests that lost a race in the database and were made again by the server."),
    family("nudge_http_shed_total", Kind::Counter(&[&[("full", "requests")], &[("full", "app")], &[("full", "polls")], &[("full", "streams")], &[("full", "bodies")], &[("full", "commits")], &[("full", "connections")], &[("full", "address")]]), "Requests and connections refused because the server had no room for them, by what was full."),
    family("nudge_http_connections", Kind::Gauge, "Open connections, by listener."),
    family("nudge_http_answer_bytes", Kind::Gauge, "Bytes of answers that clients have not read yet, by listener."),
    family("nudge_http_connections_ended_total", SOME, "Connections that the server ended, by reason."),
    family("nudge_authentication_failures_total", ONE, "Credentials that were shown in vain."),
    family("nudge_key_refusals_unaudited_total", ONE, "Refused uses of keys that were too many for the audit log."),
    family("nudge_lookups_total", SOME, "Names of hosts looked up, by purpose and outcome."),

    family("nudge_events_total", SOME, "Events that arrived, by outcome: accepted, or the code of the refusal."),
    family("nudge_commit_seconds", Kind::Histogram(SECONDS), "How long commits of events took."),
    family("nudge_commit_requests", Kind::Histogram(REQUESTS), "Requests that were committed together."),
    family("nudge_pipeline_events_total", ONE, "Events that were decided about."),
    family("nudge_pipeline_lag_seconds", Kind::Histogram(SECONDS), "Time from an event's receipt to its effects."),
    family("nudge_pipeline_aliases_total", SOME, "People whom batches took, by where from: memory or the database."),
    family("nudge_pipeline_given_back_total", ONE, "Requests given back to the queue in the database for another process."),
    family("nudge_pipeline_pending_requests", Kind::Gauge, "Committed requests whose events are not decided about yet, in the whole database."),
    family("nudge_pipeline_oldest_pending_seconds", Kind::Gauge, "Age of the oldest of them."),

    family("nudge_dead_letters_total", Kind::Counter(&[&[("stage", "validation")], &[("stage", "trigger")], &[("stage", "personalization")]]), "Events that became dead letters, by stage."),
    family("nudge_dead_letters", Kind::Gauge, "Dead letters that wait for a replay or an acknowledgement, in the whole database, 10,000 at most."),
    family("nudge_plugin_calls_total", SOME, "Calls of plugins, by plugin, version and outcome."),
    family("nudge_plugin_call_seconds", Kind::Histogram(SECONDS), "How long calls of plugins took, by plugin and version."),
    family("nudge_plugin_rollbacks_total", Kind::Counter(&[&[("cause", "failures")], &[("cause", "request")]]), "Versions of plugins taken back, by cause: failures (the server did it) or request (somebody asked)."),
    family("nudge_plugin_jobs_waiting", Kind::Gauge, "Calls that wait for a plugin thread, by kind of thread."),
    family("nudge_plugin_budget_waits_total", SOME, "Calls that waited because their app had used up its time on plugin threads."),
    family("nudge_plugin_statistics_lost_total", ONE, "Calls of plugins that are missing in the statistics."),

    family("nudge_push_due", Kind::Gauge, "Push messages that are due and not sent yet, in the whole database, 10,000 at most."),
    family("nudge_push_oldest_due_seconds", Kind::Gauge, "How long the oldest of them has been due."),
    family("nudge_push_provider_answers_total", SOME, "Answers of push services, by provider and outcome."),
    family("nudge_webhooks_due", Kind::Gauge, "Webhook messages that are due and not sent yet, in the whole database, 10,000 at most."),
    family("nudge_webhooks_oldest_due_seconds", Kind::Gauge, "How long the oldest of them has been due."),
    family("nudge_webhook_attempts_total", SOME, "Attempts to send webhook messages, by outcome."),
    family("nudge_timers_due", Kind::Gauge, "Timers of campaigns that are due and in no process's hand, in the whole database, 10,000 at most."),
    family("nudge_timers_oldest_due_seconds", Kind::Gauge, "How long the oldest of them has been due."),
    family("nudge_jobs_due", Kind::Gauge, "Jobs that are due or run, in the whole database, 10,000 at most."),
    family("nudge_jobs_oldest_due_seconds", Kind::Gauge, "How long the oldest of them has been due."),

    family("nudge_database_up", Kind::Gauge, "Whether the database answered when these metrics were read (1) or not (0)."),
    family("nudge_database_connections", Kind::Gauge, "Connections to the database, by state: in_use or idle."),
    family("nudge_database_connections_max", Kind::Gauge, "The most connections that the process may have; on SQLite the one that writes is among them."),
    family("nudge_database_acquire_timeouts_total", ONE, "Times that no connection to the database became free in time."),
    family("nudge_spans_dropped_total", ONE, "Spans of traces that were not sent."),

    family("process_cpu_seconds_total", Kind::Process, "CPU time of the process, of user and system."),
    family("process_resident_memory_bytes", Kind::Process, "Memory of the process that is in RAM."),
    family("process_virtual_memory_bytes", Kind::Process, "Address space of the process."),
    family("process_threads", Kind::Process, "Threads of the process."),
    family("process_open_fds", Kind::Process, "Files and sockets that the process has open."),
    family("process_max_fds", Kind::Process, "The most files and sockets that it may have open."),
    family("process_start_time_seconds", Kind::Process, "When the process started, since the epoch."),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_follow_the_rules_of_prometheus() {
        let mut names = BTreeSet::new();
        for family in FAMILIES {
            let name = family.name;
            assert!(names.insert(name), "{name} is there twice");
            assert!(family.help.ends_with('.'), "{name}: {}", family.help);
            match family.kind {
                Kind::Counter(_) => assert!(name.ends_with("_total"), "{name}"),
                Kind::Gauge | Kind::Histogram(_) => assert!(!name.ends_with("_total"), "{name}"),
                Kind::Process => assert!(name.starts_with("process_"), "{name}"),
            }
        }
    }

    #[test]
    fn units_are_read_from_names() {
        let unit = |name| family(name, Kind::Gauge, "").unit();
        assert_eq!(unit("nudge_disk_free_bytes"), Some(Unit::Bytes));
        assert_eq!(unit("process_cpu_seconds_total"), Some(Unit::Seconds));
        assert_eq!(unit("nudge_ready"), None);
    }
}
