//! Asking a trigger plugin once more about an event, to learn why it decided as it did. Nothing takes effect.
//!
//! Where the decision was kept, the version that decided gets the configuration, the items and the answers of then;
//! what it asks besides, since it explains more than it had to look at, is answered as of the event.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use nudge_db::{Timestamp, Tx};
use nudge_wasm::trigger::{self, Explanation, Facts};
use nudge_wasm::{FactsUnavailable, PastEvent, Plugin, Value};
use tokio::runtime::Handle;
use uuid::Uuid;

use super::facts::{Ledger, Read, View};
use super::groups;
use super::projection::Subject;
use super::store;
use crate::apps::App;
use crate::campaigns::Running;
use crate::decisions::record::{Item, Record};
use crate::decisions::transcript::Heard;
use crate::ingest::store::Stored;
use crate::plugins::{Lost, Unloadable};
use crate::services::Services;
use crate::{decisions, id, ingest};

/// Decisions of a subject after an event that are looked through for the one about it.
const MOST_DECISIONS: i64 = 100;
/// The number of the only subject and of the only campaign.
const ONLY: u32 = 0;

/// The event and campaign that somebody asks about.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The app.
    pub app: &'a App,
    /// The campaign, whether it runs or not.
    pub running: &'a Running,
    /// One of the subject's aliases.
    pub alias: i64,
    /// The event.
    pub stored: &'a Stored,
}

/// What is known of the subject, as of now.
#[derive(Clone, Debug)]
pub struct Person {
    /// Who it is.
    pub id: Uuid,
    /// Whether something may be presented or sent.
    pub may_message: bool,
    /// The subject's time zone.
    pub timezone: Option<String>,
}

/// What the plugin says.
#[derive(Clone, Debug)]
pub struct Told {
    /// The plugin's name and the version that decided, or would.
    pub plugin: (String, String),
    /// Whether the campaign's events have this one's name among them.
    pub concerned: bool,
    /// Whether it fires.
    pub fires: bool,
    /// What it checked.
    pub explanations: Vec<Explanation>,
    /// When the decision was made that was kept; none: it was not.
    pub decided_at: Option<Timestamp>,
}

