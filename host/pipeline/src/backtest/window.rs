//! The recorded events of a window of time, in the order of their receipt, a few requests at a time.

use std::collections::{BTreeMap, VecDeque};

use nudge_db::{Db, Timestamp, Tx};
use nudge_records::dead_letters::store::{self as letters, Filter};
use nudge_records::dead_letters::{Stage, replay};
use nudge_records::events::store::{self, EventPosition, Stored};
use nudge_records::events::{MOST_EVENTS, SEQ_BLOCK};
use uuid::Uuid;

/// Events that are read at a time: more than a request has.
const READ: usize = 2 * MOST_EVENTS;

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

    /// Whether an event is of this request: numbers of one are in one block.
    fn has(&self, seq: i64) -> bool {
        let first = self.events.first();
        first.is_some_and(|first| first.seq / SEQ_BLOCK == seq / SEQ_BLOCK)
    }
}

/// The events of one name.
#[derive(Debug)]
struct Stream {
    name: String,
    /// Those that were read and not given yet.
    read: VecDeque<(i64, Stored)>,
    /// The last one that was read.
    last: EventPosition,
}

/// A place in the recorded events. An index has them by name and receipt, so that the names are merged here: numbers do not
/// say when an event arrived that was replayed.
#[derive(Debug)]
pub(super) struct Window {
    app_id: Uuid,
    until: Timestamp,
    streams: Vec<Stream>,
    /// The next event of each stream that has one.
    next: BTreeMap<EventPosition, usize>,
    /// Events of one name that are read at a time.
    most: i64,
}

impl Window {
    /// Finds a window's place.
    pub(super) async fn open(
        db: &Db,
        app_id: Uuid,
        since: Timestamp,
        until: Timestamp,
    ) -> nudge_db::Result<Self> {
        let mut window = Self {
            app_id,
            until,
            streams: Vec::new(),
            next: BTreeMap::new(),
            most: 1,
        };
        let mut known = String::new();
        loop {
            let mut tx = db.read().await?;
            let Some(name) = store::next_name(&mut tx, app_id, &known).await? else {
                break;
            };
            known.clone_from(&name);
            let number = window.streams.len();
            window.streams.push(Stream {
                name,
                read: VecDeque::new(),
                last: (since, i64::MIN),
            });
            window.read(&mut tx, number).await?;
            // Of most names nothing is in a short window.
            if window.next.len() == number {
                window.streams.pop();
            }
        }
        let most = READ / window.streams.len().max(1);
        window.most = i64::try_from(most.max(1)).unwrap_or(i64::MAX);
        Ok(window)
    }

    /// The next requests. None: that was all.
    pub(super) async fn next(&mut self, db: &Db) -> nudge_db::Result<Option<Vec<Request>>> {
        let mut requests: Vec<Request> = Vec::new();
        let mut given = 0;
        let mut tx = db.read().await?;
        while let Some(((_, seq), number)) = self.next.first_key_value() {
            let (seq, number) = (*seq, *number);
            let is_same = requests.last().is_some_and(|last| last.has(seq));
            if given >= READ && !is_same {
                break;
            }
            self.next.pop_first();
            let stream = self.streams.get_mut(number);
            let Some((alias, stored)) = stream.and_then(|stream| stream.read.pop_front()) else {
                continue;
            };
            given += 1;
            match requests.last_mut() {
                Some(last) if is_same => last.events.push(stored),
                _ => requests.push(Request {
                    alias,
                    events: vec![stored],
                }),
            }
            self.read(&mut tx, number).await?;
        }
        Ok(Some(requests).filter(|requests| !requests.is_empty()))
    }

    /// Has the next event of a stream ready, if there is one.
    async fn read(&mut self, tx: &mut Tx, number: usize) -> nudge_db::Result<()> {
        let Some(stream) = self.streams.get_mut(number) else {
            return Ok(());
        };
        if stream.read.is_empty() {
            let of = (self.app_id, &*stream.name);
            let read = store::named_after(tx, of, stream.last, self.until, self.most).await?;
            stream.read = read.into();
        }
        if let Some((_, last)) = stream.read.back() {
            stream.last = (last.received_at, last.seq);
        }
        if let Some((_, next)) = stream.read.front() {
            self.next.insert((next.received_at, next.seq), number);
        }
        Ok(())
    }
}

/// The events of a window that validation refused: dead letters, as long as they are kept.
#[derive(Debug)]
pub(super) struct Refused {
    app_id: Uuid,
    filter: Filter,
    after: Option<letters::LetterPosition>,
}

impl Refused {
    pub(super) fn new(app_id: Uuid, since: Timestamp, until: Timestamp) -> Self {
        Self {
            app_id,
            filter: Filter {
                stage: Some(Stage::Validation),
                from: Some(since),
                to: Some(until),
                ..Filter::default()
            },
            after: None,
        }
    }

    /// The next ones, each as a request of its own; none: that was all.
    pub(super) async fn next(&mut self, db: &Db) -> nudge_db::Result<Vec<Request>> {
        let mut tx = db.read().await?;
        let limit = i64::try_from(MOST_EVENTS).unwrap_or(i64::MAX);
        let found = letters::page(&mut tx, self.app_id, &self.filter, self.after, limit).await?;
        drop(tx);
        let last = found.last().map(|found| &found.letter);
        self.after = last.map(|last| (last.timestamp, last.id)).or(self.after);
        let requests = found.into_iter().filter_map(|found| {
            let letter = found.letter;
            let event = replay::readable(&letter, None)?;
            Some(Request {
                alias: letter.alias,
                events: vec![Stored {
                    seq: 0,
                    received_at: letter.received_at,
                    origin: letter.origin,
                    event: event.into(),
                }],
            })
        });
        Ok(requests.collect())
    }
}
