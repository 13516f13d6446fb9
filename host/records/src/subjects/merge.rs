//! Two subjects become one: everything that belongs to one of them becomes the other's.
//!
//! Events are not touched: they belong to aliases. Requests that wait to be processed do so under the alias
//! too. A batch of the pipeline that has read either subject finds its `version` moved, or the subject gone,
//! and starts over.

mod once;
mod surplus;
mod whole;

use std::collections::HashSet;

use nudge_db::{Error, Result, Rows, Timestamp, Tx};
use nudge_platform::secrets::hexadecimal;
use nudge_platform::tables;
use serde::Serialize;
use uuid::Uuid;

use whole::{read, write};

/// States of people who became one that a plugin may not have seen yet, at the most: of more the oldest go.
const MOST_MERGED: usize = 16;

/// What a plugin keeps of both.
#[derive(nudge_db::FromRow)]
struct OfBoth {
    campaign_id: Uuid,
    of_winner: Option<String>,
    of_loser: Option<String>,
    winner_state: Vec<u8>,
    winner_held_back: Option<Uuid>,
    loser_state: Vec<u8>,
    loser_held_back: Option<Uuid>,
    winner_plugin: Option<String>,
    loser_plugin: Option<String>,
    winner_updated_at: Timestamp,
    loser_updated_at: Timestamp,
}

/// What a plugin keeps of the winner from now on.
struct United {
    campaign_id: Uuid,
    /// Its state; none: as it is.
    state: Option<Vec<u8>>,
    /// What the plugin has to unite with it.
    merged: Option<String>,
    held_back: Option<Uuid>,
    /// The plugin's name, if it is known.
    plugin: Option<String>,
    /// When the later one of both was stored.
    updated_at: Timestamp,
}

/// What a merge leaves of neither: how much of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Dropped {
    /// Values of the other's properties in whose place the identified person has its own.
    pub(super) property_values: u64,
    /// Properties of the other's for which there was no room.
    pub(super) properties_over_limit: u64,
    /// Registrations of devices that both had registered.
    pub(super) push_registrations: u64,
    /// States of plugins beyond those that a plugin is handed to unite, and those of a plugin in whose place another one keeps one.
    pub(super) plugin_states: u64,
    /// Timers of plugins in whose place one of the same key was set later.
    pub(super) plugin_timers: u64,
    /// Firings that waited, of runs that had led both to one, and of campaigns that fire once and had fired for both.
    pub(super) waiting_firings: u64,
}

impl Dropped {
    /// Whether there is anything to say.
    pub(super) fn is_any(self) -> bool {
        self != Self::default()
    }
}

impl OfBoth {
    /// What the plugin keeps of the winner, with what it has to unite that with, and how many older states there is no room for.
    /// The winner's state is the first one, unless it is of a firing that was held back and only the loser `has_had` one.
    fn united(&self, has_had: &[HashSet<Uuid>; 2]) -> Result<(United, usize)> {
        if let (Some(winners), Some(losers)) = (&self.winner_plugin, &self.loser_plugin)
            && winners != losers
        {
            return Ok((self.of_newer(), 1));
        }
        let [winner, loser] = has_had
            .each_ref()
            .map(|had| had.contains(&self.campaign_id));
        let is_losers = self.winner_held_back.is_some() && loser && !winner;
        let (state, other, held_back) = if is_losers {
            let state = Some(self.loser_state.clone());
            (state, &self.winner_state, self.loser_held_back)
        } else {
            let held_back = self.winner_held_back.or(self.loser_held_back);
            (None, &self.loser_state, held_back)
        };
        let mut merged: Vec<String> = Vec::new();
        for text in [&self.of_winner, &self.of_loser].into_iter().flatten() {
            let read: serde_json::Result<Vec<String>> = serde_json::from_str(text);
            let corrupt = |cause| Error::corrupt("plugin_states", "merged", cause);
            merged.extend(read.map_err(corrupt)?);
        }
        merged.push(hexadecimal(other));
        let surplus = merged.len().saturating_sub(MOST_MERGED);
        merged.drain(..surplus);
        let united = United {
            campaign_id: self.campaign_id,
            state,
            merged: Some(serde_json::Value::from(merged).to_string()),
            held_back,
            plugin: self
                .winner_plugin
                .clone()
                .or_else(|| self.loser_plugin.clone()),
            updated_at: self.updated_at(),
        };
        Ok((united, surplus))
    }

