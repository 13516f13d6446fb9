//! What is to be done about claimed deliveries: whether they may be sent, to which devices, and what they say.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use nudge_apps::App;
use nudge_campaigns::push::Sending;
use nudge_campaigns::targeting::{Opening, Quiet};
use nudge_db::{Error, Result, Timestamp};
use nudge_platform::event_names::TRANSACTIONAL;
use nudge_records::deliveries::in_hand::ClaimedDelivery;
use nudge_records::deliveries::{Device, Status, Urgency};
use nudge_records::events::Event;
use nudge_records::events::store::Stored;
use nudge_records::{events, scheduled_work, subjects};
use nudge_wasm::{Description, PastEvent};
use uuid::Uuid;

use super::campaign::{Campaign, Halted, PLUGIN_UNAVAILABLE, campaign, halted_since};
use super::caps;
use super::devices::{Outgoing, given_up, outgoing};
use super::outcome::EXPIRED;
use super::store::{self, CampaignStatuses};
use crate::personalization::{Made, Recipient, make};
use crate::providers::Target;
use crate::services::Shared;
use crate::tokens;
use crate::tokens::store::Person;

/// When a delivery is looked at again whose person became part of another.
const SOON: Duration = Duration::from_secs(1);
/// When something that could not be read is looked at again.
const LATER: Duration = Duration::from_secs(5);
/// When a message that a provider did not take yet is looked at again while its campaign is paused.
const WHILE_PAUSED: Duration = Duration::from_mins(1);
/// When a message is looked at again that cannot be read, or for a person with a token that cannot be.
const WHILE_UNREADABLE: Duration = Duration::from_mins(1);

/// What is to be done about some deliveries of one app, each by its id.
pub(super) struct Planned {
    /// The version of the app whose campaigns stand as it was decided by.
    pub app_version: i64,
    pub steps: HashMap<Uuid, Step>,
    /// What a device of their people runs, of those that are over.
    pub platforms: HashMap<Uuid, &'static str>,
}

/// What is to be done about a delivery.
#[derive(Debug)]
pub(super) enum Step {
    /// It is sent to those of its devices that wait.
    Send(Box<Outgoing>),
    /// It is over: with the reason and, where a plugin failed on it, what with.
    End(Status, String, Option<Broken>),
    /// What became of it is known.
    Known(Vec<Device>),
    /// It waits until its campaign runs again.
    Park,
    /// It is looked at again then.
    Later(Timestamp),
}

/// How a plugin failed on the event behind a delivery, or on what stands for it.
#[derive(Debug)]
pub(super) struct Broken {
    pub code: &'static str,
    /// What happened, for people.
    pub detail: String,
    /// The version that failed; none: there was none to ask.
    pub plugin: Option<Description>,
    pub alias: i64,
    pub stored: Stored,
}

/// What is known of a batch of deliveries of one app.
struct BatchContext {
    people: HashMap<Uuid, Person>,
    targets: HashMap<Uuid, Vec<Target>>,
    /// People with a token that cannot be read.
    unreadable: HashSet<Uuid>,
    events: HashMap<i64, (i64, Stored)>,
    /// The caps that deliveries of merged people exceed, by the deliveries' ids.
    filled_caps: HashMap<Uuid, &'static str>,
    /// How the campaigns stand. The app in memory may not know yet what another process has changed.
    statuses: CampaignStatuses,
}

impl BatchContext {
    fn targets_of(&self, delivery: &ClaimedDelivery) -> &[Target] {
        let targets = self.targets.get(&delivery.subject_id);
        targets.map(Vec::as_slice).unwrap_or_default()
    }

