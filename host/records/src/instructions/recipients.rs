//! Who was to get a campaign, and what became of it (contracts 7 and 20): an entry an instruction, one an attempt that no
//! instruction caused, and one a push message. A button that its person has answered is no entry beside the attempts.
//! Newest first: push messages by when they were made, others by their ids, so that nobody moves while pages are turned.

pub mod http;

use nudge_campaigns::campaign::Kind;
use nudge_db::{Result, Rows, Timestamp, Tx};
use nudge_platform::{hidden, id};
use serde::Deserialize;
use strum::IntoStaticStr;
use utoipa::ToSchema;
use uuid::Uuid;

/// Instructions that one request looks through for those in a state: no index leads to a state, which depends on the
/// time and on the attempt.
pub const MOST_SCANNED: i64 = 20_000;

/// What became of a campaign with somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RecipientState {
    /// Nobody has seen it yet.
    Issued,
    /// It was shown.
    Displayed,
    /// An attempt began.
    Started,
    /// An attempt is complete.
    Completed,
    /// It was closed.
    Dismissed,
    /// A button of it was pressed.
    Clicked,
    /// It was not shown in time.
    Expired,
    /// It was held back; or, of a push message, it failed or bounced.
    Suppressed,
}

impl RecipientState {
    /// The state's name in the API.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// An entry of the list.
#[derive(Clone, Debug)]
pub struct Recipient {
    /// The instruction, or the attempt.
    pub id: Uuid,
    /// Who.
    pub subject_id: Uuid,
    /// What became of it.
    pub state: RecipientState,
    /// What held it back.
    pub suppressed_by: Option<String>,
    /// Since when.
    pub at: Timestamp,
}

/// A part of the list.
#[derive(Clone, Debug)]
pub struct RecipientPage {
    /// The entries.
    pub recipients: Vec<Recipient>,
    /// After which id the list goes on, if it does.
    pub next: Option<Uuid>,
}

#[derive(nudge_db::FromRow)]
struct InstructionRow {
    id: Uuid,
    subject_id: Uuid,
    status: String,
    status_at: Timestamp,
    expires_at: Timestamp,
    attempt_state: Option<String>,
    attempt_at: Option<Timestamp>,
    suppressed_by: Option<String>,
}

#[derive(nudge_db::FromRow)]
struct AttemptRow {
    id: Uuid,
    subject_id: Uuid,
    state: String,
    active_at: Timestamp,
}

/// What became of an instruction: as its attempt stands, if there is one; otherwise as it stands itself.
fn read(row: &InstructionRow, kind: Kind, now: Timestamp) -> Recipient {
    use RecipientState::{
        Clicked, Completed, Dismissed, Displayed, Expired, Issued, Started, Suppressed,
    };
    let attempt = row.attempt_state.as_deref().zip(row.attempt_at);
    let (state, suppressed_by, at) = match (row.status.as_str(), attempt) {
        ("completed", _) => (Completed, None, row.status_at),
        (_, Some(("completed", at))) => (Completed, None, at),
        (_, Some(("started", at))) => (Started, None, at),
        ("dismissed", _) => (Dismissed, None, row.status_at),
        (_, Some((_, at))) => (Dismissed, None, at),
        ("clicked", None) if kind == Kind::InApp => (Clicked, None, row.status_at),
        ("displayed" | "clicked", None) => (Displayed, None, row.status_at),
        ("discarded", None) => (Suppressed, Some("sdk".to_owned()), row.status_at),
        ("suppressed", None) => (Suppressed, row.suppressed_by.clone(), row.status_at),
        _ if row.expires_at <= now => (Expired, None, row.expires_at),
        _ => (Issued, None, row.status_at),
    };
    Recipient {
        id: row.id,
        subject_id: row.subject_id,
        state,
        suppressed_by,
        at,
    }
}

/// A part of a campaign's list, after an id.
pub async fn page(
    tx: &mut Tx,
    kind: Kind,
    (app_id, campaign_id): (Uuid, Uuid),
    state: Option<RecipientState>,
    after: Option<Uuid>,
    limit: usize,
    now: Timestamp,
) -> Result<RecipientPage> {
    let scanned = match state {
        Some(_) => MOST_SCANNED,
        None => i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1),
    };
    let is_asked = |recipient: &Recipient| state.is_none_or(|state| state == recipient.state);
    let full = |count: usize| i64::try_from(count).is_ok_and(|count| count >= scanned);
    if kind == Kind::Push {
        let sent = sent(tx, (app_id, campaign_id), after, scanned).await?;
        let horizon = sent.last().filter(|_| full(sent.len())).map(|row| row.id);
        let mut recipients: Vec<Recipient> = sent.into_iter().map(of_delivery).collect();
        recipients.retain(is_asked);
        return Ok(first_of(recipients, limit, horizon));
    }
    let after = after.unwrap_or(Uuid::max());
    let instructions = instructions(tx, (app_id, campaign_id), after, scanned).await?;
    // What the instructions do not have.
    let beside: Vec<Recipient> = match kind {
        Kind::Survey => {
            let attempts = alone(tx, (app_id, campaign_id), after, scanned).await?;
            attempts.iter().map(of_attempt).collect()
        }
        Kind::Push | Kind::InApp => Vec::new(),
    };
    // Where either list breaks off, what the other has beyond is another page's.
    let ends = [
        instructions
            .last()
            .filter(|_| full(instructions.len()))
            .map(|row| row.id),
        beside
            .last()
            .filter(|_| full(beside.len()))
            .map(|row| row.id),
    ];
    let horizon = ends.into_iter().flatten().max();
    let mut recipients: Vec<Recipient> = instructions
        .iter()
        .map(|row| read(row, kind, now))
        .collect();
    recipients.extend(beside);
    recipients.retain(|recipient| {
        is_asked(recipient) && horizon.is_none_or(|horizon| recipient.id >= horizon)
    });
    recipients.sort_by_key(|recipient| std::cmp::Reverse(recipient.id));
    Ok(first_of(recipients, limit, horizon))
}

