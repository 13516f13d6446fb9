//! Linking anonymous ids to the person that a customer's backend knows (contract 2).

use nudge_db::{Db, Kind, Timestamp, Tx};
use nudge_http::{ApiError, Code};
use nudge_platform::audit::{self, Entry};
use serde_json::json;
use uuid::Uuid;

use super::merge::Dropped;
use super::suppression::Leave;
use super::{AliasKind, AliasView, merge, store, suppression};
use crate::pseudonyms::Pseudonyms;
use crate::segment_checks;

/// Names of one person. More are no devices of a person but a mistake in an integration, such as the same
/// external id for everybody.
pub const MOST_ALIASES: i64 = 2_000;
/// How often linking that meets others is tried.
const MOST_TRIES: usize = 8;

/// Who is to be linked.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// The app.
    pub app_id: Uuid,
    /// The SDK's id of the device.
    pub anonymous_id: &'a str,
    /// The customer's own id of the user.
    pub external_id: &'a str,
    /// When the customer's backend said that it is the user's.
    pub issued_at: Timestamp,
    /// Where the session is, for a person that is new.
    pub platform: Option<&'a str>,
    /// A browser session that is to be the person's.
    pub client_id: Option<Uuid>,
    /// Whether a campaign waits for who enters and leaves segments, so that somebody new is to be looked at.
    pub is_watched: bool,
}

