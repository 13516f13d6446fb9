//! What becomes of an instruction once an SDK says how far it has come.

use nudge_db::{Result, Timestamp, Tx};
use uuid::Uuid;

use super::WITHDRAWN;
use crate::instructions::{Kind, Status};

/// An acknowledgement.
#[derive(Clone, Debug)]
pub struct Acknowledgement {
    /// The instruction.
    pub id: Uuid,
    /// How far it has come.
    pub status: Status,
    /// The button that was pressed.
    pub action_id: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// What an acknowledgement has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// The subject has no such instruction.
    Unknown,
    /// It is there.
    Known,
    /// An in-app message that is no test was seen for the first time.
    Viewed,
}

/// Moves an instruction of a subject on to a status, unless it is there or further. What was pressed first stays noted.
/// Nothing becomes of an instruction before it is there, whatever the SDK's clock says. One that was withdrawn and was shown all the
/// same is as any other from then on.
pub async fn acknowledge(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    ack: &Acknowledgement,
) -> Result<Acknowledged> {
    let (id, status) = (ack.id, ack.status);
    // What becomes `displayed` was not seen before. Of what comes after it, that must be asked.
    let seen_before =
        status > Status::Displayed && was_seen(tx, app_id, subject_id, id).await? == Some(true);
    let earlier = Status::ALL
        .into_iter()
        // Nobody can say of something seen that it will not be shown.
        .filter(|other| *other < status && !(status == Status::Discarded && other.is_seen()))
        .map(Status::name);
    let statement = tx
        .sql(
            "UPDATE instructions SET status = $4,
                    status_at = CASE WHEN created_at > $5 THEN created_at ELSE $5 END",
        )
        .bind(app_id)
        .bind(subject_id)
        .bind(id)
        .bind(status.name())
        .bind(ack.at)
        .push(counting(status));
    let statement = match &ack.action_id {
        Some(action_id) => statement
            .push(", action_id = COALESCE(action_id, ")
            .push_bind(action_id.clone())
            .push(")"),
        None => statement,
    };
    let statement = statement
        .push(" WHERE app_id = $1 AND subject_id = $2 AND id = $3 AND (suppressed_by IS NULL AND status IN ")
        .push_list(earlier);
    let statement = if status.is_seen() {
        statement.push(" OR ").push(WITHDRAWN)
    } else {
        statement
    };
    let moved: Option<MovedRow> = statement
        .push(") RETURNING kind, test")
        .fetch_optional()
        .await?;
    let Some(moved) = moved else {
        if let Some(action_id) = &ack.action_id {
            note_action(tx, app_id, subject_id, id, action_id).await?;
        }
        let there = was_seen(tx, app_id, subject_id, id).await?;
        return Ok(match there {
            Some(_) => Acknowledged::Known,
            None => Acknowledged::Unknown,
        });
    };
    let counts = moved.kind == Kind::InApp.name() && !moved.test;
    Ok(if counts && status.is_seen() && !seen_before {
        Acknowledged::Viewed
    } else {
        Acknowledged::Known
    })
}

/// Notes what was pressed in an instruction that was clicked already, where nothing is noted.
async fn note_action(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    id: Uuid,
    action_id: &str,
) -> Result<()> {
    tx.sql(
        "UPDATE instructions SET action_id = $4
         WHERE app_id = $1 AND subject_id = $2 AND id = $3 AND status = $5 AND action_id IS NULL AND suppressed_by IS NULL",
    )
    .bind(app_id)
    .bind(subject_id)
    .bind(id)
    .bind(action_id.to_owned())
    .bind(Status::Clicked.name())
    .execute()
    .await?;
    Ok(())
}

#[derive(nudge_db::FromRow)]
struct MovedRow {
    kind: String,
    test: bool,
}

/// Whether a subject has seen an instruction. None: the subject has no such instruction.
async fn was_seen(tx: &mut Tx, app_id: Uuid, subject_id: Uuid, id: Uuid) -> Result<Option<bool>> {
    tx.sql(
        "SELECT displayed_at IS NOT NULL FROM instructions
         WHERE app_id = $1 AND subject_id = $2 AND id = $3 AND (suppressed_by IS NULL OR ",
    )
    .push(WITHDRAWN)
    .push(")")
    .bind(app_id)
    .bind(subject_id)
    .bind(id)
    .fetch_value()
    .await
}

/// What an acknowledgement changes of what counts towards caps (contract 4): what a person sees counts from then on,
/// by the SDK's clock but not before it was issued, also where it was withdrawn; what nobody will see no longer counts, and a test
/// never does.
fn counting(status: Status) -> &'static str {
    match status {
        Status::Issued | Status::Received => "",
        Status::Displayed | Status::Dismissed | Status::Completed => {
            ", suppressed_by = NULL,
               counted_at = CASE WHEN test OR displayed_at IS NOT NULL THEN counted_at
                                 WHEN available_at > $5 THEN available_at ELSE $5 END,
               displayed_at = CASE WHEN displayed_at IS NOT NULL THEN displayed_at
                                   WHEN available_at > $5 THEN available_at ELSE $5 END"
        }
        Status::Clicked => {
            ", suppressed_by = NULL,
               counted_at = CASE WHEN test OR displayed_at IS NOT NULL THEN counted_at
                                 WHEN available_at > $5 THEN available_at ELSE $5 END,
               displayed_at = CASE WHEN displayed_at IS NOT NULL THEN displayed_at
                                   WHEN available_at > $5 THEN available_at ELSE $5 END,
               clicked_at = CASE WHEN clicked_at IS NOT NULL THEN clicked_at
                                 WHEN available_at > $5 THEN available_at ELSE $5 END"
        }
        Status::Discarded => {
            ", counted_at = CASE WHEN displayed_at IS NOT NULL THEN counted_at ELSE NULL END"
        }
    }
}
