//! What trigger plugins can ask about a batch's subjects.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use nudge_campaigns::campaign::Kind;
use nudge_db::{Db, Timestamp, Tx};
use nudge_platform::clock;
use nudge_platform::secrets::hexadecimal;
use nudge_records::decisions::transcript::{HistoryQuestion, Transcript};
use nudge_records::events;
use nudge_wasm::trigger::Facts;
use nudge_wasm::{FactsUnavailable, PastEvent, Value};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::projection::Subject;
use super::store;
use super::store::plugin_states::StoredState;
use crate::audience::interactions;
use crate::history::NewestQuestion;

/// How many of the newest events of a name the first question about them reads.
const NEWEST: u32 = 32;
/// Of how many subjects the first question about interactions or properties reads them.
const AT_ONCE: usize = 64;
/// The fact that says which firings the host held back.
const HELD_BACK: &str = "held_back";
/// The fact that says what plugins kept of people who were merged into the subject.
const MERGED: &str = "merged_states";

/// What is known about a batch. Grows while parts of the batch are evaluated one after another.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pub app_id: Uuid,
    pub db: Db,
    pub runtime: Handle,
    /// The subjects as of before the batch.
    pub subjects: Vec<Subject>,
    /// Saved properties by subject and key.
    pub properties: HashMap<(Uuid, String), Value>,
    /// Plugin states by campaign (its number in the app) and subject.
    pub states: HashMap<(usize, u32), Vec<u8>>,
    /// Events of the batch that were evaluated in an earlier part.
    pub earlier: Vec<EarlierEvent>,
    /// Aliases by subject, once they were asked for.
    pub aliases: HashMap<Uuid, Vec<i64>>,
    /// When the batch was read: interactions after it are none of its facts.
    pub until: Timestamp,
    /// What was read already, so that many campaigns that ask alike cost no more than one.
    pub read: Read,
}

/// An event of a batch, for the later parts of the batch.
#[derive(Clone, Debug)]
pub(super) struct EarlierEvent {
    /// Its subject's number in the batch.
    pub subject: u32,
    pub name: Arc<str>,
    pub seq: i64,
    pub event: PastEvent,
}

/// Answers of the database that are asked for again.
#[derive(Clone, Debug, Default)]
pub(super) struct Read {
    /// The newest events of a subject and name.
    newest: HashMap<(u32, String), Newest>,
    /// Counts of events.
    counts: HashMap<HistoryQuestion, u32>,
    /// Interactions by fact and subject.
    interactions: HashMap<String, HashMap<u32, String>>,
    /// By subject and campaign the event whose firing was held back last.
    held_back: HashMap<u32, BTreeMap<Uuid, Uuid>>,
    /// By subject and campaign what a plugin keeps of it and of people who were merged into it.
    merged: HashMap<u32, serde_json::Map<String, serde_json::Value>>,
    /// Subjects whose saved properties nobody was expected to ask for: they are read when somebody does.
    pub without_properties: BTreeSet<u32>,
    /// Why the last question was not answered.
    failure: Option<nudge_db::Error>,
}

impl Read {
    /// What stands beside states, by subject and campaign.
    pub(super) fn beside(states: impl Iterator<Item = (u32, Uuid, StoredState)>) -> Self {
        let mut read = Self::default();
        for (subject, campaign_id, stored) in states {
            if let Some(event_id) = stored.held_back {
                let of_subject = read.held_back.entry(subject).or_default();
                of_subject.insert(campaign_id, event_id);
            }
            if let Some(merged) = stored.merged {
                let others = serde_json::from_str(&merged).unwrap_or_else(|error| {
                    tracing::error!(%campaign_id, %error, "the merged states of a plugin can't be read");
                    serde_json::Value::Null
                });
                let both = serde_json::json!({"own": hexadecimal(&stored.state), "others": others});
                let of_subject = read.merged.entry(subject).or_default();
                of_subject.insert(campaign_id.to_string(), both);
            }
        }
        read
    }

    fn interactions(&self, subject: u32, fact: &str) -> Option<&str> {
        Some(self.interactions.get(fact)?.get(&subject)?.as_str())
    }

    fn merged(&self, subject: u32) -> Option<Value> {
        let states = self.merged.get(&subject)?.clone();
        Some(Value::Json(serde_json::Value::Object(states).to_string()))
    }

    fn held_back(&self, subject: u32) -> Option<Value> {
        let firings = self.held_back.get(&subject)?.iter();
        let firings =
            firings.map(|(campaign, event)| (campaign.to_string(), event.to_string().into()));
        let firings: serde_json::Map<_, _> = firings.collect();
        Some(Value::Json(serde_json::Value::Object(firings).to_string()))
    }
}

