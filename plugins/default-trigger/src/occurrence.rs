//! Which of the matching events fire, and when.
//!
//! State is read and written only where the mode needs it, and only for events that match.

mod state;

use std::time::Duration;

use nudge_guest::trigger::{Decision, Event, Subject, Timer};
use nudge_guest::{PastEvent, Refusal};

use crate::config::{Config, Occurrence};
use crate::{explain, history, waiting};
use state::State;

/// Numbers that an event's id makes.
const EVENT_NUMBERS: usize = 4;
/// So many sessions that fired are known, besides the last.
const MOST_EARLIER: usize = 8;

/// Whether no event of this session has matched yet; remembers that one does now.
pub(crate) fn is_first_of_session(
    config: &Config,
    event: &Event<'_>,
    subject: &Subject<'_>,
) -> bool {
    let mut state = State::of(config, subject);
    let session = Some(event.session());
    if state.session == session {
        return false;
    }
    state.session = session;
    state.save(config, subject);
    true
}

/// Decides about an event that matches, at once.
pub(crate) fn decide(
    config: &Config,
    event: &Event<'_>,
    subject: &Subject<'_>,
) -> Result<Decision, Refusal> {
    let fires = match config.occurrence {
        Occurrence::Every => true,
        Occurrence::Once => return Ok(decide_once(config, subject, None)),
        Occurrence::OncePerSession => {
            return Ok(decide_once(config, subject, Some(event.session())));
        }
        _ => counts(config, event, subject)?,
    };
    subject.explain("occurrence", fires, || config.occurrence.to_string());
    let fires = fires && config.is_for(subject);
    if fires && config.occurrence.counts() {
        remember_firing(config, subject);
    }
    Ok(decision(fires))
}

/// Decides about an event that may have the one firing. Somebody whom the campaign is not for has not had it, and nobody
/// asks whether it was.
fn decide_once(config: &Config, subject: &Subject<'_>, session: Option<u32>) -> Decision {
    if !config.is_for(subject) {
        return Decision::Pass;
    }
    let fires = fires_once(config, subject, session);
    subject.explain("occurrence", fires, || config.occurrence.to_string());
    decision(fires)
}

fn decision(fires: bool) -> Decision {
    if fires {
        Decision::Fire
    } else {
        Decision::Pass
    }
}

/// Decides about an event that matches, after a delay.
///
/// Modes that count, count the event now. Those that fire once do when the timer is due: what is
/// cancelled has not fired. Whom the campaign is for is asked then too. Each event's firing waits by itself.
pub(crate) fn delay(
    config: &Config,
    event: &Event<'_>,
    subject: &Subject<'_>,
    delay: Duration,
) -> Result<Decision, Refusal> {
    let waits = match config.occurrence {
        Occurrence::Every | Occurrence::Once | Occurrence::OncePerSession => true,
        _ => counts(config, event, subject)?,
    };
    subject.explain("occurrence", waits, || config.occurrence.to_string());
    if waits {
        waiting::wait(event, subject, delay);
        subject.explain("delay", false, || {
            format!("waits {} seconds", delay.as_secs())
        });
    }
    Ok(Decision::Pass)
}

/// Decides about a timer that is due.
pub(crate) fn due(config: &Config, timer: &Timer<'_>, subject: &Subject<'_>) -> Decision {
    let Some(session) = waiting::session(timer, subject) else {
        let told = || "the timer is of another plugin".to_owned();
        subject.explain("delay", false, told);
        return Decision::Pass;
    };
    if let Some(name) = waiting::cancelled_by(config, timer, subject) {
        let told = || format!("{name} came during the delay");
        subject.explain("delay", false, told);
        return Decision::Pass;
    }
    explain::due(config, subject);
    if !config.is_for(subject) {
        return Decision::Pass;
    }
    let fires = match config.occurrence {
        Occurrence::Once => fires_once(config, subject, None),
        Occurrence::OncePerSession => fires_once(config, subject, Some(session)),
        _ => true,
    };
    subject.explain("occurrence", fires, || config.occurrence.to_string());
    if fires && config.occurrence.counts() {
        remember_firing(config, subject);
    }
    decision(fires)
}

