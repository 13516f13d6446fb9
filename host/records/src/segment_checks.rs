//! Whose segments may have changed. A note is written with the change that it is about, and removed with what follows
//! from it (`nudge-pipeline`, `segments`).

use nudge_db::{Result, Rows, Tx};
use uuid::Uuid;

/// Notes that the segments of people may have changed.
pub async fn note(tx: &mut Tx, app_id: Uuid, subjects: &[Uuid]) -> Result<()> {
    for chunk in subjects.chunks(Rows::MOST) {
        tx.with_rows("v(subject_id)", Rows::new().uuids(chunk.iter().copied()))
            .push(" INSERT INTO segment_checks (subject_id, app_id) SELECT v.subject_id, ")
            .push_bind(app_id)
            .push(" FROM v WHERE true ON CONFLICT (subject_id) DO NOTHING")
            .execute()
            .await?;
    }
    Ok(())
}

/// People to look at, of all apps, from behind one on.
pub async fn noted(tx: &mut Tx, after: Uuid, limit: i64) -> Result<Vec<(Uuid, Uuid)>> {
    #[derive(nudge_db::FromRow)]
    struct NoteRow {
        app_id: Uuid,
        subject_id: Uuid,
    }
    let rows: Vec<NoteRow> = tx
        .sql("SELECT app_id, subject_id FROM segment_checks WHERE subject_id > $1 ORDER BY subject_id LIMIT $2")
        .bind(after)
        .bind(limit)
        .fetch_all()
        .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.app_id, row.subject_id))
        .collect())
}

/// Those of some people who are to be looked at.
pub async fn among(tx: &mut Tx, app_id: Uuid, subjects: &[Uuid]) -> Result<Vec<Uuid>> {
    tx.sql("SELECT subject_id FROM segment_checks WHERE app_id = $1 AND subject_id IN ")
        .bind(app_id)
        .push_list(subjects.iter().copied())
        .push(" ORDER BY subject_id")
        .fetch_values()
        .await
}

/// People were looked at.
pub async fn done(tx: &mut Tx, app_id: Uuid, subjects: &[Uuid]) -> Result<()> {
    for chunk in subjects.chunks(Rows::MOST) {
        tx.with_rows("v(subject_id)", Rows::new().uuids(chunk.iter().copied()))
            .push(" DELETE FROM segment_checks WHERE subject_id IN (SELECT v.subject_id FROM v) AND app_id = ")
            .push_bind(app_id)
            .execute()
            .await?;
    }
    Ok(())
}
