//! What an app can set (contract 13).

pub mod http;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::FieldError;

const DAY_SECONDS: i64 = 24 * 3600;
/// The longest window of event times, in seconds: ten years.
const MOST_WINDOW: i64 = 3650 * DAY_SECONDS;
/// Origins and privacy keys of an app.
const MOST_ORIGINS: usize = 100;
const MOST_KEYS: usize = 1_000;
/// The longest property key, in characters (specification 8).
const MOST_KEY: usize = 120;
/// The longest origin, in bytes: a scheme, a host name of 253, a port.
const MOST_ORIGIN: usize = 300;

/// An app's settings. Missing parts have their defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// What ingest takes.
    pub ingest: Ingest,
    /// Whether SDKs send lifecycle events by themselves.
    pub lifecycle_events: bool,
    /// Whether consent must be given before anything is stored or shown.
    pub consent: Consent,
    /// Which properties may be stored.
    pub privacy: Privacy,
    /// How often people are asked or messaged.
    pub frequency: Frequency,
    /// When nobody is disturbed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHours>,
    /// What happens when plugins fail.
    pub plugins: Plugins,
    /// The pages that may read the SDK routes' answers: origins, or `*` for all.
    pub allowed_origins: Vec<String>,
    /// How long things are kept.
    pub retention: Retention,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ingest: Ingest::default(),
            lifecycle_events: true,
            consent: Consent::default(),
            privacy: Privacy::default(),
            frequency: Frequency::default(),
            quiet_hours: None,
            plugins: Plugins::default(),
            allowed_origins: vec!["*".to_owned()],
            retention: Retention::default(),
        }
    }
}

/// Settings of ingest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Ingest {
    /// How old an event may be.
    pub past_window_seconds: i64,
    /// How far ahead of the server's clock an event may be.
    pub future_window_seconds: i64,
    /// Whether a public write key is enough for the server-side shape.
    pub allow_unverified_server_events: bool,
}

impl Default for Ingest {
    fn default() -> Self {
        Self {
            past_window_seconds: 30 * DAY_SECONDS,
            future_window_seconds: DAY_SECONDS,
            allow_unverified_server_events: false,
        }
    }
}

/// Settings of consent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Consent {
    /// Whether consent counts as absent until it is given.
    pub required: bool,
}

/// Settings of privacy (contract 5).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Privacy {
    /// The only property keys that backends may store; without it, all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_keys: Option<Vec<String>>,
    /// Property keys that are never stored.
    pub deny_keys: Vec<String>,
}

/// How often a person is asked or messaged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Frequency {
    /// Surveys that one person sees; without it, any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surveys: Option<Cap>,
    /// Push messages that one person gets; without it, any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<Cap>,
    /// The pause between two presentations.
    pub min_seconds_between_presentations: i64,
}

/// A number in a window of days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cap {
    /// How many.
    pub max: i64,
    /// In how many days.
    pub window_days: i64,
}

/// Hours of the day, in the person's own time zone, in which nobody is disturbed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuietHours {
    /// Their begin, `HH:MM`.
    pub from: String,
    /// Their end, `HH:MM`; the next day's where it is not after the begin.
    pub to: String,
    /// What becomes of a message that falls into them.
    pub on_quiet: OnQuiet,
}

/// What becomes of a message in quiet hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnQuiet {
    /// It waits for their end.
    Defer,
    /// It is not sent.
    Drop,
}

/// Settings of plugins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Plugins {
    /// The part of failed calls past which a new version is rolled back, over 0 to 1.
    pub max_failure_rate: f64,
    /// What becomes of events while the validation plugin fails.
    pub validation_failure: ValidationFailure,
}

impl Default for Plugins {
    fn default() -> Self {
        Self {
            max_failure_rate: 0.5,
            validation_failure: ValidationFailure::default(),
        }
    }
}

/// What becomes of events while the validation plugin fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValidationFailure {
    /// They are rejected and can be sent again.
    #[default]
    Closed,
    /// They are accepted unchecked.
    Open,
}

/// How long things are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Retention {
    /// Days after its timestamp that an event is kept; without it, for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_days: Option<i64>,
    /// Days after its receipt that a dead letter is kept.
    pub dead_letters_days: i64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            events_days: None,
            dead_letters_days: 30,
        }
    }
}

