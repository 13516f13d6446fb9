//! Looks at people whose segments may have changed, and begins sweeps.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use nudge_apps::App;
use nudge_apps::services::Services;
use nudge_campaigns::segments::SWEEP_EVERY;
use nudge_campaigns::segments::looking::{self, SegmentVersion};
use nudge_db::{Result, Timestamp};
use nudge_platform::due::{FirstError, Next, Pacer};
use nudge_platform::jobs;
use nudge_records::segment_checks;
use nudge_records::subjects::{self, link::Link};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::decide::{Means, SegmentConditions, decide};
use super::{members, store};
use crate::services::Shared;
use crate::setback::LEEWAY_AMONG_OTHERS;

/// People who are looked at together.
const PAGE: i64 = 256;
/// People who are looked at together before their next change.
const PAGE_AHEAD: usize = 256;
/// How often they are looked at, at the most.
const LOOKS_AHEAD: usize = 16;
/// How long a request waits for what its people have sent before, from its beginning on.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it waits between looks, at first and at the most.
const PAUSE: Duration = Duration::from_millis(4);
const MOST_PAUSE: Duration = Duration::from_millis(50);
/// Apps whose sweeps begin in one go.
const MOST_SWEEPS: i64 = 100;
/// How soon a sweep is looked at again that goes on, or has failed.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// Runs until the server stops.
pub async fn run(services: Shared, halt: CancellationToken) {
    let poll_ms = services.config.pipeline.poll_ms;
    let what = "looking at segments";
    let mut pacer = Pacer::new(&services.db, &services.clock, poll_ms, what);
    loop {
        pacer.look();
        let looked = round(&services, &halt).await;
        let next = pacer.note(looked).unwrap_or(Next::Soon);
        tokio::select! {
            () = pacer.wait(next) => {}
            () = services.pipeline.segment_checks().notified() => {}
            () = halt.cancelled() => return,
        }
    }
}

async fn round(services: &Shared, halt: &CancellationToken) -> Result<Next> {
    let mut after = Uuid::nil();
    let mut failed = FirstError::default();
    loop {
        let mut tx = services.db.read().await?;
        let noted = segment_checks::noted(&mut tx, after, PAGE).await?;
        drop(tx);
        let Some((_, last)) = noted.last().copied() else {
            break;
        };
        if halt.is_cancelled() {
            return Ok(Next::Soon);
        }
        after = last;
        let mut by_app: BTreeMap<Uuid, Vec<Uuid>> = BTreeMap::new();
        for (app_id, subject_id) in noted {
            by_app.entry(app_id).or_default().push(subject_id);
        }
        for (app_id, people) in by_app {
            if let Some(app) = services.apps.get(app_id).await? {
                failed.note(look(Means::of(services), &app, &people).await)?;
            }
        }
    }
    let now = services.clock.now();
    let mut tx = services.db.read().await?;
    // Where a sweep is put off by more, the clock has been set back since.
    let latest = now.plus(SWEEP_EVERY + LEEWAY_AMONG_OTHERS);
    let due = store::due(&mut tx, now, latest, MOST_SWEEPS).await?;
    let next = store::next(&mut tx).await?;
    // What was noted meanwhile, and whoever changed amid a look.
    let is_left = !segment_checks::noted(&mut tx, Uuid::nil(), 1)
        .await?
        .is_empty();
    drop(tx);
    for sweep in &due {
        failed.note(begin(services, sweep, now).await)?;
    }
    failed.end()?;
    if is_left || !due.is_empty() {
        return Ok(Next::Soon);
    }
    Ok(Next::At(next))
}

/// Looks at those of some people who are to be looked at, before something else changes them: of two changes of which the second
/// takes the first back, both are told. Whoever can't be looked at now is looked at afterwards.
pub(crate) async fn look_ahead(by: Means<'_>, app_id: Uuid, people: &[Uuid]) -> Result<()> {
    for page in people.chunks(PAGE_AHEAD) {
        // People who change are looked at again, and all where campaigns begin to wait meanwhile.
        for _ in 0..LOOKS_AHEAD {
            let mut tx = by.db.read().await?;
            let noted = segment_checks::among(&mut tx, app_id, page).await?;
            drop(tx);
            if noted.is_empty() {
                break;
            }
            let Some(app) = by.apps.get(app_id).await? else {
                return Ok(());
            };
            if let Err(error) = look(by, &app, &noted).await {
                tracing::debug!(app.id = %app_id, %error, "people are looked at later");
                break;
            }
        }
    }
    Ok(())
}

