//! What waits of campaigns that fire once for a person, where two people become one: of two such firings one takes
//! effect, and none where one of the two has had its own (contract 8, `once`).

use std::collections::HashSet;

use nudge_db::{Result, Tx};
use uuid::Uuid;

use super::surplus;

/// Removes waiting firings beyond the one that a person gets; answers how many. Both still have their own.
pub(super) async fn drop_surplus(
    tx: &mut Tx,
    app_id: Uuid,
    winner: Uuid,
    loser: Uuid,
) -> Result<u64> {
    let winner_waits = waiting(tx, app_id, winner).await?;
    let loser_waits = waiting(tx, app_id, loser).await?;
    if winner_waits.is_empty() && loser_waits.is_empty() {
        return Ok(0);
    }
    let winner_had = had(tx, app_id, winner).await?;
    let loser_had = had(tx, app_id, loser).await?;
    let (of_winner, of_loser) = (&winner_waits | &winner_had, &loser_waits | &loser_had);
    let waits = &winner_waits | &loser_waits;
    let mut dropped = 0;
    for campaign_id in waits {
        if !of_winner.contains(&campaign_id) || !of_loser.contains(&campaign_id) {
            continue;
        }
        let newest = surplus::newest(tx, app_id, campaign_id).await?;
        if !newest.as_ref().is_some_and(surplus::is_once) {
            continue;
        }
        // Of two that wait the winner's stays: what the plugin keeps names the event of that one.
        dropped += delete(tx, app_id, loser, campaign_id).await?;
        if winner_had.contains(&campaign_id) || loser_had.contains(&campaign_id) {
            dropped += delete(tx, app_id, winner, campaign_id).await?;
        }
    }
    Ok(dropped)
}

/// The campaigns of which a firing waits for somebody.
async fn waiting(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<HashSet<Uuid>> {
    let campaigns: Vec<Uuid> = tx
        .sql(
            "SELECT DISTINCT campaign_id FROM occasions
             WHERE app_id = $1 AND subject_id = $2 AND firing_id IS NOT NULL",
        )
        .bind(app_id)
        .bind(subject_id)
        .fetch_values()
        .await?;
    Ok(campaigns.into_iter().collect())
}

/// The campaigns of which a firing had an effect on somebody, whatever became of that: a cap is given back, and the firing was one.
async fn had(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<HashSet<Uuid>> {
    let shown: Vec<Uuid> = tx
        .sql(
            "SELECT DISTINCT campaign_id FROM instructions
             WHERE app_id = $1 AND subject_id = $2 AND suppressed_by IS NULL AND NOT test",
        )
        .bind(app_id)
        .bind(subject_id)
        .fetch_values()
        .await?;
    let sent: Vec<Uuid> = tx
        .sql("SELECT DISTINCT campaign_id FROM deliveries WHERE app_id = $1 AND subject_id = $2 AND NOT test")
        .bind(app_id)
        .bind(subject_id)
        .fetch_values()
        .await?;
    Ok(shown.into_iter().chain(sent).collect())
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
