//! Lists as CSV (RFC 4180), for spreadsheets: all rows of a filter, page by page as the client takes them.
//!
//! A page is read when the one before is on its way, so that a list of any length takes the memory of a page, and nothing
//! is held meanwhile. What fails amid the list ends the body before its end, which clients can tell from a whole one.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use nudge_db::{Db, Tx};
use serde::Serialize;
use serde_json::value::RawValue;

use super::error::ApiError;
use super::request_context::Notes;

const MEDIA_TYPE: &str = "text/csv";

/// Whether the client asks for CSV (`Accept: text/csv`). Every answer to who is asked this says that it depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantsCsv(pub bool);

impl<S: Sync> FromRequestParts<S> for WantsCsv {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Notes::of(&parts.extensions).vary_by_accept();
        let accepted = parts.headers.get_all(header::ACCEPT).iter();
        let accepted = accepted.filter_map(|value| value.to_str().ok());
        Ok(Self(accepted.flat_map(|value| value.split(',')).any(asks)))
    }
}

/// Whether a media range names CSV, and does not rule it out.
fn asks(range: &str) -> bool {
    let mut parts = range
        .split(';')
        .map(|part| part.trim().to_ascii_lowercase());
    let named = parts.next().is_some_and(|name| name == MEDIA_TYPE);
    let ruled_out = |part: String| {
        let weight = part
            .strip_prefix("q=")
            .and_then(|weight| weight.parse().ok());
        weight.is_some_and(|weight: f32| weight <= 0.0)
    };
    named && !parts.any(ruled_out)
}

/// A page of a list: its items, and where the list goes on, if it does.
pub type CsvPage<T, C> = (Vec<T>, Option<C>);

/// Answers a list whose pages `read` reads, each from where the one before ended. The columns are members of the items as
/// JSON has them; objects and lists are cells of JSON. What is wrong with the request shows with the first page.
pub async fn answer<T, C, R, F>(
    columns: &'static [&'static str],
    read: R,
) -> Result<Response, ApiError>
where
    T: Serialize + Send + 'static,
    C: Send + 'static,
    R: Fn(Option<C>) -> F + Send + 'static,
    F: Future<Output = Result<CsvPage<T, C>, ApiError>> + Send + 'static,
{
    let (items, next) = read(None).await?;
    let mut text = columns.join(",");
    text.push_str("\r\n");
    write_all(columns, &items, &mut text);
    let first = stream::once(async move { Ok::<_, std::io::Error>(Bytes::from(text)) });
    let rest = stream::try_unfold((read, next), move |(read, next)| async move {
        let Some(next) = next else {
            return Ok(None);
        };
        let (items, next) = read(Some(next)).await.map_err(|error| {
            tracing::warn!(
                code = error.code().name(),
                "a list breaks off amid its rows"
            );
            std::io::Error::other("the list broke off")
        })?;
        let mut text = String::new();
        write_all(columns, &items, &mut text);
        Ok(Some((Bytes::from(text), (read, next))))
    });
    let mut response = Response::new(Body::from_stream(first.chain(rest)));
    let headers = response.headers_mut();
    let media_type = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
    headers.insert(header::CONTENT_TYPE, media_type);
    Ok(response)
}

/// Reads at most so many rows behind a place.
pub type Reader<R, C> = Box<
    dyn for<'t> Fn(&'t mut Tx, Option<C>, i64) -> BoxFuture<'t, nudge_db::Result<Vec<R>>>
        + Send
        + Sync,
>;

/// A function as a reader.
pub fn reader<R, C>(
    read: impl for<'t> Fn(&'t mut Tx, Option<C>, i64) -> BoxFuture<'t, nudge_db::Result<Vec<R>>>
    + Send
    + Sync
    + 'static,
) -> Reader<R, C> {
    Box::new(read)
}

/// Answers a list of rows as [`answer`] does, so many at a time. `place` is where a row stands, and `view` what is shown of it.
pub async fn answer_rows<R, C, T>(
    columns: &'static [&'static str],
    db: &Db,
    most: u32,
    read: Reader<R, C>,
    place: fn(&R) -> C,
    view: impl Fn(R) -> T + Send + Sync + 'static,
) -> Result<Response, ApiError>
where
    R: Send + 'static,
    C: Send + 'static,
    T: Serialize + Send + 'static,
{
    let (db, parts) = (db.clone(), Arc::new((read, view)));
    let read = move |after: Option<C>| {
        let (db, parts) = (db.clone(), Arc::clone(&parts));
        async move {
            let (read, view) = &*parts;
            let mut tx = db.read().await?;
            let rows = read(&mut tx, after, i64::from(most)).await?;
            let is_full = rows.len() == most as usize;
            let next = rows.last().filter(|_| is_full).map(place);
            Ok((rows.into_iter().map(view).collect(), next))
        }
    };
    answer(columns, read).await
}