/// Remembers that the campaign fires, for the day when it is to do so once.
fn remember_firing(config: &Config, subject: &Subject<'_>) {
    let mut state = State::of(config, subject);
    if !state.has_fired {
        state.has_fired = true;
        state.save(config, subject);
    }
}

/// Whether nothing fired yet, or nothing in this session; remembers that it does now.
///
/// What the host held back has not fired (contract 8 and 13), so that the next event may. The state names the event
/// of the last firing: of one batch only the first event fires again. Several sessions may go on at a time, so that
/// the latest that fired are known.
fn fires_once(config: &Config, subject: &Subject<'_>, session: Option<u32>) -> bool {
    let mut state = State::of(config, subject);
    let mark = session.unwrap_or_default();
    let mut earlier = Vec::new();
    if let Some((fired, rest)) = state.numbers.split_first() {
        let (event, before) = rest.split_at(rest.len().min(EVENT_NUMBERS));
        let has_fired = || {
            let held = subject.held_back();
            held.is_none_or(|held| number(&held) != *event)
        };
        if before.contains(&mark) || *fired == mark && has_fired() {
            return false;
        }
        earlier.extend_from_slice(before);
        if *fired != mark && has_fired() {
            earlier.insert(0, *fired);
        }
        earlier.truncate(MOST_EARLIER);
    }
    state.numbers = vec![mark];
    state.numbers.extend(number(&subject.event_id()));
    state.numbers.extend(earlier);
    state.save(config, subject);
    true
}

/// A UUID in four numbers; zeros: it is none.
fn number(id: &str) -> Vec<u32> {
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).collect();
    let bytes = u128::from_str_radix(&digits, 16)
        .unwrap_or_default()
        .to_be_bytes();
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_be_bytes(*word)).collect()
}

/// Counts the event, and says whether it is one of those that fire.
fn counts(config: &Config, event: &Event<'_>, subject: &Subject<'_>) -> Result<bool, Refusal> {
    let mut state = State::of(config, subject);
    let fires = match config.occurrence {
        Occurrence::First => {
            if !state.numbers.is_empty() {
                return Ok(false);
            }
            state.numbers = vec![1];
            !matched_before(config, event, subject)
        }
        Occurrence::Nth(n) | Occurrence::EveryNth(n) => {
            let count = state
                .numbers
                .first()
                .copied()
                .unwrap_or_default()
                .saturating_add(1);
            state.numbers = vec![count];
            if matches!(config.occurrence, Occurrence::Nth(_)) {
                count == n
            } else {
                count.is_multiple_of(n)
            }
        }
        Occurrence::AtLeast(n, within) => {
            let now = u32::try_from(event.timestamp().seconds()).map_err(|_| {
                Refusal::new(
                    "invalid_timestamp",
                    "the event happened before 1970 or after 2106",
                )
            })?;
            let span = u32::try_from(within.as_secs()).unwrap_or(u32::MAX);
            state.numbers.push(now);
            state.numbers.sort_unstable();
            let latest = state.numbers.last().copied().unwrap_or(now);
            state
                .numbers
                .retain(|time| *time >= latest.saturating_sub(span));
            let surplus = state.numbers.len().saturating_sub(n as usize);
            state.numbers.drain(..surplus);
            state.numbers.len() >= n as usize && now >= latest.saturating_sub(span)
        }
        Occurrence::Every | Occurrence::Once | Occurrence::OncePerSession => return Ok(true),
    };
    state.save(config, subject);
    Ok(fires)
}

/// Whether an earlier event of the subject matched. Asked once a subject, then state knows.
fn matched_before(config: &Config, event: &Event<'_>, subject: &Subject<'_>) -> bool {
    if config.source.is_session() && config.filter.is_none() {
        // Sessions are numbered from 1 on.
        return event.session() > 1;
    }
    config.source.event_names().iter().any(|name| {
        if config.paths.is_empty() {
            return subject.has_event(name, None);
        }
        let matches = |earlier: &PastEvent<'_>| {
            config.matches(name, &|| event.received(), &|column| earlier.cell(column))
        };
        history::count(subject, (name, None), &config.paths, 1, matches) > 0
    })
}