/// The page of what was found up to `horizon`, where the search broke off.
fn first_of(mut recipients: Vec<Recipient>, limit: usize, horizon: Option<Uuid>) -> RecipientPage {
    let more = recipients.len() > limit;
    recipients.truncate(limit);
    let last = recipients.last().map(|recipient| recipient.id);
    RecipientPage {
        next: if more { last } else { horizon },
        recipients,
    }
}

fn of_attempt(row: &AttemptRow) -> Recipient {
    let state = match row.state.as_str() {
        "completed" => RecipientState::Completed,
        "dismissed" => RecipientState::Dismissed,
        _ => RecipientState::Started,
    };
    Recipient {
        id: row.id,
        subject_id: row.subject_id,
        state,
        suppressed_by: None,
        at: row.active_at,
    }
}

async fn instructions(
    tx: &mut Tx,
    (app_id, campaign_id): (Uuid, Uuid),
    after: Uuid,
    limit: i64,
) -> Result<Vec<InstructionRow>> {
    // SQLite would take the index of `instruction_id` for the attempts that have none, which are every survey's.
    tx.sql(
        "SELECT i.id, i.subject_id, i.status, i.status_at, i.expires_at, a.state AS attempt_state,
                a.active_at AS attempt_at, i.suppressed_by
         FROM (SELECT id, subject_id, status, status_at, expires_at, suppressed_by FROM instructions
               WHERE app_id = $1 AND campaign_id = $2 AND id < $3 AND NOT test AND subject_id NOT IN ",
    )
    .push(hidden::SUBJECTS)
    .push(
        "        AND NOT (kind = 'feedback' AND EXISTS (SELECT 1 FROM survey_attempts alone
                   WHERE alone.subject_id = instructions.subject_id AND alone.survey_id = $2
                     AND (alone.instruction_id IS NULL) IS TRUE))
               ORDER BY id DESC LIMIT $4) i
         LEFT JOIN survey_attempts a ON a.instruction_id = i.id
         ORDER BY i.id DESC",
    )
    .bind(app_id)
    .bind(campaign_id)
    .bind(after)
    .bind(limit)
    .fetch_all()
    .await
}

#[derive(nudge_db::FromRow)]
struct DeliveryRow {
    id: Uuid,
    subject_id: Uuid,
    status: String,
    reason: Option<String>,
    created_at: Timestamp,
    displayed_at: Option<Timestamp>,
    opened_at: Option<Timestamp>,
    clicked_at: Option<Timestamp>,
    dismissed_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
}