fn write_all<T: Serialize>(columns: &[&str], items: &[T], text: &mut String) {
    for item in items {
        let json = serde_json::to_string(item).unwrap_or_default();
        let members: BTreeMap<&str, &RawValue> = serde_json::from_str(&json).unwrap_or_default();
        for (place, column) in columns.iter().enumerate() {
            if place > 0 {
                text.push(',');
            }
            if let Some(value) = members.get(column) {
                write_cell(value.get(), text);
            }
        }
        text.push_str("\r\n");
    }
}

/// Writes a value as a cell. What a spreadsheet would take for a formula is made a text of.
fn write_cell(json: &str, text: &mut String) {
    let read: Option<String> = match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str(json).ok(),
        _ => None,
    };
    let cell = match &read {
        Some(read) => read,
        None if json == "null" => "",
        None => json,
    };
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if !cell.contains(['"', ',', '\r', '\n']) {
        if is_formula {
            text.push('\'');
        }
        text.push_str(cell);
        return;
    }
    text.push('"');
    if is_formula {
        text.push('\'');
    }
    text.push_str(&cell.replace('"', "\"\""));
    text.push('"');
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use http_body_util::BodyExt as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_are_quoted_and_no_formulas() {
        let cell = |value: serde_json::Value| {
            let mut text = String::new();
            write_cell(&value.to_string(), &mut text);
            text
        };
        for (value, expected) in [
            (json!("plain"), "plain"),
            (json!(null), ""),
            (json!(""), ""),
            (json!(1.50), "1.5"),
            (json!(-1), "'-1"),
            (json!(true), "true"),
            (json!("a,b"), "\"a,b\""),
            (json!("say \"hi\"\r\nthere"), "\"say \"\"hi\"\"\r\nthere\""),
            (json!("=1+2"), "'=1+2"),
            (json!("+1,2"), "\"'+1,2\""),
            (json!("@x"), "'@x"),
            (json!("\tx"), "'\tx"),
            (json!("\rx"), "\"'\rx\""),
            (json!({"a": [1, "x"]}), "\"{\"\"a\"\":[1,\"\"x\"\"]}\""),
        ] {
            assert_eq!(cell(value.clone()), expected, "{value}");
        }
    }

    #[tokio::test]
    async fn a_list_is_read_page_by_page_and_breaks_off_visibly() {
        let read = |from: Option<u32>| async move {
            let from = from.unwrap_or(0);
            if from >= 6 {
                return Err(ApiError::new(crate::Code::Unavailable));
            }
            let items: Vec<_> = (from..from + 2)
                .map(|number| json!({"n": number, "x": "y"}))
                .collect();
            Ok((items, Some(from + 2).filter(|next| *next != 4)))
        };
        let whole = answer(&["n", "missing", "x"], read).await.unwrap();
        assert_eq!(
            whole.headers()["content-type"],
            "text/csv; charset=utf-8; header=present"
        );
        let text = whole.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(text, "n,missing,x\r\n0,,y\r\n1,,y\r\n2,,y\r\n3,,y\r\n");
        let broken = move |from: Option<u32>| read(Some(from.unwrap_or(4)));
        let broken = answer(&["n"], broken).await.unwrap();
        assert!(broken.into_body().collect().await.is_err());
        assert!(
            answer(&["n"], move |_: Option<u32>| read(Some(6)))
                .await
                .is_err()
        );
    }

    #[tokio::test]
    async fn clients_ask_for_csv_by_name() {
        for (accept, expected) in [
            ("text/csv", true),
            ("application/json, Text/CSV;q=0.5", true),
            ("text/csv; q=0", false),
            ("*/*", false),
            ("text/*", false),
            ("application/json", false),
        ] {
            let request = Request::builder()
                .header("accept", accept)
                .body(())
                .unwrap();
            let (mut parts, ()) = request.into_parts();
            let Ok(wants) = WantsCsv::from_request_parts(&mut parts, &()).await;
            assert_eq!(wants, WantsCsv(expected), "{accept}");
        }
    }
}
