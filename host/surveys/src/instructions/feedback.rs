//! Buttons that open surveys (contract 20): an instruction that stands for as long as the survey is active and its audience holds.
//!
//! Whom a button is for is asked when that person polls and, while the poll waits, when the app or the person changes, a schedule may open,
//! or the person tells this process what became of a survey or of something shown; what else an audience asks of, such as the time, the
//! next poll finds. What follows is one row a person and survey, which is written only where something changes: the button comes, goes,
//! comes back, opens another version, or would soon expire.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use nudge_apps::App;
use nudge_campaigns::campaign::ActiveCampaign;
use nudge_db::{Result, Timestamp, Tx};
use nudge_pipeline::explain::decision::{self, live};
use nudge_platform::id;
use nudge_records::instructions::feedback::{self as store, Again, Button};
use nudge_records::instructions::{Instruction, Kind, LIFETIME, Status};
use nudge_records::{instructions, subjects};
use uuid::Uuid;

use crate::services::Shared;

/// A button that is on offer for less than this is offered again: who polls with a cursor gets it with its later end.
const RENEWED: Duration = Duration::from_hours(LIFETIME.as_secs() / 3600 / 2);

/// A button that is on offer later was offered before the clock was set back: clocks of several machines differ by less.
const LEEWAY: Duration = Duration::from_mins(2);

/// What is to be changed of a person's buttons.
#[derive(Debug, Default)]
struct Plan<'a> {
    new: Vec<&'a ActiveCampaign>,
    again: Vec<(Uuid, &'a ActiveCampaign)>,
    withdrawn: Vec<Uuid>,
}

impl Plan<'_> {
    fn is_empty(&self) -> bool {
        self.new.is_empty() && self.again.is_empty() && self.withdrawn.is_empty()
    }
}

/// Whom the app's buttons are for.
struct Wanted<'a> {
    /// Surveys that are for the person.
    holding: Vec<&'a ActiveCampaign>,
    /// Surveys of which that can't be said now: their buttons stay as they are.
    unknown: HashSet<Uuid>,
}

/// Brings a person's buttons up to date: `who` is the subject and one of its aliases. Where something would change, the app is asked
/// for as the database has it now: another process may have changed a survey, and offered its button, of which this one has not heard yet.
pub(super) async fn refresh(services: &Shared, app: &App, who: (Uuid, i64)) -> Result<()> {
    let (subject_id, alias) = who;
    let known = wanted(services, app, alias).await;
    let now = services.clock.now();
    let mut tx = services.db.read().await?;
    let changes = plan(&mut tx, app, subject_id, &known, now).await?;
    drop(tx);
    if changes.is_empty() {
        return Ok(());
    }
    let Some(newest) = services.apps.newest(app.id).await? else {
        return Ok(());
    };
    let wanted = if newest.version == app.version {
        known
    } else {
        wanted(services, &newest, alias).await
    };
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let locked = subjects::store::locked(&mut tx, app.id, subject_id).await?;
    if locked.is_none_or(|subject| subject.suppressed) {
        return Ok(());
    }
    // Another poll of the person may have been first.
    let changes = plan(&mut tx, &newest, subject_id, &wanted, now).await?;
    if changes.is_empty() {
        return Ok(());
    }
    write(&mut tx, &newest, subject_id, &changes, now).await?;
    tx.commit().await?;
    services.polls.wake(subject_id);
    Ok(())
}

/// Has this process's open polls of a person look for the app's buttons again: audiences ask of what was shown, answered and ended.
pub(crate) fn wake(services: &Shared, app: &App, subject_id: Uuid) {
    if !app.feedback.is_empty() {
        services.polls.wake(subject_id);
    }
}

