//! Which versions of a plugin are in force, and how that changes. Pure.

use std::time::Duration;

use nudge_db::Timestamp;
use nudge_platform::secrets;
use uuid::Uuid;

/// How long a version that became active can be rolled back by the server itself (contract 12).
pub const PROBATION: Duration = Duration::from_mins(10);

/// A version and the digest of its component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// A semantic version.
    pub version: String,
    /// SHA-256, in hexadecimal.
    pub digest: String,
}

/// How a candidate is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// It sees what the active version sees; what it decides has no effect.
    Shadow,
    /// It decides about so many of a hundred subjects, 1 to 100.
    Canary(u8),
}

impl Strategy {
    /// The strategy's name in the API and the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shadow => "shadow",
            Self::Canary(_) => "canary",
        }
    }

    /// How many of a hundred subjects the candidate decides about.
    pub fn percent(self) -> Option<u8> {
        match self {
            Self::Shadow => None,
            Self::Canary(percent) => Some(percent),
        }
    }

    /// A canary for so many of a hundred subjects; none: that would be nobody, or more than there are.
    pub fn canary(percent: u8) -> Option<Self> {
        (1..=100)
            .contains(&percent)
            .then_some(Self::Canary(percent))
    }

    /// The strategy that a row of the database names.
    pub fn parse(name: &str, percent: Option<i64>) -> Option<Self> {
        match (name, percent) {
            ("shadow", None) => Some(Self::Shadow),
            ("canary", Some(percent)) => u8::try_from(percent).ok().and_then(Self::canary),
            _ => None,
        }
    }
}

/// Whether a canary that decides about `percent` of the subjects decides about this one. The same subjects
/// for every version of a plugin, and others for each plugin; who is in at 5 percent is in at 10.
pub fn in_canary(plugin: &str, subject: Uuid, percent: u8) -> bool {
    let hash = secrets::hash(&[b"canary", plugin.as_bytes(), subject.as_bytes()]);
    let number = hash
        .first_chunk()
        .map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes));
    number % 100 < u64::from(percent)
}

/// A version that is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The version.
    pub release: Release,
    /// How it is tried.
    pub strategy: Strategy,
    /// Since when.
    pub since: Timestamp,
}

/// Which versions of a plugin are in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// The version that decides.
    pub active: Option<Release>,
    /// Since when it does.
    pub activated_at: Option<Timestamp>,
    /// What decided before it: what a roll-back brings back.
    pub previous: Option<Release>,
    /// The version that is tried.
    pub candidate: Option<Candidate>,
}

/// A change that can't be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// A trial without a version that it is compared with.
    NothingActive,
    /// A trial of the version that is active.
    ActiveAlready,
    /// There is no candidate to be promoted.
    NoCandidate,
    /// There is no version to go back to.
    NoPrevious,
}

impl Rollout {
    /// Makes a version the active one at once. A candidate is given up.
    #[must_use]
    pub fn activate(self, release: Release, now: Timestamp) -> Self {
        if self.active.as_ref() == Some(&release) {
            return Self {
                candidate: None,
                ..self
            };
        }
        Self {
            active: Some(release),
            activated_at: Some(now),
            previous: self.active,
            candidate: None,
        }
    }

    /// Tries a version beside the active one, in place of any other candidate.
    pub fn try_out(
        self,
        release: Release,
        strategy: Strategy,
        now: Timestamp,
    ) -> Result<Self, Impossible> {
        match &self.active {
            None => return Err(Impossible::NothingActive),
            Some(active) if *active == release => return Err(Impossible::ActiveAlready),
            Some(_) => {}
        }
        Ok(Self {
            candidate: Some(Candidate {
                release,
                strategy,
                since: now,
            }),
            ..self
        })
    }

    /// Makes the candidate the active version.
    pub fn promote(mut self, now: Timestamp) -> Result<Self, Impossible> {
        let candidate = self.candidate.take().ok_or(Impossible::NoCandidate)?;
        Ok(self.activate(candidate.release, now))
    }

    /// Gives the candidate up, or without one brings back the version before. What is rolled back is not
    /// what the next roll-back brings.
    pub fn roll_back(mut self, now: Timestamp) -> Result<Self, Impossible> {
        if self.candidate.take().is_some() {
            return Ok(self);
        }
        let previous = self.previous.take().ok_or(Impossible::NoPrevious)?;
        Ok(Self {
            active: Some(previous),
            activated_at: Some(now),
            previous: None,
            candidate: None,
        })
    }

    /// Takes a version out that fails: a candidate is given up; a version that is active for less than
    /// [`PROBATION`] gives way to the one before, or to nothing. `since` is when it came into its role. None: it
    /// is not in that role any longer, or for too long.
    pub fn withdraw(mut self, version: &str, since: Timestamp, now: Timestamp) -> Option<Self> {
        let is_candidate = |candidate: &Candidate| {
            candidate.release.version == version && candidate.since == since
        };
        if self.candidate.as_ref().is_some_and(is_candidate) {
            self.candidate = None;
            return Some(self);
        }
        let active = self.active.as_ref()?;
        let is_active = active.version == version && self.activated_at == Some(since);
        if !is_active || now.since(since) >= PROBATION {
            return None;
        }
        let previous = self.previous.take();
        Some(Self {
            activated_at: previous.as_ref().map(|_| now),
            active: previous,
            previous: None,
            // It was compared with a version that is gone.
            candidate: None,
        })
    }

