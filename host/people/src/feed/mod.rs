//! The events of all of an app's people, newest first by receipt (contract 21).
//!
//! An index has the events of each name in that order; a page merges those of the names that it asks for. So it costs
//! the same whatever number of events there are, and however rare what it asks for is. Those of every name that were
//! looked through before the page was full are not read again: names are taken by their newest event, and the rest is
//! older than the page.

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

/// A place in the feed: an event. Of one instant, those that were taken come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
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

/// A page of the feed, and whether there is more of it.
pub async fn page(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    after: Option<Place>,
    limit: usize,
    now: Timestamp,
) -> Result<(Vec<FeedEvent>, bool)> {
    let names = names(tx, app_id, filter, after).await?;
    let mut page = Gathering::new(limit);
    while let Some(wanted) = page.wanted() {
        let after = page.last().map(FeedEvent::place).or(after);
        let mut events = accepted(tx, app_id, &names, filter, after, wanted).await?;
        if filter.wants(EventVerdict::Rejected) {
            let oldest = full_to(&events, wanted);
            let kept = Some(now.minus(rejected::KEPT));
            let from = kept.max(filter.from).max(oldest);
            let refused = store::rejected(tx, app_id, filter, (after, from), wanted).await?;
            events.extend(refused);
            events.sort_unstable_by_key(|event| std::cmp::Reverse(event.place()));
            events.truncate(wanted);
        }
        page.add(events, |event| event.properties.len());
    }
    Ok(page.end())
}

/// The names whose events belong to the feed after a place, the one with the newest event first.
async fn names(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    after: Option<Place>,
) -> Result<Vec<Name>> {
    if !filter.wants(EventVerdict::Accepted) {
        return Ok(Vec::new());
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
        return Ok(if filter.has_name(&name.name) && !is_reserved(&name.name) {
            vec![name]
        } else {
            Vec::new()
        });
    }
    let mut names = store::names(tx, app_id, to).await?;
    names.retain(|name| {
        name.newest
            .is_some_and(|newest| Some(newest) >= filter.from)
            && filter.has_name(&name.name)
            && !is_reserved(&name.name)
    });
    names.sort_unstable_by_key(|name| std::cmp::Reverse(name.newest));
    Ok(names)
}

/// The newest events of names after a place.
async fn accepted(
    tx: &mut Tx,
    app_id: Uuid,
    names: &[Name],
    filter: &Filter,
    after: Option<Place>,
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
        newest.sort_unstable_by_key(|event| std::cmp::Reverse(event.place()));
        newest.truncate(limit);
    }
    Ok(newest)
}

/// Where events end that fill a page.
fn full_to(events: &[FeedEvent], limit: usize) -> Option<Timestamp> {
    let last = events.last().filter(|_| events.len() >= limit)?;
    Some(last.received_at)
}