/// Why the plugin can't be asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plugin failed. The text is for the person who asks.
    #[error("the plugin failed: {0}")]
    Failed(String),
    /// The version does not load.
    #[error("the version can't be loaded")]
    Unloadable(#[from] Unloadable),
    /// The host panicked.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The database.
    #[error("storage failed")]
    Storage(#[from] nudge_db::Error),
}

/// A decision that was kept, and the place of the event in it.
struct Kept {
    id: Uuid,
    record: Record,
    campaign: usize,
    item: usize,
}

/// What the plugin is asked.
struct Call {
    plugin: Arc<Plugin>,
    batch: trigger::Batch,
    facts: Recalled,
    /// The event's number in the batch.
    item: u32,
    decided_at: Option<Timestamp>,
}

/// The subject of an alias; none: it is gone.
pub async fn person(tx: &mut Tx, app: &App, alias: i64) -> nudge_db::Result<Option<Person>> {
    let found = store::subjects(tx, app.id, vec![alias]).await?;
    Ok(found.into_iter().next().map(|(_, subject)| Person {
        id: subject.id,
        may_message: subject.may_message(app),
        timezone: subject.timezone,
    }))
}

/// Asks the plugin about an event.
pub async fn ask(services: &Services, question: Question<'_>) -> Result<Told, Error> {
    let Some(call) = prepare(services, question).await? else {
        let description = question.running.accepted.decider.plugin.description();
        return Ok(Told {
            plugin: (description.name.clone(), description.version.clone()),
            concerned: false,
            fires: false,
            explanations: Vec::new(),
            decided_at: None,
        });
    };
    let description = call.plugin.description();
    let plugin = (description.name.clone(), description.version.clone());
    let (item, decided_at) = (call.item, call.decided_at);
    let made = services.plugins.aside(question.app.id, move || {
        call.plugin.evaluate(call.batch, Box::new(call.facts))
    });
    let outcome = made
        .await?
        .map_err(|failed| Error::Failed(failed.failure.to_string()))?;
    let explanations = outcome.explanations.into_iter();
    Ok(Told {
        plugin,
        concerned: true,
        fires: outcome.fired.iter().any(|firing| firing.item == item),
        explanations: explanations
            .filter(|explanation| explanation.item == item)
            .collect(),
        decided_at,
    })
}

async fn prepare(services: &Services, question: Question<'_>) -> Result<Option<Call>, Error> {
    let Question {
        app,
        running,
        alias,
        stored,
    } = question;
    let mut tx = services.db.read().await?;
    let found = store::subjects(&mut tx, app.id, vec![alias]).await?;
    let Some((_, subject)) = found.into_iter().next() else {
        return Ok(None);
    };
    if let Some(kept) = find(&mut tx, app.id, subject.id, running.id, stored).await? {
        let digest = &kept.record.plugin.digest;
        // A version that is gone can't say why; the one that decides today may.
        if let Ok(plugin) = services.plugins.by_digest(&services.db, digest).await
            && let Some(call) = recall(&mut tx, services, app, &subject, plugin, kept).await?
        {
            return Ok(Some(call));
        }
    }
    today(&mut tx, services, question, subject).await
}

/// What the version that decides today is asked, as of the event. None: it does not read such events.
async fn today(
    tx: &mut Tx,
    services: &Services,
    question: Question<'_>,
    subject: Subject,
) -> Result<Option<Call>, Error> {
    let Question {
        app,
        running,
        stored,
        ..
    } = question;
    let (plugin, reading) = running.accepted.for_subject(subject.id);
    if !reading.has_event(&stored.event.name) {
        return Ok(None);
    }
    let item = as_item(
        stored,
        session(subject.session_number),
        None,
        stored.received_at.0,
    );
    let batch = trigger::Batch {
        now: item.received,
        items: vec![item],
        campaigns: vec![trigger::Campaign {
            id: running.id,
            config: Arc::clone(&running.accepted.config),
            properties: Arc::clone(&reading.properties),
            items: vec![ONLY],
        }],
        explaining: true,
        seed: groups::seed(app.id, plugin),
    };
    let states = store::states(tx, app.id, vec![(running.id, subject.id)]).await?;
    let state = states.into_values().next();
    let now = view(
        tx,
        services,
        app,
        subject,
        stored.seq,
        stored.received_at,
        state,
    )
    .await?;
    Ok(Some(Call {
        plugin: Arc::clone(plugin),
        batch,
        facts: Recalled {
            heard: Heard::default(),
            places: (ONLY, ONLY),
            past: HashMap::new(),
            now,
        },
        item: ONLY,
        decided_at: None,
    }))
}

/// The decision about an event and campaign, if it was kept.
async fn find(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    campaign_id: Uuid,
    stored: &Stored,
) -> nudge_db::Result<Option<Kept>> {
    let from = id::first_of(stored.received_at);
    let rows = decisions::store::of_subject(tx, app_id, subject_id, from, MOST_DECISIONS).await?;
    for row in rows {
        let Ok(record) = Record::decode(&row.record) else {
            continue;
        };
        let is_it = |item: &Item| item.event_id == stored.event.id && item.timer.is_none();
        let Some(item) = record.items.iter().position(is_it) else {
            continue;
        };
        let number = u32::try_from(item).unwrap_or(u32::MAX);
        let mut campaigns = record.campaigns.iter();
        let campaign = campaigns
            .position(|campaign| campaign.id == campaign_id && campaign.items.contains(&number));
        if let Some(campaign) = campaign {
            return Ok(Some(Kept {
                id: row.id,
                record,
                campaign,
                item,
            }));
        }
    }
    Ok(None)
}

/// A call like the one that was kept: the subject's items up to the event, under the one campaign. None: something
/// that it takes is gone.
async fn recall(
    tx: &mut Tx,
    services: &Services,
    app: &App,
    subject: &Subject,
    plugin: Arc<Plugin>,
    kept: Kept,
) -> nudge_db::Result<Option<Call>> {
    let Kept {
        id,
        mut record,
        campaign: place,
        item: last,
    } = kept;
    let heard = record.heard.take().unwrap_or_default();
    let (Some(campaign), Some(item)) = (record.campaigns.get(place), record.items.get(last)) else {
        return Ok(None);
    };
    let number = item.subject;
    let until_it = (0_u32..).zip(&record.items).take(last + 1);
    let own: Vec<(u32, &Item)> = until_it
        .filter(|(_, item)| item.subject == number)
        .collect();
    let histories = heard.histories.values().flatten().copied();
    let seqs: Vec<i64> = own
        .iter()
        .map(|(_, item)| item.seq)
        .chain(histories)
        .collect();
    let events = events_at(tx, app.id, &seqs).await?;
    let Some(config) = decisions::store::config(tx, app.id, campaign.config).await? else {
        return Ok(None);
    };
    let Some(items) = given(&own, &events) else {
        return Ok(None);
    };
    let concerned = (0_u32..).zip(own.iter().map(|(place, _)| place));
    let concerned = concerned.filter(|(_, place)| campaign.items.contains(place));
    let batch = trigger::Batch {
        now: record.now,
        campaigns: vec![trigger::Campaign {
            id: campaign.id,
            config: config.text,
            properties: config.properties,
            items: concerned.map(|(number, _)| number).collect(),
        }],
        explaining: true,
        seed: record.seed,
        items,
    };
    let item = u32::try_from(batch.items.len().saturating_sub(1)).unwrap_or(u32::MAX);
    let first_seq = own.first().map_or(0, |(_, item)| item.seq);
    let until = Timestamp(record.now);
    let now = view(tx, services, app, subject.clone(), first_seq, until, None).await?;
    Ok(Some(Call {
        plugin,
        batch,
        facts: Recalled {
            heard,
            places: (u32::try_from(place).unwrap_or(u32::MAX), number),
            past: events.into_iter().map(past).collect(),
            now,
        },
        item,
        decided_at: id::made_at(id),
    }))
}

/// Events of an app by their numbers.
async fn events_at(
    tx: &mut Tx,
    app_id: Uuid,
    seqs: &[i64],
) -> nudge_db::Result<HashMap<i64, Stored>> {
    let found = ingest::store::at(tx, seqs).await?.into_iter();
    Ok(found
        .filter(|(of, _, _)| *of == app_id)
        .map(|(_, _, stored)| (stored.seq, stored))
        .collect())
}

fn past((seq, stored): (i64, Stored)) -> (i64, PastEvent) {
    let event = &stored.event;
    let past = PastEvent {
        id: event.id,
        timestamp: event.timestamp.0,
        properties: Arc::clone(&event.properties),
    };
    (seq, past)
}

/// Items of a decision, each as the plugin got it. None: one is gone.
fn given(own: &[(u32, &Item)], events: &HashMap<i64, Stored>) -> Option<Vec<trigger::Item>> {
    let item = |(_, item): &(u32, &Item)| {
        let timer = item.timer.as_ref().map(|(key, payload)| trigger::Timer {
            key: key.clone(),
            payload: payload.clone(),
        });
        let stored = events.get(&item.seq)?;
        Some(as_item(stored, item.session, timer, item.received))
    };
    own.iter().map(item).collect()
}

/// What is known of a subject as of before an event, as far as it is still known.
async fn view(
    tx: &mut Tx,
    services: &Services,
    app: &App,
    mut subject: Subject,
    before: i64,
    until: Timestamp,
    state: Option<Vec<u8>>,
) -> nudge_db::Result<View> {
    subject.last_seq = before - 1;
    let properties = store::properties(tx, app.id, &[subject.id]).await?;
    let ledger = Ledger {
        app_id: app.id,
        db: services.db.clone(),
        runtime: Handle::current(),
        subjects: vec![subject],
        properties,
        states: state.map(|state| ((0, ONLY), state)).into_iter().collect(),
        earlier: Vec::new(),
        aliases: HashMap::new(),
        until,
        read: Read::default(),
    };
    Ok(View {
        ledger: Arc::new(Mutex::new(ledger)),
        campaigns: vec![0],
        transcript: None,
    })
}

fn session(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn as_item(
    stored: &Stored,
    session: u32,
    timer: Option<trigger::Timer>,
    received: i64,
) -> trigger::Item {
    let event = &stored.event;
    trigger::Item {
        subject: ONLY,
        event_id: event.id,
        name: Arc::clone(&event.name),
        timestamp: event.timestamp.0,
        received,
        session,
        properties: Arc::clone(&event.properties),
        timer,
    }
}

/// Answers of then, and where there are none, as of the event.
struct Recalled {
    heard: Heard,
    /// The numbers that the campaign and the subject had in the decision.
    places: (u32, u32),
    /// The events that histories name.
    past: HashMap<i64, PastEvent>,
    now: View,
}

impl Facts for Recalled {
    fn subject_property(&mut self, subject: u32, key: &str) -> Option<Value> {
        let heard = self.heard.properties.get(&(self.places.1, key.to_owned()));
        match heard {
            Some(answer) => answer.clone(),
            None => self.now.subject_property(subject, key),
        }
    }

    fn subject_fact(
        &mut self,
        subject: u32,
        name: &str,
    ) -> Result<Option<Value>, FactsUnavailable> {
        let heard = self.heard.facts.get(&(self.places.1, name.to_owned()));
        match heard {
            Some(answer) => Ok(answer.clone()),
            None => self.now.subject_fact(subject, name),
        }
    }

    fn count_events(
        &mut self,
        subject: u32,
        name: &str,
        since: Option<i64>,
        at_most: u32,
    ) -> Result<u32, FactsUnavailable> {
        let question = (self.places.1, name.to_owned(), since, at_most);
        match self.heard.counts.get(&question) {
            Some(answer) => Ok(*answer),
            None => self.now.count_events(subject, name, since, at_most),
        }
    }

    fn recent_events(
        &mut self,
        subject: u32,
        name: &str,
        since: Option<i64>,
        limit: u32,
    ) -> Result<Vec<PastEvent>, FactsUnavailable> {
        let question = (self.places.1, name.to_owned(), since, limit);
        match self.heard.histories.get(&question) {
            Some(seqs) => {
                let known = seqs.iter().filter_map(|seq| self.past.get(seq).cloned());
                Ok(known.collect())
            }
            None => self.now.recent_events(subject, name, since, limit),
        }
    }

    fn state(&mut self, campaign: u32, subject: u32) -> Option<Vec<u8>> {
        match self.heard.states.get(&self.places) {
            Some(answer) => answer.clone(),
            None => self.now.state(campaign, subject),
        }
    }
}
