//! How often a campaign may reach one person (contract 4 and 8).
//!
//! Every cap and pause is a *cap window*: at most so many in the last so long, of the campaign or of all of its kind.
//! Each counts by itself.

use std::time::Duration;

use nudge_db::Timestamp;
use nudge_platform::field_error::FieldError;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::Suppression;
use crate::campaign::Kind;
use crate::settings::{Cap, Frequency};

/// How long what was issued counts before it was displayed (contract 4).
pub const RESERVED: Duration = Duration::from_mins(10);
/// The largest number of a cap. Counting never looks at more.
const MOST: i64 = 1_000;
/// The longest window and pause, in days.
const MOST_DAYS: i64 = 365;

/// A campaign's `frequencyCap`, compiled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrequencyCap {
    /// How many one person gets, and in what time; without a time, ever.
    pub per_subject: Option<(u32, Option<Duration>)>,
    /// The pause after the campaign itself.
    pub cooldown_self: Option<Duration>,
    /// The pause after any campaign of its kind.
    pub cooldown_same_type: Option<Duration>,
    /// Whether the app's caps do not hold for it. The app's pause between presentations does.
    pub ignore_global_cap: bool,
}

/// Whose presentations a cap window counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// A campaign's.
    Campaign(Uuid),
    /// Those of all campaigns of a kind.
    Kind(Kind),
    /// Everything that SDKs present, of whichever kind.
    Presented,
}

/// At most so many in the last so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CapWindow {
    /// What a firing past it is suppressed by.
    pub reason: Suppression,
    /// What is counted.
    pub scope: Scope,
    /// How long what was presented counts; without, for ever.
    pub window: Option<Duration>,
    /// How many there may be.
    pub max: u32,
}

impl CapWindow {
    /// Presentations after this instant count.
    pub fn since(&self, now: Timestamp) -> Timestamp {
        self.window
            .map_or(Timestamp(i64::MIN), |window| now.minus(window))
    }