    /// What two plugins keep no plugin can unite: what was stored last stays, as the other plugin decided before.
    fn of_newer(&self) -> United {
        let (state, merged, held_back, plugin) = if self.loser_updated_at > self.winner_updated_at {
            let state = Some(self.loser_state.clone());
            (
                state,
                &self.of_loser,
                self.loser_held_back,
                &self.loser_plugin,
            )
        } else {
            (
                None,
                &self.of_winner,
                self.winner_held_back,
                &self.winner_plugin,
            )
        };
        United {
            campaign_id: self.campaign_id,
            state,
            merged: merged.clone(),
            held_back,
            plugin: plugin.clone(),
            updated_at: self.updated_at(),
        }
    }

    fn updated_at(&self) -> Timestamp {
        self.winner_updated_at.max(self.loser_updated_at)
    }
}

/// What gives the subject `$3` to the subject `$2`, in the app `$1`, beside what the list of tables says of each. Where both
/// have something, `$2` keeps its own.
const MOVES: &[&str] = &[
    // Whoever has a token of the one that goes must ask for a new one.
    "UPDATE aliases SET subject_id = $2, token_epoch = token_epoch + 1 WHERE (app_id = $1) IS TRUE AND subject_id = $3",
    // Texts of the properties that were taken over.
    "INSERT INTO property_texts (app_id, subject_id, key, folded)
     SELECT t.app_id, $2, t.key, t.folded FROM property_texts t
     JOIN subject_properties l ON l.subject_id = t.subject_id AND l.key = t.key
     JOIN subject_properties w ON w.subject_id = $2 AND w.key = t.key AND w.value = l.value
     WHERE t.app_id = $1 AND t.subject_id = $3
     ON CONFLICT (app_id, subject_id, key) DO NOTHING",
    "DELETE FROM property_texts WHERE app_id = $1 AND subject_id = $3 AND subject_id <> $2",
    "DELETE FROM subject_properties WHERE app_id = $1 AND subject_id = $3 AND subject_id <> $2",
    "INSERT INTO devices (subject_id, device_id, app_id, platform, app_version, sdk_version, locale, first_seen_at,
                          last_seen_at)
     SELECT $2, device_id, app_id, platform, app_version, sdk_version, locale, first_seen_at, last_seen_at
     FROM devices WHERE app_id = $1 AND subject_id = $3
     ON CONFLICT (subject_id, device_id) DO UPDATE SET
        platform = CASE WHEN excluded.last_seen_at > devices.last_seen_at
            THEN COALESCE(excluded.platform, devices.platform) ELSE COALESCE(devices.platform, excluded.platform) END,
        app_version = CASE WHEN excluded.last_seen_at > devices.last_seen_at
            THEN COALESCE(excluded.app_version, devices.app_version)
            ELSE COALESCE(devices.app_version, excluded.app_version) END,
        sdk_version = CASE WHEN excluded.last_seen_at > devices.last_seen_at
            THEN COALESCE(excluded.sdk_version, devices.sdk_version)
            ELSE COALESCE(devices.sdk_version, excluded.sdk_version) END,
        locale = CASE WHEN excluded.last_seen_at > devices.last_seen_at
            THEN COALESCE(excluded.locale, devices.locale) ELSE COALESCE(devices.locale, excluded.locale) END,
        first_seen_at = CASE WHEN excluded.first_seen_at < devices.first_seen_at
            THEN excluded.first_seen_at ELSE devices.first_seen_at END,
        last_seen_at = CASE WHEN excluded.last_seen_at > devices.last_seen_at
            THEN excluded.last_seen_at ELSE devices.last_seen_at END",
    "DELETE FROM devices WHERE app_id = $1 AND subject_id = $3 AND subject_id <> $2",
    // Of two of one key only one is left by now.
    "UPDATE timers SET subject_id = $2 WHERE app_id = $1 AND subject_id = $3",
    "DELETE FROM segment_checks WHERE app_id = $1 AND subject_id = $3 AND subject_id <> $2",
    "INSERT INTO segment_checks (subject_id, app_id) SELECT s.id, s.app_id FROM subjects s
     WHERE s.app_id = $1 AND s.id = $2 AND EXISTS (SELECT 1 FROM segments g WHERE g.app_id = $1) AND s.id <> $3
     ON CONFLICT (subject_id) DO NOTHING",
    // One SDK's id of an attempt names one attempt of a person.
    "UPDATE survey_attempts SET client_attempt_id = NULL WHERE app_id = $1 AND subject_id = $3
        AND EXISTS (SELECT 1 FROM survey_attempts AS own WHERE own.subject_id = $2
            AND own.survey_id = survey_attempts.survey_id
            AND own.client_attempt_id = survey_attempts.client_attempt_id)",
];