/// When a subject's newest events of a name were, newest first.
#[derive(Clone, Debug)]
struct Newest {
    timestamps: Vec<i64>,
    /// Whether there are no others.
    complete: bool,
}

impl Newest {
    /// How many happened at or after an instant, up to a number; none: they do not say.
    fn count(&self, since: i64, at_most: u32) -> Option<u32> {
        let counted = self
            .timestamps
            .iter()
            .take_while(|at| **at >= since)
            .count();
        let knows = self.complete || counted < self.timestamps.len() || counted >= at_most as usize;
        let counted = u32::try_from(counted).unwrap_or(u32::MAX);
        knows.then_some(counted.min(at_most))
    }
}

/// A ledger, for a call about some of the app's campaigns.
pub(super) struct View {
    pub ledger: Arc<Mutex<Ledger>>,
    /// For each campaign of the call its number in the app.
    pub campaigns: Vec<usize>,
    /// Takes down what is asked, if that is kept.
    pub transcript: Option<Transcript>,
}

impl View {
    fn with<T>(&self, use_ledger: impl FnOnce(&mut Ledger) -> T) -> T {
        use_ledger(&mut self.ledger.lock())
    }

    /// What the database answers. Why it does not stays in the ledger.
    fn answer<T>(
        &self,
        ask: impl FnOnce(&mut Ledger) -> nudge_db::Result<T>,
    ) -> Result<T, FactsUnavailable> {
        self.with(|ledger| {
            ask(ledger).map_err(|error| {
                let unavailable = unavailable(&error);
                ledger.read.failure = Some(error);
                unavailable
            })
        })
    }
}

impl Ledger {
    /// Reads ahead when the newest events of some names were, of subjects whose campaigns count them: one statement instead
    /// of one for each question of a plugin. Of several aliases the newest are in no index's order; they are asked for one by one.
    /// No event has a name that can't be one, and a database may refuse to look for it.
    pub(super) async fn read_ahead(
        &mut self,
        tx: &mut Tx,
        asked: &BTreeSet<(u32, &str)>,
    ) -> nudge_db::Result<()> {
        let subjects: BTreeSet<Uuid> = asked
            .iter()
            .filter_map(|(subject, _)| Some(self.subject(*subject)?.id))
            .filter(|id| !self.aliases.contains_key(id))
            .collect();
        let subjects: Vec<Uuid> = subjects.into_iter().collect();
        self.aliases
            .extend(crate::history::aliases_of(tx, self.app_id, &subjects).await?);
        let (mut places, mut questions) = (Vec::new(), Vec::new());
        for (number, name) in asked.iter().filter(|(_, name)| events::is_name(name)) {
            let Some(subject) = self.subject(*number) else {
                continue;
            };
            if let Some([alias]) = self.aliases.get(&subject.id).map(Vec::as_slice) {
                places.push((*number, (*name).to_owned()));
                questions.push(NewestQuestion {
                    alias: *alias,
                    name: (*name).to_owned(),
                    last_seq: subject.last_seq,
                });
            }
        }
        let newest = crate::history::newest_of_many(tx, self.app_id, &questions, NEWEST).await?;
        for (place, timestamps) in places.into_iter().zip(newest) {
            let complete = timestamps.len() < NEWEST as usize;
            let newest = Newest {
                timestamps,
                complete,
            };
            self.read.newest.insert(place, newest);
        }
        Ok(())
    }

    /// Why the last question was not answered.
    pub(super) fn take_failure(&mut self) -> nudge_db::Error {
        let unknown = || nudge_db::Error::unavailable(std::io::Error::other("no facts"));
        self.read.failure.take().unwrap_or_else(unknown)
    }

    fn subject(&self, subject: u32) -> Option<&Subject> {
        self.subjects.get(subject as usize)
    }

    fn aliases_of(&mut self, subject_id: Uuid) -> nudge_db::Result<Vec<i64>> {
        if let Some(known) = self.aliases.get(&subject_id) {
            return Ok(known.clone());
        }
        let (db, app_id) = (self.db.clone(), self.app_id);
        let aliases = self.runtime.block_on(async move {
            let mut tx = db.read().await?;
            crate::history::aliases(&mut tx, app_id, subject_id).await
        })?;
        self.aliases.insert(subject_id, aliases.clone());
        Ok(aliases)
    }

    /// A subject's events of a name since an instant, of the batch's earlier parts.
    fn earlier_events(
        &self,
        subject: u32,
        name: &str,
        since: Option<i64>,
    ) -> impl Iterator<Item = &EarlierEvent> {
        self.earlier.iter().filter(move |earlier| {
            earlier.subject == subject
                && *earlier.name == *name
                && since.is_none_or(|since| earlier.event.timestamp >= since)
        })
    }

