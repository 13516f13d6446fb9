//! Whether the in-app message of a firing could be made, and what it lacked.

use nudge_campaigns::campaign::CampaignAction;
use nudge_campaigns::push::verdict::Verdict;

use super::{Step, store};
use crate::explain::decision::{DecisionQuestion, Person};
use crate::messages::past;
use crate::personalization::{Failure, Recipient, resolve};
use crate::services::Services;

/// Explains the message of a firing; none: the campaign shows none, or there is nothing to resolve.
pub(super) async fn step(
    services: &Services,
    question: DecisionQuestion<'_>,
    person: &Person,
    trace: &store::Trace,
) -> nudge_db::Result<Option<Step>> {
    let CampaignAction::Show(showing) = &question.running.action else {
        return Ok(None);
    };
    let step = |passed, detail: &str| Ok(Some(Step::new("personalization", passed, detail)));
    let variant = showing.variants.of(person.id);
    let Some((variant, accepted)) = variant.and_then(|it| Some((it, it.accepted.as_ref()?))) else {
        return Ok(None);
    };
    if trace.issued.is_some() {
        return step(
            true,
            "the message was made when the campaign fired, and kept",
        );
    }
    let recipient = Recipient {
        subject_id: person.id,
        data: None,
        trigger: (question.stored.seq >= 0).then(|| past(question.stored)),
    };
    let (now, asked) = (services.clock.now(), (&variant.spec, accepted));
    let (by, app) = (services.resolver(), question.app);
    let resolved = resolve(by, app, None, asked, &[recipient], now).await?;
    let values = match resolved.into_iter().next() {
        Some(Ok(values)) => values,
        Some(Err(Failure::Plugin {
            code,
            detail,
            plugin,
        })) => {
            let detail = format!(
                "{} {} failed: {code}: {detail}",
                plugin.name, plugin.version
            );
            return step(false, &detail);
        }
        Some(Err(Failure::Unavailable)) | None => return Ok(None),
    };
    match values.verdict(&variant.spec) {
        Verdict::Ready => step(
            true,
            "every value that the message needs is there, as of now",
        ),
        Verdict::Skipped(reason) | Verdict::Failed(reason) => {
            let lacking = variant.spec.bindings.iter().filter_map(|binding| {
                let resolved = values.get(&binding.id)?;
                let lacks = resolved.value.is_none();
                lacks.then(|| format!("{} ({})", binding.id, resolved.issue))
            });
            let lacking: Vec<String> = lacking.collect();
            let detail = format!("{reason}, as of now: {}", lacking.join(", "));
            step(false, &detail)
        }
    }
}