async fn wanted<'a>(services: &Shared, app: &'a App, alias: i64) -> Wanted<'a> {
    let buttons = app.feedback.iter();
    let buttons = buttons.filter_map(|index| app.campaigns.get(*index));
    let buttons: Vec<&ActiveCampaign> = buttons.collect();
    let mut unknown = HashSet::new();
    let mut tell = |survey_id: Uuid, error: &decision::Error| {
        tracing::warn!(survey.id = %survey_id, error = %error, "whom a feedback button is for is not known now");
        unknown.insert(survey_id);
    };
    let mut holding = Vec::new();
    match live::all_for(services, app, &buttons, alias).await {
        Ok(live) => {
            for (survey_id, error) in &live.unknown {
                tell(*survey_id, error);
            }
            let held = buttons.iter().filter(|it| live.holding.contains(&it.id));
            holding.extend(held);
        }
        Err(error) => {
            for running in &buttons {
                tell(running.id, &error);
            }
        }
    }
    Wanted { holding, unknown }
}

async fn plan<'a>(
    tx: &mut Tx,
    app: &App,
    subject_id: Uuid,
    wanted: &Wanted<'a>,
    now: Timestamp,
) -> Result<Plan<'a>> {
    let once = wanted.holding.iter();
    let once = once.filter(|running| running.action.feedback() == Some(true));
    let once: Vec<Uuid> = once.map(|running| running.id).collect();
    let completed = store::completed(tx, app.id, subject_id, &once).await?;
    let buttons = store::of_subject(tx, app.id, subject_id).await?;
    let mut newest: HashMap<Uuid, &Button> = HashMap::new();
    let mut plan = Plan::default();
    for button in &buttons {
        // Two people who became one may have one each.
        match newest.entry(button.campaign_id) {
            Entry::Vacant(place) => {
                place.insert(button);
            }
            Entry::Occupied(_) if button.expires_at > now => plan.withdrawn.push(button.id),
            Entry::Occupied(_) => {}
        }
    }
    let is_done = |button: &Button| button.status == Status::Completed.name();
    let done = |running: &ActiveCampaign| {
        once.contains(&running.id)
            && (completed.contains(&running.id)
                || buttons
                    .iter()
                    .any(|button| button.campaign_id == running.id && is_done(button)))
    };
    let mut holding = HashSet::new();
    for running in wanted
        .holding
        .iter()
        .copied()
        .filter(|running| !done(running))
    {
        holding.insert(running.id);
        match newest.get(&running.id) {
            None => plan.new.push(running),
            Some(button)
                if button.expires_at < now.plus(RENEWED)
                    || button.available_at > now.plus(LEEWAY)
                    || button.campaign_version != running.version =>
            {
                plan.again.push((button.id, running));
            }
            Some(_) => {}
        }
    }
    for button in newest.values().filter(|button| button.expires_at > now) {
        if !holding.contains(&button.campaign_id) && !wanted.unknown.contains(&button.campaign_id) {
            plan.withdrawn.push(button.id);
        }
    }
    Ok(plan)
}

/// Writes what changes. The subject is locked.
async fn write(
    tx: &mut Tx,
    app: &App,
    subject_id: Uuid,
    plan: &Plan<'_>,
    now: Timestamp,
) -> Result<()> {
    let expires_at = now.plus(LIFETIME);
    store::set_expiry(tx, app.id, &plan.withdrawn, now).await?;
    for (id, running) in &plan.again {
        let again = Again {
            id: *id,
            position: store::next_position(tx, app.id, subject_id).await?,
            campaign_version: running.version,
            priority: running.priority,
            available_at: now,
            expires_at,
        };
        store::offer_again(tx, app.id, again).await?;
    }
    for running in &plan.new {
        let (plugin, _) = running.accepted.for_subject(subject_id);
        let plugin = plugin.description();
        let instruction = Instruction {
            id: id::new(now),
            app_id: app.id,
            subject_id,
            kind: Kind::Feedback,
            content: None,
            variant_id: None,
            position: store::next_position(tx, app.id, subject_id).await?,
            campaign_id: running.id,
            campaign_version: running.version,
            priority: running.priority,
            trigger_event_id: None,
            trigger_name: None,
            created_at: now,
            available_at: now,
            expires_at,
            plugin: (plugin.name.clone(), plugin.version.clone()),
        };
        instructions::store::insert(tx, &[instruction]).await?;
    }
    Ok(())
}
