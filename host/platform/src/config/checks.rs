//! Bounds of what is configured: a number that can't work is named at the start, not found out in operation.

use anyhow::bail;
use reqwest::Url;

use super::{Bucket, Config};

/// Ten years.
const MOST_SECONDS: u64 = 10 * 365 * 86_400;
/// Of bytes, and of whatever else is counted.
const MOST: u64 = 1 << 40;
/// A page of WebAssembly: less memory there is not.
const LEAST_PLUGIN_BYTES: usize = 64 << 10;
/// Two of the largest requests: where less fits than one, whatever is due waits for ever, and so does what was left over.
const LEAST_MEMORY_EVENTS: usize = 1_000;
/// A process gives a sign of life every two seconds, and that may come a little late.
const LEAST_NODE_TIMEOUT: u64 = 3;
/// Threads of plugins.
const MOST_WORKERS: u64 = 1_024;
/// Connections to the database, of which a process makes as many.
const MOST_CONNECTIONS: u64 = 10_000;

impl Config {
    /// Refuses values that no server can work with; names all of them.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let counts = self.counts();
        let mut complaints: Vec<String> = counts
            .iter()
            .filter(|(_, number)| *number == 0)
            .map(|(key, _)| format!("`{key}` is 0 and must be 1 at least"))
            .collect();
        complaints.extend(
            counts
                .into_iter()
                .chain(self.counts_from_0())
                .filter_map(too_large),
        );
        complaints.extend(self.fractions());
        complaints.extend(self.buckets());
        complaints.extend(self.urls());
        if complaints.is_empty() {
            return Ok(());
        }
        bail!("the configuration: {}", complaints.join("; "))
    }

    /// What there is one of at least.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        let (server, ingest, pipeline, plugins) =
            (&self.server, &self.ingest, &self.pipeline, &self.plugins);
        let (database, webhooks) = (&self.database, &self.webhooks);
        vec![
            ("server.shutdownSeconds", server.shutdown_seconds),
            ("server.maxConnections", count(server.max_connections)),
            ("server.firstBytesSeconds", server.first_bytes_seconds),
            ("server.stalledSeconds", server.stalled_seconds),
            (
                "server.maxConnectionAgeSeconds",
                server.max_connection_age_seconds,
            ),
            (
                "server.http2MaxStreams",
                u64::from(server.http2_max_streams),
            ),
            ("server.maxRequests", count(server.max_requests)),
            ("server.maxPolls", count(server.max_polls)),
            ("server.bodyMemoryBytes", count(server.body_memory_bytes)),
            (
                "server.answerMemoryBytes",
                count(server.answer_memory_bytes),
            ),
            ("server.lookupThreads", count(server.lookup_threads)),
            ("database.connections", u64::from(database.connections)),
            (
                "database.acquireTimeoutSeconds",
                database.acquire_timeout_seconds,
            ),
            ("database.deadlineSeconds", database.deadline_seconds),
            ("ingest.queueSize", count(ingest.queue_size)),
            ("ingest.commitEvents", count(ingest.commit_events)),
            ("ingest.postgresWriters", count(ingest.postgres_writers)),
            ("pipeline.memoryEvents", count(pipeline.memory_events)),
            ("pipeline.memoryBytes", count(pipeline.memory_bytes)),
            ("pipeline.batchEvents", count(pipeline.batch_events)),
            ("pipeline.lanesPerApp", count(pipeline.lanes_per_app)),
            ("pipeline.pollMs", pipeline.poll_ms),
            ("pipeline.nodeTimeoutSeconds", pipeline.node_timeout_seconds),
            ("plugins.memoryBytes", count(plugins.memory_bytes)),
            ("plugins.deadlineMs", plugins.deadline_ms),
            (
                "plugins.validationDeadlineMs",
                plugins.validation_deadline_ms,
            ),
            ("plugins.outputBytes", count(plugins.output_bytes)),
            ("plugins.compileSeconds", plugins.compile_seconds),
            ("plugins.compileMemoryBytes", plugins.compile_memory_bytes),
            ("webhooks.concurrency", count(webhooks.concurrency)),
            (
                "webhooks.endpointConcurrency",
                count(webhooks.endpoint_concurrency),
            ),
        ]
    }

    /// What there may be none of.
    fn counts_from_0(&self) -> Vec<(&'static str, u64)> {
        let (server, webhooks) = (&self.server, &self.webhooks);
        vec![
            ("server.drainSeconds", server.drain_seconds),
            (
                "server.maxConnectionsPerAddress",
                count(server.max_connections_per_address),
            ),
            ("ingest.queueWaitMs", self.ingest.queue_wait_ms),
            ("pipeline.deliveryWaitMs", self.pipeline.delivery_wait_ms),
            ("plugins.workers", count(self.plugins.workers)),
            ("plugins.logBytes", count(self.plugins.log_bytes)),
            ("privacy.graceSeconds", self.privacy.grace_seconds),
            (
                "webhooks.disableAfterSeconds",
                webhooks.disable_after_seconds,
            ),
        ]
    }

    fn fractions(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        let share = self.server.app_share;
        if !(share > 0.0 && share <= 1.0) {
            complaints.push(format!(
                "`server.appShare` is {share} and must be above 0 and 1 at most"
            ));
        }
        let share = self.plugins.app_share;
        if !(0.0..=1.0).contains(&share) {
            complaints.push(format!(
                "`plugins.appShare` is {share} and must be from 0 to 1"
            ));
        }
        let bytes = self.plugins.memory_bytes;
        if (1..LEAST_PLUGIN_BYTES).contains(&bytes) {
            complaints.push(format!(
                "`plugins.memoryBytes` is {bytes} and must be {LEAST_PLUGIN_BYTES} at least"
            ));
        }
        let events = self.pipeline.memory_events;
        if (1..LEAST_MEMORY_EVENTS).contains(&events) {
            complaints.push(format!(
                "`pipeline.memoryEvents` is {events} and must be {LEAST_MEMORY_EVENTS} at least"
            ));
        }
        let silence = self.pipeline.node_timeout_seconds;
        if (1..LEAST_NODE_TIMEOUT).contains(&silence) {
            complaints.push(format!(
                "`pipeline.nodeTimeoutSeconds` is {silence} and must be {LEAST_NODE_TIMEOUT} at least: a process gives a sign of life every 2 seconds"
            ));
        }
        let pause = self.webhooks.retry_base_seconds;
        if !(pause > 0.0 && pause.is_finite()) {
            complaints.push(format!(
                "`webhooks.retryBaseSeconds` is {pause} and must be above 0"
            ));
        }
        complaints
    }

    fn buckets(&self) -> Vec<String> {
        let limits = &self.rate_limits;
        let bucket = |key, bucket: &Bucket| {
            let works =
                bucket.per_second > 0.0 && bucket.per_second.is_finite() && bucket.burst > 0;
            (!works).then(|| {
                format!(
                    "`rateLimits.{key}` needs a `perSecond` above 0 and a `burst` of 1 at least"
                )
            })
        };
        [
            bucket("key", &limits.key),
            bucket("keyAddress", &limits.key_address),
            bucket("sessions", &limits.sessions),
            bucket("subject", &limits.subject),
            bucket("principal", &limits.principal),
            bucket("address", &limits.address),
            bucket("subjectBytes", &limits.subject_bytes),
            bucket("appBytes", &limits.app_bytes),
            bucket("keyAddressBytes", &limits.key_address_bytes),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Where others find this server, and where it finds push services.
    fn urls(&self) -> Vec<String> {
        let (push, public) = (&self.push, self.server.public_url.as_str());
        let urls = [
            ("server.publicUrl", public, true),
            ("push.apns.productionUrl", &push.apns.production_url, false),
            ("push.apns.sandboxUrl", &push.apns.sandbox_url, false),
            ("push.fcm.url", &push.fcm.url, false),
            ("push.fcm.tokenUrl", &push.fcm.token_url, true),
        ];
        urls.into_iter()
            .filter(|(_, text, may_be_empty)| !(text.is_empty() && *may_be_empty))
            .filter(|(_, text, _)| !is_base(text))
            .map(|(key, text, _)| {
                format!("`{key}` is `{text}` and must be a URL, as `https://nudge.example`")
            })
            .collect()
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// The complaint about a number that is beyond what clocks, memory and queues can do.
fn too_large((key, number): (&'static str, u64)) -> Option<String> {
    let most = match key {
        "plugins.workers" => MOST_WORKERS,
        "database.connections" => MOST_CONNECTIONS,
        _ if key.ends_with("Seconds") => MOST_SECONDS,
        _ if key.ends_with("Ms") => MOST_SECONDS * 1_000,
        _ => MOST,
    };
    (number > most).then(|| format!("`{key}` is {number} and must be {most} at most"))
}

/// Whether a text is the URL of a server, to which paths can be added.
fn is_base(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_can_work() {
        Config::defaults().unwrap().check().unwrap();
    }

    #[test]
    fn all_that_can_not_work_is_named() {
        let mut config = Config::defaults().unwrap();
        config.server.app_share = 2.0;
        config.database.connections = 0;
        "shop".clone_into(&mut config.server.public_url);
        config.rate_limits.key.burst = 0;
        config.webhooks.retry_base_seconds = f64::NAN;
        let complaint = config.check().unwrap_err().to_string();
        for part in [
            "`server.appShare` is 2",
            "`database.connections` is 0",
            "`server.publicUrl` is `shop`",
            "`rateLimits.key`",
            "`webhooks.retryBaseSeconds` is NaN",
        ] {
            assert!(complaint.contains(part), "{part}: {complaint}");
        }
        assert!(!complaint.contains('\n'), "{complaint}");
    }

    #[test]
    fn numbers_have_a_most() {
        let mut config = Config::defaults().unwrap();
        config.server.max_connection_age_seconds = 1 << 62;
        config.server.drain_seconds = MOST_SECONDS + 1;
        config.server.shutdown_seconds = MOST_SECONDS;
        config.pipeline.poll_ms = u64::MAX;
        config.pipeline.memory_events = usize::MAX;
        config.ingest.queue_size = 1 << 40;
        let complaint = config.check().unwrap_err().to_string();
        for part in [
            "`server.maxConnectionAgeSeconds` is 4611686018427387904 and must be 315360000 at most",
            "`server.drainSeconds` is 315360001",
            "`pipeline.pollMs` is 18446744073709551615 and must be 315360000000 at most",
            "`pipeline.memoryEvents`",
        ] {
            assert!(complaint.contains(part), "{part}: {complaint}");
        }
        assert_eq!(complaint.matches("at most").count(), 4, "{complaint}");
    }

    #[test]
    fn the_largest_requests_fit_into_memory() {
        let mut config = Config::defaults().unwrap();
        for events in [1, 499, 999] {
            config.pipeline.memory_events = events;
            let complaint = config.check().unwrap_err().to_string();
            let expected = format!("`pipeline.memoryEvents` is {events} and must be 1000 at least");
            assert!(complaint.contains(&expected), "{complaint}");
        }
        config.pipeline.memory_events = 1_000;
        config.check().unwrap();
    }

    #[test]
    fn signs_of_life_come_in_time_and_threads_are_few() {
        let mut config = Config::defaults().unwrap();
        config.pipeline.node_timeout_seconds = 2;
        config.plugins.workers = 1_025;
        config.database.connections = 10_001;
        let complaint = config.check().unwrap_err().to_string();
        for part in [
            "`pipeline.nodeTimeoutSeconds` is 2 and must be 3 at least",
            "`plugins.workers` is 1025 and must be 1024 at most",
            "`database.connections` is 10001 and must be 10000 at most",
        ] {
            assert!(complaint.contains(part), "{part}: {complaint}");
        }
        config.pipeline.node_timeout_seconds = 3;
        config.plugins.workers = 1_024;
        config.database.connections = 10_000;
        config.check().unwrap();
    }

    #[test]
    fn a_base_takes_paths() {
        for (text, is) in [
            ("https://nudge.example", true),
            ("http://127.0.0.1:8480/prefix", true),
            ("shop", false),
            ("ftp://nudge.example", false),
            ("https://nudge.example/?a=b", false),
        ] {
            assert_eq!(is_base(text), is, "{text}");
        }
    }
}
