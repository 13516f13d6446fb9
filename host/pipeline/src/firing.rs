//! What follows from a firing, if the host lets it take effect.

use std::collections::HashSet;

use nudge_apps::App;
use nudge_campaigns::campaign::{ActiveCampaign, CampaignAction};
use nudge_campaigns::targeting::Suppression;
use nudge_db::Timestamp;
use nudge_platform::{id, secrets};
use nudge_records::deliveries::{NewDelivery, Status, Urgency};
use nudge_records::instructions::{self, Instruction, Suppressed};
use nudge_records::scheduled_work::NewOccasion;
use uuid::Uuid;

use super::effects::Effects;
use super::evaluate::{CampaignItem, Decisions, Item};
use super::projection::Subject;
use crate::delivery_rules::{DeliveryRules, Verdict};
use crate::effects::Broken;
use crate::messages::{Message, Messages};

/// A reason is noted once a day for each campaign and subject.
const DAY_MICROSECONDS: i64 = 24 * 60 * 60 * 1_000_000;

impl Effects {
    /// Lets firings take effect, as far as they pass the delivery rules.
    pub(super) fn fire(
        &mut self,
        app: &App,
        items: &[Item],
        decisions: &Decisions,
        delivery_rules: &mut DeliveryRules,
        messages: &Messages,
    ) {
        let mut seen = HashSet::new();
        for firing in &decisions.fired {
            let running = app.campaigns.get(firing.campaign);
            let (Some(running), Some(item)) = (running, items.get(firing.item)) else {
                continue;
            };
            let now = self.now;
            let Some(subject) = self.subjects.get_mut(item.subject) else {
                continue;
            };
            let id = firing_id(running, subject, item);
            if !seen.insert(id) {
                // As the beginning of a session, and as the event that it is besides.
                continue;
            }
            let message = messages.get(firing);
            let verdict = judge(delivery_rules, app, running, subject, message);
            if !verdict.holds_back() {
                self.led_on.push(firing.item);
            } else if can_be_used_up(decisions, firing.campaign, item) {
                let event_id = item.stored.event.id;
                self.held_back.insert((running.id, subject.id), event_id);
            }
            match verdict {
                Verdict::Passes => {}
                Verdict::NotTheirs => continue,
                Verdict::Suppressed(reason) => {
                    let id = suppression_id(running, subject, reason, now);
                    self.suppressed.push(Suppressed {
                        instruction: instruction(app, running, subject, item, (id, now)),
                        kind: running.action.kind(),
                        reason,
                    });
                    continue;
                }
                Verdict::Deferred(until) => {
                    let event = item.event_ref();
                    let (campaign_id, subject_id) = (running.id, subject.id);
                    let occasion =
                        NewOccasion::deferred(campaign_id, subject_id, event, id, until, now);
                    self.occasions.push((firing.item, occasion));
                    continue;
                }
            }
            self.take_action(app, *firing, running, item, id, message);
        }
    }

    /// Brings about what follows from a firing that passed.
    fn take_action(
        &mut self,
        app: &App,
        firing: CampaignItem,
        running: &ActiveCampaign,
        item: &Item,
        id: Uuid,
        message: Option<&Message>,
    ) {
        let now = self.now;
        let Some(subject) = self.subjects.get_mut(item.subject) else {
            return;
        };
        match &running.action {
            CampaignAction::Present(_) => {
                subject.count_instruction();
                let instruction = instruction(app, running, subject, item, (id, now));
                self.instructions.push((firing.item, instruction));
            }
            CampaignAction::Show(showing) => match message {
                Some(Message::Ready {
                    variant_id,
                    content,
                }) => {
                    subject.count_instruction();
                    let instruction = instruction(app, running, subject, item, (id, now));
                    let lifetime = showing.lifetime.unwrap_or(instructions::LIFETIME);
                    let instruction = Instruction {
                        kind: instructions::Kind::InApp,
                        expires_at: now.plus(lifetime),
                        content: Some(content.as_str().into()),
                        variant_id: Some(*variant_id),
                        ..instruction
                    };
                    self.instructions.push((firing.item, instruction));
                }
                Some(Message::Broken {
                    code,
                    detail,
                    plugin,
                }) => self.broken.push(Broken {
                    campaign: firing.campaign,
                    item: firing.item,
                    reason: code,
                    detail: detail.clone(),
                    plugin: plugin.clone(),
                }),
                // Without a variant of any weight there is nothing to show.
                _ => {}
            },
            CampaignAction::Send(sending) => {
                // Without a variant of any weight there is nothing to send.
                if let Some(variant) = sending.variants.of(subject.id) {
                    let ids = (id, variant.id);
                    self.deliveries
                        .push(delivery(running, subject.id, item, ids));
                }
            }
        }
    }
}

