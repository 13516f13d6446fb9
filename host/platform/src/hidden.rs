//! People whose deletion is queued are shown to nobody: what is still stored of them is left out of all that reads.
//!
//! Each text is a set for `IN` and `NOT IN`, in a statement whose `$1` is the app. There are few such people and an index
//! of them, so that the set costs next to nothing, whatever the statement reads.

use std::collections::{BTreeSet, HashSet};

use nudge_db::{Result, Rows, Tx};
use uuid::Uuid;

/// Their subjects.
pub const SUBJECTS: &str =
    "(SELECT hidden.id FROM subjects hidden WHERE hidden.app_id = $1 AND hidden.suppressed)";

/// The aliases that they have.
pub const ALIASES: &str = "(SELECT known.number FROM subjects hidden CROSS JOIN aliases known
    WHERE known.subject_id = hidden.id AND hidden.app_id = $1 AND hidden.suppressed)";

/// Their attempts at surveys.
pub const ATTEMPTS: &str = "(SELECT begun.id FROM subjects hidden CROSS JOIN survey_attempts begun
    WHERE begun.subject_id = hidden.id AND hidden.app_id = $1 AND hidden.suppressed)";

/// Decisions that hold data of theirs, also of when they had another subject.
pub const DECISIONS: &str = "(SELECT about.decision_id FROM subjects hidden CROSS JOIN decision_subjects about
    WHERE about.app_id = $1 AND about.subject_id = hidden.id AND hidden.app_id = $1 AND hidden.suppressed
    UNION ALL
    SELECT about.decision_id FROM subjects hidden CROSS JOIN merged_subjects former CROSS JOIN decision_subjects about
    WHERE about.app_id = $1 AND about.subject_id = former.id AND former.subject_id = hidden.id
      AND hidden.app_id = $1 AND hidden.suppressed)";

/// Plugin calls about them, in whichever app: plugins of the server serve all.
pub const CALLS: &str = "(SELECT about.call_id FROM subjects hidden CROSS JOIN plugin_log_subjects about
    WHERE about.app_id = hidden.app_id AND about.subject_id = hidden.id AND hidden.suppressed
    UNION ALL
    SELECT about.call_id FROM subjects hidden CROSS JOIN merged_subjects former CROSS JOIN plugin_log_subjects about
    WHERE about.app_id = hidden.app_id AND about.subject_id = former.id AND former.subject_id = hidden.id
      AND hidden.suppressed)";

/// They, in whichever app, under the subjects that they have and had.
pub const ANYWHERE: &str = "(SELECT hidden.id FROM subjects hidden WHERE hidden.suppressed
    UNION ALL
    SELECT former.id FROM subjects hidden CROSS JOIN merged_subjects former
    WHERE former.subject_id = hidden.id AND hidden.suppressed)";

/// Messages to webhooks about them.
pub const MESSAGES: &str = "(SELECT told.id FROM subjects hidden CROSS JOIN webhook_messages told
    WHERE told.subject_id = hidden.id AND hidden.app_id = $1 AND hidden.suppressed)";

/// Whether somebody is among them.
pub async fn is_hidden(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<bool> {
    let row: Option<Uuid> = tx
        .sql("SELECT id FROM subjects WHERE app_id = $1 AND id = $2 AND suppressed")
        .bind(app_id)
        .bind(subject_id)
        .fetch_value()
        .await?;
    Ok(row.is_some_and(|row| row == subject_id))
}

/// Those of some people, each with the app, who are there and are not among them, also under subjects that they had before.
pub async fn present(
    tx: &mut Tx,
    people: &BTreeSet<(Uuid, Uuid)>,
) -> Result<HashSet<(Uuid, Uuid)>> {
    let people: Vec<(Uuid, Uuid)> = people.iter().copied().collect();
    let mut present = HashSet::with_capacity(people.len());
    for chunk in people.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|(app_id, _)| *app_id))
            .uuids(chunk.iter().map(|(_, id)| *id));
        let found: Vec<(Uuid, Uuid)> = tx
            .with_rows("v(app_id, id)", rows)
            .push(
                " SELECT v.app_id, v.id FROM v WHERE
                    (SELECT s.id FROM subjects s WHERE s.app_id = v.app_id AND s.id = v.id AND NOT s.suppressed) IS NOT NULL OR
                    (SELECT s.id FROM merged_subjects m JOIN subjects s ON s.app_id = m.app_id AND s.id = m.subject_id
                     WHERE m.app_id = v.app_id AND m.id = v.id AND NOT s.suppressed) IS NOT NULL",
            )
            .fetch_all()
            .await?;
        present.extend(found);
    }
    Ok(present)
}
