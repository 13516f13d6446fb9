//! The pause that an answer asks for in `Retry-After` (RFC 9110, section 10.2.3).

use std::time::{Duration, UNIX_EPOCH};

use nudge_db::Timestamp;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// The longest pause that an answer can ask for.
const LONGEST: Duration = Duration::from_hours(24);

/// How long to wait from `now` on, where the header says so. What is over a day is a day.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?;
    parse(value.to_str().ok()?, now)
}

/// Reads seconds, or a date in each of its forms.
fn parse(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let asked = if digits {
        Duration::from_secs(value.parse().unwrap_or(u64::MAX))
    } else {
        let at = httpdate::parse_http_date(value).ok()?;
        let at = at.duration_since(UNIX_EPOCH).ok()?;
        Timestamp::default().plus(at).since(now)
    };
    Some(asked.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn a_receiver_may_ask_for_seconds_or_a_date() {
        // 1994-11-06T08:49:37Z, the RFC's own example.
        let now = Timestamp::from_seconds(784_111_777);
        for (value, seconds) in [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("86400", Some(86_400)),
            ("86401", Some(86_400)),
            ("99999999999999999999999", Some(86_400)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
            ("Sun Nov  6 08:50:37 1994", Some(60)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(86_400)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
        ] {
            let expected = seconds.map(Duration::from_secs);
            assert_eq!(parse(value, now), expected, "{value}");
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]);
            assert_eq!(retry_after(&headers, now), expected, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
