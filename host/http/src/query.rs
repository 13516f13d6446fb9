//! Parameters of query strings that several routes share.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use chrono::NaiveDate;
use nudge_db::Timestamp;
use nudge_platform::clock;
use nudge_platform::field_error::FieldError;
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// The parsed query string; one that can't be parsed is a contract violation.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parse(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

/// Parameters that are named at once where they are missing or can't be read.
const MOST_NAMED: usize = 8;
/// Values of which one can be read as nearly any parameter, so that what is wrong beside it is found.
const STAND_INS: [&str; 4] = [
    "00000000-0000-0000-0000-000000000000",
    "1",
    "2026-01-01T00:00:00Z",
    "true",
];

/// Parses a query string. All parameters that are missing or can't be read are named.
fn parse<T: DeserializeOwned>(query: &str) -> Result<T, ApiError> {
    let first = match parse_once(query) {
        Ok(parsed) => return Ok(parsed),
        Err(error) => error,
    };
    let mut errors = first.errors().to_vec();
    let mut known = query.to_owned();
    while errors.len() < MOST_NAMED
        && let Some(last) = errors.last()
        && let Some((with, next)) = after::<T>(&known, &last.pointer)
    {
        if errors.iter().any(|error| error.pointer == next.pointer) {
            break;
        }
        known = with;
        errors.push(next);
    }
    Err(ApiError::fields(first.code(), errors))
}

/// What is wrong besides a parameter, and the query string without what is wrong with that one.
fn after<T: DeserializeOwned>(query: &str, pointer: &str) -> Option<(String, FieldError)> {
    let name = pointer.strip_prefix('/')?;
    let others = || {
        let pairs = form_urlencoded::parse(query.as_bytes());
        pairs.filter(|(key, _)| nudge_platform::json::escaped(key) != name)
    };
    let with = STAND_INS.iter().map(|value| Some(*value)).chain([None]);
    for value in with {
        let mut pairs = form_urlencoded::Serializer::new(String::new());
        pairs.extend_pairs(others());
        if let Some(value) = value {
            pairs.append_pair(name, value);
        }
        let query = pairs.finish();
        let error = match parse_once::<T>(&query) {
            // Nothing else is wrong.
            Ok(_) => return None,
            Err(error) => error.errors().first().cloned()?,
        };
        if error.pointer != pointer {
            return Some((query, error));
        }
    }
    None
}

/// What is said of a parameter that is missing.
const MISSING: &str = "is required";

/// Parses a query string. The error's pointer names the parameter, as that of a limit out of range does.
fn parse_once<T: DeserializeOwned>(query: &str) -> Result<T, ApiError> {
    let pairs = || form_urlencoded::parse(query.as_bytes());
    // No text of ours has a NUL in it, and PostgreSQL takes none.
    let has_nul = |part: &str| part.contains('\0');
    if let Some((name, _)) = pairs().find(|(name, text)| has_nul(name) || has_nul(text)) {
        let name = name.replace('\0', "");
        return Err(invalid(
            &nudge_platform::json::escaped(&name),
            "has a NUL character",
        ));
    }
    let pairs = serde_urlencoded::Deserializer::new(pairs());
    serde_path_to_error::deserialize(pairs).map_err(|error| {
        let reason = error.inner().to_string();
        // What is missing or there twice has no place of its own.
        let mut named = reason.split('`');
        let about_name = named
            .next()
            .is_some_and(|words| matches!(words, "missing field " | "duplicate field "));
        match named.next().filter(|_| about_name) {
            Some(name) if reason.starts_with("missing") => invalid(name, MISSING),
            Some(name) => invalid(name, "is given twice"),
            None => {
                let pointer = nudge_platform::json::pointer(error.path());
                let name = pointer.trim_start_matches('/');
                if reason.starts_with("UUID parsing failed") {
                    return invalid(name, "can't be read: it is a UUID");
                }
                invalid(name, &format!("can't be read: {reason}"))
            }
        }
    })
}

/// What is wrong with a parameter; `name` as it stands in a JSON pointer.
fn invalid(name: &str, what: &str) -> ApiError {
    let (pointer, detail) = if name.is_empty() {
        (String::new(), format!("a name {what}"))
    } else {
        (format!("/{name}"), format!("`{name}` {what}"))
    };
    ApiError::field(pointer, "invalid_query", detail)
}

/// Where a range of time begins, if that was said: an ISO 8601 instant with an offset, or a day by UTC. `place` is where
/// it was said, as in a JSON pointer but for its first slash.
pub fn begin(place: &str, text: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    text.map(|text| since(place, text)).transpose()
}

/// Where a range of time begins; as [`begin`], where it must be said.
pub fn since(place: &str, text: &str) -> Result<Timestamp, ApiError> {
    bound(place, text, Some)
}

/// Where a range of time ends, if that was said: before an instant, or with a day, which is included. `place` as in
/// [`begin`].
pub fn end(place: &str, text: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    let read = |text| bound(place, text, |day| day.succ_opt());
    text.map(read).transpose()
}