impl<'a> Link<'a> {
    /// The names that are to be one person's.
    pub fn names(&self) -> [(AliasKind, &'a str); 2] {
        [
            (AliasKind::Anonymous, self.anonymous_id),
            (AliasKind::External, self.external_id),
        ]
    }
}

/// A person, linked.
#[derive(Debug)]
pub struct Linked {
    /// The person through the anonymous id.
    pub standing: AliasView,
    /// The anonymous subject that became part of the person.
    pub merged: Option<Uuid>,
}

impl Linked {
    /// The subjects whose polls are told: tokens of before may have been revoked.
    pub fn concerned(&self) -> impl Iterator<Item = Uuid> {
        self.merged.into_iter().chain([self.standing.subject_id])
    }
}

/// Why nothing was linked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The anonymous id is that of another identified person; two of those never become one.
    #[error("another person's anonymous id")]
    IdentityConflict,
    /// What is stored of one of the two was deleted on request, or is about to be.
    #[error("a deleted subject")]
    Suppressed,
    /// As [`Suppressed`](Self::Suppressed), and once everything of who was deleted then is erased, a new person begins.
    #[error("a subject that is being deleted")]
    Erasing(Timestamp),
    /// The person would have too many names.
    #[error("too many aliases")]
    TooMany,
    /// The browser session is another person's.
    #[error("another person's browser session")]
    ClientSessionInvalid,
    /// The database.
    #[error("the database refused a link")]
    Storage(#[from] nudge_db::Error),
}

/// Links an anonymous id to the person with an external id. A subject that the anonymous id had becomes part
/// of the person, in the same transaction.
///
/// Two calls at once do it once: whoever comes second finds what the first has done.
pub async fn link(
    db: &Db,
    pseudonyms: &Pseudonyms,
    link: Link<'_>,
    now: Timestamp,
) -> Result<Linked, Error> {
    if let Some(standing) = linked_already(db, link).await? {
        return Ok(Linked {
            standing,
            merged: None,
        });
    }
    let mut tries = 1;
    loop {
        let mut tx = db.write().await?;
        match attempt(&mut tx, pseudonyms, link, now).await {
            Ok(linked) => {
                tx.commit().await?;
                return Ok(linked);
            }
            // A name was taken, or a subject was merged, since it was looked up.
            Err(Error::Storage(error))
                if matches!(error.kind(), Kind::Conflict | Kind::Serialization)
                    && tries < MOST_TRIES =>
            {
                tries += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The person, if there is nothing to do, as for all sessions of a device but the first: no transaction that
/// writes.
async fn linked_already(db: &Db, link: Link<'_>) -> nudge_db::Result<Option<AliasView>> {
    if link.client_id.is_some() {
        return Ok(None);
    }
    let mut tx = db.read().await?;
    let (anonymous, external) = look_up(&mut tx, link).await?;
    let Some((anonymous, external)) = anonymous.zip(external) else {
        return Ok(None);
    };
    // Who begins anew under a name does not begin with what was said of the deleted person.
    let is_theirs = |name: &AliasView| name.events_after.is_none_or(|after| link.issued_at > after);
    let linked = anonymous.subject_id == external.subject_id
        && !anonymous.suppressed
        && is_theirs(&anonymous)
        && is_theirs(&external);
    Ok(linked.then_some(anonymous))
}

async fn attempt(
    tx: &mut Tx,
    pseudonyms: &Pseudonyms,
    link: Link<'_>,
    now: Timestamp,
) -> Result<Linked, Error> {
    let anew = begun_anew(tx, pseudonyms, link).await?;
    let before = look_up(tx, link).await?;
    let mut ids: Vec<Uuid> = before
        .0
        .iter()
        .chain(&before.1)
        .map(|one| one.subject_id)
        .collect();
    // One order for everybody, so that two that lock the same subjects don't deadlock.
    ids.sort_unstable();
    ids.dedup();
    for id in ids {
        store::lock_found(tx, link.app_id, id).await?;
    }
    let (anonymous, external) = look_up(tx, link).await?;
    let subject = |standing: &Option<AliasView>| standing.as_ref().map(|one| one.subject_id);
    if (subject(&anonymous), subject(&external)) != (subject(&before.0), subject(&before.1)) {
        return Err(nudge_db::Error::lost_race().into());
    }
    if anonymous.iter().chain(&external).any(|one| one.suppressed) {
        return Err(Error::Suppressed);
    }
    let merged = unite(tx, pseudonyms, link, anonymous, external, now).await?;
    for (kind, name, after) in anew {
        store::begin_anew(tx, link.app_id, kind, name, after).await?;
    }
    let standing = store::find(tx, link.app_id, AliasKind::Anonymous, link.anonymous_id).await?;
    let standing = standing.ok_or_else(nudge_db::Error::lost_race)?;
    if store::count_aliases(tx, link.app_id, standing.subject_id).await? > MOST_ALIASES {
        return Err(Error::TooMany);
    }
    if let Some(client_id) = link.client_id {
        let subject_id = standing.subject_id;
        if !store::bind_client(tx, link.app_id, client_id, subject_id, now).await? {
            return Err(Error::ClientSessionInvalid);
        }
    }
    Ok(Linked { standing, merged })
}

/// Those of the names that somebody had who was deleted, and until when; refused unless the link is of after that.
async fn begun_anew<'a>(
    tx: &mut Tx,
    pseudonyms: &Pseudonyms,
    link: Link<'a>,
) -> Result<Vec<(AliasKind, &'a str, Timestamp)>, Error> {
    let mut anew = Vec::new();
    for (kind, name) in link.names() {
        let entry = suppression::of_name(tx, pseudonyms, link.app_id, kind, name).await?;
        let Some(entry) = entry else { continue };
        match entry.leave(link.issued_at) {
            Leave::Never => return Err(Error::Suppressed),
            Leave::Later => return Err(Error::Erasing(entry.since)),
            Leave::Now => anew.push((kind, name, entry.since)),
        }
    }
    Ok(anew)
}

/// The subjects behind the anonymous and the external id.
async fn look_up(
    tx: &mut Tx,
    link: Link<'_>,
) -> nudge_db::Result<(Option<AliasView>, Option<AliasView>)> {
    // In this order: who finds both linked has then read the anonymous id as of after the linking, with the
    // tokens that were revoked by it.
    let external = store::find(tx, link.app_id, AliasKind::External, link.external_id).await?;
    let anonymous = store::find(tx, link.app_id, AliasKind::Anonymous, link.anonymous_id).await?;
    Ok((anonymous, external))
}

/// Makes both names those of one subject; answers which one became part of the other.
async fn unite(
    tx: &mut Tx,
    pseudonyms: &Pseudonyms,
    link: Link<'_>,
    anonymous: Option<AliasView>,
    external: Option<AliasView>,
    now: Timestamp,
) -> Result<Option<Uuid>, Error> {
    let Link {
        app_id,
        anonymous_id,
        external_id,
        platform,
        is_watched,
        ..
    } = link;
    let conflicts = |found: &AliasView| {
        let known = found.external_id.as_deref();
        known.is_some_and(|known| known != external_id)
    };
    match (anonymous, external) {
        (Some(anonymous), _) if conflicts(&anonymous) => Err(Error::IdentityConflict),
        (Some(anonymous), Some(external)) if anonymous.subject_id == external.subject_id => {
            Ok(None)
        }
        (Some(anonymous), Some(external)) => {
            let (winner, loser) = (external.subject_id, anonymous.subject_id);
            let dropped = merge::merge(tx, app_id, winner, loser, now).await?;
            if dropped.is_any() {
                let person = pseudonyms.subject(app_id, winner);
                audit::record(tx, &entry(app_id, &person, dropped), now).await?;
            }
            Ok(Some(loser))
        }
        (Some(anonymous), None) => {
            let subject_id = anonymous.subject_id;
            store::identify(tx, app_id, subject_id, external_id).await?;
            let kind = AliasKind::External;
            store::insert_alias(tx, app_id, kind, external_id, subject_id, now).await?;
            Ok(None)
        }
        (None, external) => {
            let subject_id = if let Some(external) = external {
                external.subject_id
            } else {
                let kind = AliasKind::External;
                let made = store::insert(tx, app_id, kind, external_id, platform, now).await?;
                if is_watched {
                    segment_checks::note(tx, app_id, &[made.subject_id]).await?;
                }
                made.subject_id
            };
            let kind = AliasKind::Anonymous;
            store::insert_alias(tx, app_id, kind, anonymous_id, subject_id, now).await?;
            Ok(None)
        }
    }
}

/// What the audit log says of a merge that dropped something: how much, and nothing of the person's.
fn entry(app_id: Uuid, person: &str, dropped: Dropped) -> Entry<'static> {
    Entry {
        app_id,
        actor: audit::SERVER,
        action: "person.merged",
        resource: format!("person/{person}"),
        detail: json!({"dropped": dropped}),
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::IdentityConflict => Self::new(Code::IdentityConflict),
            Error::Suppressed | Error::Erasing(_) => Self::new(Code::NotFound),
            Error::TooMany => {
                let detail = format!("a person has at most {MOST_ALIASES} ids");
                Self::because(Code::LimitExceeded, detail)
            }
            Error::ClientSessionInvalid => Self::new(Code::ClientSessionInvalid),
            Error::Storage(error) => error.into(),
        }
    }
}
