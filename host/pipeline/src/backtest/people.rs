//! What is known of subjects as of a recorded event.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use nudge_db::{Timestamp, Tx};
use nudge_platform::id;
use nudge_records::decisions::transcript::Heard;
use nudge_records::decisions::{self, Record};
use nudge_records::events::store::Stored;
use nudge_wasm::Value;
use uuid::Uuid;

use super::super::projection::{Session, Subject};
use super::super::store;
use super::Context;

/// What a subject takes besides its texts, about, in bytes.
const PERSON_BYTES: usize = 1 << 10;
/// Decisions of a subject since an event that are looked through for those about it. Others stand before them where
/// events arrive faster than they are decided about.
const MOST_DECISIONS: i64 = 16;

/// Facts that are known as of now until an event of the window tells them.
const TOLD: [&str; 4] = ["platform", "app_version", "locale", "country"];

/// Facts of which only the newest state is known.
const DONE: [&str; 2] = ["survey_interactions", "message_interactions"];

/// A subject, as the window goes on.
#[derive(Debug)]
struct Person {
    subject: Subject,
    aliases: Vec<i64>,
    properties: HashMap<(Uuid, String), Value>,
    /// When each property was last changed.
    updated_at: BTreeMap<String, Timestamp>,
    /// Facts that may have been others then.
    doubtful: BTreeSet<&'static str>,
}

/// What plugins may be told of a subject as of an event.
#[derive(Debug)]
pub(super) struct Scene {
    pub subject: Subject,
    pub aliases: Vec<i64>,
    pub properties: HashMap<(Uuid, String), Value>,
    doubtful_properties: BTreeSet<String>,
    doubtful_facts: BTreeSet<&'static str>,
}

impl Scene {
    /// Whether something that a plugin was told may have been otherwise then.
    pub(super) fn is_approximate(&self, heard: Option<&Heard>) -> bool {
        let Some(heard) = heard else {
            return !self.doubtful_properties.is_empty() || !self.doubtful_facts.is_empty();
        };
        let mut properties = heard.properties.keys();
        let mut facts = heard.facts.keys();
        properties.any(|(_, key)| self.doubtful_properties.contains(key))
            || facts.any(|(_, name)| self.doubtful_facts.contains(name.as_str()))
    }

    /// Takes properties from what a plugin was told when it decided about an event.
    fn recall(&mut self, record: &Record, seq: i64) {
        let item = record.items.iter().find(|item| item.seq == seq);
        let (Some(item), Some(heard)) = (item, &record.heard) else {
            return;
        };
        for ((subject, key), value) in &heard.properties {
            if *subject != item.subject || !self.doubtful_properties.remove(key) {
                continue;
            }
            let place = (self.subject.id, key.clone());
            match value {
                Some(value) => drop(self.properties.insert(place, value.clone())),
                None => drop(self.properties.remove(&place)),
            }
        }
    }
}

/// The subjects that a backtest has met.
#[derive(Debug)]
pub(super) struct People {
    context: Context,
    all: HashMap<Uuid, Person>,
    by_alias: HashMap<i64, Uuid>,
    pub bytes: usize,
}

#[derive(nudge_db::FromRow)]
struct TotalRow {
    count: i64,
    last: Option<Timestamp>,
}

#[derive(nudge_db::FromRow)]
struct UpdatedRow {
    key: String,
    updated_at: Timestamp,
}

impl People {
    pub(super) fn new(context: Context) -> Self {
        Self {
            context,
            all: HashMap::new(),
            by_alias: HashMap::new(),
            bytes: 0,
        }
    }

    /// The subject of an alias as of before an event. None: it is not there any more.
    pub(super) fn scene(&mut self, alias: i64, before: &Stored) -> nudge_db::Result<Option<Scene>> {
        if !self.by_alias.contains_key(&alias) {
            self.meet(alias, before)?;
        }
        let Some(id) = self.by_alias.get(&alias).copied() else {
            return Ok(None);
        };
        let Some(mut scene) = self.now(id, before.received_at) else {
            return Ok(None);
        };
        if !scene.doubtful_properties.is_empty() {
            self.recall(&mut scene, before)?;
        }
        Ok(Some(scene))
    }

