//! Instructions in the database.

mod acknowledgement;

use std::collections::HashMap;

use nudge_db::{Error, Result, Rows, Statement, Timestamp, Tx};
use nudge_platform::polls::State;
use uuid::Uuid;

pub use acknowledgement::{Acknowledged, Acknowledgement, acknowledge};

use super::{Instruction, Kind, Suppressed};
use crate::instructions::range::Range;

#[derive(nudge_db::FromRow)]
struct Row {
    id: Uuid,
    app_id: Uuid,
    subject_id: Uuid,
    kind: String,
    content: Option<String>,
    variant_id: Option<Uuid>,
    position: i64,
    campaign_id: Uuid,
    campaign_version: i64,
    priority: i64,
    trigger_event_id: Option<Uuid>,
    trigger_name: Option<String>,
    created_at: Timestamp,
    available_at: Timestamp,
    expires_at: Timestamp,
    plugin_name: String,
    plugin_version: String,
}

/// The columns of a [`Row`], of an instruction `i`.
const INSTRUCTION_COLUMNS: &str = "i.id, i.app_id, i.subject_id, i.position, i.campaign_id, i.campaign_version, i.priority,
     i.trigger_event_id, i.trigger_name, i.created_at, i.available_at, i.expires_at, i.plugin_name, i.plugin_version, i.kind,
     i.content, i.variant_id";

impl Row {
    fn read(self) -> Result<Instruction> {
        let kind = Kind::parse(&self.kind)
            .ok_or_else(|| Error::corrupt("instructions", "kind", &self.kind))?;
        Ok(Instruction {
            kind,
            content: self.content.map(Into::into),
            variant_id: self.variant_id,
            id: self.id,
            app_id: self.app_id,
            subject_id: self.subject_id,
            position: self.position,
            campaign_id: self.campaign_id,
            campaign_version: self.campaign_version,
            priority: i32::try_from(self.priority).unwrap_or_default(),
            trigger_event_id: self.trigger_event_id,
            trigger_name: self.trigger_name,
            created_at: self.created_at,
            available_at: self.available_at,
            expires_at: self.expires_at,
            plugin: (self.plugin_name, self.plugin_version),
        })
    }
}

/// Adds instructions, but for those that are there already: a firing is issued once.
pub async fn insert(tx: &mut Tx, instructions: &[Instruction]) -> Result<()> {
    for chunk in instructions.chunks(Rows::MOST) {
        let instructions: Vec<&Instruction> = chunk.iter().collect();
        let kinds = chunk.iter().map(|it| it.kind.name().to_owned());
        let contents = chunk
            .iter()
            .map(|it| it.content.as_deref().map(str::to_owned));
        let variants = chunk.iter().map(|it| it.variant_id);
        let rows = rows(&instructions)
            .texts(kinds)
            .texts(contents)
            .uuids(variants);
        tx.change_rows(COLUMNS, rows)
            .push(
                " INSERT INTO instructions (id, app_id, subject_id, position, kind, campaign_id, campaign_version, priority,
                                            trigger_event_id, trigger_name, created_at, available_at, expires_at,
                                            status, status_at, counted_at, plugin_name, plugin_version, content,
                                            variant_id)
                  SELECT v.id, v.app_id, v.subject_id, v.position, v.kind, v.campaign_id, v.campaign_version, v.priority,
                         v.trigger_event_id, v.trigger_name, v.created_at, v.created_at, v.expires_at,
                         'issued', v.created_at, v.created_at, v.plugin_name, v.plugin_version, v.content,
                         v.variant_id
                  FROM v WHERE true ON CONFLICT (id) DO NOTHING",
            )
            .change(None)
            .await?;
    }
    Ok(())
}

