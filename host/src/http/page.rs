//! Pages of lists.

use nudge_db::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::cursor;
use super::error::ApiError;
use crate::secrets::Secrets;

/// Items of a page unless `limit` says otherwise (contract 0).
pub const DEFAULT_LIMIT: u32 = 50;
/// Items of the largest page.
pub const MOST: u32 = 200;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Continues the list; null at its end.
    pub next_cursor: Option<String>,
}

/// The query parameters of every list by cursor.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
pub struct PageQuery {
    /// How many items, 1 to 200; 50 unless given.
    pub limit: Option<u32>,
    /// Where to go on: `nextCursor` of the page before.
    pub cursor: Option<String>,
}

impl PageQuery {
    /// The limit, checked.
    pub fn limit(&self) -> Result<u32, ApiError> {
        checked_limit(self.limit, DEFAULT_LIMIT, MOST)
    }

    /// The position that the cursor stands for, if there is one.
    pub fn position<T: DeserializeOwned>(
        &self,
        secrets: &Secrets,
        list: &str,
        now: Timestamp,
    ) -> Result<Option<T>, ApiError> {
        self.cursor
            .as_deref()
            .map(|text| cursor::decode(secrets, list, text, now))
            .transpose()
    }
}

/// A limit within 1 and `most`.
pub fn checked_limit(limit: Option<u32>, default: u32, most: u32) -> Result<u32, ApiError> {
    match limit.unwrap_or(default) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        _ => Err(ApiError::field(
            "/limit",
            "out_of_range",
            format!("limit must be 1 to {most}"),
        )),
    }
}

/// Makes a page of items that were read with one more than the limit.
pub fn page<T>(
    mut items: Vec<T>,
    limit: u32,
    id: impl Fn(&T) -> Uuid,
    seal: impl Fn(&Uuid) -> String,
) -> Page<T> {
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next_cursor = if more {
        items.last().map(|last| seal(&id(last)))
    } else {
        None
    };
    Page { items, next_cursor }
}