    /// Whether what a campaign of a kind presented at an instant counts.
    pub fn counts(&self, campaign_id: Uuid, kind: Kind, at: Timestamp, now: Timestamp) -> bool {
        let concerned = match self.scope {
            Scope::Campaign(id) => id == campaign_id,
            Scope::Kind(counted) => counted == kind,
            Scope::Presented => kind.is_presented(),
        };
        concerned && at > self.since(now)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    per_subject: Option<PerSubject>,
    cooldown_days: Option<CooldownDays>,
    #[serde(default)]
    ignore_global_cap: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PerSubject {
    max: i64,
    window_days: WindowDays,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a whole number of days from 1 to 365, or \"lifetime\""
)]
enum WindowDays {
    Days(#[serde(deserialize_with = "nudge_platform::json::whole_number")] i64),
    Ever(Lifetime),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Lifetime {
    Lifetime,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CooldownDays {
    #[serde(rename = "self")]
    of_itself: Option<i64>,
    same_type: Option<i64>,
}

impl FrequencyCap {
    /// Reads a `frequencyCap`; `place` is its pointer.
    pub fn read(cap: Option<&Value>, place: &str) -> Result<Self, Vec<FieldError>> {
        let Some(cap) = cap else {
            return Ok(Self::default());
        };
        let written: Written =
            nudge_platform::json::shape(cap.clone(), place).map_err(|error| vec![error])?;
        let mut errors = Vec::new();
        let mut within = |pointer: &str, value: i64, least: i64, most: i64| {
            if !(least..=most).contains(&value) {
                let detail = format!("must be {least} to {most}");
                let pointer = format!("{place}{pointer}");
                errors.push(FieldError::new(pointer, "out_of_range", detail));
            }
        };
        let mut per_subject = None;
        if let Some(of_subject) = written.per_subject {
            within("/perSubject/max", of_subject.max, 1, MOST);
            let window = match of_subject.window_days {
                WindowDays::Ever(Lifetime::Lifetime) => None,
                WindowDays::Days(number) => {
                    within("/perSubject/windowDays", number, 1, MOST_DAYS);
                    days(number)
                }
            };
            let max = u32::try_from(of_subject.max).unwrap_or_default();
            per_subject = Some((max, window));
        }
        let mut pause = |pointer: &str, number: Option<i64>| {
            let number = number?;
            within(pointer, number, 0, MOST_DAYS);
            days(number)
        };
        let cooldown = written.cooldown_days;
        let cooldown_self = cooldown.as_ref().and_then(|cooldown| cooldown.of_itself);
        let cooldown_self = pause("/cooldownDays/self", cooldown_self);
        let cooldown_same_type = cooldown.and_then(|cooldown| cooldown.same_type);
        let cooldown_same_type = pause("/cooldownDays/sameType", cooldown_same_type);
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Self {
            per_subject,
            cooldown_self,
            cooldown_same_type,
            ignore_global_cap: written.ignore_global_cap,
        })
    }

    /// Every cap window that a firing of a campaign has to pass, those of the campaign first.
    pub fn cap_windows(&self, campaign_id: Uuid, kind: Kind, app: &Frequency) -> Vec<CapWindow> {
        let own = Scope::Campaign(campaign_id);
        let cap_window = |reason, scope, window, max| CapWindow {
            reason,
            scope,
            window,
            max,
        };
        let mut cap_windows = Vec::new();
        if let Some((max, window)) = self.per_subject {
            cap_windows.push(cap_window(Suppression::FrequencyCap, own, window, max));
        }
        if let Some(pause) = self.cooldown_self {
            cap_windows.push(cap_window(Suppression::Cooldown, own, Some(pause), 1));
        }
        let kin = Scope::Kind(kind);
        if let Some(pause) = self.cooldown_same_type {
            cap_windows.push(cap_window(
                Suppression::CooldownSameType,
                kin,
                Some(pause),
                1,
            ));
        }
        let cap = match kind {
            Kind::Survey => app.surveys,
            Kind::Push => app.push,
            Kind::InApp => app.in_app,
        };
        if let Some(Cap { max, window_days }) = cap.filter(|_| !self.ignore_global_cap) {
            let max = u32::try_from(max).unwrap_or(u32::MAX);
            cap_windows.push(cap_window(
                Suppression::GlobalCap,
                kin,
                days(window_days),
                max,
            ));
        }
        let seconds = u64::try_from(app.min_seconds_between_presentations).unwrap_or_default();
        // A push message is shown by the device, when the person looks at it; it is no presentation.
        if kind.is_presented() && seconds > 0 {
            let pause = Duration::from_secs(seconds);
            cap_windows.push(cap_window(
                Suppression::Pause,
                Scope::Presented,
                Some(pause),
                1,
            ));
        }
        cap_windows
    }
}

/// So many days; none where a cap can't have them.
fn days(number: i64) -> Option<Duration> {
    let number = Some(number).filter(|days| (1..=MOST_DAYS).contains(days))?;
    let days = u64::try_from(number).ok()?;
    Some(Duration::from_hours(24 * days))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(cap: &Value) -> Result<FrequencyCap, Vec<String>> {
        FrequencyCap::read(Some(cap), "")
            .map_err(|errors| errors.into_iter().map(|error| error.pointer).collect())
    }

    #[test]
    fn ranges_hold_at_their_limits_and_one_past_them() {
        for (max, window) in [(1, json!(1)), (1_000, json!(365)), (3, json!("lifetime"))] {
            let cap = json!({"perSubject": {"max": max, "windowDays": window}});
            assert!(read(&cap).is_ok(), "{cap}");
        }
        for (max, window, pointer) in [
            (0, json!(1), "/perSubject/max"),
            (1_001, json!(1), "/perSubject/max"),
            (1, json!(0), "/perSubject/windowDays"),
            (1, json!(366), "/perSubject/windowDays"),
            (1, json!(213_503_982_334_602_i64), "/perSubject/windowDays"),
            (1, json!(i64::MAX), "/perSubject/windowDays"),
            (1, json!("ever"), "/perSubject/windowDays"),
        ] {
            let cap = json!({"perSubject": {"max": max, "windowDays": window}});
            assert_eq!(read(&cap).unwrap_err(), [pointer], "{cap}");
        }
        assert!(read(&json!({"cooldownDays": {"self": 0, "sameType": 365}})).is_ok());
        for name in ["self", "sameType"] {
            for days in [-1, 366, 213_503_982_334_602, i64::MAX] {
                let cap = json!({"cooldownDays": {name: days}});
                let pointer = format!("/cooldownDays/{name}");
                assert_eq!(read(&cap).unwrap_err(), [pointer], "{cap}");
            }
        }
    }

    #[test]
    fn each_clock_counts_by_itself() {
        let cap = read(&json!({
            "perSubject": {"max": 2, "windowDays": "lifetime"},
            "cooldownDays": {"self": 7, "sameType": 1},
        }))
        .unwrap();
        let app = Frequency {
            surveys: Some(Cap {
                max: 3,
                window_days: 30,
            }),
            push: None,
            in_app: None,
            min_seconds_between_presentations: 60,
        };
        let id = Uuid::from_u128(1);
        let reasons = |cap: &FrequencyCap, kind: Kind| -> Vec<&str> {
            let cap_windows = cap.cap_windows(id, kind, &app);
            cap_windows
                .iter()
                .map(|cap_window| cap_window.reason.name())
                .collect()
        };
        assert_eq!(
            reasons(&cap, Kind::Survey),
            [
                "frequency_cap",
                "cooldown",
                "cooldown_same_type",
                "global_cap",
                "pause"
            ]
        );
        let cap = FrequencyCap {
            ignore_global_cap: true,
            ..FrequencyCap::default()
        };
        assert_eq!(reasons(&cap, Kind::Survey), ["pause"]);
        assert!(reasons(&cap, Kind::Push).is_empty());
    }

    #[test]
    fn what_lies_as_far_back_as_the_window_is_long_no_longer_counts() {
        let id = Uuid::from_u128(1);
        let cap_window = CapWindow {
            reason: Suppression::Cooldown,
            scope: Scope::Campaign(id),
            window: Some(Duration::from_secs(10)),
            max: 1,
        };
        let now = Timestamp::from_seconds(100);
        let at = |seconds| Timestamp::from_seconds(seconds);
        assert!(cap_window.counts(id, Kind::Survey, Timestamp(at(90).0 + 1), now));
        assert!(!cap_window.counts(id, Kind::Survey, at(90), now));
        assert!(!cap_window.counts(Uuid::nil(), Kind::Survey, now, now));
    }

    #[test]
    fn the_apps_pause_counts_what_is_presented_of_any_kind() {
        let cap_window = CapWindow {
            reason: Suppression::Pause,
            scope: Scope::Presented,
            window: Some(Duration::from_secs(10)),
            max: 1,
        };
        let now = Timestamp::from_seconds(100);
        let counted = |kind| cap_window.counts(Uuid::nil(), kind, now, now);
        assert!(counted(Kind::Survey) && counted(Kind::InApp) && !counted(Kind::Push));
    }
}
