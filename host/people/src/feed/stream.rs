//! An app's events as they are committed, by whichever process: server-sent events (contract 21).
//!
//! A stream looks for what is new when its client has taken what came before. So it costs nothing while nobody listens, a
//! slow client misses events of its own stream only, and nothing is gathered for it. Where this process has the database for
//! itself, a stream does not look before something is committed.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use nudge_apps::auth::Scope;
use nudge_apps::console::{self, SessionKey};
use nudge_db::{Dialect, Timestamp};
use nudge_http::admission::Share;
use nudge_http::{ApiError, cursor};
use nudge_records::events::SEQ_BLOCK;
use tokio::sync::watch;
use uuid::Uuid;

use super::http::FeedEventView;
use super::mark::{self, Mark, request_of};
use super::store::{self, FeedEvent, Unsent};
use super::{EventKey, EventVerdict, Filter};
use crate::services::Shared;

/// Events a second, above which a stream is a sample.
const MOST_A_SECOND: f64 = 50.0;
/// The pause between two looks, and the longer one while the stream is a sample: more would not be sent earlier.
const PAUSE: Duration = Duration::from_millis(250);
const SAMPLING_PAUSE: Duration = Duration::from_secs(1);
/// Silence after which the client is told that the stream goes on.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// After which the client's session is looked at again where there is something to send; otherwise with each heartbeat.
const SESSION_AGAIN: Duration = Duration::from_secs(1);
/// New events that one look reads at the most; of more the newest, and the others are counted.
const MOST_COUNTED: i64 = 10_000;
/// Requests by whose numbers a commit may come after those with greater ones, where several are committed at once.
const OVERTAKEN: i64 = mark::REQUESTS;
/// For how long numbers below the greatest are looked at again. Numbers are drawn by all apps and processes, many for one
/// commit, so that a commit which takes a while may be overtaken by any number of others.
const AWAITED: Duration = Duration::from_secs(3);
/// Requests that are told from each other while they are looked at again. Of an app that has more the stream is a sample.
const MOST_SEEN: usize = 512;
/// By how much refused events may be older than others that were stored before them.
const LATE: Duration = Duration::from_secs(10);

/// Events that are there and were not sent.
#[derive(Default)]
struct Unseen {
    /// With the instants of their receipt.
    events: Vec<(EventKey, Timestamp)>,
    /// How many older ones there are besides.
    others: usize,
    /// The requests of those of them that would be looked at again.
    requests: Vec<i64>,
    /// The oldest refused event that was read, where there are older ones.
    refused_from: Option<Timestamp>,
}

/// The last of those that one look reads, where there may be more.
fn oldest_of_all<T>(newest_first: &[T]) -> Option<&T> {
    let is_all = newest_first.len() < usize::try_from(MOST_COUNTED).unwrap_or(usize::MAX);
    newest_first.last().filter(|_| !is_all)
}

/// A stream of one client.
pub(super) struct EventStream {
    services: Shared,
    app_id: Uuid,
    filter: Filter,
    /// Names the stream's marks.
    sealed_for: String,
    /// Until when the client's token is good.
    until: Timestamp,
    /// The session of the console that it came with, and when it was last found to go on.
    session: Option<SessionKey>,
    checked_at: Instant,
    commits: Option<watch::Receiver<()>>,
    /// How far numbers may overtake each other.
    overlap: i64,
    /// The greatest number that was looked at.
    top: i64,
    /// Numbers from here on are looked at.
    floor: i64,
    /// The first floor but for what the stream went on from, which is looked for once.
    first_floor: i64,
    /// Floors of the last looks, each of which holds once nothing below it is awaited any longer.
    next_floors: VecDeque<(Instant, i64)>,
    /// Refused events from here on are looked at.
    refused_from: Timestamp,
    /// Where the stream went on: what was sent before.
    resumed: Option<Mark>,
    /// The requests whose events were sent, or were there before, of what is looked at again.
    seen: BTreeSet<i64>,
    /// The same of refused events, by the instants of their receipt.
    seen_refused: BTreeSet<(Timestamp, EventKey)>,
    /// What was sent, as the client is told at the beginning, with each event and in silence.
    sent: Mark,
    /// How many events may be sent now.
    credit: f64,
    looked_at: Instant,
    is_sampling: bool,
    sent_at: Instant,
    has_begun: bool,
    _place: Share,
}

