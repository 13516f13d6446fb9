//! How many deliveries came into each state, by the hour.

use std::collections::{BTreeMap, HashMap};

use nudge_db::{Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use crate::deliveries::Stats;

/// Microseconds of an hour.
const HOUR: i64 = 3_600_000_000;

#[derive(nudge_db::FromRow)]
struct CountRow {
    campaign_id: Uuid,
    state: String,
    count: i64,
}

/// A number of deliveries that came into a state within an hour.
#[derive(Clone, Debug, PartialEq, Eq, nudge_db::FromRow)]
pub struct HourCount {
    /// When the hour begins.
    pub hour: Timestamp,
    /// The state.
    pub state: String,
    /// How many.
    pub count: i64,
}

/// Adds to the numbers of deliveries that came into states this hour, in one order for all processes.
pub(crate) async fn count(
    tx: &mut Tx,
    app_id: Uuid,
    counts: &BTreeMap<(Uuid, &'static str), i64>,
    now: Timestamp,
) -> Result<()> {
    if counts.is_empty() {
        return Ok(());
    }
    let hour = Timestamp(now.0 - now.0.rem_euclid(HOUR));
    let counts: Vec<((Uuid, &str), i64)> =
        counts.iter().map(|(key, count)| (*key, *count)).collect();
    for chunk in counts.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|((campaign_id, _), _)| *campaign_id))
            .texts(chunk.iter().map(|((_, state), _)| (*state).to_owned()))
            .integers(chunk.iter().map(|(_, count)| *count));
        tx.change_rows("v(campaign_id, state, count)", rows)
            .push(" INSERT INTO delivery_counts (app_id, campaign_id, hour, state, count) SELECT ")
            .push_bind(app_id)
            .push(", v.campaign_id, ")
            .push_bind(hour)
            .push(
                ", v.state, v.count FROM v WHERE true ORDER BY v.campaign_id, v.state
                  ON CONFLICT (app_id, campaign_id, hour, state)
                  DO UPDATE SET count = delivery_counts.count + excluded.count",
            )
            .change(None)
            .await?;
    }
    Ok(())
}

/// How many deliveries of campaigns came into each state: of one, or of all that an app has.
pub async fn stats(
    tx: &mut Tx,
    app_id: Uuid,
    campaign_id: Option<Uuid>,
) -> Result<HashMap<Uuid, Stats>> {
    // A sum of integers is a wider type on PostgreSQL.
    let mut statement = tx
        .sql("SELECT campaign_id, state, CAST(sum(count) AS BIGINT) AS count FROM delivery_counts WHERE app_id = $1")
        .bind(app_id);
    if let Some(campaign_id) = campaign_id {
        statement = statement.push(" AND campaign_id = ").push_bind(campaign_id);
    }
    let rows: Vec<CountRow> = statement
        .push(" GROUP BY campaign_id, state")
        .fetch_all()
        .await?;
    let mut stats: HashMap<Uuid, Stats> = HashMap::new();
    for row in rows {
        stats
            .entry(row.campaign_id)
            .or_default()
            .add(&row.state, row.count);
    }
    Ok(stats)
}

/// How many deliveries of an app came into each state, by the hour, from an hour to before another.
pub async fn counts_between(
    tx: &mut Tx,
    app_id: Uuid,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<HourCount>> {
    tx.sql(
        "SELECT hour, state, CAST(sum(count) AS BIGINT) AS count FROM delivery_counts
         WHERE app_id = $1 AND hour >= $2 AND hour < $3 GROUP BY hour, state ORDER BY hour, state",
    )
    .bind(app_id)
    .bind(from)
    .bind(to)
    .fetch_all()
    .await
}
