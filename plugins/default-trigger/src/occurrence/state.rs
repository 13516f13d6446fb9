//! What is kept of a subject: a byte, a list of numbers, and three bytes that say what the numbers are. A thousand numbers
//! fit into 4 KiB.
//!
//! Versions that did not write the three bytes read past them: they are too few for a number.

use std::time::Duration;

use nudge_guest::Instant;
use nudge_guest::trigger::Subject;

use super::{EVENT_NUMBERS, MOST_EARLIER, number};
use crate::config::{Config, Occurrence};

/// In the first byte: the first number is a session.
const HAS_SESSION: u8 = 0x80;
/// In the first byte: the state ends with what its numbers mean. Earlier versions kept a number to 63 in the bits below.
const HAS_MEANING: u8 = 0x40;
/// In the first byte of a state with a meaning: the campaign has fired, in whatever mode.
const HAS_FIRED: u8 = 0x01;
/// In the first byte of a state with a meaning: a firing in an earlier mode had an effect.
const HAD_EFFECT: u8 = 0x02;
/// In the last byte, above the mode. No text ends with such a byte, so that the JSON of another plugin is not taken for numbers.
const MEANING: u8 = 0xF0;

/// The mode in which numbers are kept, as states have it.
const ONCE: u8 = 2;
const ONCE_PER_SESSION: u8 = 3;

/// The most that an earlier version's state is taken to have counted.
const MOST_COUNTED: u32 = 1_000_000;
/// How old times in an earlier version's state can be, and how far ahead of the server a client's clock.
const LONGEST: Duration = Duration::from_hours(366 * 24);
const AHEAD: Duration = Duration::from_hours(24);

/// What numbers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Meaning {
    mode: u8,
    /// What the campaign listened for, see [`crate::listens`].
    listens: u16,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The session whose beginning was noticed last, where that is what fires.
    pub(super) session: Option<u32>,
    /// By mode: the session that fired last, a count, or the times of events in seconds since 1970.
    pub(super) numbers: Vec<u32>,
    /// Whether the campaign has fired in a mode that counts events. `once` asks, should the mode become that.
    pub(super) has_fired: bool,
    /// Whether the host is known not to have held all firings of earlier modes back.
    pub(super) had_effect: bool,
}

impl Meaning {
    fn of(config: &Config) -> Self {
        let mode = match config.occurrence {
            Occurrence::Every => 0,
            Occurrence::First => 1,
            Occurrence::Once => ONCE,
            Occurrence::OncePerSession => ONCE_PER_SESSION,
            Occurrence::Nth(_) | Occurrence::EveryNth(_) => 4,
            Occurrence::AtLeast(..) => 5,
        };
        Self {
            mode,
            listens: config.listens,
        }
    }
}

impl State {
    /// The subject's; empty at first. What two people who became one have matched counts together.
    pub(super) fn of(config: &Config, subject: &Subject<'_>) -> Self {
        let read = |bytes: Vec<u8>| Self::read(&bytes, config, subject);
        let own = subject.state_bytes().map_or_else(Self::default, read);
        if matches!(
            config.occurrence,
            Occurrence::Every | Occurrence::OncePerSession
        ) {
            return own;
        }
        let merged = subject.merged_states().into_iter().map(read);
        merged.fold(own, |own, other| own.unite(other, config.occurrence))
    }

    /// What a state says under this configuration. Numbers of another mode or of other events say nothing, nor does what
    /// another plugin kept. The one firing of `once` stays that of the campaign, whatever it listened for and in which mode.
    fn read(bytes: &[u8], config: &Config, subject: &Subject<'_>) -> Self {
        let Some((mut state, kept)) = Self::from_bytes(bytes) else {
            return Self::default();
        };
        let Some(kept) = kept else {
            if !is_plausible(&state.numbers, config.occurrence, subject.now()) {
                state.numbers.clear();
            }
            return state;
        };
        let wanted = Meaning::of(config);
        if kept.listens != wanted.listens {
            state.session = None;
        }
        if kept == wanted || (kept.mode, wanted.mode) == (ONCE, ONCE) {
            return state;
        }
        state.had_effect |= match kept.mode {
            ONCE | ONCE_PER_SESSION if !state.numbers.is_empty() => {
                had_effect(&state.numbers, subject)
            }
            // Which of its firings the host held back is not known.
            _ => state.has_fired && subject.held_back().is_none(),
        };
        state.has_fired |= state.had_effect;
        state.numbers.clear();
        if state.had_effect && wanted.mode == ONCE {
            state.numbers.push(0);
        }
        state
    }

    /// One state for both. The session is its own.
    fn unite(mut self, other: Self, occurrence: Occurrence) -> Self {
        self.has_fired |= other.has_fired;
        self.had_effect |= other.had_effect;
        match occurrence {
            Occurrence::Nth(_) | Occurrence::EveryNth(_) => {
                let count = |state: &Self| state.numbers.first().copied().unwrap_or_default();
                self.numbers = vec![count(&self).saturating_add(count(&other))];
            }
            Occurrence::AtLeast(n, _) => {
                self.numbers.extend(other.numbers);
                self.numbers.sort_unstable();
                let surplus = self.numbers.len().saturating_sub(n as usize);
                self.numbers.drain(..surplus);
            }
            _ if self.numbers.is_empty() => self.numbers = other.numbers,
            _ => {}
        }
        self
    }

    pub(super) fn save(&self, config: &Config, subject: &Subject<'_>) {
        subject.set_state_bytes(&self.to_bytes(Meaning::of(config)));
    }

