//! How attempts begin.

use nudge_apps::App;
use nudge_campaigns::store::Hold;
use nudge_campaigns::surveys::Content;
use nudge_campaigns::surveys::flow::{Answers, Walker};
use nudge_campaigns::{campaign, store as campaigns};
use nudge_db::{Timestamp, Tx};
use nudge_records::instructions;
use nudge_records::instructions::Status;
use nudge_records::instructions::counterpart::attempt_id_of;
use nudge_records::instructions::store::Offered;
use nudge_records::subjects::AliasView;
use uuid::Uuid;

use super::{Attempt, AttemptStep, Error, Start, State, follow, next, opening, outcome, store};

/// Starts an attempt, or finds what the same request started before. The subject is locked.
pub async fn start(
    tx: &mut Tx,
    app: &App,
    subject: &AliasView,
    request: Start,
    now: Timestamp,
) -> Result<AttemptStep, Error> {
    if !subject.may_message(app) || subject.suppressed {
        return Err(Error::ConsentRequired);
    }
    let survey = campaigns::hold::<Content>(tx, app.id, request.survey_id, Hold::Shared).await?;
    let survey = survey.ok_or(Error::NotFound)?;
    let followed = match request.instruction_id {
        Some(id) => instructions::store::find(tx, app.id, subject.subject_id, id).await?,
        None => None,
    };
    // A button opens the survey as often as it is pressed: no attempt is its only one.
    let button = followed.as_ref().filter(|followed| followed.is_button());
    let request = Start {
        instruction_id: request.instruction_id.filter(|_| button.is_none()),
        ..request
    };
    if let Some(known) = find_started(tx, app.id, subject.subject_id, request).await? {
        return outcome(tx, known).await;
    }
    // Of what an instruction offers, the schedule was asked when it fired.
    let is_open = request.instruction_id.is_some() || survey.content.is_open_at(now);
    if survey.content.status != campaign::Status::Active || !is_open {
        return Err(Error::NotActive);
    }
    let mut version = survey.version;
    let mut content = survey.content;
    if let Some(button) = button
        && button.campaign_id != survey.id
    {
        return Err(Error::NotFound);
    }
    if request.instruction_id.is_some() {
        let offered = offered(followed, now)?;
        if offered.campaign_id != survey.id {
            return Err(Error::NotFound);
        }
        // The person sees the version that was issued.
        version = offered.campaign_version;
        content = campaigns::version::<Content>(tx, app.id, survey.id, version)
            .await?
            .ok_or(Error::NotFound)?;
    } else {
        // A button shows a version, too.
        let seen = request
            .survey_version
            .or(button.map(|button| button.campaign_version));
        let (key, current) = ((app.id, survey.id), (version, content));
        (version, content) = opening::without_instruction(tx, key, current, seen).await?;
    }
    let id = request
        .instruction_id
        .map_or_else(|| nudge_platform::id::new(now), attempt_id_of);
    let attempt = new(app.id, subject.subject_id, (id, request), version, now);
    open(tx, attempt, content).await
}

async fn find_started(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    request: Start,
) -> Result<Option<Attempt>, Error> {
    if let Some(id) = request.client_attempt_id {
        let known = store::find_by_client(tx, app_id, subject_id, request.survey_id, id).await?;
        if known.is_some() {
            return Ok(known);
        }
    }
    let Some(id) = request.instruction_id.map(attempt_id_of) else {
        return Ok(None);
    };
    let known = store::find(tx, app_id, id).await?;
    Ok(
        known
            .filter(|known| known.subject_id == subject_id && known.survey_id == request.survey_id),
    )
}

/// The instruction of a subject that an attempt may follow: it was shown, or is still on offer, or was withdrawn while an SDK had it.
fn offered(found: Option<Offered>, now: Timestamp) -> Result<Offered, Error> {
    let found = found.filter(Offered::is_survey).ok_or(Error::NotFound)?;
    match Status::parse(&found.status) {
        Some(Status::Issued | Status::Received) if found.expires_at > now => Ok(found),
        Some(Status::Displayed | Status::Clicked | Status::Dismissed | Status::Completed) => {
            Ok(found)
        }
        None if found.withdrawn && found.expires_at > now => Ok(found),
        _ => Err(Error::NotFound),
    }
}

fn new(
    app_id: Uuid,
    subject_id: Uuid,
    (id, request): (Uuid, Start),
    version: i64,
    now: Timestamp,
) -> Attempt {
    Attempt {
        id,
        app_id,
        survey_id: request.survey_id,
        survey_version: version,
        subject_id,
        instruction_id: request.instruction_id,
        client_attempt_id: request.client_attempt_id,
        state: State::Started,
        started_at: now,
        active_at: now,
        completed_at: None,
        last_question_id: None,
        position_question_id: None,
    }
}

/// Adds an attempt, counts it, and notes that its instruction was shown.
async fn open(tx: &mut Tx, mut attempt: Attempt, content: Content) -> Result<AttemptStep, Error> {
    let flow = content.flow.ok_or(Error::NotActive)?;
    let walker = Walker::new(&flow);
    let way = walker.way(&Answers::new());
    let next = next(&way, None);
    attempt.position_question_id = way.position(None).map(|question| question.id.clone());
    store::insert(tx, &attempt).await?;
    let counts = attempt.tally(&walker, &Answers::new());
    store::count(tx, &attempt, &counts).await?;
    follow(tx, &attempt, Status::Displayed, attempt.started_at).await?;
    Ok(AttemptStep {
        attempt,
        next,
        survey_ended: false,
    })
}

/// An attempt of a subject. One that an instruction came with is made by the first request about it.
pub(super) async fn find_or_open(
    tx: &mut Tx,
    app: &App,
    subject: &AliasView,
    id: Uuid,
    now: Timestamp,
) -> Result<Attempt, Error> {
    if let Some(known) = store::find(tx, app.id, id).await? {
        return if known.subject_id == subject.subject_id {
            Ok(known)
        } else {
            Err(Error::NotFound)
        };
    }
    let instruction_id = attempt_id_of(id);
    let found = instructions::store::find(tx, app.id, subject.subject_id, instruction_id).await?;
    let offered = offered(found, now)?;
    let (survey_id, version) = (offered.campaign_id, offered.campaign_version);
    let content = campaigns::version::<Content>(tx, app.id, survey_id, version).await?;
    if !content.is_some_and(|content| content.is_coordinated()) {
        return Err(Error::NotFound);
    }
    let request = Start {
        survey_id,
        instruction_id: Some(instruction_id),
        client_attempt_id: None,
        survey_version: None,
    };
    Ok(start(tx, app, subject, request, now).await?.attempt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruction_and_attempt_name_each_other() {
        let instruction = nudge_platform::id::new(Timestamp::from_seconds(1_800_000_000));
        let attempt = attempt_id_of(instruction);
        assert_ne!(attempt, instruction);
        assert_eq!(attempt_id_of(attempt), instruction);
        assert_eq!(attempt.get_version_num(), 7);
        assert_eq!(attempt.get_variant(), uuid::Variant::RFC4122);
        assert_eq!(
            nudge_platform::id::made_at(attempt),
            nudge_platform::id::made_at(instruction)
        );
    }
}
