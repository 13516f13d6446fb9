//! What a batch brings about, written in one transaction or not at all.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use nudge_apps::App;
use nudge_campaigns::webhooks::{EventType, Subscription};
use nudge_db::{Timestamp, Tx};
use nudge_platform::id;
use nudge_records::dead_letters::store::Failure;
use nudge_records::dead_letters::{self, Letter, Stage};
use nudge_records::decisions::{self, NewDecision, Recorded};
use nudge_records::deliveries::{self, NewDelivery};
use nudge_records::events::store::RequestKey;
use nudge_records::instructions::{self, Instruction, Suppressed};
use nudge_records::scheduled_work::{self, DueOccasion, DueTimer, NewOccasion};
use nudge_records::segment_checks;
use nudge_wasm::Description;
use uuid::Uuid;

use super::devices::{self, Sighting};
use super::evaluate::{Decisions, Failed, Item, Timer};
use super::projection::Subject;
use super::run_firings::{self, RunFiring};
use super::work::{Source, Work};
use super::{Inner, store};
use crate::batch::Trouble;
use crate::delivery_rules::DeliveryRules;
use crate::messages::Messages;

/// What lies between a timer and one that it sets, at the least.
pub(super) const TURN: Duration = Duration::from_secs(1);

/// What a plugin keeps of a subject for a campaign from now on.
#[derive(Clone, Debug)]
pub(super) struct StateChange {
    pub campaign_id: Uuid,
    pub subject_id: Uuid,
    /// The plugin's name.
    pub plugin: String,
    /// None: nothing.
    pub state: Option<Vec<u8>>,
}

/// Campaign, subject and the plugin's key.
pub(super) type TimerKey = (Uuid, Uuid, String);

/// A timer to be set.
#[derive(Clone, Debug)]
pub(super) struct NewTimer {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub subject_id: Uuid,
    pub key: String,
    /// The name of the plugin that sets it.
    pub plugin: String,
    pub due_at: Timestamp,
    pub payload: Vec<u8>,
    pub event_seq: i64,
    /// Whether it counts among the timers that a campaign and subject may have.
    pub limited: bool,
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
#[derive(Debug)]
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
            requests: Vec::new(),
            due_timers: Vec::new(),
            due_occasions: Vec::new(),
            parked: Vec::new(),
            resting_timers: Vec::new(),
            resting_firings: Vec::new(),
            replayed_letters: Vec::new(),
            failed_letters: Vec::new(),
            subjects,
            instructions: Vec::new(),
            deliveries: Vec::new(),
            suppressed: Vec::new(),
            states: Vec::new(),
            held_back: BTreeMap::new(),
            dropped: Vec::new(),
            led_on: Vec::new(),
            run_firings: Vec::new(),
            cancelled_all: Vec::new(),
            cancelled: Vec::new(),
            timers: Vec::new(),
            occasions: Vec::new(),
            letters: Vec::new(),
            devices: Vec::new(),
            decisions: Vec::new(),
            broken: Vec::new(),
            failed_works: Vec::new(),
            resting_works: Vec::new(),
            segment_checks: Vec::new(),
            webhooks: hear_of_letters(app),
            are_awaited: works.iter().any(Work::is_awaited),
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

    fn pair(&self, app: &App, campaign: usize, subject: u32) -> Option<(Uuid, Uuid)> {
        Some((
            app.campaigns.get(campaign)?.id,
            self.subjects.get(subject as usize)?.id,
        ))
    }

    fn store_states(&mut self, app: &App, states: HashMap<(usize, u32), Option<Vec<u8>>>) {
        for ((campaign, subject), state) in states {
            let pair = self.pair(app, campaign, subject);
            if let (Some(running), Some((_, subject_id))) = (app.campaigns.get(campaign), pair) {
                self.states.push(StateChange {
                    campaign_id: running.id,
                    subject_id,
                    plugin: running.accepted.plugin_name().to_owned(),
                    state,
                });
            }
        }
    }

