//! Sessions, links and logins of the console in the database.

use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::sealed::Sealed;

/// Rows that one statement removes at the most.
const STEP: i64 = 500;

/// A session.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub(super) struct SessionRow {
    pub(super) hash: String,
    pub(super) subject: String,
    pub(super) grants: Option<String>,
    pub(super) issuer: Option<String>,
    pub(super) sealed: Option<Sealed>,
    pub(super) token_ends_at: Timestamp,
    pub(super) renewal: i64,
    pub(super) renewing_until: Timestamp,
    pub(super) created_at: Timestamp,
    pub(super) used_at: Timestamp,
    pub(super) ends_at: Timestamp,
}

/// What a link leaves when it is used.
#[derive(Debug, nudge_db::FromRow)]
pub(super) struct LinkRow {
    pub(super) subject: String,
    pub(super) grants: String,
}

/// A login.
#[derive(Debug, nudge_db::FromRow)]
pub(super) struct LoginRow {
    pub(super) issuer: String,
    pub(super) return_to: String,
}

/// Adds a session.
pub(super) async fn insert_session(tx: &mut Tx, row: SessionRow) -> Result<()> {
    tx.sql(
        "INSERT INTO console_sessions (hash, subject, grants, issuer, sealed, token_ends_at, renewal, renewing_until,
                                       created_at, used_at, ends_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(row.hash)
    .bind(row.subject)
    .bind(row.grants)
    .bind(row.issuer)
    .bind(row.sealed)
    .bind(row.token_ends_at)
    .bind(row.renewal)
    .bind(row.renewing_until)
    .bind(row.created_at)
    .bind(row.used_at)
    .bind(row.ends_at)
    .execute()
    .await?;
    Ok(())
}

/// Finds a session, whether or not it has ended.
pub(super) async fn session(tx: &mut Tx, hash: &str) -> Result<Option<SessionRow>> {
    tx.sql(
        "SELECT hash, subject, grants, issuer, sealed, token_ends_at, renewal, renewing_until, created_at, used_at,
                ends_at
         FROM console_sessions WHERE hash = $1",
    )
    .bind(hash.to_owned())
    .fetch_optional()
    .await
}

/// Notes that a session is in use.
pub(super) async fn touch(tx: &mut Tx, hash: &str, now: Timestamp) -> Result<()> {
    tx.sql("UPDATE console_sessions SET used_at = $2 WHERE hash = $1 AND used_at < $2")
        .bind(hash.to_owned())
        .bind(now)
        .execute()
        .await?;
    Ok(())
}

/// Ends a session.
pub(super) async fn delete_session(tx: &mut Tx, hash: &str) -> Result<()> {
    tx.sql("DELETE FROM console_sessions WHERE hash = $1")
        .bind(hash.to_owned())
        .execute()
        .await?;
    Ok(())
}

/// Takes the renewal of a session's tokens for this process, until an instant; answers whether it is this one's.
pub(super) async fn begin_renewal(
    tx: &mut Tx,
    row: &SessionRow,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool> {
    let taken = tx
        .sql(
            "UPDATE console_sessions SET renewing_until = $4
             WHERE hash = $1 AND renewal = $2 AND renewing_until <= $3",
        )
        .bind(row.hash.clone())
        .bind(row.renewal)
        .bind(now)
        .bind(until)
        .execute()
        .await?;
    Ok(taken == 1)
}

/// Leaves the next renewal to whoever comes after an instant.
pub(super) async fn put_renewal_off(tx: &mut Tx, row: &SessionRow, until: Timestamp) -> Result<()> {
    tx.sql("UPDATE console_sessions SET renewing_until = $3 WHERE hash = $1 AND renewal = $2")
        .bind(row.hash.clone())
        .bind(row.renewal)
        .bind(until)
        .execute()
        .await?;
    Ok(())
}

/// Puts a session's next tokens in the place of those before; the next renewal is after an instant. One that was ended meanwhile stays ended.
pub(super) async fn renew(
    tx: &mut Tx,
    row: &SessionRow,
    sealed: Sealed,
    token_ends_at: Timestamp,
    ends_at: Timestamp,
    renewing_until: Timestamp,
) -> Result<()> {
    tx.sql(
        "UPDATE console_sessions
         SET sealed = $3, token_ends_at = $4, ends_at = $5, renewal = renewal + 1, renewing_until = $6
         WHERE hash = $1 AND renewal = $2",
    )
    .bind(row.hash.clone())
    .bind(row.renewal)
    .bind(sealed)
    .bind(token_ends_at)
    .bind(ends_at)
    .bind(renewing_until)
    .execute()
    .await?;
    Ok(())
}

/// Adds a link.
pub(super) async fn insert_link(
    tx: &mut Tx,
    hash: &str,
    link: &LinkRow,
    ends_at: Timestamp,
) -> Result<()> {
    tx.sql("INSERT INTO console_links (hash, subject, grants, ends_at) VALUES ($1, $2, $3, $4)")
        .bind(hash.to_owned())
        .bind(link.subject.clone())
        .bind(link.grants.clone())
        .bind(ends_at)
        .execute()
        .await?;
    Ok(())
}

/// Takes a link away that can still be used: of two who try, one has it.
pub(super) async fn take_link(tx: &mut Tx, hash: &str, now: Timestamp) -> Result<Option<LinkRow>> {
    tx.sql("DELETE FROM console_links WHERE hash = $1 AND ends_at > $2 RETURNING subject, grants")
        .bind(hash.to_owned())
        .bind(now)
        .fetch_optional()
        .await
}

/// Adds a login.
pub(super) async fn insert_login(
    tx: &mut Tx,
    hash: &str,
    login: &LoginRow,
    ends_at: Timestamp,
) -> Result<()> {
    tx.sql("INSERT INTO console_logins (hash, issuer, return_to, ends_at) VALUES ($1, $2, $3, $4)")
        .bind(hash.to_owned())
        .bind(login.issuer.clone())
        .bind(login.return_to.clone())
        .bind(ends_at)
        .execute()
        .await?;
    Ok(())
}

/// Takes a login away that can still be used.
pub(super) async fn take_login(
    tx: &mut Tx,
    hash: &str,
    now: Timestamp,
) -> Result<Option<LoginRow>> {
    tx.sql(
        "DELETE FROM console_logins WHERE hash = $1 AND ends_at > $2 RETURNING issuer, return_to",
    )
    .bind(hash.to_owned())
    .bind(now)
    .fetch_optional()
    .await
}

/// Removes all sessions, links and logins.
pub(super) async fn clear(tx: &mut Tx) -> Result<()> {
    for statement in [
        "DELETE FROM console_sessions",
        "DELETE FROM console_links",
        "DELETE FROM console_logins",
    ] {
        tx.sql(statement).execute().await?;
    }
    Ok(())
}

/// Whether anything is past its end.
pub(super) async fn has_ended(tx: &mut Tx, now: Timestamp, used_before: Timestamp) -> Result<bool> {
    let found: i64 = tx
        .sql(
            "SELECT count(*) AS count FROM (
                SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM console_sessions WHERE ends_at <= $1)
                OR EXISTS (SELECT 1 FROM console_sessions WHERE used_at <= $2)
                OR EXISTS (SELECT 1 FROM console_links WHERE ends_at <= $1)
                OR EXISTS (SELECT 1 FROM console_logins WHERE ends_at <= $1)) found",
        )
        .bind(now)
        .bind(used_before)
        .fetch_scalar()
        .await?;
    Ok(found > 0)
}

/// Removes some of what is past its end; answers how many.
pub(super) async fn delete_ended(
    tx: &mut Tx,
    now: Timestamp,
    used_before: Timestamp,
) -> Result<u64> {
    let mut removed = 0;
    for (statement, before) in [
        (
            "DELETE FROM console_sessions WHERE hash IN (
                SELECT hash FROM console_sessions WHERE ends_at <= $1 ORDER BY ends_at, hash LIMIT $2)",
            now,
        ),
        (
            "DELETE FROM console_sessions WHERE hash IN (
                SELECT hash FROM console_sessions WHERE used_at <= $1 ORDER BY used_at, hash LIMIT $2)",
            used_before,
        ),
        (
            "DELETE FROM console_links WHERE hash IN (
                SELECT hash FROM console_links WHERE ends_at <= $1 ORDER BY ends_at, hash LIMIT $2)",
            now,
        ),
        (
            "DELETE FROM console_logins WHERE hash IN (
                SELECT hash FROM console_logins WHERE ends_at <= $1 ORDER BY ends_at, hash LIMIT $2)",
            now,
        ),
    ] {
        removed += tx.sql(statement).bind(before).bind(STEP).execute().await?;
    }
    Ok(removed)
}
