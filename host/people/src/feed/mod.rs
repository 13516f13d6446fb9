//! The events of all of an app's people, newest first by receipt (contract 21).
//!
//! An index has the events of each name in that order; a page merges those of the names that it asks for. So it costs
//! the same whatever number of events there are, and however rare what it asks for is. Those of every name that were
//! looked through before the page was full are not read again: names are taken by their newest event, and the rest is
//! older than the page.
//!
//! Whoever has a write key names events. Where there are more names than a page merges, another index has the events of all
//! of them by their receipt. A page looks through a bounded number of these: where few of them are wanted, it ends with
//! fewer than it may have, and its cursor goes on where it stopped. Either way the order is the same, so that a cursor of
//! one is good for the other.

pub mod http;
mod mark;
pub mod store;
mod stream;

use nudge_db::{Result, Timestamp, Tx};
use nudge_http::page::Gathering;
use nudge_platform::event_names::is_reserved;
use nudge_records::rejected;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use store::{FeedEvent, Name};

/// Names that a page merges at the most: of many events of one instant it asks for those of each.
pub const MOST_NAMES: usize = 256;
/// Events that are looked through by their receipt, at the most, for one piece of a page.
pub const MOST_LOOKED_THROUGH: usize = 5_000;

/// Whether an event was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventVerdict {
    /// It is stored.
    Accepted,
    /// It was refused.
    Rejected,
}

/// Which events.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Of this name.
    pub name: Option<String>,
    /// Not of this name.
    pub exclude_name: Option<String>,
    /// Received at or after.
    pub from: Option<Timestamp>,
    /// Received before.
    pub to: Option<Timestamp>,
    /// Taken, or refused.
    pub verdict: Option<EventVerdict>,
}

impl Filter {
    fn wants(&self, verdict: EventVerdict) -> bool {
        self.verdict.is_none_or(|wanted| wanted == verdict)
    }

    fn has_name(&self, name: &str) -> bool {
        self.name.as_deref().is_none_or(|wanted| wanted == name)
            && self.exclude_name.as_deref() != Some(name)
    }
}

/// A position in the feed: an event. Of one instant, those that were taken come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FeedPosition {
    /// When it was received.
    pub at: Timestamp,
    /// Which event.
    pub event: EventKey,
}

/// Which event, among those of one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EventKey {
    /// One that was refused.
    Rejected(Uuid),
    /// One that was taken, by its number.
    Accepted(i64),
}

/// A page of the feed, and the position behind which there may be more of it.
pub async fn page(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    after: Option<FeedPosition>,
    limit: usize,
    now: Timestamp,
) -> Result<(Vec<FeedEvent>, Option<FeedPosition>)> {
    let names = names(tx, app_id, filter, after).await?;
    let mut page = Gathering::new(limit);
    let mut stopped = None;
    while let Some(wanted) = page.wanted() {
        let after = page.last().map(FeedEvent::position).or(after);
        let (mut events, looked_to) = match &names {
            Some(names) => (
                accepted(tx, app_id, names, filter, after, wanted).await?,
                None,
            ),
            None => by_receipt(tx, app_id, filter, after, wanted).await?,
        };
        if filter.wants(EventVerdict::Rejected) {
            let oldest = full_to(&events, wanted).max(looked_to.map(|position| position.at));
            let kept = Some(now.minus(rejected::KEPT));
            let from = kept.max(filter.from).max(oldest);
            let refused = store::rejected(tx, app_id, filter, (after, from), wanted).await?;
            events.extend(refused);
            events.sort_unstable_by_key(|event| std::cmp::Reverse(event.position()));
        }
        // What was taken behind that position is not known yet.
        events.retain(|event| Some(event.position()) >= looked_to);
        events.truncate(wanted);
        stopped = looked_to.filter(|_| events.len() < wanted);
        page.add(events, |event| event.properties.len());
    }
    let (events, more) = page.end();
    let last = events.last().filter(|_| more).map(FeedEvent::position);
    Ok((events, stopped.or(last)))
}

/// The names whose events belong to the feed after a position, the one with the newest event first; none: they are too many,
/// or in several shards, which no statement goes through again and again.
async fn names(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    after: Option<FeedPosition>,
) -> Result<Option<Vec<Name>>> {
    if !filter.wants(EventVerdict::Accepted) {
        return Ok(Some(Vec::new()));
    }
    let to = filter
        .to
        .into_iter()
        .chain(after.map(|after| after.at))
        .min();
    if let Some(name) = &filter.name {
        let newest = to.unwrap_or(Timestamp(i64::MAX));
        let name = Name {
            name: name.clone(),
            newest: Some(newest),
        };
        let is_shown = filter.has_name(&name.name) && !is_reserved(&name.name);
        return Ok(Some(if is_shown { vec![name] } else { Vec::new() }));
    }
    if tx.shards().is_some() {
        return Ok(None);
    }
    let mut names = store::names(tx, app_id, to, MOST_NAMES + 1).await?;
    if names.len() > MOST_NAMES {
        return Ok(None);
    }
    names.retain(|name| {
        name.newest
            .is_some_and(|newest| Some(newest) >= filter.from)
            && filter.has_name(&name.name)
            && !is_reserved(&name.name)
    });
    names.sort_unstable_by_key(|name| std::cmp::Reverse(name.newest));
    Ok(Some(names))
}

/// The newest events after a position, of whatever name; where there were too few in so many, also the position up to which
/// they are.
async fn by_receipt(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    after: Option<FeedPosition>,
    limit: usize,
) -> Result<(Vec<FeedEvent>, Option<FeedPosition>)> {
    let mut found = (Vec::new(), None);
    // Mostly all that there are are wanted.
    for most in [limit, MOST_LOOKED_THROUGH] {
        let up_to = store::events_behind(tx, app_id, filter, after, most).await?;
        let events = store::by_receipt(tx, app_id, filter, (after, up_to), limit).await?;
        let is_full = events.len() >= limit;
        found = (events, up_to.filter(|_| !is_full));
        if found.1.is_none() {
            break;
        }
    }
    Ok(found)
}

/// The newest events of names after a position.
async fn accepted(
    tx: &mut Tx,
    app_id: Uuid,
    names: &[Name],
    filter: &Filter,
    after: Option<FeedPosition>,
    limit: usize,
) -> Result<Vec<FeedEvent>> {
    let mut newest: Vec<FeedEvent> = Vec::new();
    for name in names {
        // Once the page is full, what is older than all of it need not be read.
        let oldest = full_to(&newest, limit);
        if oldest.is_some() && name.newest < oldest {
            break;
        }
        let from = filter.from.max(oldest);
        let events = store::named(tx, app_id, &name.name, filter, (after, from), limit).await?;
        newest.extend(events);
        newest.sort_unstable_by_key(|event| std::cmp::Reverse(event.position()));
        newest.truncate(limit);
    }
    Ok(newest)
}

/// Where events end that fill a page.
fn full_to(events: &[FeedEvent], limit: usize) -> Option<Timestamp> {
    let last = events.last().filter(|_| events.len() >= limit)?;
    Some(last.received_at)
}