fn of_delivery(row: DeliveryRow) -> Recipient {
    use RecipientState::{Clicked, Dismissed, Displayed, Issued, Suppressed};
    let made = row.created_at;
    let (state, suppressed_by, at) = match row.status.as_str() {
        "clicked" => (Clicked, None, row.clicked_at),
        "dismissed" => (Dismissed, None, row.dismissed_at),
        "displayed" => (Displayed, None, row.displayed_at),
        "opened" => (Displayed, None, row.opened_at.or(row.displayed_at)),
        "queued" | "sent" | "delivered" => (Issued, None, None),
        _ => (Suppressed, row.reason.or(Some(row.status)), row.ended_at),
    };
    Recipient {
        id: row.id,
        subject_id: row.subject_id,
        state,
        suppressed_by,
        at: at.unwrap_or(made),
    }
}

/// Push messages but for tests, after one of them, in the order of their index: by ids alone, each page would sort all of the campaign's.
async fn sent(
    tx: &mut Tx,
    (app_id, campaign_id): (Uuid, Uuid),
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<DeliveryRow>> {
    let (at, id) = match after {
        Some(id) => (made_at(tx, app_id, id).await?, id),
        None => (Timestamp(i64::MAX), Uuid::max()),
    };
    tx.sql(
        "SELECT id, subject_id, status, reason, created_at, displayed_at, opened_at, clicked_at, dismissed_at, ended_at
         FROM deliveries WHERE (app_id = $1) IS TRUE AND campaign_id = $2 AND NOT test AND status <> 'kept' AND subject_id NOT IN ",
    )
    .bind(app_id)
    .bind(campaign_id)
    .push(hidden::SUBJECTS)
    .push(" AND (created_at, id) < ")
    .push_pair(at, id)
    .push(" ORDER BY created_at DESC, id DESC LIMIT ")
    .push_bind(limit)
    .fetch_all()
    .await
}

/// When a push message was made. Where it is gone, its id says so to the millisecond.
async fn made_at(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Timestamp> {
    let made_at: Option<Timestamp> = tx
        .sql("SELECT created_at FROM deliveries WHERE id = $1 AND (app_id = $2) IS TRUE")
        .bind(id)
        .bind(app_id)
        .fetch_value()
        .await?;
    Ok(made_at.or_else(|| id::made_at(id)).unwrap_or(Timestamp(0)))
}

async fn alone(
    tx: &mut Tx,
    (app_id, survey_id): (Uuid, Uuid),
    after: Uuid,
    limit: i64,
) -> Result<Vec<AttemptRow>> {
    tx.sql(
        "SELECT id, subject_id, state, active_at FROM survey_attempts
         WHERE app_id = $1 AND survey_id = $2 AND instruction_id IS NULL AND id < $3 AND subject_id NOT IN ",
    )
    .push(hidden::SUBJECTS)
    .push(" ORDER BY id DESC LIMIT $4")
    .bind(app_id)
    .bind(survey_id)
    .bind(after)
    .bind(limit)
    .fetch_all()
    .await
}

/// What a person is called.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub struct Names {
    /// The subject.
    pub subject_id: Uuid,
    /// The customer's own id.
    pub external_id: Option<String>,
    /// The first anonymous id, if there is one.
    pub anonymous_id: Option<String>,
}

/// What people are called.
pub async fn names(tx: &mut Tx, app_id: Uuid, subjects: &[Uuid]) -> Result<Vec<Names>> {
    let mut names = Vec::with_capacity(subjects.len());
    for chunk in subjects.chunks(Rows::MOST) {
        let rows: Vec<Names> = tx
            .with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(
                " SELECT s.id AS subject_id, s.external_id,
                         (SELECT a.value FROM aliases a WHERE a.subject_id = s.id AND a.kind = 'anonymous'
                          ORDER BY a.number LIMIT 1) AS anonymous_id
                  FROM v JOIN subjects s ON s.id = v.id AND s.app_id = ",
            )
            .push_bind(app_id)
            .fetch_all()
            .await?;
        names.extend(rows);
    }
    Ok(names)
}
