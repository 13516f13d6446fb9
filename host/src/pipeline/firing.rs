//! What follows from a firing: an instruction, if the host lets it take effect.

use super::effects::Effects;
use super::evaluate::Item;
use super::projection::Subject;
use crate::apps::App;
use crate::campaigns::{Act, Running};
use crate::instructions::{self, Instruction};
use crate::{id, secrets};

impl Effects {
    /// Lets firings take effect, each for a subject that may be shown something.
    pub(super) fn fire(&mut self, app: &App, items: &[Item], fired: &[(usize, usize)]) {
        for (campaign, number) in fired {
            let (Some(running), Some(item)) = (app.campaigns.get(*campaign), items.get(*number))
            else {
                continue;
            };
            let now = self.now;
            let Some(subject) = self.subjects.get_mut(item.subject) else {
                continue;
            };
            if !subject.may_message(app) {
                continue;
            }
            let id = item
                .firing_id
                .unwrap_or_else(|| firing_id(running, subject, item));
            match &running.act {
                Act::Present(_) => {
                    subject.instruction_count += 1;
                    // Of the campaign's own occasion there is no event that anybody knows.
                    let event = (item.stored.seq >= 0).then_some(&item.stored.event);
                    let (plugin, _) = running.accepted.for_subject(subject.id);
                    let plugin = plugin.description();
                    let instruction = Instruction {
                        id,
                        app_id: app.id,
                        subject_id: subject.id,
                        position: subject.instruction_count,
                        campaign_id: running.id,
                        campaign_version: running.version,
                        priority: running.priority,
                        trigger_event_id: event.map(|event| event.id),
                        trigger_name: event.map(|event| event.name.to_string()),
                        created_at: now,
                        expires_at: now.plus(instructions::LIFETIME),
                        plugin: (plugin.name.clone(), plugin.version.clone()),
                    };
                    self.instructions.push((*number, instruction));
                }
            }
        }
    }
}

/// The id of what a firing brings about: the same firing never has two.
fn firing_id(running: &Running, subject: &Subject, item: &Item) -> uuid::Uuid {
    let key = item.timer.as_ref().map_or("", |timer| timer.key.as_str());
    let firing = secrets::hash(&[
        running.id.as_bytes(),
        subject.id.as_bytes(),
        item.stored.event.id.as_bytes(),
        key.as_bytes(),
    ]);
    id::derived(item.stored.received_at, &firing)
}
