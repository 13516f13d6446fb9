//! Calls about lists of items: where one fails, halves are asked about apart, so that one item spoils no other.

use std::time::Duration;

use nudge_wasm::{Call, Failed};

use crate::statistics::CallOutcome;

/// After so many failures, and [so much time](Halving::FAILING_TIME) in failing calls, the items that are left are asked about as
/// they are and no further taken apart.
const MOST_FAILURES: usize = 4;

/// How a version of a plugin is asked about items.
pub trait Halving<Item> {
    /// What is said of an item.
    type Answer;

    /// After so much time in failing calls, and a few failures, items are no further taken apart.
    const FAILING_TIME: Duration;
    /// Whether items are given up at once where a failure says nothing of the plugin.
    const GIVES_UP_INCONCLUSIVE: bool;

    /// Calls the plugin.
    fn call(&self, items: &[Item]) -> Result<(Vec<Self::Answer>, Call), Failed>;

    /// Notes a call.
    fn note(&self, items: &[Item], outcome: CallOutcome, call: &Call);

    /// Logs a failure on items that are given up. Of a thousand items the log has a few.
    fn warn(&self, failed: &Failed);

    /// What is said of items that are given up.
    fn give_up(&self, items: &[Item], failed: &Failed) -> Vec<Self::Answer>;
}

/// Asks about items in one call; where that fails, about halves apart.
pub fn ask<Item, A: Halving<Item>>(asker: &A, items: &[Item]) -> Vec<A::Answer> {
    Failures::default().ask(asker, items)
}

/// Asks about items in one call; none: it failed, and parts of them are asked about next.
pub fn ask_together<Item, A: Halving<Item>>(asker: &A, items: &[Item]) -> Option<Vec<A::Answer>> {
    Failures::default()
        .call(asker, items)
        .inspect_err(|failed| asker.note(items, CallOutcome::TakenApart, &failed.call))
        .ok()
}

/// Failures on some items and on parts of them.
#[derive(Debug, Default)]
struct Failures {
    count: usize,
    /// In failing calls.
    time: Duration,
}

impl Failures {
    fn ask<Item, A: Halving<Item>>(&mut self, asker: &A, items: &[Item]) -> Vec<A::Answer> {
        let failed = match self.call(asker, items) {
            Ok(answers) => return answers,
            Err(failed) => failed,
        };
        let is_inconclusive = A::GIVES_UP_INCONCLUSIVE && failed.is_inconclusive();
        let are_enough = self.count >= MOST_FAILURES && self.time >= A::FAILING_TIME;
        if !is_inconclusive && !are_enough && items.len() > 1 {
            asker.note(items, CallOutcome::TakenApart, &failed.call);
            let (first, second) = items.split_at(items.len() / 2);
            let mut answers = self.ask(asker, first);
            answers.extend(self.ask(asker, second));
            return answers;
        }
        asker.note(items, CallOutcome::settled(&failed), &failed.call);
        if !is_inconclusive {
            if self.count < MOST_FAILURES {
                asker.warn(&failed);
            }
            self.count += 1;
        }
        asker.give_up(items, &failed)
    }

    /// Calls the plugin; once more if the machine let it starve.
    fn call<Item, A: Halving<Item>>(
        &mut self,
        asker: &A,
        items: &[Item],
    ) -> Result<Vec<A::Answer>, Failed> {
        let mut called = asker.call(items);
        if let Err(failed) = &called
            && failed.was_starved()
        {
            self.time += failed.call.elapsed;
            asker.note(items, CallOutcome::Retried, &failed.call);
            called = asker.call(items);
        }
        match called {
            Ok((answers, call)) => {
                asker.note(items, CallOutcome::Decided, &call);
                Ok(answers)
            }
            Err(failed) => {
                self.time += failed.call.elapsed;
                Err(failed)
            }
        }
    }
}
