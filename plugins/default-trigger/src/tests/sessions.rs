//! What sessions fire, against a plain model, over generated events and pauses.

use std::collections::HashMap;
use std::time::Duration;

use nudge_guest::serde_json::{Value, json};
use proptest::prelude::*;

use super::{Campaign, bought, campaign};

const PEOPLE: [&str; 3] = ["ana", "ben", "cem"];
const NAMES: [&str; 3] = ["opened", "session_started", "bought"];
/// What a campaign hears with the first event of a session, whatever that is.
const BEGAN: &str = "$session_began";
const WINDOW_SECONDS: u64 = 30 * 60;

/// Seconds that pass, and then the events of a batch: a person and a name each, by their numbers.
type Step = (u64, Vec<(usize, usize)>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pause = prop::sample::select(vec![
        0,
        60,
        WINDOW_SECONDS - 1,
        WINDOW_SECONDS,
        WINDOW_SECONDS + 1,
        3 * WINDOW_SECONDS,
    ]);
    let event = (0..PEOPLE.len(), 0..NAMES.len());
    prop::collection::vec((pause, prop::collection::vec(event, 1..6)), 1..25)
}

/// Whether a session fires, given its number and how many were noticed with it.
type Fires = fn(u32, u32) -> bool;

/// A person, as the model sees it.
#[derive(Default)]
struct Person {
    active_at: Option<u64>,
    session: u32,
    /// The last session that was noticed.
    noticed: Option<u32>,
    /// How many were.
    count: u32,
}

impl Person {
    /// Whether an event is the first of its session among those that the campaign reads: which session that is, and
    /// how many of them there were with it.
    fn take(&mut self, now: u64, read: bool) -> Option<(u32, u32)> {
        if self
            .active_at
            .is_none_or(|active_at| now - active_at > WINDOW_SECONDS)
        {
            self.session += 1;
        }
        self.active_at = Some(now);
        if !read || self.noticed == Some(self.session) {
            return None;
        }
        self.noticed = Some(self.session);
        self.count += 1;
        Some((self.session, self.count))
    }
}

/// Sends everything, and compares what fires with what should, given a session and how many were noticed with it.
fn compare(
    mut campaign: Campaign,
    reads: &[&str],
    steps: &[Step],
    fires: impl Fn(u32, u32) -> bool,
) -> Result<(), TestCaseError> {
    let mut people: HashMap<&str, Person> = HashMap::new();
    let mut now = 0;
    for (pause, events) in steps {
        now += pause;
        campaign.advance(Duration::from_secs(*pause));
        let events: Vec<(&str, &str, Value)> = events
            .iter()
            .map(|(person, name)| (PEOPLE[*person], NAMES[*name], json!({})))
            .collect();
        let expected: Vec<bool> = events
            .iter()
            .map(|(person, name, _)| {
                let read = reads.contains(name) || reads.contains(&BEGAN);
                let noticed = people.entry(person).or_default().take(now, read);
                noticed.is_some_and(|(session, count)| fires(session, count))
            })
            .collect();
        prop_assert_eq!(campaign.send_all(events), expected);
    }
    Ok(())
}

proptest! {
    /// A session fires once, whoever says first that it began, and modes count sessions.
    #[test]
    fn sessions_fire_as_the_model_says(steps in steps()) {
        let begun = &[BEGAN, "session_started"];
        let modes: [(Value, Fires); 6] = [
            (json!({"mode": "every"}), |_, _| true),
            (json!({"mode": "once_per_session"}), |_, _| true),
            (json!({"mode": "once"}), |_, count| count == 1),
            // The first session of all, not the first that was noticed.
            (json!({"mode": "first"}), |session, count| session == 1 && count == 1),
            (json!({"mode": "nth", "n": 2}), |_, count| count == 2),
            (json!({"mode": "every_nth", "n": 3}), |_, count| count % 3 == 0),
        ];
        for (mode, fires) in modes {
            let campaign = campaign(json!({"kind": "session_start", "occurrence": mode}));
            compare(campaign, begun, &steps, fires)?;
        }
    }

    /// An event fires once in each session that has it.
    #[test]
    fn events_fire_once_per_session_as_the_model_says(steps in steps()) {
        let campaign = bought(&json!({"occurrence": {"mode": "once_per_session"}}));
        compare(campaign, &["bought"], &steps, |_, _| true)?;
    }
}
