//! Firings that wait: each is a timer, with the event's id as its key and the event's session as its payload.

use std::time::Duration;

use nudge_guest::PastEvent;
use nudge_guest::trigger::{Event, Subject, Timer};

use crate::config::Config;
use crate::history;

/// Lets an event's firing wait.
pub(crate) fn wait(event: &Event<'_>, subject: &Subject<'_>, delay: Duration) {
    subject.set_timer(&subject.event_id(), delay, &event.session().to_le_bytes());
}

/// The session of the event that a timer waits for. None: another plugin has set the timer.
pub(crate) fn session(timer: &Timer<'_>, subject: &Subject<'_>) -> Option<u32> {
    let session = timer.payload().try_into().ok().map(u32::from_le_bytes);
    let key = timer.key();
    session.filter(|_| is_slot(&key) || key == subject.event_id())
}

/// Whether a key is one of those that earlier versions gave.
fn is_slot(key: &str) -> bool {
    let slot = key.strip_prefix("slot-");
    slot.is_some_and(|slot| slot.parse::<u8>().is_ok())
}

/// The name of an event that came during the delay and cancels the firing. Such an event cancels what waits when it
/// comes, but nobody is told of one that comes while the campaign is paused.
///
/// What the host reads for that it reads now, and not with each event: the names are none of [`Config::reads`]' history.
pub(crate) fn cancelled_by<'c>(
    config: &'c Config,
    timer: &Timer<'_>,
    subject: &Subject<'_>,
) -> Option<&'c str> {
    let mut names: Vec<&str> = Vec::new();
    for cancellation in &config.cancellations {
        let name = cancellation.event_name.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let due = timer.due();
    // The delay is that of now. Where somebody has changed it, nothing of before the event counts at least.
    let happened = timer.event().timestamp();
    let began = config
        .delay()
        .map_or(happened, |delay| happened.max(due - delay));
    let micros = due.micros().saturating_sub(began.micros());
    let within = Duration::from_micros(u64::try_from(micros).unwrap_or_default());
    names.into_iter().find(|name| {
        // What came at the instant at which the wait began may have come before it.
        let cancels = |earlier: &PastEvent<'_>| {
            let at = earlier.timestamp();
            began < at && at < due && config.cancels(name, &|| at, &|column| earlier.cell(column))
        };
        // Mostly there is none, which the host knows of all of a person's firings at once.
        subject.has_event(name, within)
            && history::count(subject, (name, Some(within)), &config.paths, 1, cancels) > 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_earlier_versions_are_known() {
        assert!(is_slot("slot-0") && is_slot("slot-63"));
        for other in ["slot-", "slot-x", "slot-900", "0", "cart"] {
            assert!(!is_slot(other), "{other}");
        }
    }
}
