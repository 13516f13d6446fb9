//! Subjects: the people behind events, their aliases, sessions and consent.

pub mod current;
pub mod identity;
pub mod link;
mod merge;
pub mod named;
pub mod store;
pub mod suppression;

use nudge_apps::App;
use nudge_db::{Db, Kind, Timestamp};
use strum::IntoStaticStr;
use uuid::Uuid;

use crate::pseudonyms::Pseudonyms;
use crate::segment_checks;
use suppression::Leave;

/// What kind of name an alias is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum AliasKind {
    /// Made by an SDK.
    Anonymous,
    /// The customer's own id of the user, for events that its servers send.
    External,
    /// Made by the server, for what it notes of a subject by itself. Nobody can name it.
    System,
}

impl AliasKind {
    /// The kind's name in the database.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A subject as seen through one of its aliases.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub struct AliasView {
    /// The alias.
    pub alias: i64,
    /// Moves on when tokens of the alias are revoked.
    pub token_epoch: i64,
    /// The subject.
    pub subject_id: Uuid,
    /// The customer's own id of the user, once identified.
    pub external_id: Option<String>,
    /// Consent to analytics, if it was ever given or refused.
    pub analytics_consent: Option<bool>,
    /// Consent to messages, if it was ever given or refused.
    pub messaging_consent: Option<bool>,
    /// When consent was last given or refused.
    pub consent_at: Option<Timestamp>,
    /// Whether nothing more may be stored of the subject.
    pub suppressed: bool,
    /// Until when somebody who was deleted had the alias's name: events of before are not this subject's.
    pub events_after: Option<Timestamp>,
}

/// A standing, as of a version of its subject.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub struct Versioned {
    /// The standing.
    #[sqlx(flatten)]
    pub standing: AliasView,
    /// Moves on with every change of the subject and of what plugins keep of it.
    pub version: i64,
    /// The version of the subject's app.
    pub app_version: i64,
    /// Whether clients know the subject under another alias too.
    pub has_others: bool,
}

/// The alias of whoever comes back under a name of somebody who was deleted: it is nobody's. Sessions are granted,
/// so that SDKs can get rid of what they have gathered, and nothing of it is stored.
pub const NOBODY: i64 = 0;

impl AliasView {
    /// Of whoever comes back under a name of somebody who was deleted.
    pub fn nobody(subject_id: Uuid) -> Self {
        Self {
            alias: NOBODY,
            token_epoch: 0,
            subject_id,
            external_id: None,
            analytics_consent: Some(false),
            messaging_consent: Some(false),
            consent_at: None,
            suppressed: true,
            events_after: None,
        }
    }

    /// As [`nobody`](Self::nobody) for as long as who was deleted, at this instant, is being erased: what is of after it is
    /// a new person's, who begins then.
    pub fn nobody_yet(subject_id: Uuid, deleted_at: Timestamp) -> Self {
        Self {
            events_after: Some(deleted_at),
            ..Self::nobody(subject_id)
        }
    }

    /// Whether it is nobody's for now only.
    pub fn is_nobody_yet(&self) -> bool {
        self.is_nobody() && self.events_after.is_some()
    }

    /// Whether it is nobody's.
    pub fn is_nobody(&self) -> bool {
        self.alias == NOBODY
    }

    /// Whether events and properties may be stored.
    pub fn may_analyze(&self, app: &App) -> bool {
        app.settings.consent.grants(self.analytics_consent)
    }

    /// Whether something may be presented or sent.
    pub fn may_message(&self, app: &App) -> bool {
        app.settings.consent.grants(self.messaging_consent)
    }
}

/// Finds the subject of an alias, or makes an anonymous one. Under a name of somebody who was deleted, or is
/// about to be, there is [`NOBODY`].
///
/// Two calls at once make one subject: the loser of the race finds the winner's. `is_watched`: a campaign waits for who enters and
/// leaves segments, so that somebody new is to be looked at.
pub async fn ensure(
    db: &Db,
    pseudonyms: &Pseudonyms,
    (app_id, is_watched): (Uuid, bool),
    kind: AliasKind,
    value: &str,
    platform: Option<&str>,
    now: Timestamp,
) -> nudge_db::Result<AliasView> {
    let nobody = || AliasView::nobody(pseudonyms.nobody(app_id, kind, value));
    let mut tx = db.read().await?;
    if let Some(standing) = store::find(&mut tx, app_id, kind, value).await? {
        return Ok(if standing.suppressed {
            nobody()
        } else {
            standing
        });
    }
    drop(tx);
    let mut tx = db.write().await?;
    let suppression = suppression::of_name(&mut tx, pseudonyms, app_id, kind, value).await?;
    if suppression.is_some() {
        return Ok(nobody());
    }
    match store::insert(&mut tx, app_id, kind, value, platform, now).await {
        Ok(standing) => {
            if is_watched {
                segment_checks::note(&mut tx, app_id, &[standing.subject_id]).await?;
            }
            tx.commit().await?;
            Ok(standing)
        }
        Err(error) if error.kind() == Kind::Conflict => {
            drop(tx);
            found(db, app_id, kind, value, error).await
        }
        Err(error) => Err(error),
    }
}

/// Who took a name first. The caller has given its connection back: two a request would leave none for anybody where many
/// race.
async fn found(
    db: &Db,
    app_id: Uuid,
    kind: AliasKind,
    value: &str,
    taken: nudge_db::Error,
) -> nudge_db::Result<AliasView> {
    let mut tx = db.read().await?;
    let standing = store::find(&mut tx, app_id, kind, value).await?;
    standing.ok_or(taken)
}

/// What there is for a backend that brings events under an external id of somebody who was deleted.
#[derive(Debug)]
pub enum Anew {
    /// A new person.
    Begun(AliasView),
    /// Nothing yet: the deleted one is not erased.
    Later,
    /// Nothing: no event is of after the deletion.
    Never,
}

/// Begins a new person under an external id of somebody who was deleted, if an event is of after the deletion.
///
/// Two calls at once begin one person, as with [`ensure`].
pub async fn begin_anew(
    db: &Db,
    pseudonyms: &Pseudonyms,
    app_id: Uuid,
    external_id: &str,
    latest: Timestamp,
    now: Timestamp,
) -> nudge_db::Result<Anew> {
    let kind = AliasKind::External;
    let mut tx = db.write().await?;
    let entry = suppression::of_name(&mut tx, pseudonyms, app_id, kind, external_id).await?;
    let Some(entry) = entry else {
        return Ok(Anew::Never);
    };
    match entry.leave(latest) {
        Leave::Never => return Ok(Anew::Never),
        Leave::Later => return Ok(Anew::Later),
        Leave::Now => {}
    }
    match store::insert(&mut tx, app_id, kind, external_id, None, now).await {
        Ok(standing) => {
            store::begin_anew(&mut tx, app_id, kind, external_id, entry.since).await?;
            tx.commit().await?;
            Ok(Anew::Begun(AliasView {
                events_after: Some(entry.since),
                ..standing
            }))
        }
        Err(error) if error.kind() == Kind::Conflict => {
            drop(tx);
            let standing = found(db, app_id, kind, external_id, error).await?;
            Ok(Anew::Begun(standing))
        }
        Err(error) => Err(error),
    }
}
