//! Completing an attempt, and with it the survey that has as many responses then as it was to get.

use nudge_apps::App;
use nudge_campaigns::store::{Hold, Stored};
use nudge_campaigns::surveys::flow::Walker;
use nudge_campaigns::{lifecycle, store as campaigns, surveys};
use nudge_db::{Dialect, Timestamp, Tx};
use nudge_platform::field_error::FieldError;
use nudge_records::instructions::Status;
use nudge_records::subjects::AliasView;
use uuid::Uuid;

use super::starting::find_or_open;
use super::{
    Attempt, AttemptStep, Error, State, Whole, follow, last_of, next, outcome, save, store, tally,
};

/// Completes an attempt. Doing it again changes nothing. The subject is locked.
pub async fn complete(
    tx: &mut Tx,
    app: &App,
    subject: &AliasView,
    id: Uuid,
    now: Timestamp,
) -> Result<AttemptStep, Error> {
    let attempt = find_or_open(tx, app, subject, id, now).await?;
    if attempt.state == State::Completed {
        return outcome(tx, attempt).await;
    }
    let whole = Whole::read(tx, attempt).await?;
    let walker = Walker::new(&whole.flow);
    let way = walker.way(&whole.values());
    if let Some(question) = tally::missing(&way) {
        let detail = format!("the question `{question}` must be answered first");
        return Err(Error::Invalid(vec![FieldError::new(
            "", "required", detail,
        )]));
    }
    let attempt = Attempt {
        state: State::Completed,
        active_at: now,
        completed_at: Some(now),
        position_question_id: None,
        ..whole.attempt.clone()
    };
    let limited = held_if_limited(tx, app.id, attempt.survey_id).await?;
    save(tx, &whole, &walker, &attempt, &whole.answers).await?;
    follow(tx, &attempt, Status::Completed, now).await?;
    let survey_ended = match limited {
        Some((survey, most)) => end_when_full(tx, survey, most, now).await?,
        None => false,
    };
    let next = next(&way, last_of(&way));
    Ok(AttemptStep {
        attempt,
        next,
        survey_ended,
    })
}

/// A survey that a number of complete attempts ends, held alone, and that number; none: it has no such number, and gets none before
/// the transaction ends.
async fn held_if_limited(
    tx: &mut Tx,
    app_id: Uuid,
    survey_id: Uuid,
) -> Result<Option<(Stored, i64)>, Error> {
    let was_limited = surveys::max_responses(tx, app_id, survey_id)
        .await?
        .is_some();
    let hold = match (was_limited, tx.dialect()) {
        // Counting takes turns, so that somebody is the last one.
        (true, _) => Hold::Alone,
        // Those that are not counted need no turns, and share what keeps a change away.
        (false, Dialect::Postgres) => Hold::Shared,
        // Nobody else writes.
        (false, Dialect::Sqlite) => return Ok(None),
    };
    let Some(survey) = campaigns::stored(tx, app_id, survey_id, hold).await? else {
        return Ok(None);
    };
    // Somebody may have changed the number before the survey was held.
    let most = surveys::max_responses_of(&survey)?;
    if most.is_some() && !was_limited {
        // Counting needs the survey alone. Two completions that share it would wait for each other, so the request is made again
        // and takes it alone.
        return Err(nudge_db::Error::lost_race().into());
    }
    Ok(most.map(|most| (survey, most)))
}

/// Ends a survey that runs once it has as many complete attempts as it was to get; answers whether it did. The
/// survey is locked.
pub async fn end_when_full(
    tx: &mut Tx,
    survey: Stored,
    most: i64,
    now: Timestamp,
) -> Result<bool, Error> {
    if !survey.is_active() || store::completed(tx, survey.app_id, survey.id).await? < most {
        return Ok(false);
    }
    if lifecycle::end(tx, survey, "maxResponses", now).await? {
        return Ok(true);
    }
    // Nobody else changes what is locked.
    Err(nudge_db::Error::lost_race().into())
}
