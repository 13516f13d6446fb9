//! Asking a trigger plugin once more about an event, to learn why it decided as it did. Nothing takes effect.
//!
//! Where the decision was kept, the version that decided gets the configuration, the items and the answers of then;
//! what it asks besides, since it explains more than it had to look at, is answered as of the event.
//!
//! Where the plugin set a timer at the event, it is asked about that too: as it decided when the timer was due, or as
//! it would now while the timer waits.

mod kept;
pub mod live;
mod recalled;
mod view;

pub use kept::ask_kept;

use std::collections::HashMap;
use std::sync::Arc;

use kept::kept;
use nudge_apps::App;
use nudge_campaigns::campaign::ActiveCampaign;
use nudge_db::{Timestamp, Tx};
use nudge_plugin_runtime::{Lost, Reading, Unloadable};
use nudge_records::decisions::transcript::Heard;
use nudge_records::events::store::Stored;
use nudge_wasm::Plugin;
use nudge_wasm::trigger::{self, Explanation, TimerChange};
use recalled::Recalled;
use uuid::Uuid;
use view::{ViewScope, as_item, session, view};

use crate::facts::View;
use crate::groups;
use crate::projection::Subject;
use crate::services::Services;
use crate::store;

/// The number of the only subject and of the only campaign.
const ONLY: u32 = 0;

/// The event and campaign that somebody asks about.
#[derive(Clone, Copy, Debug)]
pub struct DecisionQuestion<'a> {
    /// The app.
    pub app: &'a App,
    /// The campaign, whether it runs or not.
    pub running: &'a ActiveCampaign,
    /// One of the subject's aliases.
    pub alias: i64,
    /// The event.
    pub stored: &'a Stored,
}

/// An app, a campaign of it and an event.
type About<'a> = (&'a App, Uuid, &'a Stored);

impl<'a> DecisionQuestion<'a> {
    fn about(self) -> About<'a> {
        (self.app, self.running.id, self.stored)
    }
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
    /// The version that the campaign had in the decision that was kept.
    pub campaign_version: Option<i64>,
    /// Whether the subject could be messaged at the decision that was kept, if that was noted.
    pub could_message: Option<bool>,
    /// When a timer is due that it sets.
    pub timer_at: Option<Timestamp>,
}

/// A timer that the plugin set at an event.
#[derive(Clone, Debug)]
pub enum Timer {
    /// It waits: the plugin's key, and what it wants back.
    Waits(String, Vec<u8>),
    /// It was due then.
    WasDue(Timestamp),
}