impl Settings {
    /// Settings in which nothing that can be absent is: its keys are all keys.
    fn with_everything() -> Self {
        let cap = Some(Cap {
            max: 1,
            window_days: 1,
        });
        let mut every = Self::default();
        every.privacy.allow_keys = Some(Vec::new());
        every.frequency.surveys = cap;
        every.frequency.push = cap;
        every.quiet_hours = Some(QuietHours {
            from: String::new(),
            to: String::new(),
            on_quiet: OnQuiet::Defer,
        });
        every.retention.events_days = Some(1);
        every
    }

    /// What is out of range.
    fn check(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut within = |pointer: &str, value: i64, least: i64, most: i64| {
            if !(least..=most).contains(&value) {
                let detail = format!("must be {least} to {most}");
                errors.push(FieldError::new(pointer, "out_of_range", detail));
            }
        };
        let ingest = &self.ingest;
        within(
            "/ingest/pastWindowSeconds",
            ingest.past_window_seconds,
            1,
            MOST_WINDOW,
        );
        within(
            "/ingest/futureWindowSeconds",
            ingest.future_window_seconds,
            0,
            MOST_WINDOW,
        );
        let frequency = &self.frequency;
        for (name, cap) in [("surveys", frequency.surveys), ("push", frequency.push)] {
            if let Some(cap) = cap {
                within(&format!("/frequency/{name}/max"), cap.max, 1, 1_000);
                within(
                    &format!("/frequency/{name}/windowDays"),
                    cap.window_days,
                    1,
                    365,
                );
            }
        }
        within(
            "/frequency/minSecondsBetweenPresentations",
            frequency.min_seconds_between_presentations,
            0,
            30 * DAY_SECONDS,
        );
        if let Some(days) = self.retention.events_days {
            within("/retention/eventsDays", days, 1, 3650);
        }
        within(
            "/retention/deadLettersDays",
            self.retention.dead_letters_days,
            1,
            365,
        );
        let rate = self.plugins.max_failure_rate;
        if !(rate > 0.0 && rate <= 1.0) {
            let detail = "must be over 0 and at most 1";
            errors.push(FieldError::new(
                "/plugins/maxFailureRate",
                "out_of_range",
                detail,
            ));
        }
        self.check_quiet_hours(&mut errors);
        self.check_lists(&mut errors);
        errors
    }

    fn check_quiet_hours(&self, errors: &mut Vec<FieldError>) {
        let Some(quiet) = &self.quiet_hours else {
            return;
        };
        for (name, time) in [("from", &quiet.from), ("to", &quiet.to)] {
            if !is_time_of_day(time) {
                let detail = "a time of day, 00:00 to 23:59";
                errors.push(FieldError::new(
                    format!("/quietHours/{name}"),
                    "invalid",
                    detail,
                ));
            }
        }
        if quiet.from == quiet.to {
            let detail = "quiet hours end at another time than they begin";
            errors.push(FieldError::new("/quietHours/to", "invalid", detail));
        }
    }

    fn check_lists(&self, errors: &mut Vec<FieldError>) {
        let mut list =
            |pointer: &str, items: &[String], most: usize, good: fn(&str) -> bool, detail: &str| {
                if items.len() > most {
                    let detail = format!("at most {most} items");
                    errors.push(FieldError::new(pointer, "out_of_range", detail));
                }
                for (index, item) in items.iter().enumerate().take(most) {
                    if !good(item) {
                        errors.push(FieldError::new(
                            format!("{pointer}/{index}"),
                            "invalid",
                            detail,
                        ));
                    }
                }
            };
        let origin = "`*`, or an origin in lower case without a path: https://shop.example";
        list(
            "/allowedOrigins",
            &self.allowed_origins,
            MOST_ORIGINS,
            is_origin,
            origin,
        );
        let key = "a property key has 1 to 120 characters";
        list(
            "/privacy/denyKeys",
            &self.privacy.deny_keys,
            MOST_KEYS,
            is_property_key,
            key,
        );
        if let Some(allowed) = &self.privacy.allow_keys {
            list(
                "/privacy/allowKeys",
                allowed,
                MOST_KEYS,
                is_property_key,
                key,
            );
        }
    }
}

