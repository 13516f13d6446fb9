//! Which country somebody is in, by time zone or locale.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A country a line: its code of ISO 3166, and the names of its time zones with those that they had before. Made of `zone.tab`
/// of the time zone database, which is in the public domain. A zone that ships and computers without a place have is not
/// in it.
const ZONES: &str = include_str!("zones.txt");

/// The country of an IANA time zone: the one that its city is in. Names of zones are the same in either case.
pub(super) fn country(zone: &str) -> Option<&'static str> {
    static COUNTRIES: LazyLock<HashMap<String, &str>> = LazyLock::new(|| {
        ZONES
            .lines()
            .filter_map(|line| line.split_once(' '))
            .flat_map(|(country, zones)| {
                let zones = zones.split(' ');
                zones.map(move |zone| (zone.to_ascii_lowercase(), country))
            })
            .collect()
    });
    COUNTRIES.get(&zone.to_ascii_lowercase()).copied()
}

/// The region of a locale, as of `de-AT` or `zh_Hant_TW` (BCP 47; a region of three digits is no country).
pub(super) fn region(locale: &str) -> Option<String> {
    let parts = locale.split(['-', '_', '.', '@']).skip(1);
    // What comes after a single letter or digit says something else.
    let mut parts = parts.take_while(|part| part.len() > 1);
    let region = parts.find(|part| part.len() == 2)?;
    let is_country = region.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_country.then(|| region.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_the_country_of_their_city() {
        for (zone, expected) in [
            ("Europe/Vienna", "AT"),
            ("europe/vienna", "AT"),
            ("Asia/Kolkata", "IN"),
            // What many browsers still call it.
            ("Asia/Calcutta", "IN"),
            ("America/Argentina/Buenos_Aires", "AR"),
            ("US/Pacific", "US"),
        ] {
            assert_eq!(country(zone), Some(expected), "{zone}");
        }
        for zone in ["UTC", "Etc/GMT+5", "", "Vienna", "AT"] {
            assert_eq!(country(zone), None, "{zone}");
        }
    }

    #[test]
    fn locales_have_the_country_of_their_region() {
        for (locale, expected) in [
            ("de-AT", Some("AT")),
            ("de_at", Some("AT")),
            ("zh-Hant-TW", Some("TW")),
            ("sl-rozaj-IT", Some("IT")),
            ("en_US.UTF-8", Some("US")),
            ("en-US-u-ca-buddhist", Some("US")),
            ("de", None),
            ("es-419", None),
            ("ar-u-nu-latn", None),
            ("en-x-us", None),
            ("", None),
        ] {
            assert_eq!(region(locale).as_deref(), expected, "{locale}");
        }
    }

    #[test]
    fn each_line_is_a_country_and_its_zones() {
        for line in ZONES.lines() {
            let mut words = line.split(' ');
            let code = words.next().unwrap();
            assert!(code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase()));
            let zones: Vec<&str> = words.collect();
            assert!(
                !zones.is_empty() && zones.iter().all(|zone| zone.contains('/')),
                "{line}"
            );
        }
    }
}
