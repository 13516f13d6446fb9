//! The items that the work of a batch comes to, and the campaigns that each concerns.

use std::collections::HashSet;

use nudge_apps::App;
use nudge_platform::event_names::SCHEDULED;
use nudge_records::events::store::Stored;
use nudge_records::scheduled_work::{self, DueOccasion, DueTimer};
use uuid::Uuid;

use crate::evaluate::{CampaignItem, Item, Routes};
use crate::projection::{Subject, Subjects};
use crate::work::{Source, Work};

/// A batch as it is put to plugins.
#[derive(Default)]
pub(super) struct Layout {
    pub items: Vec<Item>,
    pub routes: Routes,
    /// Campaigns and items that fire without being decided about again: firings that waited.
    pub waited: Vec<CampaignItem>,
}

/// Takes the events into their subjects and finds the campaigns that they concern.
///
/// `given`: work of runs that have given the subject something already, as to somebody who is one with it now.
pub(super) fn lay_out(
    app: &App,
    works: &[Work],
    given: &HashSet<usize>,
    subjects: &Subjects,
    after: &mut [Subject],
) -> Layout {
    let mut layout = Layout::default();
    for (number, work) in works.iter().enumerate() {
        if given.contains(&number) {
            continue;
        }
        let Some(index) = subjects.of(work.alias) else {
            continue;
        };
        // Nothing follows from events of somebody who is being deleted; the rows themselves go with the rest.
        let Some(subject) = after.get_mut(index).filter(|subject| !subject.suppressed) else {
            continue;
        };
        for stored in &work.events {
            let (timer, occasion) = match &work.source {
                Source::Timer(timer) => (Some(timer), None),
                Source::Occasion(due) => (None, Some(due)),
                Source::Request(_) => (None, None),
                Source::Letter { timer, .. } => (timer.as_ref(), None),
            };
            let timer = timer.map(|timer| DueTimer {
                last_seq: timer.last_seq.or(Some(subject.last_seq)),
                ..timer.clone()
            });
            let firing_id = occasion.and_then(|due| due.firing_id);
            let fires = matches!(work.source, Source::Letter { fires: true, .. });
            for part in parts(app, &work.source, stored, subject) {
                let item = layout.items.len();
                for campaign in part.campaigns {
                    if firing_id.is_some() || fires {
                        layout.waited.push(CampaignItem { campaign, item });
                    } else {
                        layout.routes.entry(campaign).or_default().push(item);
                    }
                }
                layout.items.push(Item {
                    work: number,
                    stored: stored.clone(),
                    subject: index,
                    session: part.session,
                    begins: part.begins,
                    timer: timer.clone(),
                    alias: work.alias,
                    occasion_id: occasion.map(|due| due.id),
                    firing_id,
                    replays: work.replays(),
                });
            }
        }
    }
    layout
}

/// What an event is to campaigns: the beginning of a session, itself, or both.
struct Part {
    session: i64,
    begins: bool,
    campaigns: Vec<usize>,
}

/// The parts of an event that concern campaigns, by where it comes from.
fn parts(app: &App, source: &Source, stored: &Stored, subject: &mut Subject) -> Vec<Part> {
    let one = |id: Uuid| app.campaign(id).into_iter();
    let mut parts = Vec::with_capacity(1);
    let mut add = |session, begins, campaigns: Vec<usize>, wanted| {
        if wanted || !campaigns.is_empty() {
            parts.push(Part {
                session,
                begins,
                campaigns,
            });
        }
    };
    match source {
        Source::Request(_) => {
            let session = subject.take(stored);
            let name = &stored.event.name;
            if session.begins {
                let campaigns = app.session_campaigns().to_vec();
                add(session.number, true, campaigns, false);
            }
            // An event that a campaign counts comes before those that it decides about.
            let counts = app.looks_back_at(name);
            add(session.number, false, concerned(app, name), counts);
        }
        Source::Timer(timer) => {
            let due = |it: &usize| waits(app, *it, stored) && is_own(app, *it, timer);
            let campaigns = one(timer.campaign_id).filter(due).collect();
            add(subject.session_number, false, campaigns, false);
        }
        Source::Occasion(due) => {
            let hears = |campaign: &usize| match due.firing_id {
                Some(_) => waits(app, *campaign, stored),
                None => waits_for(app, *campaign, due),
            };
            let campaigns = one(due.campaign_id).filter(hears).collect();
            add(subject.session_number, false, campaigns, false);
        }
        Source::Letter {
            campaign_id,
            session,
            begins,
            fires,
            timer,
            ..
        } => {
            let session = session.unwrap_or(subject.session_number);
            let still_waits = |it: &usize| {
                let mut timer = timer.iter();
                timer.all(|timer| waits(app, *it, stored) && is_own(app, *it, timer))
            };
            let hears = |it: &usize| *fires || timer.is_some() || is_asked(app, *it, stored);
            let campaign = campaign_id.and_then(|id| app.campaign(id));
            let campaign = campaign.filter(still_waits).filter(hears);
            if *begins {
                add(session, true, campaign.into_iter().collect(), false);
            }
            // Besides, the campaign may read what the session began with.
            let named = campaign.filter(|it| !begins || app.reads(*it, &stored.event.name));
            add(session, false, named.into_iter().collect(), false);
        }
    }
    parts
}

/// The campaigns that an event of this name concerns, each once: some read it by its name and with all others.
fn concerned(app: &App, name: &str) -> Vec<usize> {
    let mut campaigns: Vec<usize> = app.campaigns_for(name).collect();
    campaigns.sort_unstable();
    campaigns.dedup();
    campaigns
}

/// Whether a campaign waits for an occasion like this one: a run, or a change of a segment. Its plugin is asked whatever events it
/// names. Of a campaign that was changed since, so that events fire it now, none is asked.
fn waits_for(app: &App, campaign: usize, due: &DueOccasion) -> bool {
    let running = app.campaigns.get(campaign);
    running.is_some_and(|running| {
        if due.is_change() {
            running.watch.is_some()
        } else {
            running.has_runs
        }
    })
}

/// Whether the plugin of a campaign is asked about the event of a letter. About an occasion it is only while the campaign waits for
/// occasions; the letter does not say of which kind.
fn is_asked(app: &App, campaign: usize, stored: &Stored) -> bool {
    let running = app.campaigns.get(campaign);
    let has_occasions = running.is_some_and(|it| it.has_runs || it.watch.is_some());
    has_occasions || *stored.event.name != *SCHEDULED
}

/// Whether what waited of a campaign, `stored` behind it, still fires. A survey that people reach by a link or a button fires for
/// nobody, whatever it waited for before it was changed. A campaign that its calendar fires reaches its audience by its runs,
/// so that no event that it waited for before fires it for somebody once more.
fn waits(app: &App, campaign: usize, stored: &Stored) -> bool {
    let is_of_run = scheduled_work::instant_of(stored.seq).is_some();
    let running = app.campaigns.get(campaign);
    running.is_some_and(|running| running.action.fires() && (is_of_run || !running.by_calendar))
}

/// Whether the plugin that decides has set a timer. Of another one's payload it knows nothing.
fn is_own(app: &App, campaign: usize, timer: &DueTimer) -> bool {
    let running = app.campaigns.get(campaign);
    running.is_some_and(|running| running.accepted.inherits(timer.plugin.as_deref()))
}