    /// A state and what its numbers mean, which earlier versions did not say. None: another plugin's.
    fn from_bytes(bytes: &[u8]) -> Option<(Self, Option<Meaning>)> {
        let (flags, rest) = bytes.split_first()?;
        let (numbers, end) = rest.as_chunks::<4>();
        let has_meaning = flags & !(HAS_SESSION | HAS_FIRED | HAD_EFFECT) == HAS_MEANING;
        let meaning = match *end {
            [] if flags & HAS_MEANING == 0 => None,
            [low, high, last] if has_meaning && last & MEANING == MEANING => Some(Meaning {
                mode: last & !MEANING,
                listens: u16::from_le_bytes([low, high]),
            }),
            _ => return None,
        };
        let mut numbers = numbers.iter().copied().map(u32::from_le_bytes);
        let session = if flags & HAS_SESSION == 0 {
            None
        } else {
            numbers.next()
        };
        let state = Self {
            session,
            numbers: numbers.collect(),
            has_fired: meaning.is_some() && flags & HAS_FIRED != 0,
            had_effect: meaning.is_some() && flags & HAD_EFFECT != 0,
        };
        Some((state, meaning))
    }

    fn to_bytes(&self, meaning: Meaning) -> Vec<u8> {
        let session = self.session.map_or(0, |_| HAS_SESSION);
        let fired = if self.has_fired { HAS_FIRED } else { 0 };
        let effect = if self.had_effect { HAD_EFFECT } else { 0 };
        let mut bytes = vec![HAS_MEANING | session | fired | effect];
        let numbers = self.session.iter().chain(&self.numbers);
        bytes.extend(numbers.flat_map(|number| number.to_le_bytes()));
        bytes.extend(meaning.listens.to_le_bytes());
        bytes.push(MEANING | meaning.mode);
        bytes
    }
}

/// Whether a firing that a state of `once` or `once_per_session` names had an effect: the host held none back, or another one.
fn had_effect(numbers: &[u32], subject: &Subject<'_>) -> bool {
    let rest = numbers.get(1..).unwrap_or_default();
    let (event, before) = rest.split_at(rest.len().min(EVENT_NUMBERS));
    let held = subject.held_back();
    !before.is_empty() || held.is_none_or(|held| number(&held) != *event)
}

/// Whether a mode can have kept these numbers, in a version that did not say which mode it was.
fn is_plausible(numbers: &[u32], occurrence: Occurrence, now: Instant) -> bool {
    const LEAST: usize = 1 + EVENT_NUMBERS;
    const MOST: usize = LEAST + MOST_EARLIER;
    let names_event = (LEAST..=MOST).contains(&numbers.len());
    match occurrence {
        Occurrence::Every => false,
        Occurrence::First => numbers == [1],
        Occurrence::Once => numbers.first() == Some(&0) && (numbers.len() == 1 || names_event),
        Occurrence::OncePerSession => names_event,
        Occurrence::Nth(_) | Occurrence::EveryNth(_) => {
            matches!(numbers, [count] if *count <= MOST_COUNTED)
        }
        Occurrence::AtLeast(..) => {
            let times = (now - LONGEST).seconds()..=(now + AHEAD).seconds();
            let mut known = numbers.iter();
            numbers.is_sorted() && known.all(|time| times.contains(&i64::from(*time)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEANS: Meaning = Meaning {
        mode: 5,
        listens: 0x1234,
    };

    #[test]
    fn a_state_survives_its_bytes() {
        for session in [None, Some(0), Some(u32::MAX)] {
            for (has_fired, had_effect) in [(false, false), (true, false), (true, true)] {
                let state = State {
                    session,
                    numbers: vec![0, 1, u32::MAX],
                    has_fired,
                    had_effect,
                };
                let bytes = state.to_bytes(MEANS);
                assert_eq!(State::from_bytes(&bytes), Some((state, Some(MEANS))));
            }
        }
    }

    #[test]
    fn states_of_earlier_versions_are_read_and_have_no_meaning() {
        let numbers = |numbers: &[u32], session| State {
            session,
            numbers: numbers.to_vec(),
            ..State::default()
        };
        for (bytes, state) in [
            (&[63][..], numbers(&[], None)),
            (&[0, 7, 0, 0, 0], numbers(&[7], None)),
            (&[0x85, 7, 0, 0, 0, 1, 0, 0, 0], numbers(&[1], Some(7))),
        ] {
            assert_eq!(State::from_bytes(bytes), Some((state, None)), "{bytes:?}");
        }
    }

    #[test]
    fn what_another_plugin_kept_is_no_state() {
        for other in [
            &b""[..],
            br#"{"count":1}"#,
            br#"{"a":1}"#,
            b"[1,2,3,4]",
            b"true",
            b"null",
            b"ABCD",
            b"12",
        ] {
            assert_eq!(State::from_bytes(other), None, "{other:?}");
        }
        // The length is that of a number, which no mode has kept.
        let (text, _) = State::from_bytes(b"\"abc\"").unwrap();
        let now = Instant::parse("2026-01-01").unwrap();
        for occurrence in [
            Occurrence::First,
            Occurrence::Once,
            Occurrence::OncePerSession,
            Occurrence::Nth(3),
            Occurrence::EveryNth(3),
            Occurrence::AtLeast(3, Duration::from_hours(24)),
        ] {
            assert!(
                !is_plausible(&text.numbers, occurrence, now),
                "{occurrence}"
            );
        }
    }

    #[test]
    fn a_thousand_times_fit() {
        assert!(
            State {
                session: Some(1),
                numbers: vec![7; 1_000],
                has_fired: true,
                had_effect: true,
            }
            .to_bytes(MEANS)
            .len()
                <= 4_096
        );
    }
}
