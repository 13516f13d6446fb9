//! People as the customer's staff sees them: the list with its search, a profile, a timeline
//! (contract 5, specification 2.1).

pub mod http;
pub mod search;
pub mod store;
pub mod timeline;

use nudge_db::{Result, Tx};
use uuid::Uuid;

pub use search::{Search, UserPosition};
pub use store::Scan;

/// People that a count is exact up to (contract 0).
pub const MOST_COUNTED: i64 = 10_000;
/// The longest search text, in characters.
pub const MOST_SEARCH: usize = 256;
/// Values that one request looks through for a part of a property's value. More than one person can have,
/// so that every request gets on.
pub const MOST_SCANNED: i64 = 20_000;

/// How many people a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// So many, [`MOST_COUNTED`] at the most.
    pub count: i64,
    /// Whether there may be more.
    pub at_least: bool,
}

/// A part of a list.
#[derive(Debug)]
pub struct FoundUsers {
    /// People, in the order of the list.
    pub ids: Vec<Uuid>,
    /// Where the list goes on, if it does.
    pub next: Option<UserPosition>,
}

/// Everybody, the subject that was made last first. Its place never changes, whoever is seen meanwhile.
pub async fn everybody(
    tx: &mut Tx,
    app_id: Uuid,
    after: Option<Uuid>,
    limit: usize,
) -> Result<FoundUsers> {
    let mut ids = store::ids(tx, app_id, after, count(limit) + 1).await?;
    let more = ids.len() > limit;
    ids.truncate(limit);
    let next = ids.last().filter(|_| more).map(|id| UserPosition::Id(*id));
    Ok(FoundUsers { ids, next })
}

/// Whom a search finds: names that begin with the text, in the order of names; then ids of subjects that do,
/// and at last those with a property whose value has the text in it, both in the order of [`everybody`].
/// Nobody is found twice.
///
/// Each part follows an index, so that a page costs the same whatever number of people there are. No index
/// helps to find a part of a value: a request looks through [`MOST_SCANNED`] values and answers with what it
/// has found, and where to go on, even if that is nobody yet. `scanned` is what [`total`] has found among the first of
/// them, which are not looked through again.
pub async fn search(
    tx: &mut Tx,
    app_id: Uuid,
    search: &Search,
    from: Option<UserPosition>,
    limit: usize,
    scanned: Option<Scan>,
) -> Result<FoundUsers> {
    let mut hits: Vec<(Uuid, UserPosition)> = Vec::new();
    let wanted = limit + 1;
    let (mut name, mut id, mut value) = (None, None, None);
    let (mut names, mut ids) = (true, true);
    match from {
        Some(UserPosition::Name(folded, number)) => name = Some((folded, number)),
        Some(UserPosition::Id(after)) => (names, id) = (false, Some(after)),
        Some(UserPosition::Value(after)) => {
            (names, ids, value) = (false, false, Some(after));
        }
        None => {}
    }
    if names {
        let rows = store::by_name(tx, app_id, search, name, count(wanted)).await?;
        hits.extend(rows.into_iter().map(|row| {
            let position = UserPosition::Name(row.folded, row.number);
            (row.subject_id, position)
        }));
    }
    if ids && hits.len() < wanted {
        let rows = store::by_id(tx, app_id, search, id, count(wanted - hits.len())).await?;
        hits.extend(rows.into_iter().map(|id| (id, UserPosition::Id(id))));
    }
    let mut rest = None;
    if hits.len() < wanted {
        let most = wanted - hits.len();
        let scan = match scanned.filter(|_| value.is_none()) {
            Some(scan) => scan,
            None => store::by_value(tx, app_id, search, value, count(most)).await?,
        };
        rest = scan.rest.map(UserPosition::Value);
        let found = scan.ids.into_iter().take(most);
        hits.extend(found.map(|id| (id, UserPosition::Value(id))));
    }
    let next = if hits.len() > limit {
        hits.truncate(limit);
        hits.last().map(|(_, position)| position.clone())
    } else {
        rest
    };
    let ids = hits.into_iter().map(|(id, _)| id).collect();
    Ok(FoundUsers { ids, next })
}

/// How many people there are, or a search finds; and what it has found among values, for [`search`](search()) from the beginning.
pub async fn total(
    tx: &mut Tx,
    app_id: Uuid,
    search: Option<&Search>,
) -> Result<(Total, Option<Scan>)> {
    let most = MOST_COUNTED + 1;
    let (count, scan) = match search {
        None => (store::count(tx, app_id, most).await?, None),
        Some(search) => {
            let named = store::count_by_name(tx, app_id, search, most).await?;
            let known = named + store::count_by_id(tx, app_id, search, most - named).await?;
            let scan = store::by_value(tx, app_id, search, None, most - known).await?;
            (known + count(scan.ids.len()), Some(scan))
        }
    };
    let is_cut = scan.as_ref().is_some_and(|scan| scan.rest.is_some());
    let total = Total {
        count: count.min(MOST_COUNTED),
        at_least: count > MOST_COUNTED || is_cut,
    };
    Ok((total, scan))
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
