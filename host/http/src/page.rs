//! Pages of lists.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::error::ApiError;

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

impl<T> Page<T> {
    /// The same page of something else.
    pub fn map<U>(self, view: impl FnMut(T) -> U) -> Page<U> {
        Page {
            items: self.items.into_iter().map(view).collect(),
            next_cursor: self.next_cursor,
        }
    }
}

/// The query parameters of every list by cursor.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
pub struct PageQuery {
    /// How many items, 1 to 200; 50 unless given.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<u32>,
    /// Where to go on: `nextCursor` of the page before.
    pub cursor: Option<String>,
}

impl PageQuery {
    /// The limit, checked.
    pub fn limit(&self) -> Result<u32, ApiError> {
        limit(self.limit)
    }
}

/// The limit of most lists, checked: up to 200, 50 unless given.
pub fn limit(limit: Option<u32>) -> Result<u32, ApiError> {
    checked_limit(limit, DEFAULT_LIMIT, MOST)
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

/// The bytes of items after which a page ends, however many it was to have: its cursor goes on with the rest.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// Items that are read before anything is known of how large they are.
const FIRST: usize = 32;

/// A page that is gathered piece by piece, as items may be large: it ends after so many items, or so many bytes.
#[derive(Debug)]
pub struct Gathering<T> {
    items: Vec<T>,
    limit: usize,
    bytes: usize,
    is_whole: bool,
    asked: usize,
    first: usize,
}

impl<T> Gathering<T> {
    /// A page of so many items at the most.
    pub fn new(limit: usize) -> Self {
        Self {
            items: Vec::new(),
            limit,
            bytes: 0,
            is_whole: false,
            asked: 0,
            first: FIRST,
        }
    }

    /// Begins with fewer items, as one of them may be large.
    #[must_use]
    pub fn beginning_with(mut self, first: usize) -> Self {
        self.first = first;
        self
    }

    /// How many items to read next, behind the last one; none: the page is full, or there are no more.
    pub fn wanted(&mut self) -> Option<usize> {
        let is_full = self.items.len() > self.limit || self.bytes >= MOST_BYTES;
        if self.is_whole || is_full {
            return None;
        }
        let fit = match self.bytes.checked_div(self.items.len()) {
            None => self.first,
            Some(each) => (MOST_BYTES - self.bytes) / each.max(1) + 1,
        };
        self.asked = fit.min(self.limit + 1 - self.items.len());
        Some(self.asked)
    }

    /// The last item so far.
    pub fn last(&self) -> Option<&T> {
        self.items.last()
    }

    /// Adds the items that were wanted, or all that are left.
    pub fn add(&mut self, items: Vec<T>, bytes: impl Fn(&T) -> usize) {
        self.is_whole = items.len() < self.asked;
        self.bytes += items.iter().map(bytes).sum::<usize>();
        self.items.extend(items);
    }

    /// The items, and whether there are more.
    pub fn end(mut self) -> (Vec<T>, bool) {
        let is_whole = self.is_whole && self.items.len() <= self.limit;
        self.items.truncate(self.limit);
        (self.items, !is_whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gathers a page of items of so many bytes; answers how many it has, whether there are more, and how often it read.
    fn gathered(all: usize, each: usize, limit: usize) -> (usize, bool, usize) {
        let mut page = Gathering::new(limit);
        let mut reads = 0;
        while let Some(wanted) = page.wanted() {
            let from = page.last().map_or(0, |last| last + 1);
            page.add((from..all.min(from + wanted)).collect(), |_| each);
            reads += 1;
        }
        let (items, more) = page.end();
        assert!(items.iter().copied().eq(0..items.len()));
        (items.len(), more, reads)
    }

    #[test]
    fn the_limit_of_most_lists_is_1_to_200_and_50_unless_given() {
        assert_eq!(limit(None).unwrap(), DEFAULT_LIMIT);
        assert_eq!(limit(Some(1)).unwrap(), 1);
        assert_eq!(limit(Some(MOST)).unwrap(), MOST);
        for refused in [0, MOST + 1, u32::MAX] {
            let error = limit(Some(refused)).unwrap_err();
            assert_eq!(error.errors()[0].code, "out_of_range");
        }
        assert_eq!(checked_limit(None, 20, 20).unwrap(), 20);
        assert!(checked_limit(Some(21), 20, 20).is_err());
    }

    #[test]
    fn a_page_ends_after_so_many_items_or_bytes() {
        assert_eq!(gathered(0, 100, 50), (0, false, 1));
        assert_eq!(gathered(10, 100, 50), (10, false, 1));
        assert_eq!(gathered(50, 100, 50), (50, false, 2));
        assert_eq!(gathered(51, 100, 50), (50, true, 2));
        assert_eq!(gathered(1000, 100, 500), (500, true, 2));
        let large = 64 * 1024;
        let (items, more, reads) = gathered(1000, large, 500);
        assert!(
            more && reads <= 3 && (64..=66).contains(&items),
            "{items} {reads}"
        );
        // Whatever the size, a page gets on.
        let (items, more, _) = gathered(1000, 2 * MOST_BYTES, 500);
        assert!(more && items == FIRST, "{items}");
        assert_eq!(gathered(20, large, 500), (20, false, 1));
    }
}