    /// Of all changes of one timer only the last is left. What was due before an event arrived is not cancelled by it.
    fn change_timers(&mut self, app: &App, items: &[Item], changes: Vec<Timer>) {
        let mut set: HashMap<TimerKey, NewTimer> = HashMap::new();
        for change in changes {
            match change {
                Timer::Set {
                    campaign,
                    item,
                    key,
                    at,
                    payload,
                } => {
                    self.led_on.push(item);
                    let timer = items
                        .get(item)
                        .and_then(|item| self.timer(app, campaign, item, (key, at, payload)));
                    if let Some(timer) = timer {
                        let key = (timer.campaign_id, timer.subject_id, timer.key.clone());
                        set.insert(key, timer);
                    }
                }
                Timer::Cancel {
                    campaign,
                    subject,
                    item,
                    key,
                } => {
                    let pair = self.pair(app, campaign, subject);
                    if let (Some((campaign_id, subject_id)), Some(item)) = (pair, items.get(item)) {
                        let (key, at) = ((campaign_id, subject_id, key), item.at());
                        if set.get(&key).is_some_and(|timer| timer.due_at >= at) {
                            set.remove(&key);
                        }
                        self.cancelled.push((key, at));
                    }
                }
                Timer::CancelAll {
                    campaign,
                    subject,
                    item: number,
                } => {
                    let pair = self.pair(app, campaign, subject);
                    if let (Some(pair), Some(item)) = (pair, items.get(number)) {
                        let at = item.at();
                        set.retain(|key, timer| (key.0, key.1) != pair || timer.due_at < at);
                        self.cancelled_all.push((pair.0, pair.1, at));
                        self.cancel_deferred(items, pair, (number, at));
                    }
                }
            }
        }
        self.timers.extend(set.into_values());
    }

    /// Cancels what earlier items of the batch have led to and the host lets wait: it has not fired. `cancel`: the item at
    /// which it is cancelled, and when that was.
    fn cancel_deferred(&mut self, items: &[Item], pair: (Uuid, Uuid), cancel: (usize, Timestamp)) {
        let is_cancelled = |(item, occasion): &mut (usize, NewOccasion)| {
            let of = (occasion.campaign_id, occasion.subject_id);
            of == pair && *item < cancel.0 && occasion.due_at >= cancel.1
        };
        let cancelled = self.occasions.extract_if(.., is_cancelled);
        let last = cancelled.last().and_then(|(item, _)| items.get(item));
        if let Some(item) = last {
            let event_id = item.stored.event.id;
            self.held_back.entry(pair).or_insert(event_id);
        }
    }

    /// A timer that a campaign's plugin sets at an item.
    fn timer(
        &self,
        app: &App,
        campaign: usize,
        item: &Item,
        (key, at, payload): (String, i64, Vec<u8>),
    ) -> Option<NewTimer> {
        let subject = u32::try_from(item.subject).ok()?;
        let (campaign_id, subject_id) = self.pair(app, campaign, subject)?;
        let (plugin, _) = app
            .campaigns
            .get(campaign)?
            .accepted
            .for_subject(subject_id);
        let at = Timestamp(at);
        Some(NewTimer {
            id: id::new(self.now),
            campaign_id,
            subject_id,
            key,
            plugin: plugin.description().name.clone(),
            due_at: self.earliest(item).map_or(at, |earliest| earliest.max(at)),
            payload,
            event_seq: item.stored.seq,
            limited: !plugin.has_unlimited_timers(),
        })
    }