impl EventStream {
    /// A stream from now on, or from where another one ended.
    pub(super) async fn open(
        services: Shared,
        scope: &Scope,
        filter: Filter,
        last: Option<&str>,
        place: Share,
    ) -> Result<Self, ApiError> {
        let (app_id, now) = (scope.app.id, services.clock.now());
        let sealed_for = format!("stream {app_id}");
        let last: Option<Mark> = last
            .map(|last| cursor::decode(&services.secrets, &sealed_for, last, now))
            .transpose()?;
        let overlap = match services.db.dialect() {
            Dialect::Sqlite => 0,
            Dialect::Postgres => OVERTAKEN * SEQ_BLOCK,
        };
        let mut tx = services.db.read().await?;
        let newest = store::newest_seq(&mut tx).await?;
        drop(tx);
        // Numbers that were lost are given anew, to events that nobody was sent.
        let last = last.filter(|last| !last.is_beyond(newest));
        let mut stream = Self {
            app_id,
            filter,
            sealed_for,
            until: scope.until,
            session: scope.session.clone(),
            checked_at: Instant::now(),
            commits: services.db.commits(),
            overlap,
            top: newest,
            floor: last.map_or(newest - overlap, |last| last.floor()),
            first_floor: newest - overlap,
            next_floors: VecDeque::new(),
            refused_from: last.map_or(now.minus(LATE), |last| last.at),
            resumed: last,
            seen: BTreeSet::new(),
            seen_refused: BTreeSet::new(),
            sent: last.unwrap_or(Mark::new(newest, now, overlap > 0)),
            credit: MOST_A_SECOND,
            looked_at: Instant::now(),
            is_sampling: false,
            sent_at: Instant::now(),
            has_begun: false,
            services,
            _place: place,
        };
        if last.is_none() {
            // What is there already is not new.
            let there = stream.unseen(stream.floor).await?;
            stream.note_seen(&there.events);
            stream.note_requests(&there.requests);
        }
        Ok(stream)
    }

    /// The response whose body it is.
    pub(super) fn answer(self) -> Response {
        let chunks = stream::unfold(self, |mut stream| async move {
            let chunk = stream.next().await?;
            Some((Ok::<_, Infallible>(chunk), stream))
        });
        let mut response = Response::new(Body::from_stream(chunks));
        let headers = response.headers_mut();
        let media_type = HeaderValue::from_static("text/event-stream");
        headers.insert(header::CONTENT_TYPE, media_type);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Some proxies gather answers unless they are told not to.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        response
    }

    /// What to send next; none: the stream has ended.
    async fn next(&mut self) -> Option<String> {
        if !self.has_begun {
            self.has_begun = true;
            // Whoever is interrupted before the first event goes on from here.
            let id = self.last_event_id(self.services.clock.now());
            return Some(format!("retry: 1000\nid: {id}\n\n"));
        }
        let stop = self.services.stop.clone();
        loop {
            if stop.is_cancelled() || self.services.clock.now() >= self.until {
                return None;
            }
            // However fast the client takes what is sent.
            tokio::select! {
                () = tokio::time::sleep(self.pause()) => {}
                () = stop.cancelled() => return None,
            }
            let text = match self.found().await {
                Ok(Some(text)) => text,
                Ok(None) => return None,
                Err(error) => {
                    // The client comes back, and goes on where it was.
                    tracing::warn!(error = ?error, "a stream of events ends");
                    return None;
                }
            };
            if !text.is_empty() {
                self.sent_at = Instant::now();
                return Some(text);
            }
            if self.sent_at.elapsed() >= HEARTBEAT {
                let app = self.services.apps.get(self.app_id).await;
                app.ok().flatten()?;
                self.sent_at = Instant::now();
                // An id is good for a day. Where nothing is sent for longer, the client goes on from this one.
                let id = self.last_event_id(self.services.clock.now());
                return Some(format!(": heartbeat\nid: {id}\n\n"));
            }
            tokio::select! {
                () = self.wait() => {}
                () = stop.cancelled() => return None,
            }
        }
    }

    /// What is new, as far as it may be sent; none: the client's session has been ended.
    async fn found(&mut self) -> nudge_db::Result<Option<String>> {
        if !self.may_go_on(HEARTBEAT).await? {
            return Ok(None);
        }
        let text = self.look().await?;
        let goes_on = text.is_empty() || self.may_go_on(SESSION_AGAIN).await?;
        Ok(goes_on.then_some(text))
    }

    /// Whether the client's session has not been ended, as of so long ago at the most. A stream that is open is no use of
    /// its session.
    async fn may_go_on(&mut self, as_of: Duration) -> nudge_db::Result<bool> {
        let Some(session) = &self.session else {
            return Ok(true);
        };
        if self.checked_at.elapsed() < as_of {
            return Ok(true);
        }
        self.checked_at = Instant::now();
        console::is_open(&self.services, session).await
    }

