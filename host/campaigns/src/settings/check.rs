//! The ranges of settings.

use nudge_platform::config;
use nudge_platform::field_error::FieldError;

use super::{DAY_SECONDS, Plugins, Settings};
use crate::targeting::Minute;

/// The longest window of event times, in seconds: ten years.
const MOST_WINDOW: i64 = 3650 * DAY_SECONDS;
/// Origins and privacy keys of an app.
const MOST_ORIGINS: usize = 100;
const MOST_KEYS: usize = 1_000;
/// The longest property key, in characters (specification 8).
const MOST_KEY: usize = 120;
/// The longest origin, in bytes: a scheme, a host name of 253, a port.
const MOST_ORIGIN: usize = 300;

impl Settings {
    /// What is out of range.
    pub fn check(&self) -> Vec<FieldError> {
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
        self.check_frequency(&mut within);
        let retention = &self.retention;
        for (name, days, most) in [
            ("eventsDays", retention.events_days, 3650),
            ("deadLettersDays", Some(retention.dead_letters_days), 365),
            ("deliveriesDays", retention.deliveries_days, 365),
        ] {
            if let Some(days) = days {
                within(&format!("/retention/{name}"), days, 1, most);
            }
        }
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

    fn check_frequency(&self, within: &mut impl FnMut(&str, i64, i64, i64)) {
        let frequency = &self.frequency;
        for (name, cap) in [
            ("surveys", frequency.surveys),
            ("push", frequency.push),
            ("in_app", frequency.in_app),
        ] {
            if let Some(cap) = cap {
                within(&format!("/frequency/{name}/max"), cap.max, 1, 1_000);
                let days = format!("/frequency/{name}/windowDays");
                within(&days, cap.window_days, 1, 365);
            }
        }
        within(
            "/frequency/minSecondsBetweenPresentations",
            frequency.min_seconds_between_presentations,
            0,
            30 * DAY_SECONDS,
        );
    }

    /// Which limits of plugins are none that an app may set: apps lower what the server allows. One that was set before, when the
    /// server allowed more, is no mistake of this change.
    pub fn check_limits(&self, before: &Self, server: &config::Plugins) -> Vec<FieldError> {
        let server = Plugins::of_server(server).limits();
        let limits = self.plugins.limits().into_iter();
        let limits = limits.zip(before.plugins.limits()).zip(server);
        let changed = limits.filter(|((now, before), _)| now.1 != before.1);
        let refused = changed.filter_map(|(((name, given, least), _), (_, most, _))| {
            let (given, most) = (given?, most?);
            let detail = format!("must be {least} to {most}, which is what the server allows");
            let pointer = format!("/plugins/{name}");
            let is_good = (least.min(most)..=most).contains(&given);
            (!is_good).then(|| FieldError::new(pointer, "out_of_range", detail))
        });
        refused.collect()
    }

    fn check_quiet_hours(&self, errors: &mut Vec<FieldError>) {
        let Some(quiet) = &self.quiet_hours else {
            return;
        };
        for (name, time) in [("from", &quiet.from), ("to", &quiet.to)] {
            if Minute::parse(time).is_none() {
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
        let mut keys = |pointer: &str, keys: &[String]| {
            let detail = "a property key has 1 to 120 characters";
            check_list(pointer, keys, MOST_KEYS, is_property_key, detail, errors);
        };
        keys("/privacy/denyKeys", &self.privacy.deny_keys);
        if let Some(allowed) = &self.privacy.allow_keys {
            keys("/privacy/allowKeys", allowed);
        }
    }

    /// Which origins no browser sends. A list that was set before, when such origins were taken, is no mistake of this change.
    pub fn check_origins(&self, before: &Self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if self.allowed_origins != before.allowed_origins {
            check_list(
                "/allowedOrigins",
                &self.allowed_origins,
                MOST_ORIGINS,
                is_origin,
                "`*`, or an origin in lower case without a path, and without the default port: https://shop.example",
                &mut errors,
            );
        }
        errors
    }
}

fn check_list(
    pointer: &str,
    items: &[String],
    most: usize,
    good: fn(&str) -> bool,
    detail: &str,
    errors: &mut Vec<FieldError>,
) {
    if items.len() > most {
        let detail = format!("at most {most} items");
        errors.push(FieldError::new(pointer, "out_of_range", detail));
    }
    for (index, item) in items.iter().enumerate().take(most) {
        if !good(item) {
            let pointer = format!("{pointer}/{index}");
            errors.push(FieldError::new(pointer, "invalid", detail));
        }
    }
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
    let port_is_good = match scheme {
        "http" => is_port_but(80, rest),
        "https" => is_port_but(443, rest),
        _ => true,
    };
    text.len() <= MOST_ORIGIN && scheme_is_good && host_is_good && port_is_good
}

/// Whether a host ends in no port, or in one as browsers write it that is not the scheme's own, which they leave out.
fn is_port_but(default: u16, host: &str) -> bool {
    // The colons of an address of IPv6 are within brackets.
    let behind = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
    let Some((_, port)) = behind.split_once(':') else {
        return true;
    };
    let number = port.parse::<u16>();
    number.is_ok_and(|number| number != default && number.to_string() == port)
}

#[cfg(test)]
mod tests {
    use super::super::{Cap, OnQuiet, QuietHours};
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
    fn consent_that_is_required_is_absent_until_it_is_given() {
        for required in [false, true] {
            let consent = super::super::Consent { required };
            assert_eq!(consent.grants(None), !required);
            assert!(consent.grants(Some(true)) && !consent.grants(Some(false)));
        }
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
            "https://[::1]",
            "https://shop.example:80",
            "https://shop.example:65535",
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
            "https://shop.example:443",
            "https://[::1]:443",
            "http://localhost:80",
            "https://shop.example:0443",
            "https://shop.example:08443",
            "https://shop.example:65536",
            "https://shop.example:",
            "https://shop.example:a",
            "https://shop.example:1:2",
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