    /// The earliest time at which a timer that is set at an item is due. One that a timer sets is due after [`TURN`] at the earliest:
    /// due at once, the recovery loop would claim it again and never do anything else.
    fn earliest(&self, item: &Item) -> Option<Timestamp> {
        let timer = item.timer.as_ref();
        timer.map(|_| self.now.plus(TURN))
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
}

impl Effects {
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

/// Puts instructions on offer, and notes what would have been some.
async fn offer(tx: &mut Tx, effects: &Effects) -> nudge_db::Result<()> {
    let made = effects.instructions.iter();
    let made: Vec<Instruction> = made.map(|(_, instruction)| instruction.clone()).collect();
    instructions::store::insert(tx, &made).await?;
    instructions::store::insert_suppressed(tx, &effects.suppressed).await
}

async fn begin(inner: &Inner, effects: &Effects) -> nudge_db::Result<Tx> {
    if effects.are_awaited {
        inner.db.write_together().await
    } else {
        inner.db.unhurried().write_together().await
    }
}

/// Puts off what runs have led to, and drops what else waited, where campaigns do not run. False: something is not this
/// process's any longer.
async fn rest(tx: &mut Tx, effects: &Effects, node: Uuid) -> nudge_db::Result<bool> {
    let (firings, timers) = (&effects.resting_firings, &effects.resting_timers);
    let parked_firings = scheduled_work::park_of_runs(tx, "occasions", firings, node).await?;
    let parked_timers = scheduled_work::park_of_runs(tx, "timers", timers, node).await?;
    let is_parked = |id: &Uuid| parked_firings.contains(id) || parked_timers.contains(id);
    let dropped = |ids: &[Uuid]| -> Vec<Uuid> {
        let dropped = ids.iter().filter(|id| !is_parked(id));
        dropped.copied().collect()
    };
    let held_back = effects.dropped.iter().filter(|(id, _)| !is_parked(id));
    let held_back: Vec<(Uuid, Uuid)> = held_back.copied().collect();
    store::hold_back_dropped(tx, effects.app_id, &held_back).await?;
    Ok(
        scheduled_work::delete_due(tx, &dropped(firings), node).await?
            && store::delete_due_timers(tx, &dropped(timers), node).await?,
    )
}

/// Cancels timers, and firings that the host lets wait: those were held back in the end.
async fn cancel(tx: &mut Tx, effects: &mut Effects) -> nudge_db::Result<()> {
    let (app_id, all) = (effects.app_id, &effects.cancelled_all);
    store::cancel_timers(tx, app_id, all, &effects.cancelled).await?;
    for (pair, event_id) in scheduled_work::cancel_deferred(tx, app_id, all).await? {
        // A firing of the batch itself is the later one.
        effects.held_back.entry(pair).or_insert(event_id);
    }
    Ok(())
}

/// Keeps what the host does later.
async fn keep_occasions(tx: &mut Tx, effects: &Effects) -> nudge_db::Result<()> {
    let occasions = effects.occasions.iter();
    let occasions: Vec<NewOccasion> = occasions.map(|(_, occasion)| occasion.clone()).collect();
    scheduled_work::insert(tx, effects.app_id, &occasions).await?;
    Ok(())
}

/// Removes the letters that are replayed. False: one is gone.
async fn take_replayed(tx: &mut Tx, effects: &Effects) -> nudge_db::Result<bool> {
    let letters = effects.replayed_letters.iter();
    let letters: Vec<(Uuid, Uuid)> = letters.map(|id| (effects.app_id, *id)).collect();
    let taken = dead_letters::store::take(tx, &letters).await?;
    Ok(taken.len() == letters.len())
}

/// Writes the effects, if what they follow from still holds.
pub(super) async fn write(inner: &Inner, effects: &mut Effects) -> Result<(), Trouble> {
    let mut tx = begin(inner, effects).await?;
    let node = inner.node();
    let done = rest(&mut tx, effects, node).await?
        && store::delete_requests(&mut tx, &effects.requests, node).await?
        && store::delete_due_timers(&mut tx, &effects.due_timers, node).await?
        && scheduled_work::delete_due(&mut tx, &effects.due_occasions, node).await?
        && scheduled_work::park(&mut tx, &effects.parked, node).await?
        && store::update_subjects(&mut tx, effects.app_id, &effects.subjects).await?
        && take_replayed(&mut tx, effects).await?;
    if !done {
        tx.rollback().await?;
        return Err(Trouble::Conflict);
    }
    let failures: Vec<Failure> = effects.failed_letters.iter().map(Failure::of).collect();
    dead_letters::store::update_failed(&mut tx, effects.app_id, &failures).await?;
    offer(&mut tx, effects).await?;
    store::write_states(&mut tx, effects.app_id, &effects.states, effects.now).await?;
    run_firings::insert(&mut tx, effects.app_id, &effects.run_firings).await?;
    cancel(&mut tx, effects).await?;
    store::hold_back(&mut tx, effects.app_id, &effects.held_back).await?;
    store::set_timers(&mut tx, effects.app_id, &effects.timers, effects.now).await?;
    keep_occasions(&mut tx, effects).await?;
    devices::write(&mut tx, effects.app_id, &effects.devices).await?;
    segment_checks::note(&mut tx, effects.app_id, &effects.segment_checks).await?;
    let letters: Vec<&Letter> = effects.letters.iter().collect();
    let (app_id, now) = (effects.app_id, effects.now);
    dead_letters::store::insert(&mut tx, &letters, now).await?;
    // The sender finds them by polling.
    let _polled = dead_letters::announce(&mut tx, app_id, &effects.webhooks, &letters, now).await?;
    let reserved = inner
        .deliveries
        .reserve(app_id, &mut effects.deliveries, now);
    let made = deliveries::queue(&mut tx, app_id, &effects.deliveries, now).await?;
    let noted = decisions::write(
        &mut tx,
        app_id,
        &effects.decisions,
        &inner.noted_configs,
        now,
    )
    .await?;
    tx.commit().await?;
    inner.noted_configs.remember(app_id, &noted, now);
    reserved.send(&made);
    if !effects.segment_checks.is_empty() {
        inner.segment_checks.wake();
    }
    Ok(())
}