/// What takes the subject `$3` away once nothing is left of it.
const GONE: &str = "DELETE FROM subjects WHERE app_id = $1 AND id = $3 AND id <> $2";

/// Of one device that both have registered, the registration that came last stays.
const REGISTRATIONS: &[&str] = &[
    "DELETE FROM push_tokens WHERE app_id = $1 AND subject_id = $3 AND EXISTS (
        SELECT 1 FROM push_tokens own WHERE own.app_id = $1 AND own.subject_id = $2
          AND own.device_id = push_tokens.device_id AND own.registered_at > push_tokens.registered_at)",
    "DELETE FROM push_tokens WHERE app_id = $1 AND subject_id = $2 AND EXISTS (
        SELECT 1 FROM push_tokens given WHERE given.app_id = $1 AND given.subject_id = $3
          AND given.device_id = push_tokens.device_id)",
];

/// A person has one timer of a key and campaign: of two, the one that was set last stays, as it would have been set in place of
/// the other. The plugin knows and cancels it by its key.
const TIMERS: &[&str] = &[
    "DELETE FROM timers WHERE app_id = $1 AND subject_id = $3 AND EXISTS (
        SELECT 1 FROM timers own WHERE own.app_id = $1 AND own.subject_id = $2
          AND own.campaign_id = timers.campaign_id AND own.key = timers.key AND own.set_at >= timers.set_at)",
    "DELETE FROM timers WHERE app_id = $1 AND subject_id = $2 AND EXISTS (
        SELECT 1 FROM timers given WHERE given.app_id = $1 AND given.subject_id = $3
          AND given.campaign_id = timers.campaign_id AND given.key = timers.key)",
];

/// What sees to it that a run that has led both `$2` and `$3` to something gives them one: where only `$2` waits for
/// that, it no longer does, and where `$3` does, it no longer does.
const RUNS: &[&str] = &[
    "DELETE FROM occasions WHERE app_id = $1 AND subject_id = $2 AND firing_id IS NOT NULL AND EXISTS (
        SELECT 1 FROM run_firings w JOIN run_firings l
            ON l.campaign_id = w.campaign_id AND l.key = w.key AND l.subject_id = $3
        WHERE w.subject_id = $2 AND w.campaign_id = occasions.campaign_id AND w.event_seq = occasions.event_seq
          AND NOT EXISTS (SELECT 1 FROM occasions o WHERE o.subject_id = $3 AND o.campaign_id = l.campaign_id
                AND o.event_seq = l.event_seq AND o.firing_id IS NOT NULL)
          AND NOT EXISTS (SELECT 1 FROM timers t WHERE t.subject_id = $3 AND t.campaign_id = l.campaign_id
                AND t.event_seq = l.event_seq))",
    "DELETE FROM timers WHERE app_id = $1 AND subject_id = $2 AND EXISTS (
        SELECT 1 FROM run_firings w JOIN run_firings l
            ON l.campaign_id = w.campaign_id AND l.key = w.key AND l.subject_id = $3
        WHERE w.subject_id = $2 AND w.campaign_id = timers.campaign_id AND w.event_seq = timers.event_seq
          AND NOT EXISTS (SELECT 1 FROM occasions o WHERE o.subject_id = $3 AND o.campaign_id = l.campaign_id
                AND o.event_seq = l.event_seq AND o.firing_id IS NOT NULL)
          AND NOT EXISTS (SELECT 1 FROM timers t WHERE t.subject_id = $3 AND t.campaign_id = l.campaign_id
                AND t.event_seq = l.event_seq))",
    "DELETE FROM occasions WHERE app_id = $1 AND subject_id = $3 AND firing_id IS NOT NULL AND EXISTS (
        SELECT 1 FROM run_firings l JOIN run_firings w
            ON w.campaign_id = l.campaign_id AND w.key = l.key AND w.subject_id = $2
        WHERE l.subject_id = $3 AND l.campaign_id = occasions.campaign_id AND l.event_seq = occasions.event_seq)",
    "DELETE FROM timers WHERE app_id = $1 AND subject_id = $3 AND EXISTS (
        SELECT 1 FROM run_firings l JOIN run_firings w
            ON w.campaign_id = l.campaign_id AND w.key = l.key AND w.subject_id = $2
        WHERE l.subject_id = $3 AND l.campaign_id = timers.campaign_id AND l.event_seq = timers.event_seq)",
];

