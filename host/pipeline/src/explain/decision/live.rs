//! Whether a campaign that waits for nothing is for somebody now.

use nudge_apps::App;
use nudge_campaigns::campaign::ActiveCampaign;
use nudge_campaigns::targeting::{Opening, Quiet};
use nudge_platform::event_names::SCHEDULED;
use nudge_records::scheduled_work;

use super::{Error, Question, as_item, as_of, call, session, subject};
use crate::services::Services;

/// Whether consent, the sample, the schedule and the audience let somebody have it now. Nothing is counted, and nothing
/// takes effect. The plugin is asked as by a run of the campaign.
pub async fn is_for(
    services: &Services,
    app: &App,
    running: &ActiveCampaign,
    alias: i64,
) -> Result<bool, Error> {
    let now = services.clock.now();
    let stored = scheduled_work::event(running.id, now);
    let question = Question {
        app,
        running,
        alias,
        stored: &stored,
    };
    let mut tx = services.db.read().await?;
    let Some(subject) = subject(&mut tx, question).await? else {
        return Ok(false);
    };
    let rules = &running.rules;
    let quiet = app.settings.quiet_hours.as_ref().and_then(Quiet::of);
    let opening = rules
        .schedule
        .opening(now, subject.timezone.as_deref(), quiet);
    let may = !subject.suppressed
        && subject.may_message(app)
        && rules.sample.includes(running.id, subject.id)
        && matches!(opening, Opening::Open);
    let (plugin, reading) = running.accepted.for_subject(subject.id);
    if !may || !reading.has_event(SCHEDULED) {
        return Ok(false);
    }
    let item = as_item(&stored, session(subject.session_number), None, now.0);
    let before = subject.last_seq.saturating_add(1);
    let facts = as_of(&mut tx, services, question, subject, (before, now)).await?;
    drop(tx);
    let mut call = call(question, plugin, reading, item, facts);
    call.batch.explaining = false;
    let (number, made) = (call.item, move || {
        call.plugin.evaluate(call.batch, Box::new(call.facts))
    });
    let outcome = services.plugins.workers.run(app.id, made).await?;
    let outcome = outcome.map_err(|failed| Error::Failed(failed.failure.to_string()))?;
    Ok(outcome.fired.iter().any(|firing| firing.item == number))
}