/// The same for people whose properties or names are about to change, by a request that came at an instant. What they have sent
/// before is processed first; a request waits for that up to [`PATIENCE`].
pub async fn look_before_change(
    services: &Services,
    app: &App,
    people: &[Uuid],
    since: Instant,
) -> Result<()> {
    if app.segments.watched.is_empty() || people.is_empty() {
        return Ok(());
    }
    let mut pause = PAUSE;
    loop {
        let mut tx = services.db.read().await?;
        let has_waiting = store::has_waiting(&mut tx, app.id, people).await?;
        drop(tx);
        if !has_waiting || since.elapsed() >= PATIENCE {
            break;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MOST_PAUSE);
    }
    look_ahead(Means::of(services), app.id, people).await
}

/// The same before an anonymous id becomes another name of a person, unless it is already.
pub async fn look_before_link(
    services: &Services,
    app: &App,
    link: &Link<'_>,
    since: Instant,
) -> Result<()> {
    if app.segments.watched.is_empty() {
        return Ok(());
    }
    let mut tx = services.db.read().await?;
    let mut people = BTreeSet::new();
    for (kind, name) in link.names() {
        let found = subjects::store::find(&mut tx, app.id, kind, name).await?;
        people.extend(found.map(|found| found.subject_id));
    }
    drop(tx);
    if people.len() < 2 {
        return Ok(());
    }
    let people: Vec<Uuid> = people.into_iter().collect();
    look_before_change(services, app, &people, since).await
}

/// Has a person looked at who may be new, or who has changed.
pub async fn look_afterwards(
    services: &crate::services::Services,
    app: &App,
    person: Uuid,
) -> Result<()> {
    if app.segments.watched.is_empty() {
        return Ok(());
    }
    let mut tx = services.db.write().await?;
    segment_checks::note(&mut tx, app.id, &[person]).await?;
    tx.commit().await?;
    services.pipeline.segment_checks().wake();
    Ok(())
}

/// Looks at people, and forgets that they were to be looked at, unless they have changed meanwhile.
async fn look(by: Means<'_>, app: &App, people: &[Uuid]) -> Result<()> {
    let watched = &app.segments.watched;
    let conditions: Vec<SegmentConditions> = watched.iter().map(SegmentConditions::from).collect();
    let asked: Vec<SegmentVersion> = watched
        .iter()
        .map(|segment| (segment.id, segment.version))
        .collect();
    let mut tx = by.db.read().await?;
    let found = crate::store::subjects_of(&mut tx, app.id, people).await?;
    drop(tx);
    let answers = decide(by, app.id, &conditions, &found).await?;
    let looked: Vec<_> = found.into_iter().zip(answers).collect();
    let now = by.clock.now();
    let mut tx = by.db.write().await?;
    let lock = tx.dialect().for_share();
    let written = members::write(&mut tx, app, (&asked, lock), &looked, now).await?;
    if written.outdated {
        drop(tx);
        by.apps.refresh(app.id).await?;
        return Ok(());
    }
    // Those who are not there any longer are settled too.
    let settled = people.iter().filter(|id| !written.changed.contains(id));
    let settled: Vec<Uuid> = settled.copied().collect();
    segment_checks::done(&mut tx, app.id, &settled).await?;
    tx.commit().await
}

/// Begins to go through an app's people, unless somebody else has, or still does. A sweep is watched until it ends: one that
/// failed is begun anew at the next look, so that sizes do not grow old.
async fn begin(services: &Shared, sweep: &store::Sweep, now: Timestamp) -> Result<()> {
    let mut tx = services.db.write().await?;
    if store::stop(&mut tx, sweep.app_id).await? > 0 {
        return tx.commit().await;
    }
    let last = match sweep.job_id {
        Some(job_id) => jobs::store::find(&mut tx, sweep.app_id, job_id).await?,
        None => None,
    };
    let (next_at, watched) = match &last {
        Some(job) if job.completed_at.is_none() => (now.plus(LOOK_AGAIN), sweep.job_id),
        // A job of the future had its answers as of a clock that was ahead.
        Some(job)
            if job.state == "completed"
                && job.created_at <= now.plus(LEEWAY_AMONG_OTHERS)
                && job.created_at.plus(SWEEP_EVERY) > now =>
        {
            (job.created_at.plus(SWEEP_EVERY), None)
        }
        _ => {
            let job_id = looking::queue(&mut tx, sweep.app_id, None, now).await?;
            (now.plus(LOOK_AGAIN), Some(job_id))
        }
    };
    if store::put_off(&mut tx, sweep, next_at, watched).await? {
        tx.commit().await?;
        services.jobs.wake();
    }
    Ok(())
}
