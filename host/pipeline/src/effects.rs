//! What a batch brings about, written in one transaction or not at all.

pub(super) mod timers;
mod write;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nudge_apps::App;
use nudge_campaigns::webhooks::{EventType, Subscription};
use nudge_db::Timestamp;
use nudge_platform::id;
use nudge_records::dead_letters::{Letter, Stage};
use nudge_records::decisions::{NewDecision, Recorded};
use nudge_records::deliveries::NewDelivery;
use nudge_records::events::store::RequestKey;
use nudge_records::instructions::{Instruction, Suppressed};
use nudge_records::scheduled_work::{DueOccasion, DueTimer, NewOccasion};
use nudge_wasm::{Description, Plugin};
use uuid::Uuid;

pub(super) use write::write;

use super::devices::Sighting;
use super::evaluate::{Decisions, Failed, Item};
use super::projection::Subject;
use super::run_firings::{self, RunFiring};
use super::work::{Source, Work};
use crate::delivery_rules::DeliveryRules;
use crate::messages::Messages;
use timers::{NewTimer, TimerKey};

/// What a plugin keeps of a subject for a campaign from now on.
#[derive(Clone, Debug)]
pub(super) struct StateChange {
    pub campaign_id: Uuid,
    pub subject_id: Uuid,
    pub plugin: Arc<Plugin>,
    /// None: nothing.
    pub state: Option<Vec<u8>>,
}

/// A firing whose message a plugin failed on.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    pub campaign: usize,
    pub item: usize,
    /// The failure's code.
    pub reason: &'static str,
    /// What happened, for people.
    pub detail: String,
    pub plugin: Description,
}

/// Everything that a batch brings about.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub app_id: Uuid,
    pub now: Timestamp,
    /// What is done with: requests, timers, occasions and dead letters.
    pub requests: Vec<RequestKey>,
    pub due_timers: Vec<Uuid>,
    pub due_occasions: Vec<Uuid>,
    /// Occasions of runs whose campaign does not run.
    pub parked: Vec<Uuid>,
    /// Timers whose campaign does not run.
    pub resting_timers: Vec<Uuid>,
    /// Occasions of firings whose campaign does not run.
    pub resting_firings: Vec<Uuid>,
    pub replayed_letters: Vec<Uuid>,
    /// Dead letters whose replay failed, with the reason.
    pub failed_letters: Vec<Letter>,
    pub subjects: Vec<Subject>,
    /// Instructions and the items that fired them.
    pub instructions: Vec<(usize, Instruction)>,
    /// Push messages to be sent.
    pub deliveries: Vec<NewDelivery>,
    /// What would have been instructions, and why it is none.
    pub suppressed: Vec<Suppressed>,
    pub states: Vec<StateChange>,
    /// Firings that the host held back: campaign, subject, and the event.
    pub held_back: BTreeMap<(Uuid, Uuid), Uuid>,
    /// Occasions of firings that are dropped with their campaign unless a run led to them, and the events.
    pub dropped: Vec<(Uuid, Uuid)>,
    /// Items that led to something: a firing, or a timer.
    pub led_on: Vec<usize>,
    /// Whom runs have given something.
    pub run_firings: Vec<RunFiring>,
    /// Campaigns and subjects whose timers and waiting firings are cancelled, but for those that were due before an instant.
    pub cancelled_all: Vec<(Uuid, Uuid, Timestamp)>,
    /// The same of single timers.
    pub cancelled: Vec<(TimerKey, Timestamp)>,
    pub timers: Vec<NewTimer>,
    /// What the host does later, and the items that led to it.
    pub occasions: Vec<(usize, NewOccasion)>,
    pub letters: Vec<Letter>,
    /// Devices that the events came from.
    pub devices: Vec<Sighting>,
    pub decisions: Vec<NewDecision>,
    /// Firings whose message a plugin failed on.
    pub broken: Vec<Broken>,
    /// Pieces of work that a plugin failed on.
    pub failed_works: Vec<usize>,
    /// Replays whose campaigns do not run.
    pub resting_works: Vec<usize>,
    /// People whose segments may have changed.
    pub segment_checks: Vec<Uuid>,
    /// Endpoints that hear of dead letters.
    pub webhooks: Vec<Subscription>,
    /// Whether somebody waits for them.
    pub are_awaited: bool,
}

/// Endpoints of an app that hear of dead letters.
fn hear_of_letters(app: &App) -> Vec<Subscription> {
    let all = app.webhooks.iter();
    all.filter(|webhook| webhook.event_types.contains(&EventType::DeadLetterCreated))
        .cloned()
        .collect()
}

impl Effects {
    pub(super) fn new(
        app: &App,
        works: &[Work],
        items: &[Item],
        subjects: Vec<Subject>,
        decisions: Decisions,
        (mut delivery_rules, messages): (DeliveryRules, Messages),
    ) -> nudge_db::Result<Self> {
        let mut effects = Self {
            app_id: app.id,
            now: delivery_rules.now,
            subjects,
            webhooks: hear_of_letters(app),
            are_awaited: works.iter().any(Work::is_awaited),
            ..Self::default()
        };
        effects.fire(app, items, &decisions, &mut delivery_rules, &messages);
        effects.store_states(app, decisions.states);
        effects.change_timers(app, items, decisions.timers);
        effects.keep_failed(app, works, items, &decisions.failed)?;
        effects.keep_broken(app, works, items)?;
        effects.keep_decisions(decisions.recorded);
        effects.run_firings = run_firings::new(works, items, &effects.led_on, &effects.subjects);
        effects.note_sources(app, works);
        Ok(effects)
    }

