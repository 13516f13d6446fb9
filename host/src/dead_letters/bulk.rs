//! Replaying and acknowledging many dead letters: jobs that go on where they were after a crash.
//!
//! Letters are taken in the order in which their events happened, some at a time, with pauses that leave the
//! database and the plugins to the events. What a step stores, the letters that it removes, the attempts that it
//! counts and how far the job is are one transaction. The trigger stage is run again in the pipeline, where a letter
//! and what follows from it are one transaction: a step that is interrupted finds those gone that were done.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_apps::App;
use nudge_db::{Timestamp, Tx};
use nudge_http::Code;
use nudge_ingest::commit::CommitOutcome;
use nudge_ingest::kept;
use nudge_ingest::submission::Submission;
use nudge_ingest::validation::{self, Urgency, Verdict};
use nudge_platform::jobs::{Error, RunningJob};
use nudge_records::dead_letters::store::{self, Failure, Filter, FoundLetter, LetterPosition};
use nudge_records::dead_letters::{Letter, Stage};
use nudge_records::events::Event;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::replay::{self, Judged, Tried};
use crate::services::{Services, Shared};

/// The job that replays.
pub const REPLAY: &str = "dead_letters.replay";
/// The job that acknowledges.
pub const ACKNOWLEDGE: &str = "dead_letters.acknowledge";
/// Jobs of a kind that an app may have under way.
pub const MOST_AT_ONCE: usize = 4;
/// Letters that a step replays.
const PAGE: i64 = 200;
/// Letters that a step acknowledges.
const STEP: i64 = 500;
/// The longest pause after a step.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// What leaves nothing to replay: somebody was faster, or the campaign or the delivery is no more.
const GONE: [Code; 2] = [Code::NotFound, Code::DeliveryGone];
/// How long a job waits for what can't be asked.
const UNAVAILABLE: Duration = Duration::from_secs(5);

/// What a job is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BulkLettersInput {
    /// Which letters.
    pub filter: Filter,
    /// A merge patch on their events' properties.
    pub patch: Option<Map<String, Value>>,
}

/// How far a replay is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Progress {
    total: Option<i64>,
    after: Option<LetterPosition>,
    counts: Counts,
    /// Whether all letters are done with: only the job's end is still to be noted.
    #[serde(default)]
    ended: bool,
}

/// What became of letters.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    replayed: i64,
    still_failing: i64,
    /// Those that can't be replayed now: the person has withdrawn consent, or there is no delivery.
    skipped: i64,
}

impl Counts {
    /// How many letters are done with.
    fn done(self) -> i64 {
        self.replayed + self.still_failing + self.skipped
    }
}

impl Progress {
    /// Goes back to where a page began. Those of it that were replayed are gone, so that no later look counts them; all others
    /// are looked at again. Answers whether there were any.
    fn begin_again(&mut self, begun: Self) -> bool {
        let replayed = self.counts.replayed;
        let any = replayed > begun.counts.replayed;
        *self = begun;
        self.counts.replayed = replayed;
        any
    }
}

/// What a step does about letters of the validation stage.
#[derive(Default)]
struct Plan {
    submissions: Vec<Submission>,
    failures: Vec<Failure>,
}

/// The condition with a NUL in its text, if there is one: no letter meets it, and PostgreSQL refuses to look.
pub fn nul(filter: &Filter) -> Option<&'static str> {
    let texts = [
        ("eventName", &filter.event_name),
        ("reason", &filter.reason),
    ];
    let has_nul = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains('\0'));
    let mut texts = texts.into_iter();
    texts.find(|(_, text)| has_nul(text)).map(|(name, _)| name)
}

/// What a job is asked to do. Before such filters were refused, jobs were queued with one that no letter meets.
fn input(job: &RunningJob) -> Result<BulkLettersInput, Error> {
    let input: BulkLettersInput = job.input()?;
    match nul(&input.filter) {
        None => Ok(input),
        Some(name) => Err(Error::Failed(format!(
            "`{name}` of the filter has a NUL character"
        ))),
    }
}

/// Replays letters.
pub async fn run_replay(services: &Shared, job: &mut RunningJob) -> Result<Value, Error> {
    let input = input(job)?;
    let mut progress: Progress = job.progress()?;
    while !progress.ended {
        job.check()?;
        let started = Instant::now();
        let mut tx = services.db.read().await?;
        if progress.total.is_none() {
            progress.total = Some(store::count(&mut tx, job.app_id, &input.filter).await?);
        }
        let page = store::page(&mut tx, job.app_id, &input.filter, progress.after, PAGE).await?;
        drop(tx);
        if page.is_empty() {
            end(services, job, &input, &mut progress).await?;
            break;
        }
        step(services, job, &input, page, &mut progress).await?;
        tokio::time::sleep(started.elapsed().min(LONGEST_PAUSE)).await;
    }
    Ok(json!(progress.counts))
}

