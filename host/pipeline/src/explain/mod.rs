//! Why a campaign fired or did not, for an event and a subject (contract 13, `explain`).
//!
//! The plugin is asked as it was asked when it decided (`decision`); schedule and caps are judged by the rules that
//! firings are judged by; status and consent are those of then (`status_and_consent.rs`). What was forgotten since is taken as it
//! is now. Where the event set a timer, what was decided when that was due is explained too (`later.rs`). Where nobody can say
//! why, what is left of the event says what became of it (`unasked.rs`).

pub mod decision;
pub mod http;
mod later;
mod message;
mod status_and_consent;
pub mod store;
mod unasked;

use nudge_apps::App;
use nudge_campaigns::campaign::ActiveCampaign;
use nudge_campaigns::lifecycle::Presented;
use nudge_campaigns::segments::{Change, Watch};
use nudge_campaigns::targeting::{Opening, Quiet};
use nudge_campaigns::{in_app, push, store as campaigns, surveys};
use nudge_db::Timestamp;
use nudge_platform::clock;
use nudge_records::dead_letters::store::FoundLetter;
use nudge_records::dead_letters::{self, Letter};
use nudge_records::deliveries::Status;
use nudge_records::events::store::Stored;
use nudge_records::subjects;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::audience::{self, CountedAsOf};
use crate::history;
use crate::services::Services;
use decision::{DecisionQuestion, Person, Told};
use later::Later;
use unasked::Refused;

/// What became of an event for a campaign and subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Outcome)]
#[serde(rename_all = "snake_case")]
pub enum ExplainedOutcome {
    /// The campaign fired.
    Fired,
    /// It did not: the trigger, the audience or the sample says no, or the campaign does not run.
    NotFired,
    /// It would have, and consent, the schedule or a cap kept it from having an effect.
    Suppressed,
    /// It fires when quiet hours are over.
    Deferred,
    /// It waits for its delay, or for what else its plugin set a timer for.
    Waiting,
    /// The event was not processed yet.
    Processing,
    /// The subject has no such event.
    UnknownEvent,
}

/// One thing that was checked.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ExplainStep)]
pub struct Step {
    /// What: `event`, `consent`, `status`, `trigger`, `filter`, `occurrence`, `delay`, `audience_leaf`, `audience`,
    /// `sample`, `schedule`, `caps`, `personalization`, `delivery`, or what a plugin of the app's own calls it.
    pub check: String,
    /// Whether it holds.
    pub passed: bool,
    /// For a person.
    pub detail: String,
}

impl Step {
    fn new(check: &str, passed: bool, detail: impl Into<String>) -> Self {
        Self {
            check: check.to_owned(),
            passed,
            detail: detail.into(),
        }
    }
}

/// Why.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Explained {
    /// What became of it.
    pub outcome: ExplainedOutcome,
    /// What was checked, in the order in which it is.
    pub steps: Vec<Step>,
}

