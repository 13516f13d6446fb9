//! Whether what the server says adds up.

use std::collections::HashSet;

use serde::Serialize;
use uuid::Uuid;

use super::client::DeadLetter;
use super::database::Decided;
use super::firings::{Fired, SurveyCount};
use super::message::Shown;
use super::replay::Replayed;
use super::segment::Entered;

/// Something that must hold.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    pub name: &'static str,
    pub passed: bool,
    pub detail: String,
}

/// Everything that must hold.
pub(super) fn all(
    replayed: &Replayed,
    surveys: &[SurveyCount],
    fired: &[Fired],
    letters: &[DeadLetter],
    decided: &Decided,
    message: &Shown,
    segment: &Entered,
) -> Vec<Check> {
    let Replayed {
        sent,
        accepted,
        rejected,
        ..
    } = replayed;
    let reasons: usize = replayed.reasons.values().sum();
    let listed: HashSet<Uuid> = letters.iter().map(|letter| letter.id).collect();
    let polled: HashSet<Uuid> = fired.iter().map(|fired| fired.instruction.id).collect();
    let issued: HashSet<Uuid> = decided.keys().copied().collect();
    let lost = replayed.at_once.difference(&polled).count();
    let mut checks = vec![
        Check {
            name: "every event was answered for",
            passed: accepted + rejected == *sent && reasons == *rejected,
            detail: format!("{accepted} accepted + {rejected} rejected of {sent} sent"),
        },
        Check {
            name: "what was kept is listed",
            passed: listed == replayed.letters,
            detail: format!(
                "{} dead letters announced, {} listed",
                replayed.letters.len(),
                listed.len()
            ),
        },
        Check {
            name: "the surveys fired as often as the recording has it",
            passed: surveys.iter().all(|survey| survey.fired == survey.expected),
            detail: surveys
                .iter()
                .map(|survey| format!("{} of {}", survey.fired, survey.expected))
                .collect::<Vec<_>>()
                .join(", "),
        },
        Check {
            name: "every firing reached its person",
            passed: polled == issued && polled.len() == fired.len(),
            detail: format!(
                "{} issued, {} fetched by polling as {} people",
                issued.len(),
                fired.len(),
                replayed.people.len()
            ),
        },
        Check {
            name: "no firing has two ids",
            passed: lost == 0,
            detail: format!(
                "{} came at once, {lost} of them under another id than in a poll",
                replayed.at_once.len()
            ),
        },
    ];
    checks.extend(of_examples(message, segment));
    checks
}

/// What must hold of the message and the segment that the demo shows.
fn of_examples(message: &Shown, segment: &Entered) -> [Check; 2] {
    [
        Check {
            name: "the in-app message was shown once, and what was pressed is counted",
            passed: message.adds_up,
            detail: format!("{}", message.totals),
        },
        Check {
            name: "who entered the segment was told of once, with the purchase that did it",
            passed: segment.adds_up(),
            detail: format!("{:?} on offer after each purchase", segment.offered),
        },
    ]
}
