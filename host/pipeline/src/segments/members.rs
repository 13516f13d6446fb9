//! What a look at people changes: memberships, and occasions for campaigns that wait for that.

use std::collections::{HashMap, HashSet};

use nudge_apps::App;
use nudge_campaigns::apps;
use nudge_campaigns::segments::looking::SegmentVersion;
use nudge_campaigns::segments::{self, Change, Watch};
use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::id;
use nudge_records::scheduled_work::{self, NewOccasion};
use uuid::Uuid;

use super::decide::Answers;
use super::store::{self, Membership, SegmentCoverage};
use crate::projection::Subject;

/// What a look at people has led to.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// People who have changed meanwhile, to be looked at again.
    pub changed: Vec<Uuid>,
    /// Whether a segment's conditions are others by now, or the campaigns that wait for changes: nothing was written.
    pub outdated: bool,
    /// Whether it is the first look at people under conditions.
    pub is_first: bool,
}

/// Writes what answers mean, as far as the people are as they were read. `lock`: how the segments are held until the transaction
/// ends.
pub(super) async fn write(
    tx: &mut Tx,
    app: &App,
    (asked, lock): (&[SegmentVersion], &'static str),
    people: &[(Subject, Answers)],
    now: Timestamp,
) -> Result<Written> {
    let mut written = Written::default();
    if people.is_empty() {
        return Ok(written);
    }
    let ids: Vec<Uuid> = people.iter().map(|(person, _)| person.id).collect();
    let versions = store::hold(tx, app.id, &ids).await?;
    let segments: Vec<Uuid> = asked.iter().map(|(id, _)| *id).collect();
    let coverages = store::coverages(tx, app.id, &segments, lock).await?;
    let is_current = |(id, version): &SegmentVersion| {
        coverages
            .get(id)
            .is_some_and(|coverage| coverage.audience_version == *version)
    };
    if !asked.iter().all(is_current) || !knows_who_waits(tx, app).await? {
        written.outdated = true;
        return Ok(written);
    }
    written.is_first = !coverages.values().all(SegmentCoverage::is_based);
    let before = store::memberships(tx, app.id, &ids).await?;
    let mut changes = Changes::default();
    for (person, answers) in people {
        match versions.get(&person.id) {
            None => {}
            Some(version) if *version != person.version => written.changed.push(person.id),
            Some(_) => {
                changes.compare(person.id, asked, answers, &before, &coverages);
            }
        }
    }
    store::add(tx, app.id, &changes.entered).await?;
    store::remove(tx, app.id, &changes.left).await?;
    tell(tx, app, &changes.told, now).await?;
    Ok(written)
}

/// Whether a snapshot has the campaigns that wait for changes now. One that was activated meanwhile is to hear of changes since then,
/// and may be in no snapshot of this process yet.
async fn knows_who_waits(tx: &mut Tx, app: &App) -> Result<bool> {
    if apps::version(tx, app.id).await? == Some(app.version) {
        return Ok(true);
    }
    let campaigns = app.campaigns.iter();
    let known = campaigns.filter_map(|campaign| Some((campaign.id, campaign.watch?)));
    Ok(segments::watches(tx, app.id).await? == known.collect())
}

#[derive(Debug, Default)]
struct Changes {
    entered: Vec<Membership>,
    left: Vec<Membership>,
    /// Changes that campaigns hear of: the person, and the segment and the change.
    told: Vec<(Uuid, Watch)>,
}

impl Changes {
    fn compare(
        &mut self,
        person: Uuid,
        asked: &[SegmentVersion],
        answers: &Answers,
        before: &HashSet<Membership>,
        coverages: &HashMap<Uuid, SegmentCoverage>,
    ) {
        for ((segment_id, _), is_in) in asked.iter().zip(answers) {
            let membership = (*segment_id, person);
            let on = match (before.contains(&membership), is_in) {
                (false, Some(true)) => Change::Enter,
                (true, Some(false)) => Change::Exit,
                _ => continue,
            };
            match on {
                Change::Enter => self.entered.push(membership),
                Change::Exit => self.left.push(membership),
            }
            let coverage = coverages.get(segment_id);
            if coverage.is_some_and(|coverage| coverage.knows(person)) {
                let segment_id = *segment_id;
                self.told.push((person, Watch { segment_id, on }));
            }
        }
    }
}

impl SegmentCoverage {
    /// Whether everybody was looked at under the conditions as they are.
    fn is_based(&self) -> bool {
        self.based_version == self.audience_version
    }

    /// Whether it was known before whether somebody is in the segment.
    fn knows(&self, person: Uuid) -> bool {
        self.is_based()
            || person > self.newest_subject
            || self.looked_version == Some(self.audience_version)
                && self.looked_to.is_some_and(|last| person <= last)
    }
}

/// Makes an occasion for each campaign that waits for a change.
async fn tell(tx: &mut Tx, app: &App, told: &[(Uuid, Watch)], now: Timestamp) -> Result<()> {
    let mut waiting: HashMap<(Uuid, Change), Vec<Uuid>> = HashMap::new();
    for campaign in &app.campaigns {
        if let Some(watch) = campaign.watch {
            let key = (watch.segment_id, watch.on);
            waiting.entry(key).or_default().push(campaign.id);
        }
    }
    let heard = told.iter().filter_map(|(person, watch)| {
        let campaigns = waiting.get(&(watch.segment_id, watch.on))?;
        Some((*person, campaigns))
    });
    let heard: Vec<(Uuid, &Vec<Uuid>)> = heard.collect();
    if heard.is_empty() {
        return Ok(());
    }
    let people: Vec<Uuid> = heard.iter().map(|(person, _)| *person).collect();
    let aliases = crate::history::aliases_of(tx, app.id, &people).await?;
    let mut occasions = Vec::new();
    for (person, campaigns) in heard {
        let Some(alias) = aliases.get(&person).and_then(|all| all.first()) else {
            continue;
        };
        for campaign_id in campaigns {
            let id = id::new(now);
            occasions.push(NewOccasion {
                id,
                campaign_id: *campaign_id,
                subject_id: person,
                alias: *alias,
                // Each change is one: whoever enters, leaves and enters again has entered twice.
                key: scheduled_work::change_key(id),
                due_at: now,
                event_seq: scheduled_work::seq_of(now),
                firing_id: None,
                node: None,
            });
        }
    }
    scheduled_work::insert(tx, app.id, &occasions).await?;
    Ok(())
}
