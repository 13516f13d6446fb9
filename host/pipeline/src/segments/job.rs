//! Going through all people of an app: for one segment whose conditions are new, or for all, so that what time alone changes
//! is noticed and sizes are known. What a page brings about and how far the job is are one commit.

use nudge_apps::segments::ActiveSegment;
use nudge_apps::services::Services as Apps;
use nudge_campaigns::apps;
use nudge_campaigns::segments::looking::{SegmentMembersInput, SegmentVersion};
use nudge_db::{Timestamp, Tx};
use nudge_platform::audit;
use nudge_platform::jobs::{self, Error, NewJob, RunningJob};
use nudge_records::segment_checks;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

use super::decide::{Means, SegmentConditions, decide};
use super::members;
use super::store;
use crate::services::Services;

/// The kind of the job that forgets the members of a segment that is gone.
pub const FORGET: &str = "segment.forget";
/// People of a page.
const PAGE: i64 = 500;
/// How often a page is looked at anew for people who changed meanwhile. Whoever changes still is noted, to be looked at.
const TRIES: u32 = 3;

/// How far the job is.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Progress {
    /// The person it has come to.
    after: Uuid,
    /// How many there were.
    people: i64,
    /// The segments that everybody is looked at for, and the versions of their conditions; none: it has not begun.
    #[serde(default)]
    asked: Option<Vec<SegmentVersion>>,
    /// When the first people were looked at: no answer is older, however long the rest takes.
    #[serde(default)]
    began: Option<Timestamp>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Forgotten {
    segment_id: Uuid,
}

/// Queues the job that forgets who was in a segment that is gone.
pub async fn queue_forgetting(
    tx: &mut Tx,
    app_id: Uuid,
    segment_id: Uuid,
    now: Timestamp,
) -> nudge_db::Result<Uuid> {
    let job = NewJob {
        app_id,
        kind: FORGET,
        input: json!({"segmentId": segment_id}),
        requested_by: audit::SERVER,
    };
    jobs::queue(tx, &job, now).await
}

/// Removes the members of a segment that is gone, step by step.
pub async fn run_forgetting(services: &Services, job: &mut RunningJob) -> Result<Value, Error> {
    let Forgotten { segment_id } = job.input()?;
    let mut done: i64 = job.progress()?;
    loop {
        job.check()?;
        let mut tx = services.db.write().await?;
        let removed = store::forget(&mut tx, job.app_id, segment_id).await?;
        done += i64::try_from(removed).unwrap_or_default();
        job.advance(&mut tx, &done, done, None, services.clock.now())
            .await?;
        tx.commit().await?;
        if removed == 0 {
            return Ok(json!({"removed": done}));
        }
    }
}

/// Goes through an app's people.
pub async fn run(services: &Services, job: &mut RunningJob) -> Result<Value, Error> {
    let input: SegmentMembersInput = job.input()?;
    let mut progress: Progress = job.progress()?;
    let began = progress.began.unwrap_or_else(|| match progress.asked {
        // It was begun by an older server.
        Some(_) => input.at,
        None => services.clock.now(),
    });
    progress.began = Some(began);
    loop {
        job.check()?;
        // What is saved meanwhile is another job's: nobody would know whom this one has passed already.
        let asked = input
            .segments
            .clone()
            .or_else(|| input.segment.map(|only| vec![only]))
            .or(progress.asked.take());
        let Some(segments) = segments(services, job.app_id, asked.as_deref()).await? else {
            break;
        };
        progress.asked = Some(
            segments
                .iter()
                .map(|segment| (segment.id, segment.version))
                .collect(),
        );
        if !page(services, job, &segments, &mut progress).await? {
            note_sizes(services, job.app_id, &segments, began).await?;
            break;
        }
    }
    // Begun again, it finds nobody; nobody's id is kept of a job that is over.
    progress.after = Uuid::max();
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    job.advance(&mut tx, &progress, progress.people, None, now)
        .await?;
    tx.commit().await?;
    Ok(json!({"people": progress.people}))
}