    /// What a version is needed for.
    pub fn part_of(&self, version: &str) -> Option<Part> {
        let candidate = self.candidate.as_ref().map(|candidate| &candidate.release);
        let parts = [
            (self.active.as_ref(), Part::Active),
            (candidate, Part::Candidate),
            (self.previous.as_ref(), Part::Previous),
        ];
        let mut parts = parts.into_iter();
        let is_it = |release: &Release| release.version == version;
        let found = parts.find(|(release, _)| release.is_some_and(is_it));
        found.map(|(_, part)| part)
    }
}

/// What a version of a plugin is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It decides.
    Active,
    /// It is tried.
    Candidate,
    /// A roll-back would bring it back.
    Previous,
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, proptest};

    use super::*;

    const NOW: Timestamp = Timestamp(1);
    const LATER: Timestamp = Timestamp(2);

    fn release(version: &str) -> Release {
        Release {
            version: version.to_owned(),
            digest: format!("digest of {version}"),
        }
    }

    fn active(version: &str) -> Rollout {
        Rollout::default().activate(release(version), NOW)
    }

    #[test]
    fn activating_remembers_what_was_active() {
        let rollout = active("1.0.0").activate(release("2.0.0"), LATER);
        assert_eq!(rollout.active, Some(release("2.0.0")));
        assert_eq!(rollout.previous, Some(release("1.0.0")));
        assert_eq!(rollout.activated_at, Some(LATER));
        assert_eq!(
            rollout.clone().activate(release("2.0.0"), Timestamp(3)),
            rollout
        );
        assert_eq!(rollout.part_of("1.0.0"), Some(Part::Previous));
        assert_eq!(rollout.part_of("2.0.0"), Some(Part::Active));
        assert_eq!(rollout.part_of("3.0.0"), None);
    }

    #[test]
    fn a_roll_back_brings_the_version_before_once() {
        let rollout = active("1.0.0").activate(release("2.0.0"), NOW);
        let back = rollout.roll_back(LATER).unwrap();
        assert_eq!(back.active, Some(release("1.0.0")));
        assert_eq!(back.activated_at, Some(LATER));
        assert_eq!(back.roll_back(LATER), Err(Impossible::NoPrevious));
    }

    #[test]
    fn a_candidate_is_promoted_or_given_up() {
        let trial = active("1.0.0")
            .try_out(release("2.0.0"), Strategy::Canary(5), NOW)
            .unwrap();
        assert_eq!(trial.active, Some(release("1.0.0")));
        assert_eq!(trial.part_of("2.0.0"), Some(Part::Candidate));
        let promoted = trial.clone().promote(LATER).unwrap();
        assert_eq!(promoted, active("1.0.0").activate(release("2.0.0"), LATER));
        assert_eq!(trial.roll_back(LATER), Ok(active("1.0.0")));
        assert_eq!(active("1.0.0").promote(LATER), Err(Impossible::NoCandidate));
    }

    #[test]
    fn what_fails_is_withdrawn_while_it_is_new() {
        let two = active("1.0.0").activate(release("2.0.0"), LATER);
        let withdraw =
            |rollout: &Rollout, version, since, now| rollout.clone().withdraw(version, since, now);
        let end = LATER.plus(PROBATION);
        let back = withdraw(&two, "2.0.0", LATER, Timestamp(end.0 - 1)).unwrap();
        assert_eq!(back.active, Some(release("1.0.0")));
        assert_eq!((back.previous.clone(), &back.candidate), (None, &None));
        assert_eq!(withdraw(&two, "2.0.0", LATER, end), None);
        assert_eq!(withdraw(&two, "2.0.0", NOW, LATER), None, "an earlier term");
        assert_eq!(withdraw(&two, "1.0.0", NOW, LATER), None);
        assert_eq!(withdraw(&back, "2.0.0", LATER, end), None, "once");

        let since = back.activated_at.unwrap();
        let nothing = withdraw(&back, "1.0.0", since, since).unwrap();
        assert_eq!(nothing, Rollout::default());

        let trial = two
            .try_out(release("3.0.0"), Strategy::Shadow, end)
            .unwrap();
        let late = end.plus(PROBATION);
        let given_up = withdraw(&trial, "3.0.0", end, late).unwrap();
        assert_eq!(given_up.active, Some(release("2.0.0")));
        assert_eq!(given_up.candidate, None);
    }

    #[test]
    fn a_trial_takes_two_versions() {
        let trial = |rollout: Rollout| rollout.try_out(release("1.0.0"), Strategy::Shadow, NOW);
        assert_eq!(trial(Rollout::default()), Err(Impossible::NothingActive));
        assert_eq!(trial(active("1.0.0")), Err(Impossible::ActiveAlready));
    }

    #[test]
    fn strategies_are_read_as_they_are_written() {
        for strategy in [Strategy::Shadow, Strategy::Canary(1), Strategy::Canary(100)] {
            let percent = strategy.percent().map(i64::from);
            assert_eq!(Strategy::parse(strategy.name(), percent), Some(strategy));
        }
        for percent in [None, Some(0), Some(101), Some(-1)] {
            assert_eq!(Strategy::parse("canary", percent), None);
        }
    }

    #[test]
    fn a_canary_has_about_its_share() {
        let subjects = (0..10_000_u128).map(Uuid::from_u128);
        let share = subjects
            .filter(|subject| in_canary("cart", *subject, 20))
            .count();
        assert!((1_800..2_200).contains(&share), "{share}");
    }

    proptest! {
        #[test]
        fn a_larger_canary_has_the_smaller_one(subject: u128, small in 1_u8..100, more in 0_u8..50) {
            let subject = Uuid::from_u128(subject);
            let large = small.saturating_add(more).min(100);
            prop_assert!(!in_canary("cart", subject, small) || in_canary("cart", subject, large));
            prop_assert!(!in_canary("cart", subject, 0) && in_canary("cart", subject, 100));
        }
    }
}