/// Adds a test, which is on offer whatever its campaign does, and counts for nothing.
pub async fn insert_test(tx: &mut Tx, test: &Instruction) -> Result<()> {
    tx.sql(
        "INSERT INTO instructions (id, app_id, subject_id, position, kind, campaign_id, campaign_version, priority, created_at,
                                   available_at, expires_at, status, status_at, plugin_name, plugin_version, content,
                                   variant_id, test)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, 'issued', $9, $11, $12, $13, $14, $15)",
    )
    .bind(test.id)
    .bind(test.app_id)
    .bind(test.subject_id)
    .bind(test.position)
    .bind(test.kind.name())
    .bind(test.campaign_id)
    .bind(test.campaign_version)
    .bind(i64::from(test.priority))
    .bind(test.created_at)
    .bind(test.expires_at)
    .bind(test.plugin.0.clone())
    .bind(test.plugin.1.clone())
    .bind(test.content.as_deref().map(str::to_owned))
    .bind(test.variant_id)
    .bind(true)
    .execute()
    .await?;
    Ok(())
}

/// Notes firings that the host let have no effect, but for those that are noted already. Nobody is offered them.
pub async fn insert_suppressed(tx: &mut Tx, suppressed: &[Suppressed]) -> Result<()> {
    for chunk in suppressed.chunks(Rows::MOST) {
        let instructions = chunk.iter().map(|suppressed| &suppressed.instruction);
        let instructions: Vec<&Instruction> = instructions.collect();
        let kinds = chunk
            .iter()
            .map(|suppressed| suppressed.kind.name().to_owned());
        let reasons = chunk
            .iter()
            .map(|suppressed| suppressed.reason.name().to_owned());
        tx.with_rows(
            "v(id, app_id, subject_id, position, campaign_id, campaign_version, priority, trigger_event_id,
               trigger_name, created_at, expires_at, plugin_name, plugin_version, kind, reason)",
            rows(&instructions).texts(kinds).texts(reasons),
        )
        .push(
            " INSERT INTO instructions (id, app_id, subject_id, position, kind, campaign_id, campaign_version, priority,
                                        trigger_event_id, trigger_name, created_at, available_at, expires_at,
                                        status, status_at, suppressed_by, plugin_name, plugin_version)
              SELECT v.id, v.app_id, v.subject_id, v.position, v.kind, v.campaign_id, v.campaign_version, v.priority,
                     v.trigger_event_id, v.trigger_name, v.created_at, v.created_at, v.created_at,
                     'suppressed', v.created_at, v.reason, v.plugin_name, v.plugin_version
              FROM v WHERE true ON CONFLICT (id) DO NOTHING",
        )
        .execute()
        .await?;
    }
    Ok(())
}

/// The columns of [`rows`].
const COLUMNS: &str =
    "v(id, app_id, subject_id, position, campaign_id, campaign_version, priority, trigger_event_id,
       trigger_name, created_at, expires_at, plugin_name, plugin_version, kind, content, variant_id)";

fn rows(chunk: &[&Instruction]) -> Rows {
    Rows::new()
        .uuids(chunk.iter().map(|instruction| instruction.id))
        .uuids(chunk.iter().map(|instruction| instruction.app_id))
        .uuids(chunk.iter().map(|instruction| instruction.subject_id))
        .integers(chunk.iter().map(|instruction| instruction.position))
        .uuids(chunk.iter().map(|instruction| instruction.campaign_id))
        .integers(chunk.iter().map(|instruction| instruction.campaign_version))
        .integers(
            chunk
                .iter()
                .map(|instruction| i64::from(instruction.priority)),
        )
        .uuids(chunk.iter().map(|instruction| instruction.trigger_event_id))
        .texts(
            chunk
                .iter()
                .map(|instruction| instruction.trigger_name.clone()),
        )
        .timestamps(chunk.iter().map(|instruction| instruction.created_at))
        .timestamps(chunk.iter().map(|instruction| instruction.expires_at))
        .texts(chunk.iter().map(|instruction| instruction.plugin.0.clone()))
        .texts(chunk.iter().map(|instruction| instruction.plugin.1.clone()))
}