    fn planned(&self, claimed: &[ClaimedDelivery], steps: HashMap<Uuid, Step>) -> Planned {
        let is_over = |delivery: &&ClaimedDelivery| {
            let step = steps.get(&delivery.id);
            matches!(step, Some(Step::End(..)))
        };
        let platform = |delivery: &ClaimedDelivery| {
            let first = self.targets_of(delivery).first()?;
            Some((delivery.id, first.platform.name()))
        };
        let over = claimed.iter().filter(is_over);
        let platforms = over.filter_map(platform).collect();
        Planned {
            app_version: self.statuses.app_version,
            steps,
            platforms,
        }
    }
}

/// Decides about deliveries of one app.
pub(super) async fn plan(
    services: &Shared,
    app: &App,
    claimed: &[ClaimedDelivery],
    now: Timestamp,
) -> Result<Planned> {
    let context = read(services, app, claimed).await?;
    let mut steps = HashMap::new();
    let mut campaigns: HashMap<(Uuid, i64), Campaign> = HashMap::new();
    let mut to_render: HashMap<(Uuid, i64, Uuid), Vec<&ClaimedDelivery>> = HashMap::new();
    let mut refused = Vec::new();
    for delivery in claimed {
        let mut made = match before_rendering(app, delivery, &context, now) {
            Some(step) => Some(step),
            None => made_before(delivery, &context, now)?,
        };
        if let Some(step) = made.take_if(|step| !heeds_quiet_hours(delivery, step)) {
            steps.insert(delivery.id, step);
            continue;
        }
        let key = (delivery.campaign_id, delivery.campaign_version);
        let found = match campaigns.entry(key) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(place) => {
                place.insert(campaign(services, app, &context.statuses, key).await?)
            }
        };
        let quiet = match found {
            Campaign::Runs(sending) => while_quiet(app, sending, delivery, &context, now),
            _ => None,
        };
        if let Some(step) = quiet.or(made) {
            steps.insert(delivery.id, step);
            continue;
        }
        let step = match found {
            Campaign::Runs(_) => {
                let key = (key.0, key.1, delivery.variant_id);
                to_render.entry(key).or_default().push(delivery);
                continue;
            }
            Campaign::Halted(Halted::Paused) => Step::Park,
            Campaign::Halted(Halted::Ended(reason)) => {
                Step::End(Status::Cancelled, (*reason).to_owned(), None)
            }
            Campaign::Refused(why) => {
                refused.push((delivery, why.clone()));
                continue;
            }
            Campaign::Unreadable => Step::End(Status::Failed, PLUGIN_ERROR.to_owned(), None),
            Campaign::Unavailable => Step::Later(now.plus(LATER)),
        };
        steps.insert(delivery.id, step);
    }
    steps.extend(refuse(services, app, &refused, &context).await?);
    for ((campaign_id, version, variant_id), deliveries) in to_render {
        if let Some(Campaign::Runs(sending)) = campaigns.get(&(campaign_id, version)) {
            let which: (&Sending, Uuid) = (sending, variant_id);
            render(services, app, which, &deliveries, &context, now, &mut steps).await?;
        }
    }
    Ok(context.planned(claimed, steps))
}

/// What is to be done about deliveries whose campaign no active version of its plugin takes: they have failed, and are made
/// once one does.
async fn refuse(
    services: &Shared,
    app: &App,
    refused: &[(&ClaimedDelivery, String)],
    context: &BatchContext,
) -> Result<Vec<(Uuid, Step)>> {
    let asked = refused.iter().map(|(delivery, _)| *delivery);
    let aliases = aliases(services, app, asked).await?;
    let refused = refused.iter().map(|(delivery, why)| {
        let failure = (PLUGIN_UNAVAILABLE, why.clone(), None);
        (delivery.id, broken(delivery, context, &aliases, failure))
    });
    Ok(refused.collect())
}

