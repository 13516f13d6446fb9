//! Privacy: copies of what is stored of a person, and its deletion (specification 2.10 and 4.1, contract 6).

pub mod again;
pub mod deletion;
pub mod exports;
pub mod http;
pub mod receipt;
mod store;

use nudge_db::{Timestamp, Tx};
use nudge_pipeline::{backtest, places};
use nudge_platform::audit::{self, Entry};
use nudge_platform::jobs::{self, NewJob};
use nudge_records::pseudonyms::Pseudonyms;
use nudge_records::subjects::{self, AliasKind};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::Deleted;
use uuid::Uuid;

/// How a request names a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reference {
    /// By the customer's own id.
    ExternalId(String),
    /// By an anonymous id, whichever.
    AnonymousId(String),
}

impl Reference {
    /// The alias that it names.
    pub fn alias(&self) -> (AliasKind, &str) {
        match self {
            Self::ExternalId(value) => (AliasKind::External, value),
            Self::AnonymousId(value) => (AliasKind::Anonymous, value),
        }
    }
}

/// The deletion of a person's data.
#[derive(Clone, Copy, Debug)]
pub struct Queued {
    /// Its job.
    pub job_id: Uuid,
    /// Whose data it is, if this request queued it; none if it was queued before.
    pub newly: Option<Uuid>,
}

/// Queues the deletion of a person's data, and from then on nothing more is stored or shown. None: there is no
/// such person. While a deletion runs, asking again answers the same one.
pub async fn delete(
    tx: &mut Tx,
    pseudonyms: &Pseudonyms,
    app_id: Uuid,
    reference: &Reference,
    actor: &str,
    now: Timestamp,
) -> nudge_db::Result<Option<Queued>> {
    let (kind, value) = reference.alias();
    let hash = pseudonyms.alias(app_id, kind, value);
    let Some(subject_id) = subjects::store::find_owner(tx, app_id, kind, value).await? else {
        let running = running(tx, app_id, &hash).await?;
        return Ok(running.map(|job_id| Queued {
            job_id,
            newly: None,
        }));
    };
    // Where it was merged into another meanwhile, that one is the person.
    subjects::store::lock_found(tx, app_id, subject_id).await?;
    let newly = store::suppress(tx, app_id, subject_id).await?;
    if !newly && let Some(job_id) = running(tx, app_id, &hash).await? {
        return Ok(Some(Queued {
            job_id,
            newly: None,
        }));
    }
    let job_id = queue(tx, pseudonyms, app_id, subject_id, actor, (now, now)).await?;
    Ok(Some(Queued {
        job_id,
        newly: Some(subject_id),
    }))
}

/// Queues the deletion of a subject that has just been suppressed, now. Its names count as deleted since another instant.
async fn queue(
    tx: &mut Tx,
    pseudonyms: &Pseudonyms,
    app_id: Uuid,
    subject_id: Uuid,
    actor: &str,
    (since, now): (Timestamp, Timestamp),
) -> nudge_db::Result<Uuid> {
    let job = NewJob {
        app_id,
        kind: deletion::KIND,
        input: json!({"subjectId": subject_id}),
        requested_by: actor,
    };
    let deleted = Deleted {
        app_id,
        subject_id,
        job_id: jobs::queue(tx, &job, now).await?,
    };
    subjects::store::revoke_all_tokens(tx, app_id, subject_id).await?;
    // What was made of the person's data before must not be had any longer either.
    exports::end(tx, app_id, subject_id).await?;
    erase_samples(tx, app_id, subject_id).await?;
    suppress_names(tx, pseudonyms, deleted, since).await?;
    let entry = Entry {
        app_id,
        actor,
        action: "person.deletion_queued",
        resource: format!("job/{}", deleted.job_id),
        detail: json!({"person": pseudonyms.subject(app_id, subject_id)}),
    };
    audit::record(tx, &entry, now).await?;
    Ok(deleted.job_id)
}

/// The deletion that a name was suppressed by, if it has not ended.
async fn running(tx: &mut Tx, app_id: Uuid, hash: &str) -> nudge_db::Result<Option<Uuid>> {
    let Some(entry) = subjects::suppression::of_hash(tx, app_id, hash).await? else {
        return Ok(None);
    };
    let job = jobs::store::find(tx, app_id, entry.job_id).await?;
    Ok(job
        .filter(|job| job.completed_at.is_none())
        .map(|job| job.id))
}

/// All ids that a person has or had, before others became part of it.
async fn ids(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> nudge_db::Result<Vec<Uuid>> {
    let mut ids = store::merged(tx, app_id, subject_id).await?;
    ids.push(subject_id);
    Ok(ids)
}

/// Takes a person out of the results of backtests, which show a few events with whose they are.
async fn erase_samples(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> nudge_db::Result<()> {
    for id in ids(tx, app_id, subject_id).await? {
        backtest::erase_subject(tx, app_id, id).await?;
    }
    Ok(())
}

/// Moves every place among people that is at a person to somebody else.
async fn leave_places(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> nudge_db::Result<()> {
    for id in ids(tx, app_id, subject_id).await? {
        places::move_back(tx, app_id, id).await?;
    }
    Ok(())
}

/// Puts all names of a person on the suppression list; to be done again when more may have come.
async fn suppress_names(
    tx: &mut Tx,
    pseudonyms: &Pseudonyms,
    deleted: Deleted,
    since: Timestamp,
) -> nudge_db::Result<()> {
    let mut after = 0;
    loop {
        let aliases = store::aliases(tx, deleted.app_id, deleted.subject_id, after).await?;
        let Some(last) = aliases.last() else { break };
        after = last.number;
        for alias in &aliases {
            let hash = pseudonyms.named(deleted.app_id, &alias.kind, &alias.value);
            store::add(tx, deleted, hash, Some(alias.number), since).await?;
        }
    }
    let external_id = subjects::store::external_id(tx, deleted.app_id, deleted.subject_id).await?;
    if let Some(external_id) = external_id {
        let hash = pseudonyms.alias(deleted.app_id, AliasKind::External, &external_id);
        store::add(tx, deleted, hash, None, since).await?;
    }
    Ok(())
}
