//! A decision about made-up batches, so that a plugin that fails on every call is found before it decides anything.
//!
//! An answer of any kind is a good one: a plugin may refuse events that were made up. A failure counts only if no made-up
//! batch has an answer, because a plugin that fails on one event decides about others. Without a configuration that the
//! plugin accepts there is only an empty batch, about which a plugin may stumble that never sees one; then only a failure
//! that no batch explains counts.

mod batches;
mod configurations;

use std::sync::Arc;
use std::time::Duration;

use crate::failure::{Failed, Failure};
use crate::kind::Kind;
use crate::plugin::{Plugin, Reads};
use crate::{personalization, processor, trigger};
use batches::Filling;

/// Times that a slow decision is made: what the machine delays once, it does not delay each time.
const SLOW_TRIES: usize = 3;
/// A plugin fails by its deadline on every call if each takes so many times the deadline in processor time, which does not
/// depend on other work of the machine. The factor is for slow processors.
const SLOWER: u32 = 3;

/// The engine's words for a handle of a batch that a plugin keeps beyond the call. No batch explains it.
const KEPT_HANDLE: &str = "borrow handles still remain";

/// What came of the decision about a made-up batch.
#[derive(Debug)]
pub enum TriedDecision {
    /// It decided, or refused to.
    Answered {
        /// The configuration, as JSON; none: the plugin accepted none that was made up, and decided about an empty batch.
        config: Option<String>,
        /// What it said where it refused.
        refusal: Option<Failure>,
    },
    /// It failed on an empty batch, the only one that it could be asked about, which says nothing of other batches.
    Unknown(Failed),
    /// It fails on each made-up batch.
    Fails(Failed),
    /// It takes much longer than its deadline.
    Slow {
        /// The least processor time that a decision took.
        took: Duration,
        /// What it may take.
        deadline: Duration,
    },
}

impl Plugin {
    /// Makes a decision about made-up batches, until one has an answer. Blocks, for a few seconds at the most.
    /// Fails if the host could not do its part.
    pub fn try_decision(&self) -> Result<TriedDecision, Failed> {
        let patient = self.patient();
        let accepted = configurations::made_up(self.kind(), &self.description().config_schema)
            .into_iter()
            .find_map(|config| match patient.check_config(&config) {
                Ok(Ok(reads)) => Some((config, reads)),
                Ok(Err(_)) | Err(_) => None,
            });
        let Some((config, reads)) = accepted else {
            return match patient.decide_on_nothing() {
                Ok(()) => Ok(answered(None, None)),
                Err(failed) => of_empty_batch(failed),
            };
        };
        let mut first = None;
        for filling in Filling::ALL {
            let before = processor::used();
            let decided = patient.decide_on(&config, &reads, filling);
            let took = processor::used().saturating_sub(before);
            let refusal = match decided {
                Ok(()) => None,
                Err(failed) if said_no(&failed) => Some(failed.failure),
                Err(failed) if failed.is_inconclusive() => return Err(failed),
                Err(failed) => {
                    first.get_or_insert(failed);
                    continue;
                }
            };
            if let Some(slow) = self.slow(&patient, took, (&config, &reads, filling)) {
                return Ok(slow);
            }
            return Ok(answered(Some(config), refusal));
        }
        match first {
            Some(failed) => Ok(TriedDecision::Fails(failed)),
            None => Ok(answered(Some(config), None)),
        }
    }

    /// The same version with as much time for a decision as for `describe`: on a busy machine a call may take longer than
    /// its deadline for no fault of its own.
    fn patient(&self) -> Self {
        let mut limits = self.limits().clone();
        let patience = limits.describe_deadline;
        for deadline in [
            &mut limits.trigger_deadline,
            &mut limits.validation_deadline,
            &mut limits.personalization_deadline,
        ] {
            *deadline = patience.max(*deadline);
        }
        self.limited(limits)
    }

    fn deadline(&self) -> Duration {
        match self.kind() {
            Kind::Trigger => self.limits().trigger_deadline,
            Kind::Validation => self.limits().validation_deadline,
            Kind::Personalization => self.limits().personalization_deadline,
        }
    }

    /// Whether a decision that took so much processor time takes much longer than its deadline each time.
    fn slow(
        &self,
        patient: &Self,
        took: Duration,
        (config, reads, filling): (&str, &Reads, Filling),
    ) -> Option<TriedDecision> {
        let deadline = self.deadline();
        let mut least = took;
        for _ in 1..SLOW_TRIES {
            if least <= deadline * SLOWER {
                return None;
            }
            let before = processor::used();
            // It answered before; the same batch gives the same answer.
            let _ = patient.decide_on(config, reads, filling);
            least = least.min(processor::used().saturating_sub(before));
        }
        (least > deadline * SLOWER).then_some(TriedDecision::Slow {
            took: least,
            deadline,
        })
    }

    fn decide_on_nothing(&self) -> Result<(), Failed> {
        match self.kind() {
            Kind::Trigger => {
                let nobody = Box::new(trigger::Nobody);
                self.evaluate(batches::empty_trigger(), nobody).map(drop)
            }
            Kind::Validation => self.validate(batches::empty_validation()).map(drop),
            Kind::Personalization => {
                let nobody = Box::new(personalization::Nobody);
                let batch = batches::empty_personalization();
                self.resolve(batch, nobody).map(drop)
            }
        }
    }

    fn decide_on(&self, config: &str, reads: &Reads, filling: Filling) -> Result<(), Failed> {
        let config: Arc<str> = config.into();
        match self.kind() {
            Kind::Trigger => {
                let batch = batches::trigger(config, reads, filling);
                self.evaluate(batch, Box::new(trigger::Nobody)).map(drop)
            }
            Kind::Validation => {
                let batch = batches::validation(config, reads, filling);
                self.validate(batch).map(drop)
            }
            Kind::Personalization => {
                let batch = batches::personalization(config, reads, filling);
                let nobody = Box::new(personalization::Nobody);
                self.resolve(batch, nobody).map(drop)
            }
        }
    }
}

fn answered(config: Option<String>, refusal: Option<Failure>) -> TriedDecision {
    TriedDecision::Answered { config, refusal }
}

fn said_no(failed: &Failed) -> bool {
    matches!(failed.failure, Failure::Refused { .. })
}

/// What a failure on an empty batch says.
fn of_empty_batch(failed: Failed) -> Result<TriedDecision, Failed> {
    if failed.is_inconclusive() {
        return Err(failed);
    }
    Ok(match &failed.failure {
        Failure::Refused { .. } => answered(None, Some(failed.failure)),
        Failure::Trap(reason) if !reason.contains(KEPT_HANDLE) => TriedDecision::Unknown(failed),
        _ => TriedDecision::Fails(failed),
    })
}