/// Where a range of time begins and where it ends, as far as that was said. It does not end before it begins. `within` is
/// the place of both, with a slash at its end; nothing in a query string.
pub fn range(
    within: &str,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<(Option<Timestamp>, Option<Timestamp>), ApiError> {
    let place = format!("{within}from");
    let from = begin(&place, from)?;
    let to = end(&format!("{within}to"), to)?;
    if from.zip(to).is_some_and(|(from, to)| from > to) {
        let detail = "from must not be after to";
        return Err(ApiError::field(format!("/{place}"), "out_of_range", detail));
    }
    Ok((from, to))
}

fn bound(
    place: &str,
    text: &str,
    midnight_of: impl Fn(NaiveDate) -> Option<NaiveDate>,
) -> Result<Timestamp, ApiError> {
    let of_day = || {
        let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
        let day = day.filter(|_| clock::has_plain_year(text))?;
        let midnight = midnight_of(day)?.and_hms_opt(0, 0, 0)?;
        Some(Timestamp(midnight.and_utc().timestamp_micros()))
    };
    clock::from_text(text).or_else(of_day).ok_or_else(|| {
        let detail = "a day, as in 2026-01-31, or an ISO 8601 instant with an offset";
        ApiError::field(format!("/{place}"), "invalid", detail)
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::page::PageQuery;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Query {
        #[expect(dead_code, reason = "that it can be read is what matters")]
        campaign_id: uuid::Uuid,
        limit: Option<u32>,
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let id = "campaignId=01980000-0000-7000-8000-000000000000";
        assert_eq!(
            parse::<Query>(&format!("{id}&limit=7")).unwrap().limit,
            Some(7)
        );
        for (query, pointer) in [
            (format!("{id}&limit=many"), "/limit"),
            (format!("{id}&limit=1.5"), "/limit"),
            (format!("{id}&limit=-1"), "/limit"),
            (format!("{id}&limit="), "/limit"),
            (format!("{id}&limit=1&limit=2"), "/limit"),
            (format!("{id}&limit=1%00"), "/limit"),
            (format!("{id}&a/b=%00"), "/a~1b"),
            (format!("{id}&%00=1"), ""),
            ("campaignId=nobody".to_owned(), "/campaignId"),
            ("limit=1".to_owned(), "/campaignId"),
            (String::new(), "/campaignId"),
        ] {
            let error = parse::<Query>(&query).unwrap_err();
            let error = &error.errors()[0];
            assert_eq!(
                (error.pointer.as_str(), error.code.as_str()),
                (pointer, "invalid_query"),
                "{query}: {}",
                error.detail
            );
        }
        assert!(parse::<PageQuery>("").unwrap().limit.is_none());
    }

    #[test]
    fn everything_that_is_missing_or_cannot_be_read_is_named() {
        #[derive(Debug, Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[expect(dead_code, reason = "that it can't be read is what matters")]
        struct Several {
            campaign_id: uuid::Uuid,
            name: String,
            limit: u32,
            event_id: uuid::Uuid,
        }
        let missing = |query: &str| -> Vec<String> {
            let error = parse::<Several>(query).unwrap_err();
            let pointers = error.errors().iter().map(|error| error.pointer.clone());
            pointers.collect()
        };
        assert_eq!(missing(""), ["/campaignId", "/name", "/limit", "/eventId"]);
        assert_eq!(missing("limit=3&name=x"), ["/campaignId", "/eventId"]);
        assert_eq!(
            missing("limit=many"),
            ["/limit", "/campaignId", "/name", "/eventId"]
        );
        let id = "01980000-0000-7000-8000-000000000000";
        assert_eq!(
            missing(&format!("limit=many&eventId=x&campaignId={id}&name=x")),
            ["/limit", "/eventId"]
        );
        let error = parse::<Several>("campaignId=x").unwrap_err();
        assert_eq!(
            error.errors()[0].detail,
            "`campaignId` can't be read: it is a UUID"
        );
    }

    #[test]
    fn a_range_is_of_days_or_instants() {
        let instant = |text| clock::from_text(text).unwrap();
        let day = Some("2026-02-28");
        let midnight = instant("2026-02-28T00:00:00Z");
        assert_eq!(begin("from", day).unwrap(), Some(midnight));
        let next = instant("2026-03-01T00:00:00Z");
        assert_eq!(end("to", day).unwrap(), Some(next), "the day is included");
        let at = Some("2026-02-28T01:00:00+01:00");
        assert_eq!(begin("from", at).unwrap(), Some(midnight));
        assert_eq!(end("to", at).unwrap(), Some(midnight));
        assert_eq!(begin("from", None).unwrap(), None);
        assert_eq!(range("", at, day).unwrap(), (Some(midnight), Some(next)));
        assert_eq!(range("", None, at).unwrap(), (None, Some(midnight)));
        let error = range("filter/", Some("2026-03-01T00:00:01Z"), day).unwrap_err();
        let error = &error.errors()[0];
        assert_eq!(
            (&*error.pointer, &*error.code),
            ("/filter/from", "out_of_range")
        );
        for wrong in [
            "yesterday",
            "2026-02-30",
            "2026-02-28T01:00:00",
            "+262142-12-31",
            "",
        ] {
            let error = end("filter/to", Some(wrong)).unwrap_err();
            assert_eq!(error.errors()[0].pointer, "/filter/to", "{wrong}");
        }
    }
}
