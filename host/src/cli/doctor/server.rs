//! What a running server says of itself.

use std::time::Duration;

use super::finding::Finding;

/// How long a server may take to answer: longer than it waits for its database.
const PATIENCE: Duration = Duration::from_secs(20);
/// Metrics that stay 0 while all goes well, with what to do otherwise.
const STAYS_ZERO: [(&str, &str, &str); 4] = [
    (
        "nudge_http_shed_total",
        "requests were refused for want of room since the start",
        "See NudgeOverloaded in the runbook.",
    ),
    (
        "nudge_database_acquire_timeouts_total",
        "waits for a connection to the database were in vain since the start",
        "See NudgeDatabaseConnectionsExhausted in the runbook.",
    ),
    (
        "nudge_plugin_rollbacks_total",
        "roll-backs of plugins since the start",
        "See NudgePluginRolledBack in the runbook.",
    ),
    (
        "nudge_spans_dropped_total",
        "spans of traces were not sent since the start",
        "See that the collector of `telemetry.otlpEndpoint` answers.",
    ),
];

/// Looks at the server whose operators' routes are at one of several URLs.
pub(super) async fn look(urls: &[String]) -> Vec<Finding> {
    let mut failed = Vec::new();
    for url in urls {
        match ask(url).await {
            Ok((status, said, metrics)) => {
                let mut findings = vec![readiness(url, status, said.trim())];
                findings.push(version(url, &metrics));
                findings.extend(counters(url, &metrics));
                return findings;
            }
            // Its own text has the URL again, and not why.
            Err(error) => {
                let error = anyhow::Error::new(error.without_url());
                failed.push(format!("{url}: {}", error.root_cause()));
            }
        }
    }
    vec![Finding::problem(
        "server",
        format!("no server answers at {}", failed.join(", nor at ")),
        "Start the server, or name the address of its /readyz with --operations.",
    )]
}

/// What a server says of itself: the status and the text of `/readyz`, and its metrics.
async fn ask(url: &str) -> reqwest::Result<(u16, String, String)> {
    let http = reqwest::Client::builder()
        .timeout(PATIENCE)
        .no_proxy()
        .build()?;
    let url = url.trim_end_matches('/');
    let ready = http.get(format!("{url}/readyz")).send().await?;
    let status = ready.status();
    let said = ready.text().await?;
    let metrics = http.get(format!("{url}/metrics")).send().await?;
    let metrics = metrics.error_for_status()?.text().await?;
    Ok((status.as_u16(), said, metrics))
}

fn readiness(url: &str, status: u16, said: &str) -> Finding {
    if status == 200 {
        return Finding::good("server", format!("the one at {url} is ready"));
    }
    Finding::problem(
        "server",
        format!("the one at {url} is not ready: {said}"),
        "See NudgeNotReady in the runbook.",
    )
}

fn version(url: &str, metrics: &str) -> Finding {
    const OWN: &str = env!("CARGO_PKG_VERSION");
    let line = lines(metrics, "nudge_build_info").next();
    let version = line.and_then(|line| label(line, "version"));
    match version {
        Some(version) if version == OWN => Finding::good(
            "version",
            format!("the one at {url} runs {OWN}, as this program"),
        ),
        Some(version) => Finding::warning(
            "version",
            format!("the one at {url} runs {version}, this program is {OWN}"),
            "Finish the upgrade: restart the server with the program that is installed.",
        ),
        None => Finding::warning(
            "version",
            format!("what runs at {url} does not say its version"),
            "See that the URL is a Nudge server's, of this version or a newer one.",
        ),
    }
}

fn counters(url: &str, metrics: &str) -> Vec<Finding> {
    let counted = STAYS_ZERO.iter().filter_map(|(name, what, next)| {
        // A roll-back that somebody asked for is no trouble.
        let is_asked_for = |line: &&str| label(line, "cause") == Some("request");
        let sum: f64 = lines(metrics, name)
            .filter(|line| !is_asked_for(line))
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
            .sum();
        (sum > 0.0).then(|| Finding::warning("server", format!("{url}: {sum} {what}"), next))
    });
    counted.collect()
}

/// The samples of a family.
fn lines<'m>(metrics: &'m str, family: &'m str) -> impl Iterator<Item = &'m str> {
    metrics.lines().filter(move |line| {
        let rest = line.strip_prefix(family);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
    })
}

/// The value of a sample's label.
fn label<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let (_, labels) = line.split_once('{')?;
    let (_, rest) = labels.split_once(&format!("{name}=\""))?;
    Some(rest.split_once('"')?.0)
}

#[cfg(test)]
mod tests {
    use super::super::finding::{Level, count};
    use super::*;

    const METRICS: &str = "# HELP nudge_build_info 1.\n# TYPE nudge_build_info gauge\n\
        nudge_build_info{version=\"0.0.1\",node=\"a\"} 1\n\
        nudge_http_shed_total{full=\"requests\"} 2\nnudge_http_shed_total{full=\"polls\"} 3\n\
        nudge_http_shed_total_of_others 7\nnudge_spans_dropped_total 0\n\
        nudge_plugin_rollbacks_total{cause=\"request\"} 7\nnudge_plugin_rollbacks_total{cause=\"failures\"} 0\n";

    #[test]
    fn metrics_that_should_be_zero_are_told() {
        let found = counters("url", METRICS);
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().contains("5 requests"), "{}", found[0]);
        assert_eq!(count(&found, Level::Warning), 1);
    }

    #[test]
    fn another_version_is_told() {
        let text = version("url", METRICS).to_string();
        assert!(text.contains("runs 0.0.1"), "{text}");
        let none = version("url", "").to_string();
        assert!(none.contains("does not say"), "{none}");
    }
}
