//! Why an event matches a trigger or not, condition by condition.

use nudge_guest::trigger::{Event, Subject};

use crate::config::Config;

/// Explains whom the campaign is for when a delay is over, if somebody asks.
pub(crate) fn due(config: &Config, subject: &Subject<'_>) {
    if let Some(audience) = &config.audience {
        audience.explain(subject);
    }
}

/// Explains the source and every condition of the filter, if somebody asks.
pub(crate) fn rule(config: &Config, event: &Event<'_>, subject: &Subject<'_>, matched: bool) {
    if !event.campaign().batch().explaining() {
        return;
    }
    subject.explain("trigger", matched, || format!("event {}", event.name()));
    if let Some(filter) = &config.filter {
        for leaf in filter.leaves() {
            let passed = leaf.matches(&|| event.received(), &|column| event.cell(column));
            let path = config.paths.get(leaf.column()).map_or("", String::as_str);
            subject.explain("filter", passed, || {
                leaf.describe(path, event.cell(leaf.column()))
            });
        }
    }
    if let Some(audience) = &config.audience {
        audience.explain(subject);
    }
}