/// What is to be done about a delivery that would be sent in quiet hours, such as one whose campaign was paused or that a
/// provider did not take before: what the schedule says.
fn while_quiet(
    app: &App,
    sending: &Sending,
    delivery: &ClaimedDelivery,
    context: &BatchContext,
    now: Timestamp,
) -> Option<Step> {
    if delivery.urgency == Urgency::Urgent.number() {
        return None;
    }
    let timezone = context
        .people
        .get(&delivery.subject_id)?
        .timezone
        .as_deref();
    let quiet = app.settings.quiet_hours.as_ref().and_then(Quiet::of);
    match sending.schedule.while_quiet(now, timezone, quiet) {
        Opening::Deferred(until) => Some(Step::Later(until)),
        Opening::Closed(reason) if delivery.status == Status::Queued.name() => {
            let reason = reason.name().to_owned();
            Some(Step::End(Status::Skipped, reason, None))
        }
        Opening::Closed(reason) => Some(Step::Known(given_up(delivery, reason.name()))),
        Opening::Open => None,
    }
}

/// What is to be done about a delivery whose message is made, quiet hours aside; none: it is yet to be made.
fn made_before(
    delivery: &ClaimedDelivery,
    batch: &BatchContext,
    now: Timestamp,
) -> Result<Option<Step>> {
    let Some(content) = &delivery.content else {
        return Ok(None);
    };
    let first = delivery.status == Status::Queued.name();
    Ok(Some(match halted_since(&batch.statuses, delivery) {
        Some(Halted::Paused) if first => Step::Park,
        Some(Halted::Ended(reason)) if first => {
            Step::End(Status::Cancelled, reason.to_owned(), None)
        }
        Some(Halted::Paused) => Step::Later(now.plus(WHILE_PAUSED)),
        Some(Halted::Ended(reason)) => Step::Known(given_up(delivery, reason)),
        None => {
            let rendered = serde_json::from_str(content)
                .map_err(|cause| Error::corrupt("deliveries", "content", cause))?;
            outgoing(delivery, rendered, batch.targets_of(delivery), now)
        }
    }))
}

/// Whether quiet hours may keep a message from being sent. Nobody is kept from what is asked for at once.
fn heeds_quiet_hours(delivery: &ClaimedDelivery, step: &Step) -> bool {
    delivery.urgency != Urgency::Urgent.number() && matches!(step, Step::Send(_))
}

async fn read(services: &Shared, app: &App, claimed: &[ClaimedDelivery]) -> Result<BatchContext> {
    let mut subjects: Vec<Uuid> = claimed.iter().map(|delivery| delivery.subject_id).collect();
    subjects.sort_unstable();
    subjects.dedup();
    let mut tx = services.db.read().await?;
    let mut targets: HashMap<Uuid, Vec<Target>> = HashMap::new();
    let active = tokens::store::active_of(&mut tx, &services.secrets, app.id, &subjects).await?;
    for target in active.targets {
        targets.entry(target.subject_id).or_default().push(target);
    }
    let unrendered = claimed.iter().filter(|delivery| delivery.content.is_none());
    let seqs: Vec<i64> = unrendered
        .filter_map(|delivery| delivery.event_seq)
        .filter(|seq| scheduled_work::instant_of(*seq).is_none())
        .collect();
    let events = events(&mut tx, app.id, &seqs).await?;
    let campaigns = claimed.iter().map(|delivery| delivery.campaign_id);
    let statuses = store::campaign_statuses(&mut tx, app.id, &campaigns.collect()).await?;
    let filled_caps = caps::filled(&mut tx, app, claimed).await?;
    Ok(BatchContext {
        people: active.people,
        targets,
        unreadable: active.unreadable,
        events,
        filled_caps,
        statuses,
    })
}

/// The events behind deliveries, by number, each with its alias.
async fn events(
    tx: &mut nudge_db::Tx,
    app_id: Uuid,
    seqs: &[i64],
) -> Result<HashMap<i64, (i64, Stored)>> {
    if seqs.is_empty() {
        return Ok(HashMap::new());
    }
    let mut seqs = seqs.to_vec();
    seqs.sort_unstable();
    seqs.dedup();
    let found = events::store::at(tx, &seqs).await?.into_iter();
    let of_app = found.filter(|(of, ..)| *of == app_id);
    Ok(of_app
        .map(|(_, alias, stored)| (stored.seq, (alias, stored)))
        .collect())
}