/// Why the plugin can't be asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plugin failed. The text is for the person who asks.
    #[error("the plugin failed: {0}")]
    Failed(String),
    /// The host could not do its part, so that nothing is known of the plugin.
    #[error("the plugin can't be asked now")]
    Unavailable(#[source] nudge_wasm::Failed),
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

/// What the plugin is asked.
struct Call {
    plugin: Arc<Plugin>,
    batch: trigger::Batch,
    facts: Recalled,
    /// The event's number in the batch.
    item: u32,
    decided_at: Option<Timestamp>,
    campaign_version: Option<i64>,
    could_message: Option<bool>,
}

/// The subject of an alias; none: it is gone.
pub async fn person(tx: &mut Tx, app: &App, alias: i64) -> nudge_db::Result<Option<Person>> {
    let subject = subject(tx, app, alias).await?;
    Ok(subject.map(|subject| Person {
        id: subject.id,
        may_message: subject.may_message(app),
        timezone: subject.timezone,
    }))
}

/// Asks the plugin about an event.
pub async fn ask(services: &Services, question: DecisionQuestion<'_>) -> Result<Told, Error> {
    let mut tx = services.db.read().await?;
    let subject = subject(&mut tx, question.app, question.alias).await?;
    let call = match subject {
        None => None,
        Some(subject) => match kept(&mut tx, services, question.about(), &subject, None).await? {
            Some(call) => Some(call),
            None => today(&mut tx, services, question, subject).await?,
        },
    };
    drop(tx);
    let Some(call) = call else {
        let description = question.running.accepted.decider.plugin.description();
        return Ok(Told {
            plugin: (description.name.clone(), description.version.clone()),
            concerned: false,
            fires: false,
            explanations: Vec::new(),
            decided_at: None,
            campaign_version: None,
            could_message: None,
            timer_at: None,
        });
    };
    make(services, question.app.id, call).await
}

/// Asks the plugin about a timer that it set at an event. None: what it decided then was not kept, or the timer was
/// cancelled.
pub async fn ask_later(
    services: &Services,
    question: DecisionQuestion<'_>,
    timer: Timer,
) -> Result<Option<Told>, Error> {
    let mut tx = services.db.read().await?;
    let Some(subject) = subject(&mut tx, question.app, question.alias).await? else {
        return Ok(None);
    };
    let call = match timer {
        Timer::WasDue(at) => kept(&mut tx, services, question.about(), &subject, Some(at)).await?,
        Timer::Waits(key, payload) => {
            let timer = trigger::Timer { key, payload };
            Some(now(&mut tx, services, question, subject, timer).await?)
        }
    };
    drop(tx);
    match call {
        Some(call) => make(services, question.app.id, call).await.map(Some),
        None => Ok(None),
    }
}

async fn subject(tx: &mut Tx, app: &App, alias: i64) -> nudge_db::Result<Option<Subject>> {
    let found = store::subjects(tx, app.id, vec![alias]).await?;
    Ok(found.into_iter().next().map(|(_, subject)| subject))
}

async fn make(services: &Services, app_id: Uuid, call: Call) -> Result<Told, Error> {
    let description = call.plugin.description();
    let plugin = (description.name.clone(), description.version.clone());
    let (item, decided_at) = (call.item, call.decided_at);
    let (campaign_version, could_message) = (call.campaign_version, call.could_message);
    let made = services.plugins.aside(app_id, move || {
        call.plugin.evaluate(call.batch, Box::new(call.facts))
    });
    let outcome = made.await?.map_err(|failed| {
        if failed.is_inconclusive() {
            Error::Unavailable(failed)
        } else {
            Error::Failed(failed.detail())
        }
    })?;
    let timer_at = |change: &TimerChange| match change {
        TimerChange::Set {
            item: at_item, at, ..
        } if *at_item == item => Some(Timestamp(*at)),
        _ => None,
    };
    let explanations = outcome.explanations.into_iter();
    Ok(Told {
        plugin,
        concerned: true,
        fires: outcome.fired.iter().any(|firing| firing.item == item),
        explanations: explanations
            .filter(|explanation| explanation.item == item)
            .collect(),
        decided_at,
        campaign_version,
        could_message,
        timer_at: outcome.timers.iter().find_map(timer_at),
    })
}

/// What the version that decides today is asked about a timer that waits, if it were due now.
async fn now(
    tx: &mut Tx,
    services: &Services,
    question: DecisionQuestion<'_>,
    subject: Subject,
    timer: trigger::Timer,
) -> nudge_db::Result<Call> {
    let DecisionQuestion {
        running, stored, ..
    } = question;
    let (plugin, reading) = running.accepted.for_subject(subject.id);
    let at = services.clock.now();
    let item = as_item(stored, session(subject.session_number), Some(timer), at.0);
    let before = subject.last_seq.saturating_add(1);
    let facts = as_of(tx, services, question, subject, (before, at)).await?;
    Ok(call(question, plugin, reading, item, facts))
}

/// A call of today's version about one item.
fn call(
    question: DecisionQuestion<'_>,
    plugin: &Arc<Plugin>,
    reading: &Reading,
    item: trigger::Item,
    facts: View,
) -> Call {
    let DecisionQuestion { app, running, .. } = question;
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
    Call {
        plugin: Arc::clone(plugin),
        batch,
        facts: Recalled {
            heard: Heard::default(),
            places: (ONLY, ONLY),
            past: HashMap::new(),
            now: facts,
        },
        item: ONLY,
        decided_at: None,
        campaign_version: None,
        could_message: None,
    }
}

/// What the version that decides today is asked, as of the event. None: it does not read such events.
async fn today(
    tx: &mut Tx,
    services: &Services,
    question: DecisionQuestion<'_>,
    subject: Subject,
) -> Result<Option<Call>, Error> {
    let DecisionQuestion {
        running, stored, ..
    } = question;
    let (plugin, reading) = running.accepted.for_subject(subject.id);
    if !reading.has_event(&stored.event.name) {
        return Ok(None);
    }
    let received = stored.received_at;
    let item = as_item(stored, session(subject.session_number), None, received.0);
    let facts = as_of(tx, services, question, subject, (stored.seq, received)).await?;
    Ok(Some(call(question, plugin, reading, item, facts)))
}

/// What is known of a subject as of before an event and until an instant, and what the plugin keeps of it now.
async fn as_of(
    tx: &mut Tx,
    services: &Services,
    question: DecisionQuestion<'_>,
    subject: Subject,
    (before, until): (i64, Timestamp),
) -> nudge_db::Result<View> {
    let campaigns = [question.running];
    let scope = ViewScope::new(&campaigns, before, until);
    view(tx, services, question.app, subject, scope).await
}