/// Judges a firing with what became of its message. One that passes counts for those after it.
fn judge(
    delivery_rules: &mut DeliveryRules,
    app: &App,
    running: &ActiveCampaign,
    subject: &Subject,
    message: Option<&Message>,
) -> Verdict {
    let verdict = match (delivery_rules.assess(app, running, subject), message) {
        (Verdict::Passes, Some(Message::Suppressed(reason))) => Verdict::Suppressed(*reason),
        (Verdict::Passes, Some(Message::Later(until))) => Verdict::Deferred(*until),
        (verdict, _) => verdict,
    };
    let broken = matches!(message, Some(Message::Broken { .. }));
    if verdict == Verdict::Passes && !broken {
        delivery_rules.pass(running, subject);
    }
    verdict
}

/// Whether a firing that is held back may count for one: where plugins keep nothing it does not. Of what waited that was
/// not read.
fn can_be_used_up(decisions: &Decisions, campaign: usize, item: &Item) -> bool {
    let subject = u32::try_from(item.subject).unwrap_or(u32::MAX);
    item.firing_id.is_some() || decisions.kept.contains(&(campaign, subject))
}

/// A delivery that a firing brings about. `made`: its id, and that of the variant.
fn delivery(
    running: &ActiveCampaign,
    subject_id: Uuid,
    item: &Item,
    made: (Uuid, Uuid),
) -> NewDelivery {
    NewDelivery {
        id: made.0,
        campaign_id: running.id,
        campaign_version: running.version,
        variant_id: made.1,
        subject_id,
        event: Some(item.event_ref()),
        data: None,
        idempotency_key: None,
        test: false,
        recipients: 0,
        status: Status::Queued,
        reason: None,
        content: None,
        urgency: Urgency::Rest,
        node: None,
    }
}

/// An instruction at the end of the subject's. `made`: its id, and when.
fn instruction(
    app: &App,
    running: &ActiveCampaign,
    subject: &Subject,
    item: &Item,
    made: (Uuid, Timestamp),
) -> Instruction {
    let (id, now) = made;
    // Of the campaign's own occasion there is no event that anybody knows.
    let event = (item.stored.seq >= 0).then_some(&item.stored.event);
    let (plugin, _) = running.accepted.for_subject(subject.id);
    let plugin = plugin.description();
    Instruction {
        id,
        app_id: app.id,
        subject_id: subject.id,
        kind: instructions::Kind::Survey,
        content: None,
        variant_id: None,
        position: subject.instruction_count,
        campaign_id: running.id,
        campaign_version: running.version,
        priority: running.priority,
        trigger_event_id: event.map(|event| event.id),
        trigger_name: event.map(|event| event.name.to_string()),
        created_at: now,
        available_at: now,
        expires_at: now.plus(instructions::LIFETIME),
        plugin: (plugin.name.clone(), plugin.version.clone()),
    }
}

/// The id of what a firing brings about: the same firing never has two. That of an occasion has the occasion's id. Those of a
/// run ascend by it, where ids of one instant would be in no order: a database enters them one behind the other. A timer that
/// a plugin sets again under its key keeps its event, and fires anew: its own id tells its firings apart.
fn firing_id(running: &ActiveCampaign, subject: &Subject, item: &Item) -> Uuid {
    if let Some(id) = item.firing_id.or(item.occasion_id) {
        return id;
    }
    let timer = item.timer.as_ref().map(|timer| timer.id);
    let firing = secrets::hash(&[
        running.id.as_bytes(),
        subject.id.as_bytes(),
        item.stored.event.id.as_bytes(),
        timer.as_ref().map_or(&[], |id| id.as_bytes().as_slice()),
    ]);
    id::derived(item.stored.received_at, &firing)
}

/// The id of the note that firings of a campaign were suppressed for a reason: one a subject and day.
fn suppression_id(
    running: &ActiveCampaign,
    subject: &Subject,
    reason: Suppression,
    now: Timestamp,
) -> Uuid {
    let day = Timestamp(now.0 - now.0.rem_euclid(DAY_MICROSECONDS));
    let note = secrets::hash(&[
        b"suppressed",
        running.id.as_bytes(),
        subject.id.as_bytes(),
        reason.name().as_bytes(),
        &day.0.to_be_bytes(),
    ]);
    id::derived(day, &note)
}
