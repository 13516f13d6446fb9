//! The recorded events of a window of time, in order, a few requests at a time.

use std::time::Duration;

use nudge_db::{Db, Timestamp};
use nudge_records::events::store::{self, Stored};
use nudge_records::events::{MOST_EVENTS, SEQ_BLOCK};
use uuid::Uuid;

/// Events that are read at a time: more than a request has.
const READ: usize = 2 * MOST_EVENTS;
/// Requests of all apps whose events are looked through at a time.
const SPAN: i64 = 2_000;
/// By how much numbers of events and the instants of their arrival may disagree about their order.
const SLACK: Duration = Duration::from_mins(1);

/// Events of one request, all of one alias.
#[derive(Debug)]
pub(super) struct Request {
    pub alias: i64,
    pub events: Vec<Stored>,
}

impl Request {
    pub(super) fn len(&self) -> i64 {
        i64::try_from(self.events.len()).unwrap_or(i64::MAX)
    }
}

/// A place in the recorded events.
#[derive(Debug)]
pub(super) struct Window {
    app_id: Uuid,
    since: Timestamp,
    until: Timestamp,
    next: i64,
    end: i64,
}

impl Window {
    /// Finds a window's place. What arrives from now on is not in it.
    pub(super) async fn open(
        db: &Db,
        app_id: Uuid,
        since: Timestamp,
        until: Timestamp,
    ) -> nudge_db::Result<Self> {
        let mut tx = db.read().await?;
        Ok(Self {
            app_id,
            since,
            until,
            next: store::first_seq_at(&mut tx, since.minus(SLACK)).await?,
            end: store::first_seq_at(&mut tx, until.plus(SLACK)).await?,
        })
    }

    /// The next requests; there may be none in a step. None: that was all.
    pub(super) async fn next(&mut self, db: &Db) -> nudge_db::Result<Option<Vec<Request>>> {
        if self.next >= self.end {
            return Ok(None);
        }
        // Whole requests: numbers of one are in one block.
        let span_end = (self.next / SEQ_BLOCK + SPAN) * SEQ_BLOCK;
        let span_end = span_end.min(self.end);
        let limit = i64::try_from(READ).unwrap_or(i64::MAX);
        let mut tx = db.read().await?;
        let mut read =
            store::of_app_between(&mut tx, self.app_id, self.next, span_end, limit).await?;
        drop(tx);
        self.next = span_end;
        if read.len() >= READ
            && let Some(cut) = read.last().map(|(_, stored)| stored.seq / SEQ_BLOCK)
        {
            read.retain(|(_, stored)| stored.seq / SEQ_BLOCK != cut);
            self.next = cut * SEQ_BLOCK;
        }
        let mut requests: Vec<Request> = Vec::new();
        for (alias, stored) in read {
            if stored.received_at < self.since || stored.received_at >= self.until {
                continue;
            }
            match requests.last_mut() {
                Some(last) if last.has(stored.seq) => last.events.push(stored),
                _ => requests.push(Request {
                    alias,
                    events: vec![stored],
                }),
            }
        }
        Ok(Some(requests))
    }
}

impl Request {
    fn has(&self, seq: i64) -> bool {
        let first = self.events.first();
        first.is_some_and(|first| first.seq / SEQ_BLOCK == seq / SEQ_BLOCK)
    }
}