/// Makes `loser` part of `winner`. Both are locked. The winner's properties win, gaps are filled
/// (contract 2); the loser's id leads to the winner from now on. Answers what is left of neither.
pub(super) async fn merge(
    tx: &mut Tx,
    app_id: Uuid,
    winner: Uuid,
    loser: Uuid,
    now: Timestamp,
) -> Result<Dropped> {
    let kept = read(tx, app_id, winner).await?;
    let given = read(tx, app_id, loser).await?;
    let (property_values, gaps) = compare_properties(tx, app_id, winner, loser).await?;
    let fits = crate::properties::MOST - crate::properties::count(tx, app_id, winner).await?;
    let filled = fill_gaps(tx, app_id, winner, loser, fits.max(0)).await?;
    let plugin_states = keep_states(tx, app_id, winner, loser).await?;
    let mut waiting_firings = each(tx, RUNS, app_id, winner, loser).await?;
    waiting_firings += once::drop_surplus(tx, app_id, winner, loser).await?;
    let of_both = surplus::campaigns(tx, app_id, winner, loser).await?;
    move_instructions(tx, app_id, winner, loser, kept.instruction_count).await?;
    surplus::withdraw(tx, app_id, winner, &of_both, now).await?;
    let plugin_timers = each(tx, TIMERS, app_id, winner, loser).await?;
    let push_registrations = each(tx, REGISTRATIONS, app_id, winner, loser).await?;
    each(tx, MOVES, app_id, winner, loser).await?;
    for store in tables::personal() {
        store.merge(tx, app_id, winner, loser).await?;
    }
    each(tx, &[GONE], app_id, winner, loser).await?;
    tx.sql(
        "INSERT INTO merged_subjects (id, app_id, subject_id, merged_at) VALUES ($1, $2, $3, $4)",
    )
    .bind(loser)
    .bind(app_id)
    .bind(winner)
    .bind(now)
    .execute()
    .await?;
    write(tx, app_id, winner, kept.unite(given)).await?;
    Ok(Dropped {
        property_values,
        properties_over_limit: gaps.saturating_sub(filled),
        push_registrations,
        plugin_states,
        plugin_timers,
        waiting_firings,
    })
}