/// The segments that the job is about; none: there is nothing to do any longer.
async fn segments(
    services: &Apps,
    app_id: Uuid,
    asked: Option<&[SegmentVersion]>,
) -> nudge_db::Result<Option<Vec<Arc<ActiveSegment>>>> {
    let Some(mut app) = services.apps.get(app_id).await? else {
        return Ok(None);
    };
    let knows = |asked: &SegmentVersion| {
        let mut all = app.segments.all.iter();
        all.any(|segment| (segment.id, segment.version) == *asked)
    };
    // The process that saved the segment may be another one.
    if !asked.is_some_and(|asked| asked.iter().all(knows)) {
        let mut tx = services.db.read().await?;
        let current = apps::version(&mut tx, app_id).await?;
        drop(tx);
        if current.is_some_and(|current| current > app.version) {
            match services.apps.refresh(app_id).await? {
                Some(newer) => app = newer,
                None => return Ok(None),
            }
        }
    }
    let is_meant = |segment: &&Arc<ActiveSegment>| {
        asked.is_none_or(|asked| asked.contains(&(segment.id, segment.version)))
    };
    let found: Vec<_> = app.segments.all.iter().filter(is_meant).cloned().collect();
    Ok((!found.is_empty()).then_some(found))
}

/// Goes through one page; answers whether there may be more.
async fn page(
    services: &Services,
    job: &mut RunningJob,
    segments: &[Arc<ActiveSegment>],
    progress: &mut Progress,
) -> Result<bool, Error> {
    let app_id = job.app_id;
    let mut tx = services.db.read().await?;
    let people = store::people(&mut tx, app_id, progress.after, PAGE).await?;
    drop(tx);
    let Some(last) = people.last().map(|person| person.id) else {
        return Ok(false);
    };
    let count = i64::try_from(people.len()).unwrap_or_default();
    let conditions: Vec<SegmentConditions> = segments.iter().map(SegmentConditions::from).collect();
    let asked: Vec<SegmentVersion> = segments
        .iter()
        .map(|segment| (segment.id, segment.version))
        .collect();
    let mut left = people;
    for attempt in 1.. {
        job.check()?;
        let Some(app) = services.apps.get(app_id).await? else {
            return Ok(false);
        };
        let answers = decide(Means::of(services), app_id, &conditions, &left).await?;
        let looked: Vec<_> = left.into_iter().zip(answers).collect();
        let now = services.clock.now();
        let mut tx = services.db.write().await?;
        let lock = tx.dialect().for_update();
        let written = members::write(&mut tx, &app, (&asked, lock), &looked, now).await?;
        if written.outdated {
            drop(tx);
            services.apps.refresh(app_id).await?;
            return Ok(true);
        }
        // Of new conditions everybody's membership is to be known, so that nobody's is told who was in before.
        let is_last = written.changed.is_empty() || attempt >= TRIES && !written.is_first;
        if is_last {
            segment_checks::note(&mut tx, app_id, &written.changed).await?;
            if written.is_first {
                let ids: Vec<Uuid> = segments.iter().map(|segment| segment.id).collect();
                store::note_place(&mut tx, app_id, &ids, last).await?;
            }
            progress.after = last;
            progress.people += count;
            job.advance(&mut tx, progress, progress.people, None, now)
                .await?;
        }
        tx.commit().await?;
        if is_last {
            break;
        }
        let mut tx = services.db.read().await?;
        left = crate::store::subjects_of(&mut tx, app_id, &written.changed).await?;
    }
    Ok(true)
}

async fn note_sizes(
    services: &Services,
    app_id: Uuid,
    segments: &[Arc<ActiveSegment>],
    at: Timestamp,
) -> Result<(), Error> {
    for segment in segments {
        let mut tx = services.db.write().await?;
        let size = store::size(&mut tx, app_id, segment.id).await?;
        store::note_size(&mut tx, app_id, (segment.id, segment.version), size, at).await?;
        tx.commit().await?;
    }
    Ok(())
}
