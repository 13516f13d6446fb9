//! Whom a campaign reaches, when and how often, as far as the host enforces it whatever a plugin says
//! (contract 8): the sample, the schedule, quiet hours and frequency caps.
//!
//! The rest of an audience is the trigger plugin's. Everything here is pure but for `store`.

pub mod caps;
mod clock_face;
pub mod sample;
pub mod schedule;

use serde_json::Value;
use strum::IntoStaticStr;

pub use caps::{CapWindow, FrequencyCap, Scope};
pub use clock_face::{Minute, is_zone};
use nudge_platform::field_error::FieldError;
pub use sample::Sample;
pub use schedule::{Opening, Quiet, Schedule};

/// What the host enforces of a campaign, compiled.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The part of the audience that it is for.
    pub sample: Sample,
    /// When it runs.
    pub schedule: Schedule,
    /// How often it reaches a person.
    pub cap: FrequencyCap,
}

impl Rules {
    /// Reads `audience`, `schedule` and `frequencyCap` of a campaign's body; pointers of errors are into that
    /// body. Of the audience only `samplePercent` is looked at.
    pub fn compile(
        audience: Option<&Value>,
        schedule: Option<&Value>,
        frequency_cap: Option<&Value>,
    ) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        let mut keep = |wrong: Vec<FieldError>| errors.extend(wrong);
        let sample = Sample::read(audience, "/audience").map_err(&mut keep);
        let schedule = Schedule::read(schedule, "/schedule").map_err(&mut keep);
        let cap = FrequencyCap::read(frequency_cap, "/frequencyCap").map_err(&mut keep);
        match (sample, schedule, cap) {
            (Ok(sample), Ok(schedule), Ok(cap)) => Ok(Self {
                sample,
                schedule,
                cap,
            }),
            _ => Err(errors),
        }
    }
}

/// Why the host let a firing have no effect. The names are in the database, in recipients' lists
/// (`suppressedBy`) and in explanations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Suppression {
    /// The subject has not agreed to be messaged, or no longer does.
    Consent,
    /// The schedule has not begun.
    NotStarted,
    /// The schedule is over.
    Ended,
    /// The local day is none of `daysOfWeek`.
    OutsideDays,
    /// The local time is in none of `timeWindows`.
    OutsideHours,
    /// Quiet hours, which drop what falls into them or never end.
    QuietHours,
    /// The campaign's own cap.
    FrequencyCap,
    /// The campaign's pause after itself.
    Cooldown,
    /// The campaign's pause after others of its kind.
    CooldownSameType,
    /// The app's cap on campaigns of this kind.
    GlobalCap,
    /// The app's pause between two presentations.
    Pause,
    /// A value that the message needs is missing.
    MissingData,
    /// The privacy policy withholds a value that the message needs.
    FilteredByPrivacy,
    /// A value of the message has another type than it is to have.
    TypeMismatch,
    /// With its values the message leads where none may.
    UrlNotAllowed,
    /// With its values the message is larger than one may be.
    PayloadTooLarge,
}

impl Suppression {
    /// Why a message is not made, by the [verdict](crate::push::verdict) about its values.
    pub fn of_verdict(reason: &str) -> Self {
        let all = [Self::FilteredByPrivacy, Self::TypeMismatch];
        let known = all.into_iter().find(|known| known.name() == reason);
        known.unwrap_or(Self::MissingData)
    }

    /// The reason's name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(body: &Value) -> Vec<String> {
        let part = |key: &str| body.get(key);
        match Rules::compile(part("audience"), part("schedule"), part("frequencyCap")) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.into_iter().map(|error| error.pointer).collect(),
        }
    }

    #[test]
    fn nothing_is_no_rule() {
        assert!(wrong(&json!({})).is_empty());
        assert!(wrong(&json!({"audience": {}, "schedule": {}, "frequencyCap": {}})).is_empty());
    }

    #[test]
    fn every_part_is_checked_with_pointers_into_the_body() {
        let body = json!({
            "audience": {"samplePercent": 101},
            "schedule": {"timezone": "Mars/Olympus", "daysOfWeek": ["someday"], "maxResponses": 0},
            "frequencyCap": {"perSubject": {"max": 0, "windowDays": 7}, "cooldownDays": {"self": 366}},
        });
        assert_eq!(
            wrong(&body),
            [
                "/audience/samplePercent",
                "/schedule/timezone",
                "/schedule/daysOfWeek/0",
                "/schedule/maxResponses",
                "/frequencyCap/perSubject/max",
                "/frequencyCap/cooldownDays/self",
            ]
        );
    }

    #[test]
    fn unknown_keys_are_refused() {
        let body = json!({"schedule": {"begin": 1}, "frequencyCap": {"perSubject": {"max": 1, "windowDays": 1, "x": 1}}});
        let errors =
            Rules::compile(None, body.get("schedule"), body.get("frequencyCap")).unwrap_err();
        assert!(errors.iter().all(|error| error.code == "unknown_key"));
        assert_eq!(errors.len(), 2);
    }
}