/// Goes through statements; answers how many rows they have changed.
async fn each(
    tx: &mut Tx,
    statements: &[&'static str],
    app_id: Uuid,
    winner: Uuid,
    loser: Uuid,
) -> Result<u64> {
    let mut changed = 0;
    for statement in statements {
        changed += tx
            .sql(statement)
            .bind(app_id)
            .bind(winner)
            .bind(loser)
            .execute()
            .await?;
    }
    Ok(changed)
}

/// How many of the loser's properties the winner has with other values, and how many it has not.
async fn compare_properties(
    tx: &mut Tx,
    app_id: Uuid,
    winner: Uuid,
    loser: Uuid,
) -> Result<(u64, u64)> {
    #[derive(nudge_db::FromRow)]
    struct CountRow {
        differing: i64,
        gaps: i64,
    }
    let row: CountRow = tx
        .sql(
            "SELECT count(CASE WHEN w.value <> l.value THEN 1 END) AS differing,
                    count(CASE WHEN w.value IS NULL THEN 1 END) AS gaps
             FROM subject_properties l
             LEFT JOIN subject_properties w ON w.subject_id = $2 AND w.key = l.key
             WHERE l.app_id = $1 AND l.subject_id = $3",
        )
        .bind(app_id)
        .bind(winner)
        .bind(loser)
        .fetch_one()
        .await?;
    let number = |count: i64| u64::try_from(count).unwrap_or_default();
    Ok((number(row.differing), number(row.gaps)))
}

/// Takes properties over that the winner has not, as many as fit; answers how many.
async fn fill_gaps(tx: &mut Tx, app_id: Uuid, winner: Uuid, loser: Uuid, fits: i64) -> Result<u64> {
    tx.sql(
        "INSERT INTO subject_properties (subject_id, key, app_id, value, source, updated_at)
         SELECT $2, l.key, l.app_id, l.value, l.source, l.updated_at FROM subject_properties l
         WHERE l.app_id = $1 AND l.subject_id = $3
           AND NOT EXISTS (SELECT 1 FROM subject_properties w WHERE w.subject_id = $2 AND w.key = l.key)
         ORDER BY l.key LIMIT $4
         ON CONFLICT (subject_id, key) DO NOTHING",
    )
    .bind(app_id)
    .bind(winner)
    .bind(loser)
    .bind(fits)
    .execute()
    .await
}

/// Instructions come after those that the winner has, so that no cursor is past them.
async fn move_instructions(
    tx: &mut Tx,
    app_id: Uuid,
    winner: Uuid,
    loser: Uuid,
    after: i64,
) -> Result<()> {
    tx.sql(
        "UPDATE instructions SET subject_id = $2, position = position + $4
         WHERE app_id = $1 AND subject_id = $3",
    )
    .bind(app_id)
    .bind(winner)
    .bind(loser)
    .bind(after)
    .execute()
    .await?;
    Ok(())
}

/// What plugins keep of both: only the plugin can unite it, and does so when it is asked about the winner next. Answers
/// how many states are left of neither.
async fn keep_states(tx: &mut Tx, app_id: Uuid, winner: Uuid, loser: Uuid) -> Result<u64> {
    let both: Vec<OfBoth> = tx
        .sql(
            "SELECT w.campaign_id, w.merged AS of_winner, l.merged AS of_loser, w.state AS winner_state,
                    w.held_back AS winner_held_back, l.state AS loser_state, l.held_back AS loser_held_back,
                    w.plugin AS winner_plugin, l.plugin AS loser_plugin, w.updated_at AS winner_updated_at,
                    l.updated_at AS loser_updated_at
             FROM plugin_states w JOIN plugin_states l ON l.campaign_id = w.campaign_id AND l.subject_id = $3
             WHERE w.app_id = $1 AND w.subject_id = $2",
        )
        .bind(app_id)
        .bind(winner)
        .bind(loser)
        .fetch_all()
        .await?;
    let mut has_had = [HashSet::new(), HashSet::new()];
    if both.iter().any(|both| both.winner_held_back.is_some()) {
        has_had = [
            has_had_of(tx, app_id, winner).await?,
            has_had_of(tx, app_id, loser).await?,
        ];
    }
    let united: Result<Vec<(United, usize)>> =
        both.iter().map(|both| both.united(&has_had)).collect();
    let (united, surplus): (Vec<United>, Vec<usize>) = united?.into_iter().unzip();
    for chunk in united.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|united| united.campaign_id))
            .bytes(chunk.iter().map(|united| united.state.clone()))
            .texts(chunk.iter().map(|united| united.merged.clone()))
            .uuids(chunk.iter().map(|united| united.held_back))
            .texts(chunk.iter().map(|united| united.plugin.clone()))
            .timestamps(chunk.iter().map(|united| united.updated_at));
        tx.with_rows("v(campaign_id, state, merged, held_back, plugin, updated_at)", rows)
            .push(
                " UPDATE plugin_states SET state = COALESCE(v.state, plugin_states.state), merged = v.merged,
                         held_back = v.held_back, plugin = v.plugin, updated_at = v.updated_at
                  FROM v WHERE plugin_states.campaign_id = v.campaign_id AND plugin_states.app_id = ",
            )
            .push_bind(app_id)
            .push(" AND plugin_states.subject_id = ")
            .push_bind(winner)
            .execute()
            .await?;
    }
    Ok(surplus.iter().sum::<usize>() as u64)
}

/// The campaigns of which a firing for somebody had an effect, or is yet to have one.
async fn has_had_of(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<HashSet<Uuid>> {
    let mut campaigns = HashSet::new();
    for text in [
        "SELECT DISTINCT campaign_id FROM instructions
         WHERE app_id = $1 AND subject_id = $2 AND suppressed_by IS NULL AND NOT test",
        "SELECT DISTINCT campaign_id FROM deliveries WHERE app_id = $1 AND subject_id = $2 AND NOT test",
        "SELECT DISTINCT campaign_id FROM occasions
         WHERE app_id = $1 AND subject_id = $2 AND firing_id IS NOT NULL",
    ] {
        let found: Vec<Uuid> = tx
            .sql(text)
            .bind(app_id)
            .bind(subject_id)
            .fetch_values()
            .await?;
        campaigns.extend(found);
    }
    Ok(campaigns)
}
