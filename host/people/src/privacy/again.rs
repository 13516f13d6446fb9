//! Deletions of a later state of a database, done again on one that was restored.
//!
//! A backup brings back who was deleted after it was made. The later state knows them by keyed hashes of their names, which the key in
//! the backup makes as well.

use std::collections::BTreeMap;

use nudge_db::{Db, Timestamp, Tx};
use nudge_records::pseudonyms::Pseudonyms;
use nudge_records::subjects::AliasKind;
use uuid::Uuid;

use super::queue;
use super::store::{self, Deleted, Owner};

/// Rows that are read together.
const PAGE: i64 = 1_000;
/// Who asks for the deletions, in the audit log.
const ACTOR: &str = "restore";

/// A name on the suppression list.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub(super) struct Entry {
    pub app_id: Uuid,
    pub hash: String,
    pub job_id: Uuid,
    pub created_at: Timestamp,
}

/// What was done again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Again {
    /// People whose deletion is queued.
    pub people: u64,
    /// Names that nothing of before their deletion is stored of any longer.
    pub names: u64,
}

/// Queues the deletion of everybody in a database who was deleted in a later state of it, and suppresses their names. To be done
/// before a server runs on it. Done twice, it does nothing the second time.
pub async fn delete_again(
    db: &Db,
    later: &Db,
    pseudonyms: &Pseudonyms,
    now: Timestamp,
) -> nudge_db::Result<Again> {
    let mut missing = missing(db, later).await?;
    let names = missing.len() as u64;
    let mut people = 0;
    let mut after = 0;
    loop {
        let mut tx = db.write().await?;
        let aliases = store::all_aliases(&mut tx, after, PAGE).await?;
        let Some(last) = aliases.last() else { break };
        after = last.number;
        for alias in &aliases {
            let hash = pseudonyms.named(alias.owner.app_id, &alias.kind, &alias.value);
            if let Some(entry) = missing.remove(&(alias.owner.app_id, hash)) {
                people += queue_once(&mut tx, pseudonyms, &alias.owner, &entry, now).await?;
            }
        }
        tx.commit().await?;
    }
    let mut after = Uuid::nil();
    loop {
        let mut tx = db.write().await?;
        let users = store::all_users(&mut tx, after, PAGE).await?;
        let Some(last) = users.last() else { break };
        after = last.owner.subject_id;
        for user in &users {
            let app_id = user.owner.app_id;
            let hash = pseudonyms.alias(app_id, AliasKind::External, &user.external_id);
            if let Some(entry) = missing.remove(&(app_id, hash)) {
                people += queue_once(&mut tx, pseudonyms, &user.owner, &entry, now).await?;
            }
        }
        tx.commit().await?;
    }
    // Names of people who came after the backup: what is of before their deletion may still arrive.
    let mut tx = db.write().await?;
    for ((app_id, hash), entry) in missing {
        let deleted = Deleted {
            app_id,
            subject_id: Uuid::nil(),
            job_id: entry.job_id,
        };
        store::add(&mut tx, deleted, hash, None, entry.created_at).await?;
    }
    tx.commit().await?;
    Ok(Again { people, names })
}

/// Queues the deletion of a person who was found under a name, once for all of the person's names. What came under a name after
/// the deletion in the later state is somebody else's. Answers how many deletions that makes.
async fn queue_once(
    tx: &mut Tx,
    pseudonyms: &Pseudonyms,
    owner: &Owner,
    entry: &Entry,
    now: Timestamp,
) -> nudge_db::Result<u64> {
    let Owner { app_id, subject_id } = *owner;
    let is_first = store::suppress(tx, app_id, subject_id).await?;
    if is_first {
        let since = entry.created_at;
        queue(tx, pseudonyms, app_id, subject_id, ACTOR, (since, now)).await?;
    }
    // The later state may have deleted one of the names once more than the others.
    store::move_on(tx, entry).await?;
    Ok(u64::from(is_first))
}

/// The names that a later state has on its list and this one has not, or has since an earlier deletion.
async fn missing(db: &Db, later: &Db) -> nudge_db::Result<BTreeMap<(Uuid, String), Entry>> {
    let mut missing = BTreeMap::new();
    let mut after = (Uuid::nil(), String::new());
    loop {
        let mut theirs = later.read().await?;
        let page = store::entries(&mut theirs, &after, PAGE).await?;
        drop(theirs);
        let Some(last) = page.last() else {
            return Ok(missing);
        };
        after = (last.app_id, last.hash.clone());
        let mut ours = db.read().await?;
        for entry in page {
            if !is_known(&mut ours, &entry).await? {
                missing.insert((entry.app_id, entry.hash.clone()), entry);
            }
        }
    }
}

async fn is_known(tx: &mut Tx, entry: &Entry) -> nudge_db::Result<bool> {
    let known =
        nudge_records::subjects::suppression::of_hash(tx, entry.app_id, &entry.hash).await?;
    Ok(known.is_some_and(|known| known.since >= entry.created_at))
}