/// A subject's instructions on offer in a range, by descending priority: those of campaigns that run and tests, available, not
/// expired and, but for buttons, not acknowledged past `received`.
pub async fn on_offer(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    range: Range,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<Instruction>> {
    let (priority, position) = range.below.unwrap_or((i64::MAX, i64::MIN));
    let statement = tx
        .sql("SELECT ")
        .push(INSTRUCTION_COLUMNS)
        .push(ON_OFFER)
        .bind(app_id)
        .bind(subject_id)
        .bind(range.after)
        .bind(now)
        .push(
            " AND i.position <= $5 AND (i.priority < $6 OR (i.priority = $6 AND i.position > $7))",
        )
        .bind(range.until)
        .bind(priority)
        .bind(position);
    let rows: Vec<Row> = activated(statement, range.since)
        .push(" ORDER BY i.priority DESC, i.position LIMIT ")
        .push_bind(limit)
        .fetch_all()
        .await?;
    rows.into_iter().map(Row::read).collect()
}

/// Instructions `i` of subject `$2` on offer at `$4`. A button stays, whatever was acknowledged.
const ON_OFFER: &str =
    " FROM instructions i JOIN campaigns c ON c.id = i.campaign_id AND (c.status = 'active' OR i.test)
      WHERE i.app_id = $1 AND i.subject_id = $2 AND i.available_at <= $4 AND i.expires_at > $4
        AND (i.status IN ('issued', 'received') OR i.kind = 'feedback')";

/// Only positions after `$3`; with an instant, also those of surveys that were activated after it.
fn activated(statement: Statement<'_>, since: Option<Timestamp>) -> Statement<'_> {
    match since {
        None => statement.push(" AND i.position > $3"),
        Some(since) => statement
            .push(" AND (i.position > $3 OR c.activated_at > ")
            .push_bind(since)
            .push(")"),
    }
}

/// The newest position of what a subject is offered, after one. With an instant, also before it, of a campaign that was
/// activated after the instant.
pub async fn newest_on_offer(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    after: i64,
    since: Option<Timestamp>,
    now: Timestamp,
) -> Result<Option<i64>> {
    let statement = tx
        .sql("SELECT i.position")
        .push(ON_OFFER)
        .bind(app_id)
        .bind(subject_id)
        .bind(after)
        .bind(now);
    activated(statement, since)
        .push(" ORDER BY i.position DESC LIMIT 1")
        .fetch_value()
        .await
}

/// An instruction that is not available yet.
#[derive(Clone, Copy, Debug, nudge_db::FromRow)]
pub struct HeldInstruction {
    /// Its position.
    pub position: i64,
    /// When it becomes available.
    pub available_at: Timestamp,
}

/// The first of a subject's instructions after a position that is not available yet. Positions are given when
/// something becomes available, so that there is one only where the clocks of two processes differ.
pub async fn first_held(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    after: i64,
    now: Timestamp,
) -> Result<Option<HeldInstruction>> {
    tx.sql(
        "SELECT position, available_at FROM instructions
         WHERE app_id = $1 AND subject_id = $2 AND position > $3 AND available_at > $4 AND expires_at > $4
           AND status IN ('issued', 'received')
         ORDER BY position LIMIT 1",
    )
    .bind(app_id)
    .bind(subject_id)
    .bind(after)
    .bind(now)
    .fetch_optional()
    .await
}

/// What of a subject its polls depend on, and the subject's version.
pub async fn state(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<Option<(State, i64)>> {
    #[derive(nudge_db::FromRow)]
    struct VersionedState {
        version: i64,
        #[sqlx(flatten)]
        state: State,
    }
    let row: Option<VersionedState> = tx
        .sql(
            "SELECT s.version, s.instruction_count AS instructions, s.suppressed, s.messaging_consent,
                    CAST((SELECT sum(a.token_epoch) FROM aliases a WHERE a.subject_id = s.id) AS BIGINT) AS tokens
             FROM subjects s WHERE s.app_id = $1 AND s.id = $2",
        )
        .bind(app_id)
        .bind(subject_id)
        .fetch_optional()
        .await?;
    Ok(row.map(|row| (row.state, row.version)))
}

/// The versions of some subjects, of whichever apps.
pub(super) async fn versions(tx: &mut Tx, subjects: &[Uuid]) -> Result<HashMap<Uuid, i64>> {
    #[derive(nudge_db::FromRow)]
    struct VersionRow {
        id: Uuid,
        version: i64,
    }
    let mut found = HashMap::with_capacity(subjects.len());
    for chunk in subjects.chunks(Rows::MOST) {
        let rows: Vec<VersionRow> = tx
            .with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(" SELECT s.id, s.version FROM v JOIN subjects s ON s.id = v.id")
            .fetch_all()
            .await?;
        found.extend(rows.into_iter().map(|row| (row.id, row.version)));
    }
    Ok(found)
}

/// What of each of some subjects, of whichever apps, its polls depend on.
pub(super) async fn states(tx: &mut Tx, subjects: &[Uuid]) -> Result<HashMap<Uuid, State>> {
    #[derive(nudge_db::FromRow)]
    struct StateRow {
        id: Uuid,
        #[sqlx(flatten)]
        state: State,
    }
    let mut found = HashMap::with_capacity(subjects.len());
    for chunk in subjects.chunks(Rows::MOST) {
        let rows: Vec<StateRow> = tx
            .with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(
                " SELECT s.id, s.instruction_count AS instructions, s.suppressed, s.messaging_consent,
                         CAST((SELECT sum(a.token_epoch) FROM aliases a WHERE a.subject_id = s.id) AS BIGINT) AS tokens
                  FROM v JOIN subjects s ON s.id = v.id",
            )
            .fetch_all()
            .await?;
        found.extend(rows.into_iter().map(|row| (row.id, row.state)));
    }
    Ok(found)
}

/// A subject's instructions on offer that certain events fired.
pub async fn of_events(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    event_ids: &[Uuid],
    now: Timestamp,
) -> Result<Vec<Instruction>> {
    let rows: Vec<Row> = tx
        .sql("SELECT ")
        .push(INSTRUCTION_COLUMNS)
        .push(
            " FROM instructions i JOIN campaigns c ON c.id = i.campaign_id AND c.status = 'active'
              WHERE i.app_id = $1 AND i.subject_id = $2 AND i.available_at <= $3 AND i.expires_at > $3
                AND i.status IN ('issued', 'received') AND i.trigger_event_id IN ",
        )
        .bind(app_id)
        .bind(subject_id)
        .bind(now)
        .push_list(event_ids.iter().copied())
        .push(" ORDER BY i.position")
        .fetch_all()
        .await?;
    rows.into_iter().map(Row::read).collect()
}

/// Instructions that were on offer and were withdrawn, as happens when two people become one: an SDK that has one shows it all the same.
/// Firings that were suppressed at once are none of them: they expire as they are made, and no SDK has heard of them.
const WITHDRAWN: &str = "suppressed_by IS NOT NULL AND expires_at > created_at";

/// An instruction of a subject, as far as an attempt that follows it needs it.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub struct Offered {
    /// The campaign.
    pub campaign_id: Uuid,
    /// The campaign's version that fired.
    pub campaign_version: i64,
    /// What it shows.
    pub kind: String,
    /// How far it has come.
    pub status: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it is on offer.
    pub expires_at: Timestamp,
    /// Whether it was on offer and was withdrawn.
    pub withdrawn: bool,
}

impl Offered {
    /// Whether it is a survey.
    pub fn is_survey(&self) -> bool {
        self.kind == Kind::Survey.name()
    }

    /// Whether it is a button that opens a survey.
    pub fn is_button(&self) -> bool {
        self.kind == Kind::Feedback.name()
    }
}

/// Finds an instruction of a subject.
pub async fn find(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    id: Uuid,
) -> Result<Option<Offered>> {
    tx.sql("SELECT campaign_id, campaign_version, kind, status, created_at, expires_at, ")
        .push(WITHDRAWN)
        .push(
            " AS withdrawn FROM instructions
         WHERE app_id = $1 AND subject_id = $2 AND id = $3",
        )
        .bind(app_id)
        .bind(subject_id)
        .bind(id)
        .fetch_optional()
        .await
}