    /// Notes what is over once the works are done.
    fn note_sources(&mut self, app: &App, works: &[Work]) {
        for (number, work) in works.iter().enumerate() {
            match &work.source {
                Source::Request(id) => self.requests.push((work.alias, *id)),
                Source::Timer(timer) => {
                    let running = app.campaign(timer.campaign_id);
                    let running = running.and_then(|number| app.campaigns.get(number));
                    if running.is_some_and(|it| !it.accepted.inherits(timer.plugin.as_deref())) {
                        tell_of_foreign(app.id, timer);
                    }
                    let list = if running.is_some() {
                        &mut self.due_timers
                    } else {
                        &mut self.resting_timers
                    };
                    list.push(timer.id);
                }
                Source::Occasion(due) => self.note_occasion(app, work, due),
                Source::Letter { .. } if self.failed_works.contains(&number) => {}
                Source::Letter {
                    campaign_id: Some(campaign_id),
                    ..
                } if app.campaign(*campaign_id).is_none() => self.resting_works.push(number),
                Source::Letter { id, .. } => self.replayed_letters.push(*id),
            }
        }
    }

    /// A run goes on when its campaign is resumed, and so does what it has led to. Any other firing that waited is dropped
    /// with its campaign.
    fn note_occasion(&mut self, app: &App, work: &Work, due: &DueOccasion) {
        let list = if app.campaign(due.campaign_id).is_some() || due.is_change() {
            &mut self.due_occasions
        } else if due.firing_id.is_some() {
            let event = work.events.first();
            self.dropped
                .extend(event.map(|stored| (due.id, stored.event.id)));
            &mut self.resting_firings
        } else {
            &mut self.parked
        };
        list.push(due.id);
    }

    fn store_states(&mut self, app: &App, states: HashMap<(usize, u32), Option<Vec<u8>>>) {
        for ((campaign, subject), state) in states {
            let subject = self.subjects.get(subject as usize);
            if let (Some(running), Some(subject)) = (app.campaigns.get(campaign), subject) {
                self.states.push(StateChange {
                    campaign_id: running.id,
                    subject_id: subject.id,
                    plugin: Arc::clone(&running.accepted.decider.plugin),
                    state,
                });
            }
        }
    }

    fn keep_decisions(&mut self, recorded: Vec<Recorded>) {
        let decision = |recorded: Recorded| NewDecision {
            id: id::made_now(self.now),
            subjects: recorded.subjects,
            record: recorded.record,
            configs: recorded.configs,
        };
        self.decisions = recorded.into_iter().map(decision).collect();
    }

    fn keep_failed(
        &mut self,
        app: &App,
        works: &[Work],
        items: &[Item],
        failed: &[Failed],
    ) -> nudge_db::Result<()> {
        for failed in failed {
            let (Some(item), Some(running)) =
                (items.get(failed.item), app.campaigns.get(failed.campaign))
            else {
                continue;
            };
            let (Some(work), Some(subject)) =
                (works.get(item.work), self.subjects.get(item.subject))
            else {
                continue;
            };
            let (plugin, _) = running.accepted.for_subject(subject.id);
            let mut letter = Letter::new(
                app.id,
                item.alias,
                item.stored.received_at,
                &item.stored.event,
                Stage::Trigger,
                Some(running.id),
                failed.reason.to_owned(),
                Some(plugin.description()),
            )?;
            letter = letter.saying(&failed.detail).of_timer(item.timer.clone());
            letter.session = Some(item.session);
            letter.opens_session = item.begins;
            if matches!(work.source, Source::Letter { .. }) {
                self.failed_letters.push(letter);
            } else if self.letters.iter().all(|other| other.id != letter.id) {
                self.letters.push(letter);
            }
            self.failed_works.push(item.work);
        }
        Ok(())
    }

    /// Keeps the events of messages that a plugin failed on. A replay that fails as before counts for its letter.
    fn keep_broken(&mut self, app: &App, works: &[Work], items: &[Item]) -> nudge_db::Result<()> {
        for broken in &self.broken {
            let campaign = app.campaigns.get(broken.campaign);
            let (Some(item), Some(running)) = (items.get(broken.item), campaign) else {
                continue;
            };
            let letter = Letter::new(
                app.id,
                item.alias,
                item.stored.received_at,
                &item.stored.event,
                Stage::Personalization,
                Some(running.id),
                broken.reason.to_owned(),
                Some(&broken.plugin),
            )?;
            let letter = letter.saying(&broken.detail).of_timer(item.timer.clone());
            let source = works.get(item.work).map(|work| &work.source);
            if matches!(source, Some(Source::Letter { id, .. }) if *id == letter.id) {
                self.failed_letters.push(letter);
                self.failed_works.push(item.work);
            } else if self.letters.iter().all(|other| other.id != letter.id) {
                self.letters.push(letter);
            }
        }
        Ok(())
    }
}

/// Tells that a timer is over about which nobody decides.
fn tell_of_foreign(app_id: Uuid, timer: &DueTimer) {
    tracing::info!(
        app.id = %app_id,
        campaign.id = %timer.campaign_id,
        plugin.name = timer.plugin,
        "a timer fell due that another plugin had set; nothing follows from it"
    );
}
