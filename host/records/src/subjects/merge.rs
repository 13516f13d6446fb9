//! Two subjects become one: everything that belongs to one of them becomes the other's.
//!
//! Events are not touched: they belong to aliases. Requests that wait to be processed do so under the alias
//! too. A batch of the pipeline that has read either subject finds its `version` moved, or the subject gone,
//! and starts over.

use nudge_db::{Error, Result, Rows, Timestamp, Tx};
use nudge_platform::secrets::hexadecimal;
use nudge_platform::tables;
use serde::Serialize;
use uuid::Uuid;

/// What of a subject's row both subjects have a say in.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
struct Whole {
    analytics_consent: Option<bool>,
    messaging_consent: Option<bool>,
    consent_at: Option<Timestamp>,
    first_seen_at: Timestamp,
    last_seen_at: Timestamp,
    event_count: i64,
    country: Option<String>,
    platform: Option<String>,
    app_version: Option<String>,
    locale: Option<String>,
    timezone: Option<String>,
    session_number: i64,
    session_active_at: Option<Timestamp>,
    instruction_count: i64,
    last_seq: i64,
}

/// States of people who became one that a plugin may not have seen yet, at the most: of more the oldest go.
const MOST_MERGED: usize = 16;

/// What a plugin keeps of both.
#[derive(sqlx::FromRow)]
struct OfBoth {
    campaign_id: Uuid,
    of_winner: Option<String>,
    of_loser: Option<String>,
    state: Vec<u8>,
    held_back: Option<Uuid>,
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
    /// States of plugins beyond those that a plugin is handed to unite.
    pub(super) plugin_states: u64,
    /// Firings that waited, of runs that had led both to one.
    pub(super) waiting_firings: u64,
}

impl Dropped {
    /// Whether there is anything to say.
    pub(super) fn is_any(self) -> bool {
        self != Self::default()
    }
}

impl OfBoth {
    /// What the plugin has to unite with what it keeps of the winner, and how many older states there is no room for.
    fn merged(&self) -> Result<(String, usize)> {
        let mut merged: Vec<String> = Vec::new();
        for text in [&self.of_winner, &self.of_loser].into_iter().flatten() {
            let read: serde_json::Result<Vec<String>> = serde_json::from_str(text);
            let corrupt = |cause| Error::corrupt("plugin_states", "merged", cause);
            merged.extend(read.map_err(corrupt)?);
        }
        merged.push(hexadecimal(&self.state));
        let surplus = merged.len().saturating_sub(MOST_MERGED);
        merged.drain(..surplus);
        Ok((serde_json::Value::from(merged).to_string(), surplus))
    }
}

