//! What became of an event where nobody can say why now: the plugin fails on it, or the campaign can't run as it is, for its
//! plugin or a segment is gone. What was written down then holds.

use nudge_apps::App;
use nudge_campaigns::lifecycle::{self, Content};
use nudge_campaigns::targeting::Sample;
use nudge_plugin_runtime::CheckFailed;
use nudge_records::dead_letters::store::FoundLetter;
use nudge_records::events::store::Stored;
use uuid::Uuid;

use super::{Error, Explained, ExplainedOutcome, Step, failed, outcome, received, store, trigger};
use crate::explain::decision::{self, DecisionQuestion, Person};
use crate::services::Services;

/// A campaign that can't run as it is.
pub(super) struct Refused {
    id: Uuid,
    sample: Sample,
    why: Step,
}

impl Refused {
    /// Why a campaign can't run, if it is the campaign that is wrong.
    pub(super) fn of<C: Content>(
        (id, content): (Uuid, &C),
        error: lifecycle::Error,
    ) -> Result<Self, Error> {
        let (check, what) = match error {
            lifecycle::Error::Invalid(errors) => {
                let first = errors.first().map_or("", |error| error.pointer.as_str());
                let check = ["audience", "personalization"].into_iter().find(|part| {
                    first
                        .strip_prefix('/')
                        .is_some_and(|it| it.starts_with(part))
                });
                let told = errors.iter();
                let told = told.map(|error| format!("{}: {}", error.pointer, error.detail));
                let told: Vec<String> = told.collect();
                (check.unwrap_or("trigger"), told.join("; "))
            }
            lifecycle::Error::Check(CheckFailed::Failed(failed)) if !failed.is_inconclusive() => {
                ("trigger", failed.detail())
            }
            other => return Err(other.into()),
        };
        let compiled = content.compile().unwrap_or_default();
        let detail = format!("the campaign can't run, as of now: {what}");
        Ok(Self {
            id,
            sample: compiled.rules.sample,
            why: Step::new(check, false, detail),
        })
    }
}

/// Explains an event by the decision that was kept of it, and by what came of it.
pub(super) async fn refused(
    services: &Services,
    app: &App,
    person: &Person,
    (alias, stored): (i64, &Stored),
    refused: Refused,
) -> Result<Explained, Error> {
    let kept = decision::ask_kept(services, app, refused.id, (alias, stored));
    let told = match kept.await {
        Err(decision::Error::Failed(_)) => None,
        told => told?,
    };
    let fires = told.as_ref().is_some_and(|told| told.fires);
    let held_back = fires && refused.sample.includes(refused.id, person.id);
    let trace = left(services, app, person, (refused.id, stored)).await?;
    let (outcome, left) = outcome(&trace, held_back);
    let mut steps = vec![received(stored)];
    match told {
        Some(told) => steps.extend(trigger(&stored.event.name, told, None)),
        None => steps.push(refused.why),
    }
    steps.extend(left);
    Ok(Explained { outcome, steps })
}

/// Explains an event on which the version fails that decides today. `what` happens then; `letters`: what one failed on before.
pub(super) async fn failing(
    services: &Services,
    person: &Person,
    question: DecisionQuestion<'_>,
    what: &str,
    letters: Vec<FoundLetter>,
) -> Result<Explained, Error> {
    let (app, running, stored) = (question.app, question.running, question.stored);
    let is_undecided = letters.iter().any(|found| found.letter.timer.is_none());
    let failures = letters.into_iter().map(failed);
    if is_undecided {
        // Nothing was decided then, and nothing is now.
        let mut steps = vec![received(stored)];
        steps.extend(failures);
        return Ok(Explained {
            outcome: ExplainedOutcome::NotFired,
            steps,
        });
    }
    let trace = left(services, app, person, (running.id, stored)).await?;
    let (outcome, left) = outcome(&trace.under(&running.accepted), false);
    let (plugin, _) = running.accepted.for_subject(person.id);
    let version = plugin.description();
    let detail = format!(
        "{} {} fails on the event, as of now: {what}",
        version.name, version.version
    );
    let mut steps = vec![received(stored), Step::new("trigger", false, detail)];
    steps.extend(left);
    steps.extend(failures);
    Ok(Explained { outcome, steps })
}

/// What is left of an event.
async fn left(
    services: &Services,
    app: &App,
    person: &Person,
    (campaign_id, stored): (Uuid, &Stored),
) -> nudge_db::Result<store::Trace> {
    let mut tx = services.db.read().await?;
    store::trace(&mut tx, app.id, person.id, campaign_id, stored).await
}
