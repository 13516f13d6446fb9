//! What is kept of a subject: a byte and a list of numbers, so that a thousand of them fit into 4 KiB.

use nudge_guest::trigger::Subject;

use crate::config::{Config, Occurrence};

/// In the first byte: the first number is a session. Earlier versions kept a number in the other bits.
const HAS_SESSION: u8 = 0x80;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// The session whose beginning was noticed last, where that is what fires.
    pub(super) session: Option<u32>,
    /// By mode: the session that fired last, a count, or the times of events in seconds since 1970.
    pub(super) numbers: Vec<u32>,
}

impl State {
    /// The subject's; empty at first. What two people who became one have matched counts together.
    pub(super) fn of(config: &Config, subject: &Subject<'_>) -> Self {
        let own = subject.state_bytes();
        let own = own.map_or_else(Self::default, |bytes| Self::from_bytes(&bytes));
        if matches!(
            config.occurrence,
            Occurrence::Every | Occurrence::OncePerSession
        ) {
            return own;
        }
        let merged = subject.merged_states().into_iter();
        merged.fold(own, |own, other| {
            own.unite(Self::from_bytes(&other), config.occurrence)
        })
    }

    /// One state for both. The session is its own.
    fn unite(mut self, other: Self, occurrence: Occurrence) -> Self {
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

    pub(super) fn save(&self, subject: &Subject<'_>) {
        subject.set_state_bytes(&self.to_bytes());
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let Some((flags, rest)) = bytes.split_first() else {
            return Self::default();
        };
        let (numbers, _) = rest.as_chunks::<4>();
        let mut numbers = numbers.iter().copied().map(u32::from_le_bytes);
        Self {
            session: if *flags & HAS_SESSION == 0 {
                None
            } else {
                numbers.next()
            },
            numbers: numbers.collect(),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let flag = if self.session.is_some() {
            HAS_SESSION
        } else {
            0
        };
        let numbers = self.session.iter().chain(&self.numbers);
        let numbers = numbers.flat_map(|number| number.to_le_bytes());
        std::iter::once(flag).chain(numbers).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_survives_its_bytes() {
        for session in [None, Some(0), Some(u32::MAX)] {
            let state = State {
                session,
                numbers: vec![0, 1, u32::MAX],
            };
            assert_eq!(State::from_bytes(&state.to_bytes()), state);
        }
        assert_eq!(State::from_bytes(&[]), State::default());
        assert_eq!(State::from_bytes(&[63]), State::default());
    }

    #[test]
    fn a_thousand_times_fit() {
        assert!(
            State {
                session: Some(1),
                numbers: vec![7; 1_000]
            }
            .to_bytes()
            .len()
                <= 4_096
        );
    }
}
