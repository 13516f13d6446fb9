//! The campaign's status and the subject's consent as they were when it was decided about an event.

use nudge_campaigns::campaign::Status;
use nudge_campaigns::targeting::Suppression;
use nudge_platform::clock;
use serde_json::Value;

use super::later::Later;
use super::{Campaign, Error, Step, store};
use crate::explain::decision::{DecisionQuestion, Person, Told};
use crate::services::Services;

/// The campaign's status and the subject's consent, explained.
pub(super) struct StatusAndConsent {
    /// Explains the status.
    pub status: Step,
    /// Explains consent.
    pub consent: Step,
    /// Whether the campaign ran.
    pub runs: bool,
    /// Whether the subject could be messaged.
    pub may_message: bool,
}

/// Reads the campaign's status and the subject's consent. `told` and `later`: what the plugin says of the event and of its timer.
pub(super) async fn read(
    services: &Services,
    campaign: &Campaign,
    person: &Person,
    question: DecisionQuestion<'_>,
    trace: &store::Trace,
    (told, later): (&Told, Option<&Later>),
) -> Result<StatusAndConsent, Error> {
    let status = status(services, campaign, question, trace, told).await?;
    let consent = consent(person, trace, told, later);
    Ok(StatusAndConsent {
        runs: status.passed,
        may_message: consent.passed,
        status,
        consent,
    })
}

async fn status(
    services: &Services,
    campaign: &Campaign,
    question: DecisionQuestion<'_>,
    trace: &store::Trace,
    told: &Told,
) -> Result<Step, Error> {
    if let Some(version) = told.campaign_version {
        let detail = format!("the campaign was active, in version {version}, when it was decided");
        return Ok(Step::new("status", true, detail));
    }
    let (app, running) = (question.app, question.running);
    if !trace.pending {
        let resource = format!("{}/{}", running.action.kind().resource(), running.id);
        let mut tx = services.db.read().await?;
        let noted = store::last_change(&mut tx, app.id, &resource, question.stored.received_at);
        let noted = noted.await?;
        if let Some(detail) = noted
            && let Some(status) = detail.get("status").and_then(Value::as_str)
        {
            let version = detail
                .get("version")
                .map(|version| format!(", in version {version},"));
            let version = version.unwrap_or_default();
            let detail = format!("the campaign was {status}{version} when the event arrived");
            return Ok(Step::new("status", status == Status::Active.name(), detail));
        }
        if campaign.created_at > question.stored.received_at {
            let at = clock::to_text(campaign.created_at);
            let detail = format!("the campaign was made at {at}, after the event arrived");
            return Ok(Step::new("status", false, detail));
        }
    }
    let detail = format!(
        "the campaign is {}, in version {}",
        campaign.status, running.version
    );
    let runs = campaign.status == Status::Active.name();
    Ok(Step::new("status", runs, detail))
}

fn consent(person: &Person, trace: &store::Trace, told: &Told, later: Option<&Later>) -> Step {
    let then = match later {
        Some(later) if later.waits() => None,
        Some(later) => known(trace).or(later.could_message()),
        None => known(trace).or(told.could_message),
    };
    let (passed, detail) = match then {
        Some(true) => (true, "the subject could be messaged when it was decided"),
        Some(false) => (
            false,
            "the subject had not agreed to be messaged when it was decided",
        ),
        None if person.may_message => (true, "the subject may be messaged, as of now"),
        None => (
            false,
            "the subject has not agreed to be messaged, as of now",
        ),
    };
    Step::new("consent", passed, detail)
}

/// What is left of the event says of consent. Something that is deferred is judged once more.
fn known(trace: &store::Trace) -> Option<bool> {
    match &trace.suppressed_by {
        Some(reason) => (reason == Suppression::Consent.name()).then_some(false),
        None => trace.issued.map(|_| true),
    }
}