    /// Events of before the batch, and then those of its earlier parts.
    fn recent(
        &mut self,
        subject: u32,
        name: &str,
        since: Option<i64>,
        limit: u32,
    ) -> nudge_db::Result<Vec<(i64, PastEvent)>> {
        let Some((subject_id, last_seq)) = self
            .subject(subject)
            .map(|found| (found.id, found.last_seq))
        else {
            return Ok(Vec::new());
        };
        let aliases = self.aliases_of(subject_id)?;
        let (db, app_id, name_owned) = (self.db.clone(), self.app_id, name.to_owned());
        let mut events = self.runtime.block_on(async move {
            let mut tx = db.read().await?;
            crate::history::recent_events(
                &mut tx,
                app_id,
                &aliases,
                &name_owned,
                since,
                last_seq,
                limit,
            )
            .await
        })?;
        let of_batch = self.earlier_events(subject, name, since);
        events.extend(of_batch.map(|earlier| (earlier.seq, earlier.event.clone())));
        events.sort_by_key(|(seq, event)| std::cmp::Reverse((event.timestamp, *seq)));
        events.truncate(limit as usize);
        Ok(events)
    }

    fn count(
        &mut self,
        subject: u32,
        name: &str,
        since: Option<i64>,
        at_most: u32,
    ) -> nudge_db::Result<u32> {
        let Some((subject_id, last_seq)) = self
            .subject(subject)
            .map(|found| (found.id, found.last_seq))
        else {
            return Ok(0);
        };
        let stored = self.stored(
            subject,
            subject_id,
            name,
            since.unwrap_or(i64::MIN),
            at_most,
            last_seq,
        )?;
        let of_batch = self.earlier_events(subject, name, since).count();
        let count = stored.saturating_add(u32::try_from(of_batch).unwrap_or(u32::MAX));
        Ok(count.min(at_most))
    }

    /// How many events were before the batch. The newest of a name are read at once: questions of other campaigns
    /// are mostly about the same ones. Of several aliases the newest are in no index's order.
    fn stored(
        &mut self,
        subject: u32,
        subject_id: Uuid,
        name: &str,
        since: i64,
        at_most: u32,
        last_seq: i64,
    ) -> nudge_db::Result<u32> {
        let of_name = (subject, name.to_owned());
        if let Some(newest) = self.read.newest.get(&of_name)
            && let Some(count) = newest.count(since, at_most)
        {
            return Ok(count);
        }
        let question = HistoryQuestion::new(subject, name, Some(since), at_most);
        if let Some(count) = self.read.counts.get(&question) {
            return Ok(*count);
        }
        let aliases = self.aliases_of(subject_id)?;
        let (db, app_id, name) = (self.db.clone(), self.app_id, name.to_owned());
        if let [alias] = aliases[..] {
            let limit = at_most.max(NEWEST);
            let timestamps = self.runtime.block_on(async move {
                let mut tx = db.read().await?;
                crate::history::newest_events(&mut tx, app_id, alias, &name, last_seq, limit).await
            })?;
            let complete = timestamps.len() < limit as usize;
            let newest = Newest {
                timestamps,
                complete,
            };
            let count = newest.count(since, at_most).unwrap_or(at_most);
            self.read.newest.insert(of_name, newest);
            return Ok(count);
        }
        let count = self.runtime.block_on(async move {
            let mut tx = db.read().await?;
            crate::history::count_events(
                &mut tx,
                app_id,
                &aliases,
                &name,
                Some(since),
                last_seq,
                at_most,
            )
            .await
        })?;
        self.read.counts.insert(question, count);
        Ok(count)
    }

    /// A saved property. Of a subject whose properties were not read, and of others of the batch, all are read at once.
    fn property(&mut self, subject: u32, key: &str) -> nudge_db::Result<Option<Value>> {
        if self.read.without_properties.contains(&subject) {
            self.read_properties(subject)?;
        }
        let of_subject = self.subject(subject).map(|it| (it.id, key.to_owned()));
        Ok(of_subject.and_then(|place| self.properties.get(&place).cloned()))
    }

    /// Reads the properties of a subject and of those after it that have not been read.
    fn read_properties(&mut self, subject: u32) -> nudge_db::Result<()> {
        let unread = self.read.without_properties.range(subject..);
        let asked: Vec<u32> = unread.take(AT_ONCE).copied().collect();
        let ids = asked
            .iter()
            .filter_map(|asked| Some(self.subject(*asked)?.id));
        let ids: Vec<Uuid> = ids.collect();
        let (db, app_id) = (self.db.clone(), self.app_id);
        let properties = self.runtime.block_on(async move {
            let mut tx = db.read().await?;
            store::properties(&mut tx, app_id, &ids).await
        })?;
        self.properties.extend(properties);
        for asked in asked {
            self.read.without_properties.remove(&asked);
        }
        Ok(())
    }