    /// How long the next look is to wait.
    fn pause(&self) -> Duration {
        let pause = if self.is_sampling {
            SAMPLING_PAUSE
        } else {
            PAUSE
        };
        pause.saturating_sub(self.looked_at.elapsed())
    }

    /// Waits for something new, where that is told, or for the time of a heartbeat.
    async fn wait(&mut self) {
        if let Some(commits) = &mut self.commits {
            let left = HEARTBEAT.saturating_sub(self.sent_at.elapsed());
            // Whichever comes first: the loop looks at both.
            let _ = tokio::time::timeout(left, commits.changed()).await;
        }
    }

    /// What is new, as far as it may be sent.
    async fn look(&mut self) -> nudge_db::Result<String> {
        let now = self.services.clock.now();
        let mut tx = self.services.db.read().await?;
        let newest = store::newest_seq(&mut tx).await?;
        drop(tx);
        self.top = self.top.max(newest);
        let floor = self.next_floor();
        let Unseen {
            events: mut new,
            others,
            requests,
            refused_from,
        } = self.unseen(floor).await?;
        self.credit += self.looked_at.elapsed().as_secs_f64() * MOST_A_SECOND;
        self.credit = self.credit.min(MOST_A_SECOND);
        self.looked_at = Instant::now();
        let mut text = String::new();
        self.is_sampling = false;
        if !new.is_empty() {
            new.sort_unstable_by_key(|(key, at)| (*at, *key));
            let chosen = self.choose(&new, others, &mut text);
            self.note_requests(&requests);
            self.sent.settle(&new);
            let mut before = new.iter().peekable();
            for event in self.read(&chosen).await? {
                // What comes before it in order is settled, whether it was chosen or not.
                let position = (event.received_at, event.position().event);
                while let Some((key, _)) = before.next_if(|(key, at)| (*at, *key) < position) {
                    self.sent.pass(*key, position.1);
                }
                self.write(event, now, &mut text);
            }
            self.note_seen(&new);
        }
        self.floor = floor;
        self.refused_from = self.refused_from.max(now.minus(LATE));
        self.refused_from = self.refused_from.max(refused_from.unwrap_or_default());
        if let Some(first) = self.seen.iter().rev().nth(MOST_SEEN) {
            self.floor = self.floor.max((first + 1) * SEQ_BLOCK - 1);
        }
        self.sent.looked_through(self.floor, self.refused_from);
        self.seen = self.seen.split_off(&request_of(self.floor));
        let first = (self.refused_from, EventKey::Rejected(Uuid::nil()));
        self.seen_refused = self.seen_refused.split_off(&first);
        Ok(text)
    }

    /// Where numbers are looked at from after this look.
    fn next_floor(&mut self) -> i64 {
        // One process that has the database for itself commits in the order of the numbers.
        let awaited = if self.overlap == 0 {
            Duration::ZERO
        } else {
            AWAITED
        };
        self.next_floors
            .push_back((Instant::now(), self.top - self.overlap));
        let mut floor = self.floor.max(self.first_floor);
        while let Some((_, next)) = self
            .next_floors
            .pop_front_if(|(since, _)| since.elapsed() >= awaited)
        {
            floor = floor.max(next);
        }
        floor
    }

    fn note_seen(&mut self, events: &[(EventKey, Timestamp)]) {
        for (key, at) in events {
            match key {
                EventKey::Accepted(seq) => self.note_requests(&[request_of(*seq)]),
                EventKey::Rejected(_) => {
                    self.seen_refused.insert((*at, *key));
                }
            }
        }
    }

    fn note_requests(&mut self, requests: &[i64]) {
        for request in requests {
            self.sent.note_all_of(*request);
            self.seen.insert(*request);
        }
    }

