//! Whom a run has given something, while it goes on.
//!
//! A run keeps one occasion of each subject. Of two subjects that become one amid it, either may have had what it
//! gives: so what an occasion led to, a firing or a timer, is noted, moves with the subject (`subjects/merge.rs`), and
//! is looked at before the next occasion of that run.

use std::collections::{BTreeSet, HashMap, HashSet};

use nudge_db::{Result, Rows, Tx};
use nudge_records::scheduled_work::DueOccasion;
use uuid::Uuid;

use super::evaluate::Item;
use super::projection::{Subject, Subjects};
use super::reading::Reader;
use super::work::{Source, Work};

/// That a run has given a subject something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunFiring {
    pub campaign_id: Uuid,
    pub subject_id: Uuid,
    /// The occasion's key, which is the run's.
    pub key: String,
    /// The number of the occasion's event.
    pub event_seq: i64,
}

/// The occasion of a run that some work is about; none: it is about something else.
fn of_run(work: &Work) -> Option<&DueOccasion> {
    match &work.source {
        Source::Occasion(due) if due.firing_id.is_none() && !due.is_change() => Some(due),
        _ => None,
    }
}

/// What is to be noted of the items that led to something.
pub(super) fn new(
    works: &[Work],
    items: &[Item],
    led_on: &[usize],
    subjects: &[Subject],
) -> Vec<RunFiring> {
    let firing = |item: &usize| {
        let item = items.get(*item)?;
        let due = of_run(works.get(item.work)?)?;
        Some(RunFiring {
            campaign_id: due.campaign_id,
            subject_id: subjects.get(item.subject)?.id,
            key: due.key.clone(),
            event_seq: item.stored.seq,
        })
    };
    let firings: BTreeSet<RunFiring> = led_on.iter().filter_map(firing).collect();
    firings.into_iter().collect()
}

/// The numbers of the work whose run has given its subject something already.
pub(super) async fn of(
    reader: &mut Reader<'_>,
    app_id: Uuid,
    works: &[Work],
    subjects: &Subjects,
) -> Result<HashSet<usize>> {
    let mut asked = Vec::new();
    let mut firsts = HashMap::new();
    let mut given = HashSet::new();
    for (number, work) in works.iter().enumerate() {
        let subject = subjects
            .of(work.alias)
            .and_then(|index| subjects.all.get(index));
        let (Some(due), Some(subject)) = (of_run(work), subject) else {
            continue;
        };
        // Both occasions may have come into one batch before the two became one.
        if firsts
            .insert((due.campaign_id, &due.key, subject.id), number)
            .is_some()
        {
            given.insert(number);
        } else {
            asked.push((number, due, subject.id));
        }
    }
    for chunk in asked.chunks(Rows::MOST) {
        let rows = Rows::new()
            .integers(chunk.iter().map(|(number, ..)| i64::try_from(*number).ok()))
            .uuids(chunk.iter().map(|(_, due, _)| due.campaign_id))
            .texts(chunk.iter().map(|(_, due, _)| due.key.clone()))
            .uuids(chunk.iter().map(|(.., subject_id)| *subject_id));
        let tx = reader.tx().await?;
        let rows: Vec<i64> = tx
            .with_rows("v(number, campaign_id, key, subject_id)", rows)
            .push(
                " SELECT v.number FROM v JOIN run_firings f
                    ON f.campaign_id = v.campaign_id AND f.key = v.key AND f.subject_id = v.subject_id
                  WHERE f.app_id = ",
            )
            .push_bind(app_id)
            .fetch_values()
            .await?;
        given.extend(rows.into_iter().filter_map(|row| usize::try_from(row).ok()));
    }
    Ok(given)
}

/// Notes whom runs have given something.
pub(super) async fn insert(tx: &mut Tx, app_id: Uuid, firings: &[RunFiring]) -> Result<()> {
    for chunk in firings.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|firing| firing.campaign_id))
            .uuids(chunk.iter().map(|firing| firing.subject_id))
            .texts(chunk.iter().map(|firing| firing.key.clone()))
            .integers(chunk.iter().map(|firing| firing.event_seq));
        tx.with_rows("v(campaign_id, subject_id, key, event_seq)", rows)
            .push(
                " INSERT INTO run_firings (campaign_id, subject_id, key, event_seq, app_id)
                  SELECT v.campaign_id, v.subject_id, v.key, v.event_seq, ",
            )
            .push_bind(app_id)
            .push(" FROM v WHERE true ON CONFLICT (campaign_id, key, subject_id) DO NOTHING")
            .execute()
            .await?;
    }
    Ok(())
}