/// What can be said without knowing what the delivery says.
fn before_rendering(
    app: &App,
    delivery: &ClaimedDelivery,
    context: &BatchContext,
    now: Timestamp,
) -> Option<Step> {
    let end = |status, reason: &str| Some(Step::End(status, reason.to_owned(), None));
    let first = delivery.status == Status::Queued.name();
    let Some(person) = context.people.get(&delivery.subject_id) else {
        // It has become part of another, whose the delivery is; or it is erased, and the delivery too.
        return Some(Step::Later(now.plus(SOON)));
    };
    if person.suppressed {
        return end(Status::Cancelled, "subject_gone");
    }
    let granted = app.settings.consent.grants(person.consent);
    if first && !granted {
        return end(Status::Skipped, "consent_missing");
    }
    if granted && context.unreadable.contains(&delivery.subject_id) {
        return Some(Step::Later(now.plus(WHILE_UNREADABLE)));
    }
    if first && !context.targets.contains_key(&delivery.subject_id) {
        return end(Status::Skipped, "no_active_device");
    }
    if let Some(reason) = context.filled_caps.get(&delivery.id) {
        return end(Status::Skipped, reason);
    }
    if !first && !granted {
        return Some(Step::Known(given_up(delivery, "consent_missing")));
    }
    if !first && now.since(delivery.created_at) > OLDEST {
        return Some(Step::Known(given_up(delivery, EXPIRED)));
    }
    None
}

/// Why a delivery has failed that its plugin failed on.
const PLUGIN_ERROR: &str = "plugin_error";
/// Past this age nothing is sent again.
const OLDEST: Duration = Duration::from_hours(28 * 24);

/// Makes the messages of a variant, all in one go.
async fn render(
    services: &Shared,
    app: &App,
    which: (&Sending, Uuid),
    deliveries: &[&ClaimedDelivery],
    context: &BatchContext,
    now: Timestamp,
    steps: &mut HashMap<Uuid, Step>,
) -> Result<()> {
    let (sending, variant_id) = which;
    let Some(variant) = sending.variants.get(variant_id) else {
        let gone = || Step::End(Status::Cancelled, "variant_gone".to_owned(), None);
        steps.extend(deliveries.iter().map(|delivery| (delivery.id, gone())));
        return Ok(());
    };
    let mut readable = Vec::with_capacity(deliveries.len());
    let mut recipients = Vec::with_capacity(deliveries.len());
    for delivery in deliveries {
        match recipient(delivery, context) {
            Ok(recipient) => {
                readable.push(*delivery);
                recipients.push(recipient);
            }
            Err(error) => {
                let at = unreadable(delivery, &error, now);
                steps.insert(delivery.id, Step::Later(at));
            }
        }
    }
    let deliveries = readable;
    let made = make(services, app, sending, variant, &recipients, now).await?;
    let failed = deliveries.iter().zip(&made);
    let failed = failed.filter(|(_, made)| matches!(made, Made::Broken { .. }));
    let aliases = aliases(services, app, failed.map(|(delivery, _)| *delivery)).await?;
    for (delivery, made) in deliveries.iter().zip(made) {
        let step = match made {
            Made::Ready(rendered) => {
                outgoing(delivery, *rendered, context.targets_of(delivery), now)
            }
            Made::Skipped(reason) => Step::End(Status::Skipped, reason.to_owned(), None),
            Made::Failed(reason) => Step::End(Status::Failed, reason.to_owned(), None),
            Made::Unavailable => Step::Later(now.plus(LATER)),
            Made::Broken {
                code,
                detail,
                plugin,
            } => broken(delivery, context, &aliases, (code, detail, Some(plugin))),
        };
        steps.insert(delivery.id, step);
    }
    Ok(())
}