    /// A subject that was met, as the window has come.
    pub(super) fn now(&self, id: Uuid, at: Timestamp) -> Option<Scene> {
        let person = self.all.get(&id)?;
        let later = person.updated_at.iter();
        let later = later.filter(|(_, updated_at)| **updated_at > at);
        Some(Scene {
            subject: person.subject.clone(),
            aliases: person.aliases.clone(),
            properties: person.properties.clone(),
            doubtful_properties: later.map(|(key, _)| key.clone()).collect(),
            doubtful_facts: person.doubtful.clone(),
        })
    }

    /// Adds to a scene what the events of its request, which were taken in, tell of where the subject is.
    pub(super) fn tell(&self, scene: &mut Scene) {
        if let Some(person) = self.all.get(&scene.subject.id) {
            scene.subject = scene.subject.clone().at(&person.subject);
            scene.doubtful_facts.clone_from(&person.doubtful);
        }
    }

    /// Takes an event in; answers its session. None: nobody was met under this alias.
    pub(super) fn take(&mut self, alias: i64, stored: &Stored) -> Option<Session> {
        let person = self.all.get_mut(self.by_alias.get(&alias)?)?;
        let origin = &stored.origin;
        let told = [
            &origin.platform,
            &origin.app_version,
            &origin.locale,
            &origin.locale,
        ];
        for (name, told) in TOLD.iter().zip(told) {
            if told.is_some() {
                person.doubtful.remove(name);
            }
        }
        Some(person.subject.take(stored))
    }

    fn meet(&mut self, alias: i64, before: &Stored) -> nudge_db::Result<()> {
        let context = self.context.clone();
        let person = self.context.runtime.block_on(async {
            let mut tx = context.db.read().await?;
            read(&mut tx, context.app_id, alias, before).await
        })?;
        if let Some(person) = person {
            let id = person.subject.id;
            let properties = person.properties.iter();
            let texts = properties.map(|((_, key), value)| key.len() + size(value));
            self.bytes += PERSON_BYTES + texts.sum::<usize>();
            let aliases = person.aliases.iter().map(|alias| (*alias, id));
            self.by_alias.extend(aliases);
            self.all.entry(id).or_insert(person);
        }
        Ok(())
    }

    /// Replaces what may have changed since by what plugins were told then, where that was kept.
    fn recall(&self, scene: &mut Scene, event: &Stored) -> nudge_db::Result<()> {
        let (context, subject_id) = (&self.context, scene.subject.id);
        let rows = context.runtime.block_on(async {
            let mut tx = context.db.read().await?;
            let from = id::first_of(event.received_at);
            let most = MOST_DECISIONS;
            decisions::store::of_subject(&mut tx, context.app_id, subject_id, from, most).await
        })?;
        for row in rows {
            if scene.doubtful_properties.is_empty() {
                break;
            }
            if let Ok(record) = Record::decode(&row.record) {
                scene.recall(&record, event.seq);
            }
        }
        Ok(())
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        _ => 0,
    }
}

async fn read(
    tx: &mut Tx,
    app_id: Uuid,
    alias: i64,
    before: &Stored,
) -> nudge_db::Result<Option<Person>> {
    let found = store::subjects(tx, app_id, vec![alias]).await?;
    let Some((_, mut subject)) = found.into_iter().next() else {
        return Ok(None);
    };
    let aliases = crate::history::aliases(tx, app_id, subject.id).await?;
    let total: TotalRow = tx
        .sql("SELECT count(*) AS count, max(timestamp) AS last FROM events WHERE app_id = $1 AND seq < $2 AND alias_number IN ")
        .bind(app_id)
        .bind(before.seq)
        .push_list(aliases.iter().copied())
        .fetch_one()
        .await?;
    let updated: Vec<UpdatedRow> = tx
        .sql("SELECT key, updated_at FROM subject_properties WHERE app_id = $1 AND subject_id = $2")
        .bind(app_id)
        .bind(subject.id)
        .fetch_all()
        .await?;
    let properties = store::properties(tx, app_id, &[subject.id]).await?;
    subject.event_count = total.count;
    subject.last_seen_at = total.last.unwrap_or(subject.first_seen_at);
    subject.session_active_at = total.last;
    // Sessions are numbered from the first that the window meets.
    subject.session_number = 0;
    subject.last_seq = before.seq - 1;
    Ok(Some(Person {
        subject,
        aliases,
        properties,
        updated_at: updated
            .into_iter()
            .map(|row| (row.key, row.updated_at))
            .collect(),
        doubtful: TOLD.into_iter().chain(DONE).collect(),
    }))
}