fn is_time_of_day(text: &str) -> bool {
    let number = |text: &str| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u32>().ok()).flatten()
    };
    text.split_once(':').is_some_and(|(hour, minute)| {
        number(hour).is_some_and(|hour| hour < 24)
            && number(minute).is_some_and(|minute| minute < 60)
    })
}

fn is_property_key(key: &str) -> bool {
    (1..=MOST_KEY).contains(&key.chars().count())
}

/// Whether a text is `*` or an origin as browsers serialize it (RFC 6454, section 6.2).
fn is_origin(text: &str) -> bool {
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let scheme_is_good = scheme.starts_with(|first: char| first.is_ascii_lowercase())
        && scheme.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte)
        });
    let host_is_good = !rest.is_empty()
        && rest.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._:[]".contains(&byte)
        });
    text.len() <= MOST_ORIGIN && scheme_is_good && host_is_good
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(change: impl FnOnce(&mut Settings)) -> Vec<String> {
        let mut settings = Settings::default();
        change(&mut settings);
        settings
            .check()
            .into_iter()
            .map(|error| error.pointer)
            .collect()
    }

    fn cap(max: i64, window_days: i64) -> Cap {
        Cap { max, window_days }
    }

    #[test]
    fn ranges_hold_at_their_limits_and_one_past_them() {
        let none: [&str; 0] = [];
        assert_eq!(wrong(|_| {}), none);
        assert_eq!(
            wrong(|all| all.ingest.past_window_seconds = MOST_WINDOW),
            none
        );
        assert_eq!(
            wrong(|all| all.ingest.past_window_seconds = 0),
            ["/ingest/pastWindowSeconds"]
        );
        assert_eq!(wrong(|all| all.ingest.future_window_seconds = 0), none);
        assert_eq!(
            wrong(|all| all.ingest.future_window_seconds = -1),
            ["/ingest/futureWindowSeconds"]
        );
        assert_eq!(
            wrong(|all| all.frequency.surveys = Some(cap(1_000, 365))),
            none
        );
        assert_eq!(
            wrong(|all| all.frequency.surveys = Some(cap(0, 1))),
            ["/frequency/surveys/max"]
        );
        assert_eq!(
            wrong(|all| all.frequency.push = Some(cap(1, 366))),
            ["/frequency/push/windowDays"]
        );
        assert_eq!(wrong(|all| all.retention.events_days = Some(1)), none);
        assert_eq!(
            wrong(|all| all.retention.events_days = Some(0)),
            ["/retention/eventsDays"]
        );
        assert_eq!(
            wrong(|all| all.retention.dead_letters_days = 366),
            ["/retention/deadLettersDays"]
        );
        assert_eq!(wrong(|all| all.plugins.max_failure_rate = 1.0), none);
        for rate in [0.0, 1.01, -1.0, f64::NAN] {
            assert_eq!(
                wrong(|all| all.plugins.max_failure_rate = rate),
                ["/plugins/maxFailureRate"]
            );
        }
    }

    #[test]
    fn origins_are_as_browsers_send_them() {
        for good in [
            "*",
            "https://shop.example",
            "http://localhost:3000",
            "http://[::1]:8080",
            "capacitor://localhost",
        ] {
            assert!(is_origin(good), "{good}");
        }
        for bad in [
            "",
            "shop.example",
            "https://",
            "https://Shop.example",
            "https://shop.example/",
            "https://*.example",
            "null",
            "https://ü.example",
        ] {
            assert!(!is_origin(bad), "{bad}");
        }
    }

    #[test]
    fn quiet_hours_are_times_of_day_that_differ() {
        let hours = |from: &str, to: &str| {
            let quiet = QuietHours {
                from: from.to_owned(),
                to: to.to_owned(),
                on_quiet: OnQuiet::Defer,
            };
            wrong(|all| all.quiet_hours = Some(quiet))
        };
        let none: [&str; 0] = [];
        assert_eq!(hours("22:00", "07:30"), none);
        assert_eq!(
            hours("24:00", "07:60"),
            ["/quietHours/from", "/quietHours/to"]
        );
        assert_eq!(
            hours("7:00", "+1:00"),
            ["/quietHours/from", "/quietHours/to"]
        );
        assert_eq!(hours("07:00", "07:00"), ["/quietHours/to"]);
    }
}
