//! How many people would meet conditions, before anybody saves them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_db::{Dialect, Result, Tx};
use nudge_http::{ApiError, Code};
use nudge_platform::hidden;
use nudge_platform::turns::{Turn, Turns};
use nudge_plugin_runtime::Accepted;
use uuid::Uuid;

use super::decide::{Means, SegmentConditions, decide};
use crate::services::Services;

/// Of more people only so many, chosen by chance, are asked about. Up to here a count is exact, as totals are (contract 0).
const MOST: i64 = 10_000;
/// People who are asked about at a time.
const PAGE: usize = 500;
/// After so long the rest of a sample is not asked about: what is known by then is the estimate.
const TIME: Duration = Duration::from_millis(600);
/// People of a sample who are asked about however long that takes.
const LEAST: usize = 500;
/// Members who are shown.
const SHOWN: usize = 20;
/// Previews that are made at a time: each of few people asks about all of them, which takes what events are decided with.
const AT_ONCE: usize = 2;
/// How many of them are one app's.
const OF_ONE_APP: usize = 1;
/// How long a preview waits for its turn.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who would be in a segment.
#[derive(Debug)]
pub struct Preview {
    /// How many people.
    pub count: i64,
    /// Of how many.
    pub total: i64,
    /// Whether only some of them were asked about.
    pub is_estimate: bool,
    /// Some who would be in it.
    pub sample: Vec<Uuid>,
}

/// Turns at previews.
pub fn turns() -> Turns {
    Turns::new(AT_ONCE, OF_ONE_APP)
}

/// Finds out who would be in a segment, in the app's turn.
pub async fn preview(
    services: &Services,
    app_id: Uuid,
    accepted: &Accepted,
) -> std::result::Result<Preview, ApiError> {
    let turn = services.previews.take(app_id, PATIENCE).await;
    let turn = turn.ok_or_else(|| {
        let detail = "other previews of segments are being made; try again after Retry-After";
        ApiError::because(Code::Unavailable, detail)
    })?;
    Ok(find(services, app_id, accepted, &Arc::new(turn)).await?)
}

async fn find(
    services: &Services,
    app_id: Uuid,
    accepted: &Accepted,
    turn: &Arc<Turn>,
) -> Result<Preview> {
    let started = Instant::now();
    let mut tx = services.db.read().await?;
    let total = count(&mut tx, app_id).await?;
    let mut ids = sample(&mut tx, app_id, total).await?;
    drop(tx);
    // The end of an id is chance: so whoever is left out because time is up is left out by chance.
    ids.sort_unstable_by_key(|id| id.as_u128().reverse_bits());
    let conditions = [SegmentConditions {
        id: Uuid::nil(),
        accepted: accepted.clone(),
    }];
    let means = Means {
        turn: Some(turn),
        ..Means::of(services)
    };
    let is_sample = total > MOST;
    let (mut asked, mut members) = (0_i64, Vec::new());
    for page in ids.chunks(PAGE) {
        let is_enough = is_sample && usize::try_from(asked).is_ok_and(|asked| asked >= LEAST);
        if is_enough && started.elapsed() > TIME {
            break;
        }
        let mut tx = services.db.read().await?;
        let people = crate::store::subjects_of(&mut tx, app_id, page).await?;
        drop(tx);
        let answers = decide(means, app_id, &conditions, &people).await?;
        asked += i64::try_from(people.len()).unwrap_or_default();
        let answered = people.iter().zip(answers);
        members.extend(answered.filter_map(|(person, answers)| {
            (answers.first() == Some(&Some(true))).then_some(person.id)
        }));
    }
    let found = i64::try_from(members.len()).unwrap_or_default();
    members.sort_unstable_by(|one, other| other.cmp(one));
    members.truncate(SHOWN);
    // Of few people everybody was asked about who is there still.
    let total = if is_sample { total } else { asked };
    let is_estimate = asked < total;
    Ok(Preview {
        count: if is_estimate {
            scaled(found, total, asked)
        } else {
            found
        },
        total,
        is_estimate,
        sample: members,
    })
}

/// What a share of a sample is of all.
fn scaled(found: i64, total: i64, asked: i64) -> i64 {
    let exact = i128::from(found) * i128::from(total) / i128::from(asked.max(1));
    i64::try_from(exact).unwrap_or(i64::MAX)
}

async fn count(tx: &mut Tx, app_id: Uuid) -> Result<i64> {
    tx.sql("SELECT count(*) AS count FROM subjects WHERE app_id = $1 AND id NOT IN ")
        .push(hidden::SUBJECTS)
        .bind(app_id)
        .fetch_scalar()
        .await
}

/// Everybody, or about as many as are asked about: those whose ids, which end in chance, end in one of some ways.
async fn sample(tx: &mut Tx, app_id: Uuid, total: i64) -> Result<Vec<Uuid>> {
    let dialect = tx.dialect();
    let everybody = tx
        .sql("SELECT id FROM subjects WHERE app_id = $1 AND id NOT IN ")
        .push(hidden::SUBJECTS);
    if total <= MOST {
        return everybody.bind(app_id).fetch_values().await;
    }
    let endings = u32::try_from(i64::from(u32::MAX) / total.max(1) * MOST).unwrap_or(u32::MAX);
    let end = match dialect {
        Dialect::Sqlite => " AND substr(id, 13, 4) < $2",
        Dialect::Postgres => " AND substr(uuid_send(id), 13, 4) < $2",
    };
    everybody
        .push(end)
        .bind(app_id)
        .bind(endings.to_be_bytes().to_vec())
        .fetch_values()
        .await
}
