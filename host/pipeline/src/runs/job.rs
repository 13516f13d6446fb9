//! One run: an occasion for each of an app's subjects, page by page. What a page brings about and how far the run
//! is are one commit, so that a crash sends nobody anything twice and misses nobody.

use std::collections::HashMap;
use std::time::Duration;

use nudge_campaigns::campaign::Kind;
use nudge_campaigns::runs::calendar::Plan;
use nudge_db::{Timestamp, Tx};
use nudge_platform::jobs::{Error, RunningJob};
use nudge_platform::{clock, id};
use nudge_records::scheduled_work::{self, ClaimedOccasion, NewOccasion};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{run_state, store};
use crate::runs::run_state::RunState;
use crate::services::Services;
use crate::setback::LEEWAY_AMONG_OTHERS;

/// The kind of the job.
pub const KIND: &str = "campaign.run";
/// Subjects of a page.
const PAGE: u16 = 256;
/// So many occasions of a campaign may be due and not done before the run waits for the pipeline.
const BACKLOG: i64 = 4_000;
/// How long it waits then.
const BREATHER: Duration = Duration::from_millis(200);
/// How long it waits for its campaign to be resumed.
const REST: Duration = Duration::from_secs(5);

/// What a run is asked to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Input {
    pub campaign_id: Uuid,
    pub kind: Kind,
    pub plan: Plan,
    /// The instant of the run. Jobs in the database call it `occasion`.
    #[serde(rename = "occasion")]
    pub run_at: Timestamp,
    /// Whoever comes after this one came after the run began.
    pub last: Uuid,
    /// Whose time was before this gets nothing: the campaign was not active then.
    #[serde(default)]
    pub begins_at: Option<Timestamp>,
    /// The next run, where that begins with this one because both were missed, and the instant: whose time it was by then
    /// gets that one.
    #[serde(default)]
    pub overtaken: Option<(Timestamp, Timestamp)>,
}

impl Input {
    /// When the run reaches somebody of a time zone; none: it does not.
    fn reaches(&self, timezone: Option<&str>) -> Option<Timestamp> {
        let at = self.plan.reaches(self.run_at, timezone);
        let is_late = self.begins_at.is_some_and(|begins_at| at < begins_at);
        let has_next = self
            .overtaken
            .is_some_and(|(next, now)| self.plan.reaches(next, timezone) <= now);
        (!is_late && !has_next).then_some(at)
    }
}

/// The plan by which a run was begun; none: its job is gone.
pub(super) async fn plan(
    tx: &mut Tx,
    app_id: Uuid,
    job_id: Uuid,
) -> nudge_db::Result<Option<Plan>> {
    let input = store::input_of(tx, app_id, job_id).await?;
    let input = input.map(|input| serde_json::from_str::<Input>(&input));
    let input = input
        .transpose()
        .map_err(|cause| nudge_db::Error::corrupt("jobs", "input", cause))?;
    Ok(input.map(|input| input.plan))
}

/// How far a run is.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Progress {
    /// The subject that it has come to.
    after: Uuid,
    /// How many subjects there were.
    subjects: i64,
}

/// Runs the job to its end.
pub async fn run(services: &Services, job: &mut RunningJob) -> Result<Value, Error> {
    let input: Input = job.input()?;
    let mut progress: Progress = job.progress()?;
    // As of the last count: none of the pages since then is done.
    let mut room = 0;
    loop {
        job.check()?;
        let mut tx = services.db.read().await?;
        let now = services.clock.now();
        let state = run_state::read(&mut tx, job.app_id, input.campaign_id);
        match state.await? {
            RunState::Runs => {}
            RunState::Rests => return Err(Error::Wait(REST)),
            RunState::Over => break,
        }
        if room <= 0 {
            let (app_id, campaign_id) = (job.app_id, input.campaign_id);
            let due = store::count_due(&mut tx, app_id, campaign_id, now, BACKLOG).await?;
            room = BACKLOG - due;
        }
        if room <= 0 {
            return Err(Error::Wait(BREATHER));
        }
        room -= i64::from(PAGE);
        drop(tx);
        let (app_id, kind) = (job.app_id, input.kind);
        let pipeline = &services.pipeline;
        pipeline
            .wait_for_room_for_occasions(app_id, kind, PAGE.into(), BREATHER)
            .await;
        if !page(services, job, &input, &mut progress).await? {
            break;
        }
    }
    let done = json!({"campaignId": input.campaign_id, "at": clock::to_text(input.run_at), "subjects": progress.subjects});
    forget_places(services, job, input, progress).await?;
    Ok(done)
}

/// Keeps nobody's id of a run that is over. Where that is all that is known of its end, the job finds nobody and ends again.
async fn forget_places(
    services: &Services,
    job: &mut RunningJob,
    input: Input,
    progress: Progress,
) -> Result<(), Error> {
    let input = Input {
        last: Uuid::nil(),
        ..input
    };
    let input = serde_json::to_value(&input)
        .map_err(|cause| nudge_db::Error::corrupt("jobs", "input", cause))?;
    let progress = Progress {
        after: Uuid::max(),
        ..progress
    };
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    job.advance(&mut tx, &progress, progress.subjects, None, now)
        .await?;
    job.forget_input(&mut tx, &input).await?;
    tx.commit().await?;
    Ok(())
}

/// The key of a run's occasions. Keys are in the order of runs.
pub(super) fn key(run_at: Timestamp) -> String {
    format!("run {}", clock::to_text(run_at))
}

/// Goes through one page; answers whether there may be more.
async fn page(
    services: &Services,
    job: &mut RunningJob,
    input: &Input,
    progress: &mut Progress,
) -> Result<bool, Error> {
    let (app_id, now) = (job.app_id, services.clock.now());
    let mut tx = services.db.unhurried().write().await?;
    if !store::hold(&mut tx, app_id, input.campaign_id, job.id).await? {
        return Ok(false);
    }
    let people = store::people(&mut tx, app_id, progress.after, input.last, PAGE.into()).await?;
    let Some((newest, people)) = people else {
        return Ok(false);
    };
    let key = key(input.run_at);
    // The process that began the run may have a clock that is ahead: without leeway, people whose clocks are furthest behind would
    // be reached too early.
    let reaches_by = input.plan.reaches_by(now.plus(LEEWAY_AMONG_OTHERS));
    let mut room = services.pipeline.room_for_occasions();
    let occasion = |person: &store::Person| {
        let at = input.reaches(person.timezone.as_deref())?;
        // A run that has begun does not wait for a clock that was set back since.
        let at = if at > reaches_by { now } else { at };
        let is_claimed = person.is_in_turn && at <= now && room > 0;
        room -= usize::from(is_claimed);
        Some(NewOccasion {
            id: id::new(now),
            campaign_id: input.campaign_id,
            subject_id: person.id,
            alias: person.alias,
            key: key.clone(),
            due_at: at,
            event_seq: scheduled_work::seq_of(at),
            firing_id: None,
            node: is_claimed.then(|| services.pipeline.node()),
        })
    };
    let occasions: Vec<NewOccasion> = people.iter().filter_map(occasion).collect();
    scheduled_work::insert(&mut tx, app_id, &occasions).await?;
    progress.after = newest;
    progress.subjects += i64::try_from(people.len()).unwrap_or_default();
    job.advance(&mut tx, progress, progress.subjects, None, now)
        .await?;
    tx.commit().await?;
    let claimed = occasions.iter();
    let claimed = claimed.filter_map(|occasion| ClaimedOccasion::of(app_id, occasion));
    services.pipeline.submit_occasions(claimed, &HashMap::new());
    Ok(true)
}