/// Why something can't be explained.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such campaign or subject.
    #[error("no such campaign or subject")]
    NotFound,
    /// The plugin can't be asked.
    #[error("the plugin can't be asked")]
    Plugin(#[from] decision::Error),
    /// The campaign can't be read.
    #[error("the campaign can't be read")]
    Campaign(#[from] nudge_campaigns::lifecycle::Error),
    /// The database.
    #[error("storage failed")]
    Storage(#[from] nudge_db::Error),
}

/// A campaign as it would run, and what keeps it from running.
struct Campaign {
    running: ActiveCampaign,
    status: &'static str,
    created_at: Timestamp,
}

/// A campaign, as far as it can run.
enum FoundCampaign {
    /// It can, whether it does or not.
    Runs(Box<Campaign>),
    /// It can't as it is.
    Refused(Refused),
    /// Nothing triggers it.
    Untriggered,
}

/// Says why a campaign fired or did not for an event of a subject.
pub async fn explain(
    services: &Services,
    app: &App,
    campaign_id: Uuid,
    subject_id: Uuid,
    event_id: Uuid,
) -> Result<Explained, Error> {
    let found = campaign(services, app, campaign_id).await?;
    let mut tx = services.db.read().await?;
    let alias_view = subjects::store::of_subject(&mut tx, app.id, subject_id).await?;
    let alias_view = alias_view.filter(|alias_view| !alias_view.suppressed);
    let alias_view = alias_view.ok_or(Error::NotFound)?;
    let person = decision::person(&mut tx, app, alias_view.alias).await?;
    let person = person.ok_or(Error::NotFound)?;
    let Some((alias, stored)) = history::event_of(&mut tx, app.id, person.id, event_id).await?
    else {
        let detail = "the subject has no event of this id, or it was removed since";
        return Ok(Explained {
            outcome: ExplainedOutcome::UnknownEvent,
            steps: vec![Step::new("event", false, detail)],
        });
    };
    let event = (alias, stored.event.id);
    let letters = dead_letters::store::of_event(&mut tx, app.id, event, campaign_id);
    let letters = letters.await?;
    drop(tx);
    let campaign = match found {
        FoundCampaign::Runs(campaign) => campaign,
        FoundCampaign::Refused(refused) => {
            let left = unasked::refused(services, app, &person, (alias, &stored), refused);
            let mut explained = left.await?;
            explained.steps.extend(letters.into_iter().map(failed));
            return Ok(explained);
        }
        FoundCampaign::Untriggered => return Ok(untriggered(&stored)),
    };
    let question = DecisionQuestion {
        app,
        running: &campaign.running,
        alias,
        stored: &stored,
    };
    let told = match decision::ask(services, question).await {
        Err(decision::Error::Failed(what)) => {
            return unasked::failing(services, &person, question, &what, letters).await;
        }
        told => told?,
    };
    let mut tx = services.db.read().await?;
    let trace = store::trace(&mut tx, app.id, person.id, campaign.running.id, &stored).await?;
    let trace = trace.under(&campaign.running.accepted);
    drop(tx);
    let later = later::ask(services, question, &trace, told.timer_at).await?;
    let mut explained = finish(
        services,
        &campaign,
        &person,
        question,
        &trace,
        (told, later),
    )
    .await?;
    // What the plugin says now is not what it said then.
    explained.steps.extend(letters.into_iter().map(failed));
    Ok(explained)
}

/// No event triggers the campaign.
fn untriggered(stored: &Stored) -> Explained {
    let detail = "the campaign is transactional: backends send it, and no event triggers it";
    Explained {
        outcome: ExplainedOutcome::NotFired,
        steps: vec![received(stored), Step::new("trigger", false, detail)],
    }
}

/// The event, which is there.
fn received(stored: &Stored) -> Step {
    let at = clock::to_text(stored.received_at);
    let name = &stored.event.name;
    Step::new("event", true, format!("{name}, received at {at}"))
}

/// The plugin that was to decide about the event, or about a timer that it had set, failed.
fn failed(found: FoundLetter) -> Step {
    let Letter {
        id,
        reason,
        plugin,
        timer,
        ..
    } = found.letter;
    let who = plugin.map_or_else(
        || "the plugin".to_owned(),
        |plugin| format!("{} {}", plugin.name, plugin.version),
    );
    let what = timer.map_or_else(
        || "the event".to_owned(),
        |timer| format!("its timer \"{}\"", timer.key),
    );
    let detail =
        format!("{who} failed on {what}: {reason}; it can be replayed, as dead letter {id}");
    Step::new("trigger", false, detail)
}

/// The campaign, whether it runs or not: a survey, an in-app message, or a push campaign.
async fn campaign(services: &Services, app: &App, id: Uuid) -> Result<FoundCampaign, Error> {
    if let Some(found) = presented::<surveys::Content>(services, app, id).await? {
        return Ok(found);
    }
    if let Some(found) = presented::<in_app::Content>(services, app, id).await? {
        return Ok(found);
    }
    let mut tx = services.db.read().await?;
    let campaign = campaigns::find::<push::Content>(&mut tx, app.id, id).await?;
    drop(tx);
    let campaign = campaign.ok_or(Error::NotFound)?;
    if campaign.content.mode == push::Mode::Transactional {
        return Ok(FoundCampaign::Untriggered);
    }
    let sending = app.push.get(&id).map(|sending| &**sending);
    let run = push::run(
        &services.plugins,
        &app.deciders,
        &app.segments.audiences,
        &campaign,
        (sending, running(app, id)),
    );
    Ok(match run.await {
        Ok((_, Some(running))) => FoundCampaign::Runs(Box::new(Campaign {
            running,
            status: campaign.content.status.name(),
            created_at: campaign.created_at,
        })),
        Ok((_, None)) => FoundCampaign::Untriggered,
        Err(error) => FoundCampaign::Refused(Refused::of((id, &campaign.content), error)?),
    })
}

/// A campaign of a kind that SDKs present; none: the app has none of this id.
async fn presented<C: Presented>(
    services: &Services,
    app: &App,
    id: Uuid,
) -> Result<Option<FoundCampaign>, Error> {
    let mut tx = services.db.read().await?;
    let found = campaigns::find::<C>(&mut tx, app.id, id).await?;
    drop(tx);
    let Some(campaign) = found else {
        return Ok(None);
    };
    let status = campaign.content.status().name();
    let (plugins, segments) = (&services.plugins, &app.segments.audiences);
    let run = C::run(
        plugins,
        &app.deciders,
        segments,
        &campaign,
        running(app, id),
    );
    Ok(Some(match run.await {
        Ok(running) => FoundCampaign::Runs(Box::new(Campaign {
            running,
            status,
            created_at: campaign.created_at,
        })),
        Err(error) => FoundCampaign::Refused(Refused::of((id, &campaign.content), error)?),
    }))
}

/// A campaign as it runs, if it does.
fn running(app: &App, id: Uuid) -> Option<&ActiveCampaign> {
    app.campaign(id).and_then(|index| app.campaigns.get(index))
}

async fn finish(
    services: &Services,
    campaign: &Campaign,
    person: &Person,
    question: DecisionQuestion<'_>,
    trace: &store::Trace,
    (told, later): (Told, Option<Later>),
) -> Result<Explained, Error> {
    let DecisionQuestion {
        app,
        running,
        stored,
        ..
    } = question;
    let decided_at = later.as_ref().map_or(told.decided_at, Later::decided_at);
    let at = match &trace.timer {
        Some(_) => services.clock.now(),
        None => trace
            .issued_at()
            .or(decided_at)
            .unwrap_or(stored.received_at),
    };
    let name = &stored.event.name;
    let then = status_and_consent::read(
        services,
        campaign,
        person,
        question,
        trace,
        (&told, later.as_ref()),
    );
    let then = then.await?;
    let mut steps = vec![received(stored), then.consent, then.status];
    let fires = later.as_ref().map_or(told.fires, Later::fires);
    let kept = decided_at.is_some();
    steps.extend(trigger(name, told, running.watch));
    if let Some(later) = later {
        later.explain(&mut steps);
    }
    let percent = running.rules.sample.percent();
    let sampled = running.rules.sample.includes(running.id, person.id);
    if !sampled {
        // The campaign is not for the subject: what it counted as fired never was.
        steps.retain(|step| step.passed || step.check != "occurrence");
    }
    if percent < 100.0 {
        let is = if sampled { "is" } else { "is not" };
        let detail = format!("the subject {is} in the campaign's sample of {percent} %");
        steps.push(Step::new("sample", sampled, detail));
    }
    let mut delivery_rules = vec![schedule(app, running, person, at)];
    let mut tx = services.db.read().await?;
    // What was held back was judged after what its batch had issued.
    let as_of = match trace.issued {
        Some(_) => CountedAsOf::before(at),
        None => CountedAsOf::with_batch_of(at),
    };
    delivery_rules.extend(caps(&mut tx, app, running, person, at, as_of).await?);
    drop(tx);
    if fires && sampled {
        delivery_rules.extend(message::step(services, question, person, trace).await?);
    }
    let closed = delivery_rules.iter().any(|step| !step.passed) || !then.may_message;
    steps.extend(delivery_rules);
    let held_back = fires && sampled && (kept || then.runs && closed);
    let (outcome, left) = outcome(trace, held_back);
    steps.extend(left);
    Ok(Explained { outcome, steps })
}

/// What became of the event, by what is left of it, and what that says besides. `held_back`: the plugin fires, and
/// nothing is left of it.
fn outcome(trace: &store::Trace, held_back: bool) -> (ExplainedOutcome, Option<Step>) {
    if let Some(reason) = &trace.suppressed_by {
        let step = Step::new(
            "suppressed",
            false,
            format!("noted as suppressed by {reason}"),
        );
        return (ExplainedOutcome::Suppressed, Some(step));
    }
    if trace.issued.is_some() {
        let step = trace.delivery.as_ref().and_then(delivery);
        return (ExplainedOutcome::Fired, step);
    }
    if let Some(until) = trace.deferred_until {
        let until = clock::to_text(until);
        let detail = format!("waits until {until}, for quiet hours or a pause to end");
        return (
            ExplainedOutcome::Deferred,
            Some(Step::new("schedule", false, detail)),
        );
    }
    if trace.timer.is_some() {
        return (ExplainedOutcome::Waiting, None);
    }
    let outcome = match (trace.pending, held_back) {
        (true, _) => ExplainedOutcome::Processing,
        (false, true) => ExplainedOutcome::Suppressed,
        (false, false) => ExplainedOutcome::NotFired,
    };
    (outcome, None)
}

/// Where the push message of a firing stands; none: it is past its retention, and only counts.
fn delivery(made: &store::MadeDelivery) -> Option<Step> {
    let status = Status::of_name(&made.status)?;
    let arrives = !matches!(
        status,
        Status::Failed | Status::Bounced | Status::Skipped | Status::Cancelled
    );
    let mut detail = format!("the delivery {} is {}", made.id, status.name());
    if let Some(reason) = &made.reason {
        detail.push_str(": ");
        detail.push_str(reason);
    }
    Some(Step::new("delivery", arrives, detail))
}

/// What the plugin checked of the event. A campaign that waits for a segment's changes is fired by no event.
fn trigger(event_name: &str, told: Told, watch: Option<Watch>) -> Vec<Step> {
    let (name, version) = &told.plugin;
    if !told.concerned {
        let mut detail =
            format!("{name} {version} does not read events named {event_name} for this campaign");
        if let Some(watch) = watch {
            let change = match watch.on {
                Change::Enter => "enter",
                Change::Exit => "leave",
            };
            let waits = format!(
                ": it waits for people who {change} the segment {}",
                watch.segment_id
            );
            detail.push_str(&waits);
        }
        return vec![Step::new("trigger", false, detail)];
    }
    checks(told)
}

/// What the plugin explained. The check that is called `trigger` says which plugin it was, and as of when.
fn checks(told: Told) -> Vec<Step> {
    let (name, version) = told.plugin;
    let source = if told.decided_at.is_some() {
        "as it was decided"
    } else {
        "as of now"
    };
    let mut steps: Vec<Step> = told
        .explanations
        .into_iter()
        .map(|explanation| Step {
            check: explanation.check,
            passed: explanation.passed,
            detail: explanation.detail,
        })
        .collect();
    if let Some(step) = steps.iter_mut().find(|step| step.check == "trigger") {
        step.detail = format!("{} ({name} {version}, {source})", step.detail);
    } else {
        let fires = if told.fires { "fires" } else { "does not fire" };
        let detail = format!("{name} {version} {fires}, {source}");
        steps.insert(0, Step::new("trigger", told.fires, detail));
    }
    steps
}

fn schedule(app: &App, running: &ActiveCampaign, person: &Person, at: Timestamp) -> Step {
    let quiet = app.settings.quiet_hours.as_ref().and_then(Quiet::of);
    let opening = running
        .rules
        .schedule
        .opening(at, person.timezone.as_deref(), quiet);
    let at = clock::to_text(at);
    match opening {
        Opening::Open => Step::new("schedule", true, format!("open at {at}")),
        Opening::Closed(reason) => {
            let detail = format!("closed at {at}: {}", reason.name());
            Step::new("schedule", false, detail)
        }
        Opening::Deferred(until) => {
            let detail = format!("quiet hours at {at}, until {}", clock::to_text(until));
            Step::new("schedule", false, detail)
        }
    }
}

/// A step for each cap and pause at an instant, by what the subject had then.
async fn caps(
    tx: &mut nudge_db::Tx,
    app: &App,
    running: &ActiveCampaign,
    person: &Person,
    at: Timestamp,
    as_of: CountedAsOf,
) -> nudge_db::Result<Vec<Step>> {
    let kind = running.action.kind();
    let cap = &running.rules.cap;
    let cap_windows = cap.cap_windows(running.id, kind, &app.settings.frequency);
    if cap_windows.is_empty() {
        return Ok(vec![Step::new("caps", true, "there is no cap")]);
    }
    let questions: Vec<audience::PresentationQuestion> = cap_windows
        .iter()
        .map(|cap_window| audience::PresentationQuestion::of(person.id, kind, cap_window, at))
        .collect();
    let counts = audience::counts(tx, app.id, &questions, as_of).await?;
    let steps = cap_windows.iter().zip(counts).map(|(cap_window, count)| {
        let detail = format!(
            "{}: {count} of {}",
            cap_window.reason.name(),
            cap_window.max
        );
        Step::new("caps", count < cap_window.max, detail)
    });
    Ok(steps.collect())
}