/// Notes that a replay is through, and forgets its patch. After a crash it is not begun again, which it would be without the patch.
async fn end(
    services: &Services,
    job: &mut RunningJob,
    input: &BulkLettersInput,
    progress: &mut Progress,
) -> Result<(), Error> {
    progress.ended = true;
    // Letters that were gone when their turn came are not among those that are done.
    progress.total = Some(progress.counts.done());
    let mut tx = services.db.write().await?;
    advance(&mut tx, job, progress, services.clock.now()).await?;
    // A patch may hold what is somebody's.
    let left = json!({"filter": input.filter, "patched": input.patch.is_some()});
    job.forget_input(&mut tx, &left).await?;
    Ok(tx.commit().await?)
}

/// Replays a page.
async fn step(
    services: &Services,
    job: &mut RunningJob,
    input: &BulkLettersInput,
    page: Vec<FoundLetter>,
    progress: &mut Progress,
) -> Result<(), Error> {
    let begun = progress.clone();
    let last = page.last();
    let last = last.map(|found| (found.letter.timestamp, found.letter.id));
    match replay_page(services, job.app_id, input, page, &mut progress.counts).await {
        Ok(plan) => {
            progress.after = last;
            commit(services, job, plan, progress).await
        }
        Err(error) => {
            if progress.begin_again(begun) {
                let mut tx = services.db.write().await?;
                advance(&mut tx, job, progress, services.clock.now()).await?;
                tx.commit().await?;
            }
            Err(error)
        }
    }
}

/// Replays letters, but those of the validation stage, whose events are yet to be stored.
async fn replay_page(
    services: &Services,
    app_id: Uuid,
    input: &BulkLettersInput,
    page: Vec<FoundLetter>,
    counts: &mut Counts,
) -> Result<Plan, Error> {
    // Mostly somebody has mended something a moment ago, maybe on another process.
    let app = services.apps.newest(app_id).await?;
    let app = app.ok_or_else(|| Error::Failed("the app is gone".to_owned()))?;
    let (validation, rest): (Vec<FoundLetter>, Vec<FoundLetter>) = page
        .into_iter()
        .partition(|found| found.letter.stage == Stage::Validation);
    let (triggers, others): (Vec<FoundLetter>, Vec<FoundLetter>) = rest
        .into_iter()
        .partition(|found| found.letter.stage == Stage::Trigger);
    for FoundLetter { letter, .. } in others {
        let id = letter.id;
        match replay::replay_personalization(services, &app, letter).await {
            Ok(replay::Replayed::Done) => counts.replayed += 1,
            Ok(replay::Replayed::StillFailing { .. }) => counts.still_failing += 1,
            Err(error) if GONE.contains(&error.code()) => {
                let mut tx = services.db.read().await?;
                let is_there = store::find(&mut tx, app_id, id).await?.is_some();
                counts.skipped += i64::from(is_there);
            }
            // The plugin or the database can't be asked now.
            Err(error) if error.code() == Code::Unavailable => {
                return Err(Error::Wait(UNAVAILABLE));
            }
            Err(error) => {
                tracing::warn!(error = ?error, "a dead letter can't be replayed");
                counts.still_failing += 1;
            }
        }
    }
    let mut plan = plan(services, &app, input, validation).await?;
    let triggers: Vec<Letter> = triggers.into_iter().map(|found| found.letter).collect();
    for tried in replay::replay_triggers(services, &app, &triggers).await? {
        match tried {
            Tried::Done => counts.replayed += 1,
            Tried::Failed => counts.still_failing += 1,
            Tried::Not(failure) => plan.failures.push(failure),
            Tried::Gone => {}
        }
    }
    Ok(plan)
}

/// Judges letters of the validation stage anew.
async fn plan(
    services: &Services,
    app: &Arc<App>,
    input: &BulkLettersInput,
    letters: Vec<FoundLetter>,
) -> Result<Plan, Error> {
    let mut plan = Plan::default();
    let mut events: Vec<(Uuid, Letter, Event)> = Vec::with_capacity(letters.len());
    for FoundLetter {
        letter, subject_id, ..
    } in letters
    {
        match nudge_records::dead_letters::replay::readable(&letter, input.patch.as_ref()) {
            Some(event) => events.push((subject_id, letter, event)),
            // Patched, it is not an event any longer, or it can't be read.
            None => plan.failures.push(Failure::of(&letter)),
        }
    }
    let asked: Vec<(Uuid, &Event)> = events
        .iter()
        .map(|(subject_id, _, event)| (*subject_id, event))
        .collect();
    let now = services.clock.now();
    let verdicts = validation::validate(services, app, &asked, now, Urgency::Aside).await;
    let verdicts: Vec<Verdict> = verdicts.map_err(|lost| Error::Failed(lost.to_string()))?;
    let mut passed = Vec::with_capacity(events.len());
    for ((_, letter, event), verdict) in events.into_iter().zip(verdicts) {
        match replay::judge(app, &letter, verdict) {
            Judged::Passes => passed.push((letter, event)),
            Judged::Fails(failure) => {
                let patched = input.patch.is_some();
                plan.failures.push(failure.noted(&letter, patched));
            }
            Judged::Unknown(failure) => plan.failures.push(failure),
        }
    }
    plan.submissions = submissions(app, passed);
    Ok(plan)
}

