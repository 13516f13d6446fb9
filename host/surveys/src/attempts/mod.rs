//! Attempts: a person's way through a survey, from its start to its end (contract 7).
//!
//! An attempt that an instruction causes has an id that says which instruction that is, so that an SDK can have the
//! id before there is an attempt, and a start that is repeated finds the same one.

pub mod analytics;
pub mod answering;
mod completing;
pub mod edges;
pub mod erasure;
pub mod http;
mod language;
pub mod management;
mod opening;
pub mod responses;
mod rows;
mod starting;
pub mod store;
pub mod tally;

use std::collections::BTreeMap;
use strum::{EnumString, IntoStaticStr};

use nudge_apps::App;
use nudge_campaigns::surveys::IDLE;
use nudge_campaigns::surveys::flow::way::Way;
use nudge_campaigns::surveys::flow::{Answers, Flow, Walker};
use nudge_campaigns::{store as campaigns, surveys};
use nudge_db::{Timestamp, Tx};
use nudge_platform::field_error::FieldError;
use nudge_records::instructions;
use nudge_records::instructions::Status;
use nudge_records::subjects::AliasView;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

pub use answering::take_answers;
pub use completing::{complete, end_when_full};
pub use starting::start;

use starting::find_or_open;
use tally::Tally;

/// Where an attempt stands, as it is stored. Abandonment by silence is derived, see [`Attempt::shown_state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum State {
    /// Begun.
    Started,
    /// Ended by the person's will.
    Dismissed,
    /// Complete.
    Completed,
}

impl State {
    /// The state's name in the database.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The state of a name.
    pub fn parse(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// An attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its id.
    pub id: Uuid,
    /// The app.
    pub app_id: Uuid,
    /// The survey.
    pub survey_id: Uuid,
    /// The survey's version, on which it stays.
    pub survey_version: i64,
    /// Whose it is.
    pub subject_id: Uuid,
    /// The instruction that caused it.
    pub instruction_id: Option<Uuid>,
    /// The SDK's own id of it.
    pub client_attempt_id: Option<Uuid>,
    /// Where it stands.
    pub state: State,
    /// When it began.
    pub started_at: Timestamp,
    /// When something was last heard of it.
    pub active_at: Timestamp,
    /// When it was completed.
    pub completed_at: Option<Timestamp>,
    /// The question answered last.
    pub last_question_id: Option<String>,
    /// The question that the person is at.
    pub position_question_id: Option<String>,
}

impl Attempt {
    /// The state as people see it: one that was dismissed, or has been silent for [`IDLE`], is abandoned.
    pub fn shown_state(&self, now: Timestamp) -> &'static str {
        match self.state {
            State::Completed => "completed",
            State::Started if self.active_at.plus(IDLE) > now => "started",
            State::Started | State::Dismissed => "abandoned",
        }
    }

    /// What of its state is counted.
    fn tally_state(&self) -> tally::AttemptState<'_> {
        tally::AttemptState {
            completed: self.state == State::Completed,
            alone: self.instruction_id.is_none(),
            last: self.last_question_id.as_deref(),
        }
    }

    /// What the attempt adds to the counts.
    pub fn tally(&self, walker: &Walker<'_>, answers: &Answers) -> Tally {
        tally::tally(walker, answers, self.tally_state())
    }
}

/// An answer as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What was answered.
    pub value: Value,
    /// Whether it is in results.
    pub counted: bool,
    /// When it was given.
    pub answered_at: Timestamp,
}

/// An answer that an SDK sends.
#[derive(Clone, Debug)]
pub struct Given {
    /// The question.
    pub question_id: String,
    /// The answer, as it was sent; none is null.
    pub value: Option<Box<RawValue>>,
    /// When it was given.
    pub answered_at: Timestamp,
}

/// What an SDK wants to start.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The survey.
    pub survey_id: Uuid,
    /// The instruction that it follows.
    pub instruction_id: Option<Uuid>,
    /// The SDK's own id, so that a start that is repeated finds what it started.
    pub client_attempt_id: Option<Uuid>,
    /// The survey's version that the person sees, where no instruction says which.
    pub survey_version: Option<i64>,
}

/// What is next for whoever answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A question.
    Question(String),
    /// An end screen.
    EndScreen(String),
    /// Nothing: the flow has no end screens.
    Nothing,
}

/// An attempt after a request, and what is next.
#[derive(Clone, Debug)]
pub struct AttemptStep {
    /// The attempt.
    pub attempt: Attempt,
    /// What is next.
    pub next: Next,
    /// Whether the survey ended with it: the app is to be read anew.
    pub survey_ended: bool,
}

