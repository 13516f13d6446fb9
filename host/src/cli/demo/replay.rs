//! Sends the recording as the SDKs of all those people would: each in order, many at a time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use nudge_db::Timestamp;
use nudge_platform::clock;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::client::{Client, Ingested, Session};
use super::recording::Batch;

/// People whose requests are under way at the same time.
const IN_FLIGHT: usize = 32;
/// Batches that wait for their turn, for each of them: few, so that time goes on evenly for everybody.
const AHEAD: usize = 2;
/// Events that a request may ask instructions for.
const MOST_DELIVERY_IDS: usize = 20;

/// What the SDKs saw.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    pub people: Vec<Person>,
    pub sent: usize,
    pub accepted: usize,
    /// Of the accepted: events that had been accepted before.
    pub again: usize,
    pub rejected: usize,
    pub reasons: BTreeMap<String, usize>,
    /// Rejected events that were kept.
    pub letters: HashSet<Uuid>,
    /// Instructions that came in the answer to the event that fired them.
    pub at_once: HashSet<Uuid>,
    /// How long requests took that asked for instructions, and those that did not.
    pub with_delivery: Vec<Duration>,
    pub without_delivery: Vec<Duration>,
}

/// Somebody with a session.
#[derive(Debug)]
pub(super) struct Person {
    pub anonymous_id: String,
    pub session: Session,
    accepted: HashSet<Uuid>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IngestBody<'a> {
    context: &'a Map<String, Value>,
    events: Vec<EventBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery: Option<Delivery>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventBody<'a> {
    event_id: &'a str,
    name: &'a str,
    timestamp: String,
    anonymous_id: &'a str,
    properties: &'a Map<String, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Delivery {
    event_ids: Vec<Uuid>,
}

/// When an event of the recording happened, if the replay starts at `start`.
pub(super) fn happened(start: Timestamp, offset_seconds: i64) -> Timestamp {
    let offset = Timestamp::from_seconds(offset_seconds);
    Timestamp(start.0.saturating_add(offset.0))
}

/// Replays all batches, in the order of time.
pub(super) async fn run(
    client: &Arc<Client>,
    batches: &Arc<Vec<Batch>>,
    start: Timestamp,
    progress: &ProgressBar,
) -> anyhow::Result<Replayed> {
    let mut senders = Vec::with_capacity(IN_FLIGHT);
    let mut workers = JoinSet::new();
    for _ in 0..IN_FLIGHT {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let (client, batches) = (Arc::clone(client), Arc::clone(batches));
        workers.spawn(work(client, batches, start, progress.clone(), receiver));
        senders.push(sender);
    }
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (index, batch) in batches.iter().enumerate() {
        let next = seen.len();
        let person = *seen.entry(batch.anonymous_id.as_str()).or_insert(next);
        let sender = senders.get(person % IN_FLIGHT);
        // A worker that is gone has failed: joining it tells why.
        if let Some(sender) = sender
            && sender.send(index).await.is_err()
        {
            break;
        }
    }
    drop(senders);
    let mut all = Replayed::default();
    while let Some(done) = workers.join_next().await {
        all.add(done??);
    }
    progress.finish_and_clear();
    Ok(all)
}

/// Sends what comes, one batch after the other.
async fn work(
    client: Arc<Client>,
    batches: Arc<Vec<Batch>>,
    start: Timestamp,
    progress: ProgressBar,
    mut receiver: mpsc::Receiver<usize>,
) -> anyhow::Result<Replayed> {
    let mut seen = Replayed::default();
    let mut places: HashMap<&str, usize> = HashMap::new();
    while let Some(batch) = receiver.recv().await.and_then(|index| batches.get(index)) {
        let place = *places
            .entry(batch.anonymous_id.as_str())
            .or_insert(seen.people.len());
        if place == seen.people.len() {
            let platform = batch.context.get("platform");
            seen.people.push(Person {
                anonymous_id: batch.anonymous_id.clone(),
                session: client.start_session(&batch.anonymous_id, platform).await?,
                accepted: HashSet::new(),
            });
        }
        let Some(person) = seen.people.get(place) else {
            continue;
        };
        let body = body(batch, start);
        let began = Instant::now();
        let answer = client.ingest(&person.session, &body).await?;
        let elapsed = began.elapsed();
        match body.delivery {
            Some(_) => seen.with_delivery.push(elapsed),
            None => seen.without_delivery.push(elapsed),
        }
        seen.count(place, batch, answer);
        progress.inc(u64::try_from(batch.events.len()).unwrap_or_default());
    }
    Ok(seen)
}

/// A batch as an SDK sends it. It asks for instructions where the number of events allows it.
fn body(batch: &Batch, start: Timestamp) -> IngestBody<'_> {
    let events = batch.events.iter().map(|event| EventBody {
        event_id: &event.id,
        name: &event.name,
        timestamp: clock::to_text(happened(start, event.offset_seconds)),
        anonymous_id: &batch.anonymous_id,
        properties: &event.properties,
    });
    let mut event_ids: Vec<Uuid> = batch
        .events
        .iter()
        .filter_map(|event| event.id.parse().ok())
        .collect();
    event_ids.sort_unstable();
    event_ids.dedup();
    let may_ask = batch.events.len() <= MOST_DELIVERY_IDS && !event_ids.is_empty();
    IngestBody {
        context: &batch.context,
        events: events.collect(),
        delivery: may_ask.then_some(Delivery { event_ids }),
    }
}

impl Replayed {
    fn count(&mut self, place: usize, batch: &Batch, answer: Ingested) {
        self.sent += batch.events.len();
        self.accepted += answer.accepted;
        self.rejected += answer.rejected;
        let refused: HashSet<usize> = answer.errors.iter().map(|error| error.index).collect();
        for error in answer.errors {
            *self.reasons.entry(error.code).or_default() += 1;
            self.letters.extend(error.dead_letter_id);
        }
        self.at_once
            .extend(answer.instructions.iter().map(|issued| issued.id));
        if let Some(person) = self.people.get_mut(place) {
            let taken = batch
                .events
                .iter()
                .enumerate()
                .filter(|(index, _)| !refused.contains(index));
            let ids = taken.filter_map(|(_, event)| event.id.parse().ok());
            self.again += ids.filter(|id| !person.accepted.insert(*id)).count();
        }
    }

    fn add(&mut self, other: Self) {
        self.people.extend(other.people);
        self.sent += other.sent;
        self.accepted += other.accepted;
        self.again += other.again;
        self.rejected += other.rejected;
        for (reason, count) in other.reasons {
            *self.reasons.entry(reason).or_default() += count;
        }
        self.letters.extend(other.letters);
        self.at_once.extend(other.at_once);
        self.with_delivery.extend(other.with_delivery);
        self.without_delivery.extend(other.without_delivery);
    }
}
