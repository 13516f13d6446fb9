//! What comes of an event after its delay: what the plugin decided when the timer was due that it had set, or would
//! decide now while that waits.

use nudge_db::Timestamp;
use nudge_platform::clock;

use super::{Error, Step, checks, store};
use crate::explain::decision::{self, DecisionQuestion, Timer, Told};
use crate::services::Services;

/// A timer that the plugin set at the event.
#[derive(Debug)]
pub(super) struct Later {
    due_at: Timestamp,
    waits: bool,
    /// Whether something is left of what came of it.
    judged: bool,
    /// What the plugin says of it; none: nothing is known of that decision.
    told: Option<Told>,
}

/// Asks about the timer, if there is or was one. `set`: when one is due that the plugin says it sets.
pub(super) async fn ask(
    services: &Services,
    question: DecisionQuestion<'_>,
    trace: &store::Trace,
    set: Option<Timestamp>,
) -> Result<Option<Later>, Error> {
    let waiting = trace.timer.as_ref();
    let Some(due_at) = waiting.map(|timer| timer.due_at).or(set) else {
        return Ok(None);
    };
    // Of what was not decided yet, or by another version without a delay, there is nothing to say.
    if waiting.is_none() && trace.pending {
        return Ok(None);
    }
    let timer = waiting.map_or(Timer::WasDue(due_at), |timer| {
        Timer::Waits(timer.key.clone(), timer.payload.clone())
    });
    let told = match decision::ask_later(services, question, timer).await {
        // It can't say now what it would do.
        Err(decision::Error::Failed(_)) => None,
        told => told?,
    };
    Ok(Some(Later {
        due_at,
        waits: waiting.is_some(),
        judged: trace.issued_at().is_some(),
        told,
    }))
}

impl Later {
    /// When it was decided, if that was kept.
    pub(super) fn decided_at(&self) -> Option<Timestamp> {
        self.told.as_ref()?.decided_at
    }

    /// Whether it waits.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    /// Whether the subject could be messaged when it was decided, if that was kept.
    pub(super) fn could_message(&self) -> Option<bool> {
        self.told.as_ref()?.could_message
    }

    /// Whether the timer fires the campaign, or would.
    pub(super) fn fires(&self) -> bool {
        self.told.as_ref().is_some_and(|told| told.fires)
    }

    /// Goes on with what was explained of the event.
    pub(super) fn explain(self, steps: &mut Vec<Step>) {
        let due_at = clock::to_text(self.due_at);
        let (passed, what) = match (&self.told, self.waits) {
            (_, true) => (false, format!("waits until {due_at}")),
            (Some(_), false) => (true, format!("over at {due_at}")),
            (None, false) if self.judged => (
                true,
                format!("over at {due_at}; what was decided then was not kept"),
            ),
            (None, false) => (
                false,
                format!(
                    "would have been over at {due_at}: cancelled, or what was decided then was not kept"
                ),
            ),
        };
        match steps.iter_mut().find(|step| step.check == "delay") {
            Some(step) => {
                step.passed = passed;
                step.detail = format!("{}; {what}", step.detail);
            }
            None => steps.push(Step::new("delay", passed, what)),
        }
        if let Some(told) = self.told {
            steps.extend(checks(told));
        }
    }
}