/// Why a request about an attempt is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such survey, instruction or attempt, or not of this subject.
    #[error("no such attempt")]
    NotFound,
    /// Nothing may be presented to the subject.
    #[error("no consent to messages")]
    ConsentRequired,
    /// The survey does not run.
    #[error("the survey does not run")]
    NotActive,
    /// The survey's mode takes an instruction.
    #[error("an instruction is required")]
    InstructionRequired,
    /// Answers come after the end.
    #[error("the attempt is complete")]
    Completed,
    /// Answers are not what their questions take.
    #[error("invalid answers")]
    Invalid(Vec<FieldError>),
    /// The database.
    #[error("storage failed")]
    Storage(#[from] nudge_db::Error),
}

/// An attempt with its answers, and the flow that it goes through.
struct Whole {
    attempt: Attempt,
    answers: BTreeMap<String, Answer>,
    flow: Flow,
}

impl Whole {
    async fn read(tx: &mut Tx, attempt: Attempt) -> Result<Self, Error> {
        let (app_id, survey_id) = (attempt.app_id, attempt.survey_id);
        let content =
            campaigns::version::<surveys::Content>(tx, app_id, survey_id, attempt.survey_version)
                .await?;
        // The versions go first when a survey is deleted.
        let flow = content
            .and_then(|content| content.flow)
            .ok_or(Error::NotFound)?;
        let answers = store::answers(tx, app_id, &[attempt.id]).await?;
        let answers = answers.into_iter().map(|(_, id, answer)| (id, answer));
        Ok(Self {
            answers: answers.collect(),
            attempt,
            flow,
        })
    }

    fn values(&self) -> Answers {
        values(&self.answers)
    }
}

fn values(answers: &BTreeMap<String, Answer>) -> Answers {
    let values = answers.iter();
    values
        .map(|(id, answer)| (id.clone(), answer.value.clone()))
        .collect()
}

fn next(way: &Way<'_>, last: Option<&str>) -> Next {
    use surveys::flow::End;
    match (way.position(last), way.end) {
        (Some(question), _) => Next::Question(question.id.clone()),
        (None, End::Screen(id)) => Next::EndScreen(id.to_owned()),
        (None, End::Done | End::Required) => Next::Nothing,
    }
}

/// Moves the instruction that caused an attempt on.
async fn follow(
    tx: &mut Tx,
    attempt: &Attempt,
    status: Status,
    at: Timestamp,
) -> Result<(), Error> {
    if let Some(id) = attempt.instruction_id {
        let ack = instructions::store::Acknowledgement {
            id,
            status,
            action_id: None,
            at,
        };
        instructions::store::acknowledge(tx, attempt.app_id, attempt.subject_id, &ack).await?;
    }
    Ok(())
}

/// The question that a way ends with: behind it is the end, whatever was skipped.
fn last_of<'f>(way: &Way<'f>) -> Option<&'f str> {
    Some(&way.stops.last()?.question.id)
}

/// Where an attempt is: behind the question that was answered last, or at its end.
async fn outcome(tx: &mut Tx, attempt: Attempt) -> Result<AttemptStep, Error> {
    let whole = Whole::read(tx, attempt).await?;
    let way = Walker::new(&whole.flow).way(&whole.values());
    let last = match whole.attempt.state {
        State::Completed => last_of(&way),
        State::Started | State::Dismissed => whole.attempt.last_question_id.as_deref(),
    };
    Ok(unchanged(next(&way, last), whole.attempt))
}

/// What is said of an attempt that a request has not changed.
fn unchanged(next: Next, attempt: Attempt) -> AttemptStep {
    AttemptStep {
        next,
        attempt,
        survey_ended: false,
    }
}

/// Writes what has changed, and changes the counts by as much.
async fn save(
    tx: &mut Tx,
    before: &Whole,
    walker: &Walker<'_>,
    attempt: &Attempt,
    answers: &BTreeMap<String, Answer>,
) -> Result<(), Error> {
    let was = before.attempt.tally(walker, &before.values());
    let change = attempt.tally(walker, &values(answers)).since(&was);
    // First, so that nothing is written of an attempt that was deleted meanwhile.
    store::update(tx, attempt).await?;
    let changed = answers
        .iter()
        .filter(|(id, answer)| before.answers.get(*id) != Some(answer));
    store::write_answers(tx, attempt, changed).await?;
    store::count(tx, attempt, &change).await?;
    Ok(())
}

/// Ends an attempt by the person's will. Doing it again changes nothing, nor does it undo a completion. The subject
/// is locked.
pub async fn dismiss(
    tx: &mut Tx,
    app: &App,
    subject: &AliasView,
    id: Uuid,
    now: Timestamp,
) -> Result<AttemptStep, Error> {
    let mut attempt = find_or_open(tx, app, subject, id, now).await?;
    if attempt.state == State::Started {
        attempt.state = State::Dismissed;
        attempt.active_at = now;
        store::update(tx, &attempt).await?;
        follow(tx, &attempt, Status::Dismissed, now).await?;
    }
    outcome(tx, attempt).await
}
