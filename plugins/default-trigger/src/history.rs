//! How many of a subject's earlier events pass a filter.

use std::time::Duration;

use nudge_guest::PastEvent;
use nudge_guest::log;
use nudge_guest::trigger::Subject;

/// Events that are looked at first: mostly that is enough.
const FEW: u32 = 200;
/// Events that are looked at, at the most: what the host gives.
const MOST: u32 = 1_000;

/// Counts a subject's newest events of a name that match, within a span if one is given, up to `at_most`.
///
/// Of a name with more than 1,000 events within the span the others are not looked at. Where that may have changed
/// the answer it is logged, and said to whoever asks why.
pub(crate) fn count(
    subject: &Subject<'_>,
    (name, within): (&str, Option<Duration>),
    paths: &[String],
    at_most: u32,
    matches: impl Fn(&PastEvent<'_>) -> bool,
) -> u32 {
    let look = |limit: u32| {
        let events = subject.recent_events(name, within, limit, paths);
        let matching = events.iter().filter(&matches).take(at_most as usize);
        let count = u32::try_from(matching.count()).unwrap_or(u32::MAX);
        let knows = count >= at_most || events.len() < limit as usize;
        (count, knows)
    };
    let (count, knows) = look(FEW);
    if knows {
        return count;
    }
    let (count, knows) = look(MOST);
    if !knows {
        subject.explain("history", false, || {
            format!("only the newest {MOST} events named {name} were looked at")
        });
        log::warn(format!(
            "only the newest {MOST} events named {name} of a subject were looked at"
        ));
    }
    count
}
