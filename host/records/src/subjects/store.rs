//! Subjects, aliases and browser sessions in the database.

use std::collections::{BTreeSet, HashMap};

use nudge_db::{Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use super::{AliasKind, AliasView, Versioned};
use crate::search::fold;

/// A subject of an app, as a value: for statements whose first parameters are the app and the subject. Told the app and the
/// subject of an alias instead, SQLite's planner, which has no statistics, walks through all aliases of the app.
pub const SUBJECT_OF_APP: &str = "(SELECT s.id FROM subjects s WHERE s.app_id = $1 AND s.id = $2)";

#[derive(nudge_db::FromRow)]
struct ClientRow {
    subject_id: Uuid,
    ended_at: Option<Timestamp>,
}

/// A browser session.
#[derive(Clone, Copy, Debug)]
pub struct ClientSession {
    /// Whose it is.
    pub subject_id: Uuid,
    /// Whether it has ended.
    pub ended: bool,
}

/// Finds a subject by one of its aliases.
pub async fn find(
    tx: &mut Tx,
    app_id: Uuid,
    kind: AliasKind,
    value: &str,
) -> Result<Option<AliasView>> {
    tx.sql(
        "SELECT a.number AS alias, a.token_epoch, a.subject_id, s.external_id, s.analytics_consent,
                s.messaging_consent, s.consent_at, s.suppressed, a.events_after
         FROM aliases a JOIN subjects s ON s.id = a.subject_id
         WHERE a.app_id = $1 AND a.kind = $2 AND a.value = $3",
    )
    .bind(app_id)
    .bind(kind.name())
    .bind(value.to_owned())
    .fetch_optional()
    .await
}

/// The subject that has a name.
pub async fn find_owner(
    tx: &mut Tx,
    app_id: Uuid,
    kind: AliasKind,
    value: &str,
) -> Result<Option<Uuid>> {
    let named: Option<Uuid> = tx
        .sql("SELECT subject_id FROM aliases WHERE app_id = $1 AND kind = $2 AND value = $3")
        .bind(app_id)
        .bind(kind.name())
        .bind(value.to_owned())
        .fetch_value()
        .await?;
    if named.is_some() || kind != AliasKind::External {
        return Ok(named);
    }
    tx.sql("SELECT id AS subject_id FROM subjects WHERE app_id = $1 AND external_id = $2")
        .bind(app_id)
        .bind(value.to_owned())
        .fetch_value()
        .await
}

/// The customer's own id of a subject.
pub async fn external_id(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<Option<String>> {
    let row = tx
        .sql("SELECT external_id FROM subjects WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(subject_id)
        .fetch_value::<Option<String>>()
        .await?;
    Ok(row.flatten())
}

/// The language of a subject, as its SDK says.
pub async fn locale(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<Option<String>> {
    let row = tx
        .sql("SELECT locale FROM subjects WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(subject_id)
        .fetch_value::<Option<String>>()
        .await?;
    Ok(row.flatten())
}

/// Finds a subject by the number of one of its aliases.
pub async fn get(tx: &mut Tx, app_id: Uuid, alias: i64) -> Result<Option<AliasView>> {
    tx.sql(
        "SELECT a.number AS alias, a.token_epoch, a.subject_id, s.external_id, s.analytics_consent,
                s.messaging_consent, s.consent_at, s.suppressed, a.events_after
         FROM aliases a JOIN subjects s ON s.id = a.subject_id
         WHERE a.app_id = $1 AND a.number = $2",
    )
    .bind(app_id)
    .bind(alias)
    .fetch_optional()
    .await
}

/// Finds a subject by its id, or by that of one that was merged into it, through its oldest alias.
pub async fn of_subject(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<AliasView>> {
    tx.sql(
        "SELECT a.number AS alias, a.token_epoch, a.subject_id, s.external_id, s.analytics_consent,
                s.messaging_consent, s.consent_at, s.suppressed, a.events_after
         FROM aliases a JOIN subjects s ON s.id = a.subject_id
         WHERE a.app_id = $1 AND a.subject_id = COALESCE(
            (SELECT m.subject_id FROM merged_subjects m WHERE m.app_id = $1 AND m.id = $2), $2)
         ORDER BY a.number LIMIT 1",
    )
    .bind(app_id)
    .bind(id)
    .fetch_optional()
    .await
}

/// The id of the subject that another one was merged into; its own if it was not.
pub async fn canonical(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Uuid> {
    let merged: Option<Uuid> = tx
        .sql("SELECT subject_id FROM merged_subjects WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .fetch_value()
        .await?;
    Ok(merged.unwrap_or(id))
}

/// Locks a subject until the transaction ends: what changes with its properties, instructions or aliases
/// waits. False: it is not there, as after it was merged into another.
pub async fn lock(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<bool> {
    let for_update = tx.dialect().for_update();
    let row: Option<Uuid> = tx
        .sql("SELECT id FROM subjects WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .push(for_update)
        .fetch_value()
        .await?;
    Ok(row.is_some_and(|row| row == id))
}

/// What a subject permits, locked until the transaction ends.
#[derive(Clone, Copy, Debug, nudge_db::FromRow)]
pub struct Locked {
    /// Whether nothing more may be stored of the subject.
    pub suppressed: bool,
    /// Consent to messages, if it was ever given or refused.
    pub messaging_consent: Option<bool>,
}

/// Locks a subject, as [`lock`] does, and answers what it permits. None: it is not there.
pub async fn locked(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<Locked>> {
    let for_update = tx.dialect().for_update();
    tx.sql("SELECT suppressed, messaging_consent FROM subjects WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .push(for_update)
        .fetch_optional()
        .await
}

/// Locks a subject that was there when the transaction looked. One that was merged into another since is an
/// error of kind `Serialization`, so that the caller starts over.
pub async fn lock_found(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<()> {
    if lock(tx, app_id, id).await? {
        Ok(())
    } else {
        Err(nudge_db::Error::lost_race())
    }
}

/// The alias of what the server notes of a subject by itself, made when there is none. The subject is locked.
pub async fn system_alias(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    now: Timestamp,
) -> Result<i64> {
    let known: Option<i64> = tx
        .sql(
            "SELECT number FROM aliases WHERE app_id = $1 AND subject_id = $2 AND kind = 'system'
             ORDER BY number LIMIT 1",
        )
        .bind(app_id)
        .bind(subject_id)
        .fetch_value()
        .await?;
    if let Some(known) = known {
        return Ok(known);
    }
    let value = subject_id.to_string();
    insert_alias(tx, app_id, AliasKind::System, &value, subject_id, now).await
}

/// The subjects behind aliases of any apps; the caller compares tokens with them.
pub async fn standings(tx: &mut Tx, aliases: Vec<i64>) -> Result<Vec<Versioned>> {
    let mut found = Vec::with_capacity(aliases.len());
    for chunk in aliases.chunks(Rows::MOST) {
        let rows: Vec<Versioned> = tx
            .with_rows("v(number)", Rows::new().integers(chunk.iter().copied()))
            .push(
                " SELECT a.number AS alias, a.token_epoch, a.subject_id, s.external_id, s.analytics_consent,
                         s.messaging_consent, s.consent_at, s.suppressed, a.events_after, s.version, apps.version AS app_version,
                         EXISTS (SELECT 1 FROM aliases other
                                 WHERE other.subject_id = a.subject_id AND other.number <> a.number
                                   AND other.kind <> 'system') AS has_others
                  FROM v JOIN aliases a ON a.number = v.number JOIN subjects s ON s.id = a.subject_id
                       JOIN apps ON apps.id = s.app_id",
            )
            .fetch_all()
            .await?;
        found.extend(rows);
    }
    Ok(found)
}

/// Makes a subject with its first alias. A taken alias is a conflict.
pub async fn insert(
    tx: &mut Tx,
    app_id: Uuid,
    kind: AliasKind,
    value: &str,
    platform: Option<&str>,
    now: Timestamp,
) -> Result<AliasView> {
    let subject_id = nudge_platform::id::new(now);
    let external_id = (kind == AliasKind::External).then(|| value.to_owned());
    let inserted = tx.sql(
        "INSERT INTO subjects (id, app_id, external_id, suppressed, first_seen_at, last_seen_at, event_count,
                               platform, session_number, instruction_count, last_seq, version)
         SELECT $1, id, $3, $4, $5, $5, 0, $6, 0, 0, 0, 0 FROM apps WHERE id = $2",
    )
    .bind(subject_id)
    .bind(app_id)
    .bind(external_id.clone())
    .bind(false)
    .bind(now)
    .bind(platform.map(str::to_owned))
    .execute()
    .await?;
    if inserted == 0 {
        // The app was deleted while the request was on its way; its credential is refused the next time.
        let cause = std::io::Error::other("the app is gone");
        return Err(nudge_db::Error::unavailable(cause));
    }
    let alias = insert_alias(tx, app_id, kind, value, subject_id, now).await?;
    Ok(AliasView {
        alias,
        token_epoch: 0,
        subject_id,
        external_id,
        analytics_consent: None,
        messaging_consent: None,
        consent_at: None,
        suppressed: false,
        events_after: None,
    })
}

/// Adds an alias to a subject; answers its number. A taken one is a conflict.
pub async fn insert_alias(
    tx: &mut Tx,
    app_id: Uuid,
    kind: AliasKind,
    value: &str,
    subject_id: Uuid,
    now: Timestamp,
) -> Result<i64> {
    tx.sql(
        "INSERT INTO aliases (app_id, kind, value, folded, subject_id, token_epoch, created_at)
             VALUES ($1, $2, $3, $4, $5, 0, $6) RETURNING number",
    )
    .bind(app_id)
    .bind(kind.name())
    .bind(value.to_owned())
    .bind((kind != AliasKind::System).then(|| fold(value)))
    .bind(subject_id)
    .bind(now)
    .fetch_scalar()
    .await
}

/// Notes of an alias that somebody who was deleted had its name until then.
pub async fn begin_anew(
    tx: &mut Tx,
    app_id: Uuid,
    kind: AliasKind,
    value: &str,
    after: Timestamp,
) -> Result<()> {
    tx.sql(
        "UPDATE aliases SET events_after = $4
         WHERE app_id = $1 AND kind = $2 AND value = $3 AND events_after IS NULL",
    )
    .bind(app_id)
    .bind(kind.name())
    .bind(value.to_owned())
    .bind(after)
    .execute()
    .await?;
    Ok(())
}

/// How many aliases a subject has.
pub async fn count_aliases(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<i64> {
    tx.sql("SELECT count(*) AS number FROM aliases WHERE subject_id = ")
        .push(SUBJECT_OF_APP)
        .bind(app_id)
        .bind(subject_id)
        .fetch_scalar()
        .await
}

/// Gives an anonymous subject its external id. Tokens from before, which anybody could have got, are revoked.
pub async fn identify(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    external_id: &str,
) -> Result<()> {
    tx.sql(
        "UPDATE subjects SET external_id = $3, version = version + 1 WHERE app_id = $1 AND id = $2",
    )
    .bind(app_id)
    .bind(subject_id)
    .bind(external_id.to_owned())
    .execute()
    .await?;
    revoke_all_tokens(tx, app_id, subject_id).await
}

/// Revokes the tokens of all aliases of a subject.
pub async fn revoke_all_tokens(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<()> {
    tx.sql("UPDATE aliases SET token_epoch = token_epoch + 1 WHERE subject_id = ")
        .push(SUBJECT_OF_APP)
        .bind(app_id)
        .bind(subject_id)
        .execute()
        .await?;
    Ok(())
}

/// Revokes the tokens of an alias.
pub async fn revoke_tokens(tx: &mut Tx, app_id: Uuid, alias: i64) -> Result<()> {
    tx.sql("UPDATE aliases SET token_epoch = token_epoch + 1 WHERE app_id = $1 AND number = $2")
        .bind(app_id)
        .bind(alias)
        .execute()
        .await?;
    Ok(())
}

/// Notes that something was made for a subject that its caps count, so that what is decided about it at the same time is
/// decided once more.
pub async fn bump_version(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<()> {
    tx.sql("UPDATE subjects SET version = version + 1 WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(subject_id)
        .execute()
        .await?;
    Ok(())
}

/// Notes consent given or refused; `None` leaves what was. Answers whether the subject is there.
pub async fn update_consent(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    analytics: Option<bool>,
    messaging: Option<bool>,
    now: Timestamp,
) -> Result<bool> {
    let updated = tx
        .sql(
            "UPDATE subjects SET analytics_consent = COALESCE($3, analytics_consent),
                messaging_consent = COALESCE($4, messaging_consent),
                analytics_consent_at = CASE WHEN $3 IS NULL
                    THEN COALESCE(analytics_consent_at, consent_at) ELSE $5 END,
                messaging_consent_at = CASE WHEN $4 IS NULL
                    THEN COALESCE(messaging_consent_at, consent_at) ELSE $5 END,
                consent_at = $5, version = version + 1
         WHERE app_id = $1 AND id = $2",
        )
        .bind(app_id)
        .bind(subject_id)
        .bind(analytics)
        .bind(messaging)
        .bind(now)
        .execute()
        .await?;
    Ok(updated == 1)
}

/// Finds a browser session.
pub async fn find_client(
    tx: &mut Tx,
    app_id: Uuid,
    client_id: Uuid,
) -> Result<Option<ClientSession>> {
    let row: Option<ClientRow> = tx
        .sql(
            "SELECT subject_id, ended_at FROM client_sessions WHERE app_id = $1 AND client_id = $2",
        )
        .bind(app_id)
        .bind(client_id)
        .fetch_optional()
        .await?;
    Ok(row.map(|row| ClientSession {
        subject_id: row.subject_id,
        ended: row.ended_at.is_some(),
    }))
}

/// Browser sessions that are kept of a subject: of more the oldest go.
const MOST_CLIENTS: i64 = 1_000;

/// Binds a browser session to a subject, unless it is another's; answers whether it is bound now.
pub async fn bind_client(
    tx: &mut Tx,
    app_id: Uuid,
    client_id: Uuid,
    subject_id: Uuid,
    now: Timestamp,
) -> Result<bool> {
    let changed = tx
        .sql(
            "INSERT INTO client_sessions (app_id, client_id, subject_id, started_at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (app_id, client_id) DO UPDATE SET started_at = excluded.started_at, ended_at = NULL
             WHERE client_sessions.subject_id = excluded.subject_id",
        )
        .bind(app_id)
        .bind(client_id)
        .bind(subject_id)
        .bind(now)
        .execute()
        .await?;
    tx.sql(
        "DELETE FROM client_sessions WHERE app_id = $1 AND client_id IN (
            SELECT client_id FROM client_sessions WHERE subject_id = $2 AND app_id = $1 AND client_id <> $3
            ORDER BY started_at DESC, client_id LIMIT $4 OFFSET $5)",
    )
    .bind(app_id)
    .bind(subject_id)
    .bind(client_id)
    .bind(MOST_CLIENTS)
    .bind(MOST_CLIENTS - 1)
    .execute()
    .await?;
    Ok(changed == 1)
}

/// Ends a browser session of a subject; answers whether it was one.
pub async fn end_client(
    tx: &mut Tx,
    app_id: Uuid,
    client_id: Uuid,
    subject_id: Uuid,
    now: Timestamp,
) -> Result<bool> {
    let changed = tx
        .sql(
            "UPDATE client_sessions SET ended_at = $4
             WHERE app_id = $1 AND client_id = $2 AND subject_id = $3 AND ended_at IS NULL",
        )
        .bind(app_id)
        .bind(client_id)
        .bind(subject_id)
        .bind(now)
        .execute()
        .await?;
    Ok(changed == 1)
}

#[derive(nudge_db::FromRow)]
struct OldestRow {
    subject_id: Uuid,
    number: i64,
}

/// The oldest name of each of some people, who are given with their apps.
pub async fn oldest_aliases(
    tx: &mut Tx,
    people: &BTreeSet<(Uuid, Uuid)>,
) -> Result<HashMap<Uuid, i64>> {
    let people: Vec<&(Uuid, Uuid)> = people.iter().collect();
    let mut found = HashMap::new();
    for chunk in people.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|(app_id, _)| *app_id))
            .uuids(chunk.iter().map(|(_, subject_id)| *subject_id));
        let rows: Vec<OldestRow> = tx
            .with_rows("v(app_id, subject_id)", rows)
            .push(
                " SELECT a.subject_id, min(a.number) AS number
                  FROM v JOIN aliases a ON a.subject_id = v.subject_id AND a.app_id = v.app_id
                  GROUP BY a.subject_id",
            )
            .fetch_all()
            .await?;
        found.extend(rows.into_iter().map(|row| (row.subject_id, row.number)));
    }
    Ok(found)
}
