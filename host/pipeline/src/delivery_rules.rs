//! What the host asks of every firing before it takes effect, whatever the plugin said: consent, the sample, the
//! schedule, caps and pauses, quiet hours (contract 8).

use std::cmp::Reverse;
use std::collections::HashMap;

use nudge_apps::App;
use nudge_campaigns::campaign::{ActiveCampaign, Kind};
use nudge_campaigns::targeting::{CapWindow, Opening, Quiet, Scope, Suppression};
use nudge_db::{Db, Timestamp};
use uuid::Uuid;

use super::evaluate::{CampaignItem, Item};
use super::projection::Subject;
use crate::audience::{self, CountedAsOf, PresentationQuestion};

/// The delivery rules of a batch, which its firings go through one after another.
#[derive(Debug)]
pub(super) struct DeliveryRules {
    /// The time that everything is judged by.
    pub now: Timestamp,
    quiet: Option<Quiet>,
    /// What subjects had before the batch.
    counts: HashMap<PresentationQuestion, u32>,
    /// When subjects had the last presentation that the app's pause is after.
    last: HashMap<Uuid, Timestamp>,
    /// What they got in it: subject, campaign, kind.
    passed: Vec<(Uuid, Uuid, Kind)>,
}

/// What becomes of a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It takes effect.
    Passes,
    /// The subject is not in the sample, or nobody: as if the campaign were not theirs.
    NotTheirs,
    /// It has no effect, and that is noted.
    Suppressed(Suppression),
    /// It comes up again at an instant.
    Deferred(Timestamp),
}

impl Verdict {
    /// Whether the campaign has not fired (contract 13), so that what fires once may fire again.
    pub(super) fn holds_back(self) -> bool {
        matches!(self, Self::NotTheirs | Self::Suppressed(_))
    }
}

impl DeliveryRules {
    /// Reads what the caps of firings depend on. Subjects are read before: what counts changes with a subject's
    /// version, so that of two processes that let the last firing pass one starts over.
    pub(super) async fn read(
        db: &Db,
        app: &App,
        items: &[Item],
        subjects: &[Subject],
        fired: &[CampaignItem],
        now: Timestamp,
    ) -> nudge_db::Result<Self> {
        let mut delivery_rules = Self {
            now,
            quiet: app.settings.quiet_hours.as_ref().and_then(Quiet::of),
            counts: HashMap::new(),
            last: HashMap::new(),
            passed: Vec::new(),
        };
        let mut paused = Vec::new();
        let mut questions = Vec::new();
        for firing in fired {
            let item = items.get(firing.item);
            let subject = item.and_then(|item| subjects.get(item.subject));
            let running = app.campaigns.get(firing.campaign);
            if let (Some(running), Some(subject)) = (running, subject) {
                for cap_window in cap_windows(app, running) {
                    let question = delivery_rules.question(running, subject, &cap_window);
                    if let Some(own) = of_itself(running, &cap_window) {
                        questions.push(delivery_rules.question(running, subject, &own));
                        paused.push(question);
                    }
                    questions.push(question);
                }
            }
        }
        if questions.is_empty() {
            return Ok(delivery_rules);
        }
        questions.sort_unstable_by_key(|question| {
            (question.subject_id, question.campaign_id, question.since)
        });
        questions.dedup();
        let mut tx = db.read().await?;
        let counts = audience::counts(&mut tx, app.id, &questions, CountedAsOf::now(now)).await?;
        delivery_rules.counts = questions.into_iter().zip(counts).collect();
        paused.retain(|question| {
            delivery_rules
                .counts
                .get(question)
                .is_some_and(|count| *count > 0)
        });
        paused.sort_unstable_by_key(|question| question.subject_id);
        paused.dedup();
        delivery_rules.last = audience::last_presented(&mut tx, app.id, &paused, now).await?;
        Ok(delivery_rules)
    }

    fn question(
        &self,
        running: &ActiveCampaign,
        subject: &Subject,
        cap_window: &CapWindow,
    ) -> PresentationQuestion {
        PresentationQuestion::of(subject.id, running.action.kind(), cap_window, self.now)
    }

