//! What waits of campaigns that fire once for a person, where two people become one: of two such firings one takes
//! effect, and none where one of the two has had its own (contract 8, `once`).

use std::collections::HashSet;

use nudge_db::{Result, Tx};
use uuid::Uuid;

use super::surplus;

/// Firings that wait for the two.
const WAITING: &str = "SELECT DISTINCT campaign_id, subject_id FROM occasions
    WHERE app_id = $1 AND subject_id IN ($2, $3) AND firing_id IS NOT NULL";

/// Firings that had an effect on one of the two. What became of the effect does not count: a cap may be given back, a firing stays one.
const HAD: &str = "SELECT campaign_id, subject_id FROM instructions
    WHERE app_id = $1 AND subject_id IN ($2, $3) AND suppressed_by IS NULL AND NOT test
    UNION
    SELECT campaign_id, subject_id FROM deliveries
    WHERE (app_id = $1) IS TRUE AND subject_id IN ($2, $3) AND NOT test";

/// Removes waiting firings beyond the one that a person gets; answers how many. Both still have their own.
pub(super) async fn drop_surplus(
    tx: &mut Tx,
    app_id: Uuid,
    winner: Uuid,
    loser: Uuid,
) -> Result<u64> {
    let waiting = firings(tx, WAITING, app_id, winner, loser).await?;
    if waiting.is_empty() {
        return Ok(0);
    }
    let had = firings(tx, HAD, app_id, winner, loser).await?;
    let campaigns: HashSet<Uuid> = waiting
        .iter()
        .map(|(campaign_id, _)| *campaign_id)
        .collect();
    let mut dropped = 0;
    for campaign_id in campaigns {
        let (of_winner, of_loser) = ((campaign_id, winner), (campaign_id, loser));
        let is_any = |firing: &(Uuid, Uuid)| waiting.contains(firing) || had.contains(firing);
        if !is_any(&of_winner) || !is_any(&of_loser) {
            continue;
        }
        let newest = surplus::newest(tx, app_id, campaign_id).await?;
        if !newest.as_ref().is_some_and(surplus::is_once) {
            continue;
        }
        // Of two that wait the winner's stays: what the plugin keeps names the event of that one.
        dropped += delete(tx, app_id, loser, campaign_id).await?;
        if had.contains(&of_winner) || had.contains(&of_loser) {
            dropped += delete(tx, app_id, winner, campaign_id).await?;
        }
    }
    Ok(dropped)
}

/// The campaigns of firings of the two, [`WAITING`] or [`HAD`], each with whose firing it is.
async fn firings(
    tx: &mut Tx,
    which: &'static str,
    app_id: Uuid,
    winner: Uuid,
    loser: Uuid,
) -> Result<HashSet<(Uuid, Uuid)>> {
    let firings: Vec<(Uuid, Uuid)> = tx
        .sql(which)
        .bind(app_id)
        .bind(winner)
        .bind(loser)
        .fetch_all()
        .await?;
    Ok(firings.into_iter().collect())
}

/// Removes the firings of a campaign that wait for somebody. A process that has claimed one of them finds that it is gone, and
/// starts over.
async fn delete(tx: &mut Tx, app_id: Uuid, subject_id: Uuid, campaign_id: Uuid) -> Result<u64> {
    tx.sql(
        "DELETE FROM occasions
         WHERE app_id = $1 AND subject_id = $2 AND campaign_id = $3 AND firing_id IS NOT NULL",
    )
    .bind(app_id)
    .bind(subject_id)
    .bind(campaign_id)
    .execute()
    .await
}