/// What a message is made of for a delivery.
fn recipient(delivery: &ClaimedDelivery, context: &BatchContext) -> Result<Recipient> {
    let data = delivery.data.as_deref().map(serde_json::from_str);
    let data = data.transpose();
    Ok(Recipient {
        subject_id: delivery.subject_id,
        data: data.map_err(|cause| Error::corrupt("deliveries", "data", cause))?,
        // Of the campaign's own occasion there is no event that anybody sent.
        trigger: event(delivery, context)
            .filter(|(_, stored)| scheduled_work::instant_of(stored.seq).is_none())
            .map(|(_, stored)| past(&stored)),
    })
}

/// When a delivery is looked at again of which something cannot be read. Others go on.
pub(super) fn unreadable(delivery: &ClaimedDelivery, error: &Error, now: Timestamp) -> Timestamp {
    tracing::error!(error = ?error, delivery.id = %delivery.id, "a delivery can't be read, and waits");
    now.plus(WHILE_UNREADABLE)
}

/// What is to be done about a delivery that its plugin failed on: how, what happened, and which plugin.
fn broken(
    delivery: &ClaimedDelivery,
    context: &BatchContext,
    aliases: &HashMap<Uuid, i64>,
    (code, detail, plugin): (&'static str, String, Option<Description>),
) -> Step {
    let event = event(delivery, context).or_else(|| request(delivery, aliases));
    let broken = event.map(|(alias, stored)| Broken {
        code,
        detail,
        plugin,
        alias,
        stored,
    });
    Step::End(Status::Failed, PLUGIN_ERROR.to_owned(), broken)
}

/// The event behind a delivery, with its alias: one that was sent, or that of the campaign's own occasion, which is
/// stored nowhere. A request of a backend has none.
fn event(delivery: &ClaimedDelivery, context: &BatchContext) -> Option<(i64, Stored)> {
    let (alias, seq) = delivery.alias_number.zip(delivery.event_seq)?;
    if let Some(at) = scheduled_work::instant_of(seq) {
        return Some((alias, scheduled_work::event(delivery.campaign_id, at)));
    }
    let (owner, stored) = context.events.get(&seq)?;
    (*owner == alias).then(|| (alias, stored.clone()))
}

/// What stands for the event of a delivery that a backend asked for, with a name of the recipient.
fn request(delivery: &ClaimedDelivery, aliases: &HashMap<Uuid, i64>) -> Option<(i64, Stored)> {
    let alias = *aliases.get(&delivery.subject_id)?;
    let at = delivery.created_at;
    let event = Event {
        id: delivery.id,
        name: TRANSACTIONAL.into(),
        timestamp: at,
        client_timestamp: None,
        properties: "{}".into(),
    };
    let stored = Stored {
        seq: 0,
        received_at: at,
        origin: Arc::default(),
        event: Arc::new(event),
    };
    Some((alias, stored))
}

/// A name of each person that dead letters of deliveries without an event are to be about.
async fn aliases(
    services: &Shared,
    app: &App,
    failed: impl Iterator<Item = &ClaimedDelivery>,
) -> Result<HashMap<Uuid, i64>> {
    let asked = failed.filter(|delivery| delivery.event_seq.is_none());
    let people: BTreeSet<(Uuid, Uuid)> = asked.map(|it| (app.id, it.subject_id)).collect();
    if people.is_empty() {
        return Ok(HashMap::new());
    }
    let mut tx = services.db.read().await?;
    subjects::store::oldest_aliases(&mut tx, &people).await
}

/// An event as plugins get it.
pub(super) fn past(stored: &Stored) -> PastEvent {
    PastEvent {
        id: stored.event.id,
        timestamp: stored.event.timestamp.0,
        properties: Arc::clone(&stored.event.properties),
    }
}
