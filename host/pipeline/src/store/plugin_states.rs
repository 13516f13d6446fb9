//! What plugins keep of subjects.

use std::collections::{BTreeMap, HashMap};

use nudge_db::{Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use crate::effects::StateChange;

#[derive(nudge_db::FromRow)]
struct StateRow {
    campaign_id: Uuid,
    subject_id: Uuid,
    #[sqlx(flatten)]
    stored: StoredState,
}

/// What a plugin keeps of a subject for a campaign.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub(crate) struct StoredState {
    /// In the plugin's own form.
    pub state: Vec<u8>,
    /// The event of the firing that the host held back last.
    pub held_back: Option<Uuid>,
    /// What it kept of people who were merged into the subject since it stored the state.
    pub merged: Option<String>,
    /// The plugin's name, if it is known.
    pub plugin: Option<String>,
}

impl StoredState {
    /// Whether anything stands beside the state.
    pub(crate) fn is_marked(&self) -> bool {
        self.held_back.is_some() || self.merged.is_some()
    }
}

/// Plugin states by campaign and subject.
pub(crate) async fn read(
    tx: &mut Tx,
    app_id: Uuid,
    pairs: Vec<(Uuid, Uuid)>,
) -> Result<HashMap<(Uuid, Uuid), StoredState>> {
    let mut found = HashMap::new();
    for chunk in pairs.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|pair| pair.0))
            .uuids(chunk.iter().map(|pair| pair.1));
        let rows: Vec<StateRow> = tx
            .with_rows("v(campaign_id, subject_id)", rows)
            .push(
                " SELECT p.campaign_id, p.subject_id, p.state, p.held_back, p.merged, p.plugin
                  FROM v JOIN plugin_states p ON p.campaign_id = v.campaign_id AND p.subject_id = v.subject_id
                  WHERE p.app_id = ",
            )
            .push_bind(app_id)
            .fetch_all()
            .await?;
        found.extend(
            rows.into_iter()
                .map(|row| ((row.campaign_id, row.subject_id), row.stored)),
        );
    }
    Ok(found)
}

/// Stores and removes plugin states. A state takes the place of one that another plugin keeps, which nobody else removes.
pub(crate) async fn write(
    tx: &mut Tx,
    app_id: Uuid,
    states: &[StateChange],
    now: Timestamp,
) -> Result<()> {
    let (stored, removed): (Vec<&StateChange>, Vec<&StateChange>) =
        states.iter().partition(|change| change.state.is_some());
    for chunk in stored.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|change| change.campaign_id))
            .uuids(chunk.iter().map(|change| change.subject_id))
            .texts(
                chunk
                    .iter()
                    .map(|change| change.plugin.description().name.clone()),
            )
            .bytes(chunk.iter().map(|change| change.state.clone()));
        tx.change_rows("v(campaign_id, subject_id, plugin, state)", rows)
            .push(
                " INSERT INTO plugin_states (campaign_id, subject_id, plugin, state, app_id, updated_at)
                  SELECT v.campaign_id, v.subject_id, v.plugin, v.state, ",
            )
            .push_bind(app_id)
            .push(", ")
            .push_bind(now)
            .push(
                " FROM v WHERE true ON CONFLICT (campaign_id, subject_id)
                  DO UPDATE SET state = excluded.state, merged = NULL, updated_at = excluded.updated_at,
                                plugin = excluded.plugin,
                                held_back = CASE WHEN plugin_states.plugin <> excluded.plugin THEN NULL
                                                 ELSE plugin_states.held_back END",
            )
            .change(None)
            .await?;
    }
    for chunk in removed.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|change| change.campaign_id))
            .uuids(chunk.iter().map(|change| change.subject_id))
            .texts(
                chunk
                    .iter()
                    .map(|change| change.plugin.description().name.clone()),
            );
        tx.change_rows("v(campaign_id, subject_id, plugin)", rows)
            .push(
                " DELETE FROM plugin_states
                  WHERE (campaign_id, subject_id) IN (SELECT v.campaign_id, v.subject_id FROM v)
                    AND (plugin IS NULL
                         OR (campaign_id, subject_id, plugin) IN (SELECT v.campaign_id, v.subject_id, v.plugin FROM v))
                    AND app_id = ",
            )
            .push_bind(app_id)
            .change(None)
            .await?;
    }
    Ok(())
}

/// Notes of firings that they were held back: campaigns, subjects and events. Campaigns whose plugins keep nothing
/// of a subject do not ask.
pub(crate) async fn hold_back(
    tx: &mut Tx,
    app_id: Uuid,
    firings: &BTreeMap<(Uuid, Uuid), Uuid>,
) -> Result<()> {
    let firings: Vec<(&(Uuid, Uuid), &Uuid)> = firings.iter().collect();
    for chunk in firings.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|(pair, _)| pair.0))
            .uuids(chunk.iter().map(|(pair, _)| pair.1))
            .uuids(chunk.iter().map(|(_, event_id)| **event_id))
            .uuids(chunk.iter().map(|_| app_id));
        tx.with_rows("v(campaign_id, subject_id, event_id, app_id)", rows)
            .push(
                " UPDATE plugin_states SET held_back = v.event_id FROM v
                  WHERE plugin_states.campaign_id = v.campaign_id AND plugin_states.subject_id = v.subject_id
                    AND plugin_states.app_id = v.app_id",
            )
            .execute()
            .await?;
    }
    Ok(())
}

/// The same of firings that waited and are dropped with their campaigns: occasions, which are still there, and events.
pub(crate) async fn hold_back_dropped(
    tx: &mut Tx,
    app_id: Uuid,
    firings: &[(Uuid, Uuid)],
) -> Result<()> {
    for chunk in firings.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|(occasion_id, _)| *occasion_id))
            .uuids(chunk.iter().map(|(_, event_id)| *event_id))
            .uuids(chunk.iter().map(|_| app_id));
        tx.with_rows("v(id, event_id, app_id)", rows)
            .push(
                " UPDATE plugin_states SET held_back = v.event_id FROM v JOIN occasions o ON o.id = v.id
                  WHERE plugin_states.campaign_id = o.campaign_id AND plugin_states.subject_id = o.subject_id
                    AND plugin_states.app_id = v.app_id",
            )
            .execute()
            .await?;
    }
    Ok(())
}
