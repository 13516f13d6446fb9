//! Lists of campaigns: what is stored goes out as it is, some rows at a time, and is never there whole.
//!
//! A list has every campaign of an app, which together may be many megabytes, and as trees many times as much. Each page
//! of rows is read in a transaction of its own, so that a slow reader holds none.

use std::collections::BTreeMap;
use std::io;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::Response;
use futures_util::stream;
use nudge_db::{Db, Error, Result};
use nudge_http::ApiError;
use nudge_platform::clock;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::campaign::Kind;
use crate::lifecycle::Content;
use crate::store::{self, Stored};

/// Bytes of rows that are read at a time, as far as is known before.
const PAGE_BYTES: usize = 256 * 1024;
/// Rows of the first page.
const FIRST: usize = 4;
/// Rows of any page.
const MOST: usize = 100;

/// A campaign as the API shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    id: Uuid,
    app_id: Uuid,
    version: i64,
    #[serde(flatten)]
    content: BTreeMap<String, &'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats: Option<Box<RawValue>>,
    created_at: String,
    updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    activated_at: Option<String>,
}

/// A kind of campaigns that a list has.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    kind: Kind,
    defaults: &'static [(&'static str, &'static str)],
}

impl Listed {
    /// The kind of campaigns that say this.
    pub const fn of<C: Content>() -> Self {
        Self {
            kind: C::KIND,
            defaults: C::DEFAULTS,
        }
    }
}

/// Writes a campaign of one of some kinds as JSON.
fn write(
    kinds: &[Listed],
    row: &Stored,
    stats: Option<Box<RawValue>>,
    to: &mut Vec<u8>,
) -> Result<()> {
    let corrupt = |cause| Error::corrupt("campaigns", "body", cause);
    let mut content: BTreeMap<String, &RawValue> =
        serde_json::from_str(&row.body).map_err(corrupt)?;
    let kind = row.kind()?;
    let listed = kinds.iter().find(|listed| listed.kind == kind);
    for (name, value) in listed.map_or(&[][..], |listed| listed.defaults) {
        if !content.contains_key(*name) {
            let value = serde_json::from_str(value).map_err(corrupt)?;
            content.insert((*name).to_owned(), value);
        }
    }
    let view = View {
        id: row.id,
        app_id: row.app_id,
        version: row.version,
        content,
        stats,
        created_at: clock::to_text(row.created_at),
        updated_at: clock::to_text(row.updated_at),
        activated_at: row.activated_at.map(clock::to_text),
    };
    serde_json::to_writer(to, &view).map_err(corrupt)
}

/// Where a list is.
struct ListState<S> {
    db: Db,
    kinds: &'static [Listed],
    app_id: Uuid,
    stats: S,
    /// The last campaign that was listed.
    before: Uuid,
    /// Rows of the next page; none: the end was written.
    limit: Option<usize>,
    is_first: bool,
}

impl<S: Fn(&Stored) -> Option<Box<RawValue>>> ListState<S> {
    /// The next part of the list.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let Some(limit) = self.limit else {
            return Ok(None);
        };
        let mut tx = self.db.read().await?;
        let kinds = self.kinds.iter().map(|listed| listed.kind);
        let rows = store::page(&mut tx, self.app_id, kinds, self.before, limit);
        let rows = rows.await?;
        drop(tx);
        let bytes: usize = rows.iter().map(|row| row.body.len()).sum();
        let mut text = Vec::with_capacity(bytes + 512 * (rows.len() + 1));
        if self.is_first {
            text.extend_from_slice(b"{\"data\":[");
        }
        for row in &rows {
            if !std::mem::take(&mut self.is_first) {
                text.push(b',');
            }
            write(self.kinds, row, (self.stats)(row), &mut text)?;
            self.before = row.id;
        }
        self.limit = if rows.len() < limit {
            text.extend_from_slice(b"]}");
            None
        } else {
            let each = (bytes / rows.len().max(1)).max(1);
            Some((PAGE_BYTES / each).clamp(1, MOST))
        };
        Ok(Some(text.into()))
    }
}

/// Every campaign of an app of some kinds, newest first (specification 4.3): an answer that is made while it is sent. `stats` says what
/// is counted of each.
pub async fn answer<S>(
    db: &Db,
    app_id: Uuid,
    kinds: &'static [Listed],
    stats: S,
) -> std::result::Result<Response, ApiError>
where
    S: Fn(&Stored) -> Option<Box<RawValue>> + Send + Sync + 'static,
{
    let mut place = ListState {
        db: db.clone(),
        kinds,
        app_id,
        stats,
        before: Uuid::max(),
        limit: Some(FIRST),
        is_first: true,
    };
    // What can't be read at all is refused as such; what fails later breaks the answer off.
    let first = place.next().await?;
    let rest = stream::unfold(place, async |mut place| {
        let part = place.next().await.transpose()?;
        let part = part.map_err(|error| {
            tracing::warn!(app.id = %place.app_id, error = %error, "a list breaks off");
            place.limit = None;
            io::Error::other(error)
        });
        Some((part, place))
    });
    let first = stream::iter(first.map(Ok));
    let body = Body::from_stream(futures_util::StreamExt::chain(first, rest));
    let mut response = Response::new(body);
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}
