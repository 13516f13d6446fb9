//! What the server's metrics say about its plugins.

use std::collections::BTreeMap;

use serde::Serialize;

/// Seconds and calls by plugin and version.
pub(super) type Readings = BTreeMap<(String, String), Reading>;

/// The state of one plugin's counters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    seconds: f64,
    calls: f64,
    failed: f64,
}

/// What one plugin did.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PluginTime {
    pub plugin: String,
    pub version: String,
    pub calls: f64,
    pub failed: f64,
    pub seconds: f64,
}

/// Reads the plugins' counters out of Prometheus' text format.
pub(super) fn read(text: &str) -> Readings {
    let mut readings = Readings::new();
    for line in text.lines() {
        let Some((name, labels, value)) = sample(line) else {
            continue;
        };
        let label = |wanted: &str| labels.get(wanted).copied().unwrap_or_default().to_owned();
        let reading = || (label("plugin"), label("version"));
        match name {
            "nudge_plugin_call_seconds_sum" => {
                readings.entry(reading()).or_default().seconds += value;
            }
            "nudge_plugin_calls_total" => {
                let entry = readings.entry(reading()).or_default();
                entry.calls += value;
                if label("outcome") != "ok" {
                    entry.failed += value;
                }
            }
            _ => {}
        }
    }
    readings
}

/// What happened between two readings, for plugins that were called.
pub(super) fn difference(before: &Readings, after: &Readings) -> Vec<PluginTime> {
    let since = |(key, after): (&(String, String), &Reading)| {
        let before = before.get(key).copied().unwrap_or_default();
        PluginTime {
            plugin: key.0.clone(),
            version: key.1.clone(),
            calls: after.calls - before.calls,
            failed: after.failed - before.failed,
            seconds: after.seconds - before.seconds,
        }
    };
    after
        .iter()
        .map(since)
        .filter(|plugin| plugin.calls > 0.0)
        .collect()
}

/// `name{label="value",…} number`. The labels' values are plain names: nothing is escaped in them.
fn sample(line: &str) -> Option<(&str, BTreeMap<&str, &str>, f64)> {
    let (name, rest) = line.split_once('{')?;
    let (labels, value) = rest.split_once("} ")?;
    let labels = labels.split(',').filter_map(|label| {
        let (key, value) = label.split_once('=')?;
        Some((key, value.trim_matches('"')))
    });
    Some((name, labels.collect(), value.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_plugin_and_version() {
        let before = "nudge_plugin_calls_total{plugin=\"a\",version=\"1.0.0\",outcome=\"ok\"} 2\n";
        let after = "# TYPE nudge_plugin_calls_total counter\n\
                     nudge_plugin_calls_total{plugin=\"a\",version=\"1.0.0\",outcome=\"ok\"} 5\n\
                     nudge_plugin_calls_total{plugin=\"a\",version=\"1.0.0\",outcome=\"trap\"} 1\n\
                     nudge_plugin_call_seconds_sum{plugin=\"a\",version=\"1.0.0\"} 0.25\n";

        let difference = difference(&read(before), &read(after));

        let [plugin] = &difference[..] else {
            panic!("{difference:?}")
        };
        assert_eq!(
            (plugin.plugin.as_str(), plugin.version.as_str()),
            ("a", "1.0.0")
        );
        assert!((plugin.calls - 4.0).abs() < f64::EPSILON);
        assert!((plugin.failed - 1.0).abs() < f64::EPSILON);
        assert!((plugin.seconds - 0.25).abs() < f64::EPSILON);
    }
}