/// What gives the subject `$3` to the subject `$2`, in the app `$1`, beside what the list of tables says of each. Where both
/// have something, `$2` keeps its own.
const MOVES: &[&str] = &[
    // Whoever has a token of the one that goes must ask for a new one.
    "UPDATE aliases SET subject_id = $2, token_epoch = token_epoch + 1 WHERE app_id = $1 AND subject_id = $3",
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
    move_instructions(tx, app_id, winner, loser, kept.instruction_count).await?;
    let waiting_firings = each(tx, RUNS, app_id, winner, loser).await?;
    move_timers(tx, app_id, winner, loser).await?;
    let plugin_states = keep_states(tx, app_id, winner, loser).await?;
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

impl Whole {
    /// Counts add up, spans span both; of what one can only have once, the one that is newer has it, and the
    /// other fills gaps. The session in which two become one counts as a new one.
    fn unite(self, other: Self) -> Self {
        let (first_seen_at, last_seen_at) = (
            self.first_seen_at.min(other.first_seen_at),
            self.last_seen_at.max(other.last_seen_at),
        );
        let (event_count, session_number, instruction_count) = (
            self.event_count + other.event_count,
            self.session_number + other.session_number,
            self.instruction_count + other.instruction_count,
        );
        let session_active_at = self.session_active_at.max(other.session_active_at);
        let last_seq = self.last_seq.max(other.last_seq);
        let consent = if other.consent_at > self.consent_at {
            (&other, &self)
        } else {
            (&self, &other)
        };
        let analytics = consent.0.analytics_consent.or(consent.1.analytics_consent);
        let messaging = consent.0.messaging_consent.or(consent.1.messaging_consent);
        let consent_at = consent.0.consent_at;
        let (newer, older) = if other.last_seen_at > self.last_seen_at {
            (other, self)
        } else {
            (self, other)
        };
        Self {
            analytics_consent: analytics,
            messaging_consent: messaging,
            consent_at,
            first_seen_at,
            last_seen_at,
            event_count,
            country: newer.country.or(older.country),
            platform: newer.platform.or(older.platform),
            app_version: newer.app_version.or(older.app_version),
            locale: newer.locale.or(older.locale),
            timezone: newer.timezone.or(older.timezone),
            session_number,
            session_active_at,
            instruction_count,
            last_seq,
        }
    }
}

async fn read(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Whole> {
    tx.sql(
        "SELECT analytics_consent, messaging_consent, consent_at, first_seen_at, last_seen_at, event_count, country,
                platform, app_version, locale, timezone, session_number, session_active_at, instruction_count,
                last_seq
         FROM subjects WHERE app_id = $1 AND id = $2",
    )
    .bind(app_id)
    .bind(id)
    .fetch_one()
    .await
}

async fn write(tx: &mut Tx, app_id: Uuid, id: Uuid, whole: Whole) -> Result<()> {
    tx.sql(
        "UPDATE subjects SET version = version + 1, analytics_consent = $3, messaging_consent = $4,
                consent_at = $5, first_seen_at = $6, last_seen_at = $7, event_count = $8, country = $9,
                platform = $10, app_version = $11, locale = $12, timezone = $13, session_number = $14,
                session_active_at = $15, session_ids = NULL, instruction_count = $16, last_seq = $17
         WHERE app_id = $1 AND id = $2",
    )
    .bind(app_id)
    .bind(id)
    .bind(whole.analytics_consent)
    .bind(whole.messaging_consent)
    .bind(whole.consent_at)
    .bind(whole.first_seen_at)
    .bind(whole.last_seen_at)
    .bind(whole.event_count)
    .bind(whole.country)
    .bind(whole.platform)
    .bind(whole.app_version)
    .bind(whole.locale)
    .bind(whole.timezone)
    .bind(whole.session_number)
    .bind(whole.session_active_at)
    .bind(whole.instruction_count)
    .bind(whole.last_seq)
    .execute()
    .await?;
    Ok(())
}

/// How many of the loser's properties the winner has with other values, and how many it has not.
async fn compare_properties(
    tx: &mut Tx,
    app_id: Uuid,
    winner: Uuid,
    loser: Uuid,
) -> Result<(u64, u64)> {
    #[derive(sqlx::FromRow)]
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
/// for how many states there is no room.
async fn keep_states(tx: &mut Tx, app_id: Uuid, winner: Uuid, loser: Uuid) -> Result<u64> {
    let both: Vec<OfBoth> = tx
        .sql(
            "SELECT w.campaign_id, w.merged AS of_winner, l.merged AS of_loser, l.state, l.held_back
             FROM plugin_states w JOIN plugin_states l ON l.campaign_id = w.campaign_id AND l.subject_id = $3
             WHERE w.app_id = $1 AND w.subject_id = $2",
        )
        .bind(app_id)
        .bind(winner)
        .bind(loser)
        .fetch_all()
        .await?;
    let mut surplus = 0;
    for chunk in both.chunks(Rows::MOST) {
        let merged: Result<Vec<(String, usize)>> = chunk.iter().map(OfBoth::merged).collect();
        let (merged, over): (Vec<String>, Vec<usize>) = merged?.into_iter().unzip();
        surplus += over.iter().sum::<usize>() as u64;
        let rows = Rows::new()
            .uuids(chunk.iter().map(|both| both.campaign_id))
            .texts(merged)
            .uuids(chunk.iter().map(|both| both.held_back));
        tx.with_rows("v(campaign_id, merged, held_back)", rows)
            .push(
                " UPDATE plugin_states SET merged = v.merged,
                         held_back = COALESCE(plugin_states.held_back, v.held_back)
                  FROM v WHERE plugin_states.campaign_id = v.campaign_id AND plugin_states.app_id = ",
            )
            .push_bind(app_id)
            .push(" AND plugin_states.subject_id = ")
            .push_bind(winner)
            .execute()
            .await?;
    }
    Ok(surplus)
}

/// What waits, goes on to wait. A timer whose key the winner has too gets another one.
async fn move_timers(tx: &mut Tx, app_id: Uuid, winner: Uuid, loser: Uuid) -> Result<()> {
    tx.sql(
        "UPDATE timers SET subject_id = $2, key = CASE
            WHEN EXISTS (SELECT 1 FROM timers AS own WHERE own.campaign_id = timers.campaign_id
                           AND own.subject_id = $2 AND own.key = timers.key)
            THEN key || $4 ELSE key END
         WHERE app_id = $1 AND subject_id = $3",
    )
    .bind(app_id)
    .bind(winner)
    .bind(loser)
    .bind(format!("~{loser}"))
    .execute()
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(from: i64, to: i64) -> Whole {
        Whole {
            analytics_consent: None,
            messaging_consent: None,
            consent_at: None,
            first_seen_at: Timestamp(from),
            last_seen_at: Timestamp(to),
            event_count: 2,
            country: None,
            platform: None,
            app_version: None,
            locale: None,
            timezone: None,
            session_number: 3,
            session_active_at: Some(Timestamp(to)),
            instruction_count: 4,
            last_seq: to * 512,
        }
    }

    #[test]
    fn counts_add_up_and_spans_span_both() {
        for (one, other) in [(seen(1, 5), seen(3, 9)), (seen(3, 9), seen(1, 5))] {
            let both = one.unite(other);
            assert_eq!(
                (both.first_seen_at, both.last_seen_at),
                (Timestamp(1), Timestamp(9))
            );
            assert_eq!(
                (
                    both.event_count,
                    both.session_number,
                    both.instruction_count
                ),
                (4, 6, 8)
            );
            assert_eq!(
                (both.session_active_at, both.last_seq),
                (Some(Timestamp(9)), 9 * 512)
            );
        }
    }

    #[test]
    fn the_newer_one_knows_better_and_the_older_one_fills_gaps() {
        let old = Whole {
            platform: Some("ios".to_owned()),
            locale: Some("de".to_owned()),
            ..seen(1, 5)
        };
        let new = Whole {
            platform: Some("web".to_owned()),
            ..seen(3, 9)
        };
        for both in [old.clone().unite(new.clone()), new.unite(old)] {
            assert_eq!(both.platform.as_deref(), Some("web"));
            assert_eq!(both.locale.as_deref(), Some("de"));
        }
    }

    #[test]
    fn the_last_word_on_consent_counts() {
        let refused = Whole {
            analytics_consent: Some(false),
            messaging_consent: Some(true),
            consent_at: Some(Timestamp(8)),
            ..seen(1, 5)
        };
        let given = Whole {
            analytics_consent: Some(true),
            consent_at: Some(Timestamp(9)),
            ..seen(3, 9)
        };
        for both in [refused.clone().unite(given.clone()), given.unite(refused)] {
            assert_eq!(both.analytics_consent, Some(true));
            assert_eq!(both.messaging_consent, Some(true));
            assert_eq!(both.consent_at, Some(Timestamp(9)));
        }
        let silent = seen(1, 5);
        let refused = Whole {
            analytics_consent: Some(false),
            consent_at: Some(Timestamp(2)),
            ..seen(1, 4)
        };
        assert_eq!(silent.unite(refused).analytics_consent, Some(false));
    }
}