    /// What a subject did with campaigns of a kind, as the fact of this name says it. The same of other subjects of the
    /// batch is read at once: who asks about one asks about the next.
    fn interactions(
        &mut self,
        subject: u32,
        fact: &str,
        kind: Kind,
    ) -> nudge_db::Result<Option<Value>> {
        if let Some(known) = self.read.interactions(subject, fact) {
            return Ok(Some(Value::Json(known.to_owned())));
        }
        let others = (0..).take(self.subjects.len()).skip(subject as usize);
        let asked: Vec<u32> = others
            .filter(|other| self.read.interactions(*other, fact).is_none())
            .take(AT_ONCE)
            .collect();
        let ids = asked
            .iter()
            .filter_map(|asked| Some(self.subject(*asked)?.id));
        let ids: Vec<Uuid> = ids.collect();
        let (db, until) = (self.db.clone(), self.until);
        let texts = self.runtime.block_on(async move {
            let mut tx = db.read().await?;
            interactions::of_subjects(&mut tx, &ids, kind, until).await
        })?;
        let known = self.read.interactions.entry(fact.to_owned()).or_default();
        known.extend(asked.into_iter().zip(texts));
        let answer = known.get(&subject).cloned();
        Ok(answer.map(Value::Json))
    }
}

impl Facts for View {
    fn subject_property(
        &mut self,
        subject: u32,
        key: &str,
    ) -> Result<Option<Value>, FactsUnavailable> {
        let answer = self.answer(|ledger| ledger.property(subject, key))?;
        if let Some(transcript) = &self.transcript {
            transcript.property(subject, key, answer.as_ref());
        }
        Ok(answer)
    }

    fn subject_fact(
        &mut self,
        subject: u32,
        name: &str,
    ) -> Result<Option<Value>, FactsUnavailable> {
        let answer = match interactions::kind_of(name) {
            Some(kind) => self.answer(|ledger| ledger.interactions(subject, name, kind))?,
            None if name == HELD_BACK => self.with(|ledger| ledger.read.held_back(subject)),
            None if name == MERGED => self.with(|ledger| ledger.read.merged(subject)),
            None => self.with(|ledger| fact(ledger.subject(subject)?, name)),
        };
        if let Some(transcript) = &self.transcript {
            transcript.fact(subject, name, answer.as_ref());
        }
        Ok(answer)
    }

    fn count_events(
        &mut self,
        subject: u32,
        name: &str,
        since: Option<i64>,
        at_most: u32,
    ) -> Result<u32, FactsUnavailable> {
        let answer = self.answer(|ledger| ledger.count(subject, name, since, at_most))?;
        if let Some(transcript) = &self.transcript {
            let question = HistoryQuestion::new(subject, name, since, at_most);
            transcript.count(question, answer);
        }
        Ok(answer)
    }

    fn recent_events(
        &mut self,
        subject: u32,
        name: &str,
        since: Option<i64>,
        limit: u32,
    ) -> Result<Vec<PastEvent>, FactsUnavailable> {
        let answer = self.answer(|ledger| ledger.recent(subject, name, since, limit))?;
        let (seqs, events): (Vec<i64>, _) = answer.into_iter().unzip();
        if let Some(transcript) = &self.transcript {
            let question = HistoryQuestion::new(subject, name, since, limit);
            transcript.history(question, seqs);
        }
        Ok(events)
    }

    fn state(&mut self, campaign: u32, subject: u32) -> Option<Vec<u8>> {
        let number = *self.campaigns.get(campaign as usize)?;
        let answer = self.with(|ledger| ledger.states.get(&(number, subject)).cloned());
        if let Some(transcript) = &self.transcript {
            transcript.state(campaign, subject, answer.as_deref());
        }
        answer
    }
}

pub(super) fn unavailable(error: &nudge_db::Error) -> FactsUnavailable {
    tracing::warn!(error = ?error, "a plugin's question could not be answered");
    FactsUnavailable
}

/// A fact as `nudge:plugin` names it.
pub(super) fn fact(subject: &Subject, name: &str) -> Option<Value> {
    let text = |text: &Option<String>| text.clone().map(Value::Text);
    match name {
        "platform" => text(&subject.platform),
        "country" => text(&subject.country),
        "locale" => text(&subject.locale),
        "timezone" => text(&subject.timezone),
        "app_version" => text(&subject.app_version),
        "external_id" => text(&subject.external_id),
        "identified" => Some(Value::Boolean(subject.external_id.is_some())),
        "first_seen_at" => Some(Value::Text(clock::to_text(subject.first_seen_at))),
        "last_seen_at" => Some(Value::Text(clock::to_text(subject.last_seen_at))),
        #[expect(clippy::cast_precision_loss, reason = "nobody has 2^53 events")]
        "event_count" => Some(Value::Number(subject.event_count as f64)),
        _ => None,
    }
}