    /// Judges a firing by what the subject had until now.
    pub(super) fn assess(&self, app: &App, running: &ActiveCampaign, subject: &Subject) -> Verdict {
        let rules = &running.rules;
        if subject.suppressed || !rules.sample.includes(running.id, subject.id) {
            return Verdict::NotTheirs;
        }
        if !subject.may_message(app) {
            return Verdict::Suppressed(Suppression::Consent);
        }
        let timezone = subject.timezone.as_deref();
        let opening = rules.schedule.opening(self.now, timezone, self.quiet);
        if let Opening::Closed(reason) = opening {
            return Verdict::Suppressed(reason);
        }
        let cap_windows = cap_windows(app, running);
        let full = cap_windows
            .iter()
            .find(|cap_window| self.count(running, subject, cap_window) >= cap_window.max);
        let mut until = match opening {
            Opening::Deferred(until) => Some(until),
            _ => None,
        };
        if let Some(cap_window) = full {
            let Some(over) = self.after_pause(running, subject, cap_window) else {
                return Verdict::Suppressed(cap_window.reason);
            };
            until = until.max(Some(over));
        }
        if let Some(until) = until {
            return Verdict::Deferred(until);
        }
        Verdict::Passes
    }

    /// Lets a firing pass: it counts for those after it.
    pub(super) fn pass(&mut self, running: &ActiveCampaign, subject: &Subject) {
        self.passed
            .push((subject.id, running.id, running.action.kind()));
    }

    /// The end of the app's pause, if the pause alone holds a firing back. None: the campaign itself was presented within the pause,
    /// so that the firing is suppressed instead of deferred.
    fn after_pause(
        &self,
        running: &ActiveCampaign,
        subject: &Subject,
        cap_window: &CapWindow,
    ) -> Option<Timestamp> {
        let own = of_itself(running, cap_window)?;
        if self.count(running, subject, &own) > 0 {
            return None;
        }
        let in_batch = self
            .passed
            .iter()
            .any(|(of, _, passed)| *of == subject.id && passed.is_presented());
        let last = if in_batch {
            None
        } else {
            self.last.get(&subject.id).copied()
        };
        Some(last.unwrap_or(self.now).plus(cap_window.window?))
    }

    fn count(&self, running: &ActiveCampaign, subject: &Subject, cap_window: &CapWindow) -> u32 {
        let before = self
            .counts
            .get(&self.question(running, subject, cap_window));
        let passed = self
            .passed
            .iter()
            .filter(|(of, campaign_id, kind)| {
                *of == subject.id && cap_window.counts(*campaign_id, *kind, self.now, self.now)
            })
            .count();
        let passed = u32::try_from(passed).unwrap_or(u32::MAX);
        before.copied().unwrap_or_default().saturating_add(passed)
    }
}

fn cap_windows(app: &App, running: &ActiveCampaign) -> Vec<CapWindow> {
    let cap = &running.rules.cap;
    cap.cap_windows(running.id, running.action.kind(), &app.settings.frequency)
}

/// Of the app's pause between presentations, the pause after the campaign's own.
fn of_itself(running: &ActiveCampaign, cap_window: &CapWindow) -> Option<CapWindow> {
    (cap_window.reason == Suppression::Pause).then_some(CapWindow {
        scope: Scope::Campaign(running.id),
        ..*cap_window
    })
}

/// Firings in the order in which they are judged: as their items came, and of one item by priority, so that the
/// most important one takes what a cap leaves.
pub(super) fn in_order(
    app: &App,
    items: &[Item],
    mut fired: Vec<CampaignItem>,
) -> Vec<CampaignItem> {
    let places = places(items);
    let place = |item: usize| places.get(item).copied().unwrap_or(item);
    let priority = |campaign: usize| app.campaigns.get(campaign).map(|running| running.priority);
    fired.sort_by_key(|firing| {
        let priority = Reverse(priority(firing.campaign));
        (place(firing.item), priority, firing.campaign, firing.item)
    });
    fired
}

/// For each item the first one that counts as the same. What waited is an item for each campaign, also where all of them
/// wait for one event and are due together.
fn places(items: &[Item]) -> Vec<usize> {
    let mut firsts: HashMap<(usize, i64, Timestamp), usize> = HashMap::new();
    let place = |(number, item): (usize, &Item)| {
        if item.timer.is_none() && item.occasion_id.is_none() {
            return number;
        }
        let moment = (item.subject, item.stored.seq, item.at());
        *firsts.entry(moment).or_insert(number)
    };
    items.iter().enumerate().map(place).collect()
}