/// Events as requests: one for each alias, and another one where events of an alias arrived at another time or from
/// elsewhere. The order of each alias's events stays.
fn submissions(app: &Arc<App>, letters: Vec<(Letter, Event)>) -> Vec<Submission> {
    let mut submissions: Vec<Submission> = Vec::new();
    let mut newest: HashMap<i64, usize> = HashMap::new();
    for (letter, event) in letters {
        let same = newest
            .get(&letter.alias)
            .and_then(|place| submissions.get_mut(*place))
            .filter(|submission| {
                submission.received_at == letter.received_at && submission.origin == letter.origin
            });
        if let Some(submission) = same {
            submission.events.push(Arc::new(event));
            submission.replays.push(letter.id);
            continue;
        }
        newest.insert(letter.alias, submissions.len());
        let events = vec![(letter.id, event)];
        submissions.push(replay::submission(app, &letter, events));
    }
    submissions
}

/// Stores what a step has found, and how far the job is.
async fn commit(
    services: &Services,
    job: &mut RunningJob,
    plan: Plan,
    progress: &mut Progress,
) -> Result<(), Error> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let outcomes = kept::store_replayed(&mut tx, &plan.submissions).await?;
    for (submission, outcome) in plan.submissions.iter().zip(&outcomes) {
        let number = |letters| i64::try_from(letters).unwrap_or(i64::MAX);
        match outcome {
            Ok(replayed) => progress.counts.replayed += number(replayed.letters),
            Err(CommitOutcome::LettersGone) => {}
            Err(_) => progress.counts.skipped += number(submission.replays.len()),
        }
    }
    let failed = store::update_failed(&mut tx, job.app_id, &plan.failures).await?;
    progress.counts.still_failing += i64::try_from(failed).unwrap_or(i64::MAX);
    advance(&mut tx, job, progress, now).await?;
    tx.commit().await?;
    for (submission, outcome) in plan.submissions.iter().zip(outcomes) {
        let events = outcome.map_or_else(|_| Vec::new(), |replayed| replayed.events);
        kept::count(&services.stats, submission, &events, |_| false);
    }
    Ok(())
}

/// Notes how far a replay is.
async fn advance(
    tx: &mut Tx,
    job: &mut RunningJob,
    progress: &Progress,
    now: Timestamp,
) -> Result<(), Error> {
    let done = progress.counts.done();
    // Letters that are gone when their turn comes are not counted.
    let total = progress.total.map(|total| total.max(done));
    job.advance(tx, progress, done, total, now).await
}

/// Acknowledges letters.
pub async fn run_acknowledge(services: &Shared, job: &mut RunningJob) -> Result<Value, Error> {
    let input = input(job)?;
    let (mut done, mut total): (i64, Option<i64>) = job.progress()?;
    loop {
        job.check()?;
        let started = Instant::now();
        if total.is_none() {
            let mut tx = services.db.read().await?;
            total = Some(store::count(&mut tx, job.app_id, &input.filter).await?);
        }
        let mut tx = services.db.write().await?;
        let removed = store::delete_some(&mut tx, job.app_id, &input.filter, STEP).await?;
        done += i64::try_from(removed).unwrap_or(i64::MAX);
        let now = services.clock.now();
        let shown = if removed == 0 {
            // Others were gone before.
            Some(done)
        } else {
            total.map(|total| total.max(done))
        };
        job.advance(&mut tx, &(done, total), done, shown, now)
            .await?;
        tx.commit().await?;
        if removed == 0 {
            return Ok(json!({"acknowledged": done}));
        }
        tokio::time::sleep(started.elapsed().min(LONGEST_PAUSE)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_replayed_of_a_page_that_begins_again_is_counted_once() {
        let counts = |replayed, still_failing, skipped| Counts {
            replayed,
            still_failing,
            skipped,
        };
        let begun = Progress {
            counts: counts(1, 1, 1),
            ..Progress::default()
        };
        let mut progress = Progress {
            after: Some((Timestamp(1), Uuid::nil())),
            counts: counts(3, 2, 2),
            ..Progress::default()
        };
        assert!(progress.begin_again(begun));
        let Counts {
            replayed,
            still_failing,
            skipped,
        } = progress.counts;
        assert_eq!((replayed, still_failing, skipped), (3, 1, 1));
        assert_eq!(progress.after, None);
        assert!(!progress.begin_again(progress.clone()));
    }
}