    /// Events that are there and were not sent. `next_floor`: where numbers are looked at from the next time.
    async fn unseen(&self, next_floor: i64) -> nudge_db::Result<Unseen> {
        let mut tx = self.services.db.read().await?;
        let (app_id, filter) = (self.app_id, &self.filter);
        let mut unseen = Unseen::default();
        if filter.wants(EventVerdict::Accepted) {
            let settled = self.settled();
            let unsent = Unsent {
                app_id,
                filter,
                floor: self.floor,
                settled: &settled,
            };
            let seqs = store::unsent_seqs(&mut tx, unsent, MOST_COUNTED).await?;
            if let Some((oldest, _)) = oldest_of_all(&seqs) {
                unseen.others = store::count_unsent(&mut tx, unsent, *oldest).await?;
                let again = Unsent {
                    floor: next_floor,
                    ..unsent
                };
                let end = request_of(*oldest) * SEQ_BLOCK;
                unseen.requests = store::unsent_requests(&mut tx, again, end).await?;
            }
            let events = seqs.into_iter();
            let events = events.map(|(seq, at)| (EventKey::Accepted(seq), at));
            unseen.events.extend(events);
        }
        if filter.wants(EventVerdict::Rejected) {
            let from = self.refused_from;
            let refused = store::refused_since(&mut tx, app_id, filter, from, MOST_COUNTED).await?;
            if let Some((id, at)) = oldest_of_all(&refused) {
                let there = store::count_refused(&mut tx, app_id, filter, from, (*id, *at)).await?;
                let before = self.seen_refused.range(..(*at, EventKey::Rejected(*id)));
                unseen.others += there.saturating_sub(before.count());
                unseen.refused_from = Some(*at);
            }
            let events = refused.into_iter();
            let events = events.map(|(id, at)| (EventKey::Rejected(id), at));
            unseen.events.extend(events);
        }
        unseen.events.retain(|(key, at)| match key {
            EventKey::Accepted(seq) => {
                // A part of its request was.
                !self.resumed.is_some_and(|mark| mark.has(*seq))
            }
            EventKey::Rejected(id) => {
                let was_sent = self.resumed.is_some_and(|mark| mark.has_refused(*id, *at));
                !was_sent && !self.seen_refused.contains(&(*at, *key))
            }
        });
        Ok(unseen)
    }

    /// The requests above the floor whose events were sent, or were there before.
    fn settled(&self) -> Vec<i64> {
        let resumed = self.resumed.iter().flat_map(Mark::done);
        let first = request_of(self.floor);
        let all = self.seen.iter().copied().chain(resumed);
        all.filter(|request| *request >= first).collect()
    }

    /// Which of the new events to send, in order: all, unless they are more than a second may have. A time that the
    /// stream was away counts, so that what was missed is sent.
    /// `others`: how many more are new.
    fn choose(
        &mut self,
        new: &[(EventKey, Timestamp)],
        others: usize,
        text: &mut String,
    ) -> Vec<EventKey> {
        let at = |one: Option<&(EventKey, Timestamp)>| one.map_or(0, |(_, at)| at.0);
        let span = Duration::from_micros(at(new.last()).abs_diff(at(new.first())));
        let away = (span.as_secs_f64() - 1.0).max(0.0) * MOST_A_SECOND;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small number of events"
        )]
        let most = (self.credit + away).max(1.0) as usize;
        let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
        if new.len() <= most && others == 0 {
            self.credit = (self.credit - count(new.len())).max(0.0);
            return new.iter().map(|(key, _)| *key).collect();
        }
        self.credit = 0.0;
        self.is_sampling = true;
        let most = most.min(new.len());
        let rate = count(most) / count(new.len() + others);
        // Writing to a String can't fail.
        let _ = write!(text, "event: sampled\ndata: {{\"rate\":{rate:.4}}}\n\n");
        // Spread over all of them.
        let chosen = (0..most).filter_map(|place| new.get(place * new.len() / most));
        chosen.map(|(key, _)| *key).collect()
    }

    /// Reads events, in the order of their receipt.
    async fn read(&self, keys: &[EventKey]) -> nudge_db::Result<Vec<FeedEvent>> {
        let (mut seqs, mut refused) = (Vec::new(), Vec::new());
        for key in keys {
            match key {
                EventKey::Accepted(seq) => seqs.push(*seq),
                EventKey::Rejected(id) => refused.push(*id),
            }
        }
        let mut tx = self.services.db.read().await?;
        let mut events = store::at(&mut tx, self.app_id, &seqs).await?;
        events.extend(store::refused(&mut tx, self.app_id, &refused).await?);
        events.sort_unstable_by_key(FeedEvent::position);
        Ok(events)
    }

    /// What a client says, as `Last-Event-ID`, to go on after what was sent.
    fn last_event_id(&self, now: Timestamp) -> String {
        let expires = now.plus(cursor::LIFETIME);
        cursor::encode(
            &self.services.secrets,
            &self.sealed_for,
            &self.sent,
            expires,
        )
    }

    fn write(&mut self, event: FeedEvent, now: Timestamp, text: &mut String) {
        self.sent.note(event.position());
        let id = self.last_event_id(now);
        let view = FeedEventView::from(event);
        // JSON has no ends of lines but those of its properties, which came from people.
        let data = serde_json::to_string(&view).unwrap_or_default();
        let data = data.replace(['\n', '\r'], " ");
        // Writing to a String can't fail.
        let _ = write!(text, "event: event\nid: {id}\ndata: {data}\n\n");
    }
}
