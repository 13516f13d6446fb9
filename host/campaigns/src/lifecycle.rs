//! Campaigns as they are saved: what surveys and push campaigns have in common before they run.

use std::future::Future;

use nudge_db::{Timestamp, Tx};
use nudge_http::{ApiError, Code};
use nudge_platform::audit::{self, Entry};
use nudge_platform::field_error::FieldError;
use nudge_plugin_runtime::{CheckFailed, Refused};
use serde_json::json;
use uuid::Uuid;

use crate::campaign::{Kind, Status, size};
use crate::runs::{self, Plan};

/// Campaigns of a kind that an app may have (contract 15).
pub const MOST: usize = 1_000;

/// A campaign, with what people wrote of it.
#[derive(Clone, Debug)]
pub struct Campaign<C> {
    /// Its id.
    pub id: Uuid,
    /// The app that it belongs to.
    pub app_id: Uuid,
    /// Grows with each change.
    pub version: i64,
    /// What people wrote of it.
    pub content: C,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it last became active.
    pub activated_at: Option<Timestamp>,
}

/// What people write of campaigns of a kind, and where those are kept.
pub trait Content: Sized + Send + Sync {
    /// The kind.
    const KIND: Kind;

    /// Where the campaign stands.
    fn status(&self) -> Status;

    /// Puts it elsewhere.
    fn set_status(&mut self, status: Status);

    /// When it runs by the calendar; none: by what people do.
    fn plan(&self) -> Result<Option<Plan>, Vec<FieldError>>;

    /// How many an app has.
    fn count(tx: &mut Tx, app_id: Uuid) -> impl Future<Output = nudge_db::Result<usize>> + Send;

    /// Adds one.
    fn insert(
        tx: &mut Tx,
        campaign: &Campaign<Self>,
    ) -> impl Future<Output = nudge_db::Result<()>> + Send;

    /// Replaces the version before; answers whether that was the current one.
    fn replace(
        tx: &mut Tx,
        campaign: &Campaign<Self>,
    ) -> impl Future<Output = nudge_db::Result<bool>> + Send;

    /// Finds one.
    fn find(
        tx: &mut Tx,
        app_id: Uuid,
        id: Uuid,
    ) -> impl Future<Output = nudge_db::Result<Option<Campaign<Self>>>> + Send;

    /// Those that run and whose schedule is over, of all apps.
    fn ended(
        tx: &mut Tx,
        now: Timestamp,
        limit: i64,
    ) -> impl Future<Output = nudge_db::Result<Vec<Campaign<Self>>>> + Send;

    /// When the next schedule is over of those that run, of all apps.
    fn next_end(tx: &mut Tx) -> impl Future<Output = nudge_db::Result<Option<Timestamp>>> + Send;
}

/// Why a campaign can't be saved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such campaign.
    #[error("no such campaign")]
    NotFound,
    /// The app has as many of the kind as it may.
    #[error("too many campaigns")]
    TooMany(Kind),
    /// It is larger than one may be.
    #[error("too large a campaign")]
    TooLarge,
    /// It has more values than one may have.
    #[error("too many values in a campaign")]
    TooMuch,
    /// With it the app's surveys and campaigns are larger than all may be.
    #[error("too large campaigns")]
    TooLargeTogether,
    /// Somebody changed it meanwhile.
    #[error("changed meanwhile")]
    VersionMismatch,
    /// It breaks the contract.
    #[error("invalid campaign")]
    Invalid(Vec<FieldError>),
    /// A survey's flow can't be walked.
    #[error("invalid flow")]
    InvalidFlow(Vec<FieldError>),
    /// It can't run as it is.
    #[error("not activatable")]
    NotActivatable(Vec<FieldError>),
    /// A plugin could not be asked.
    #[error("a plugin could not be asked")]
    Check(#[from] CheckFailed),
    /// The database.
    #[error("storage failed")]
    Storage(#[from] nudge_db::Error),
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Invalid(errors) => Self::Invalid(errors),
            Refused::Check(cause) => Self::Check(cause),
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => Self::new(Code::NotFound),
            Error::TooMany(kind) => {
                let what = match kind {
                    Kind::Survey => "surveys",
                    Kind::Push => "campaigns",
                };
                let detail = format!("an app has at most {MOST} {what}");
                Self::because(Code::LimitExceeded, detail)
            }
            Error::TooLarge => {
                let detail = format!("it has at most {} bytes as JSON", size::MOST_BYTES);
                Self::because(Code::LimitExceeded, detail)
            }
            Error::TooMuch => {
                let detail = "it has far more values than its length is good for";
                Self::because(Code::LimitExceeded, detail)
            }
            Error::TooLargeTogether => {
                let detail = format!(
                    "the surveys, campaigns and event definitions of an app have at most {} bytes as JSON together; remove some first",
                    size::MOST_TOTAL
                );
                Self::because(Code::LimitExceeded, detail)
            }
            Error::VersionMismatch => Self::overtaken(),
            Error::Invalid(errors) => Self::fields(Code::ValidationFailed, errors),
            Error::InvalidFlow(errors) => Self::fields(Code::InvalidFlow, errors),
            Error::NotActivatable(errors) => Self::fields(Code::NotActivatable, errors),
            Error::Check(cause) => Self::unavailable(cause),
            Error::Storage(cause) => cause.into(),
        }
    }
}

impl<C: Content> Campaign<C> {
    /// A new one.
    pub fn new(id: Uuid, app_id: Uuid, content: C, now: Timestamp) -> Self {
        Self {
            id,
            app_id,
            version: 1,
            activated_at: (content.status() == Status::Active).then_some(now),
            content,
            created_at: now,
            updated_at: now,
        }
    }

    /// The next version, and whether the campaign becomes active with it.
    #[must_use]
    pub fn changed(self, content: C, now: Timestamp) -> (Self, bool) {
        let activated =
            content.status() == Status::Active && self.content.status() != Status::Active;
        let changed = Self {
            version: self.version + 1,
            content,
            updated_at: now,
            activated_at: if activated {
                Some(now)
            } else {
                self.activated_at
            },
            ..self
        };
        (changed, activated)
    }

    /// The next version, completed.
    fn completed(mut self, now: Timestamp) -> Self {
        self.version += 1;
        self.content.set_status(Status::Completed);
        self.updated_at = now;
        self
    }
}

/// Where a campaign stands; none: it is gone.
pub async fn status<C: Content>(
    tx: &mut Tx,
    app_id: Uuid,
    id: Uuid,
) -> nudge_db::Result<Option<Status>> {
    let found = C::find(tx, app_id, id).await?;
    Ok(found.map(|campaign| campaign.content.status()))
}

/// Adds a campaign.
pub async fn create<C: Content>(tx: &mut Tx, campaign: &Campaign<C>) -> Result<(), Error> {
    // Before the count, so that two at once can't both find room.
    crate::apps::bump_version(tx, campaign.app_id, campaign.created_at).await?;
    if C::count(tx, campaign.app_id).await? >= MOST {
        return Err(Error::TooMany(C::KIND));
    }
    C::insert(tx, campaign).await?;
    plan(tx, campaign, campaign.created_at).await
}

/// Replaces a campaign if nobody else did since it was read.
pub async fn update<C: Content>(tx: &mut Tx, campaign: &Campaign<C>) -> Result<(), Error> {
    if !C::replace(tx, campaign).await? {
        return Err(Error::VersionMismatch);
    }
    plan(tx, campaign, campaign.updated_at).await?;
    Ok(crate::apps::bump_version(tx, campaign.app_id, campaign.updated_at).await?)
}

/// Notes when a campaign runs next.
async fn plan<C: Content>(
    tx: &mut Tx,
    campaign: &Campaign<C>,
    now: Timestamp,
) -> Result<(), Error> {
    let planned = runs::Campaign {
        app_id: campaign.app_id,
        id: campaign.id,
        kind: C::KIND,
        active: campaign.content.status() == Status::Active,
        plan: campaign.content.plan().map_err(Error::Invalid)?,
    };
    Ok(runs::plan(tx, &planned, now).await?)
}

/// Sets an active campaign `completed`, as the server does when nothing is left to do; answers whether it was still
/// active. Its runs are the caller's.
pub async fn complete<C: Content>(
    tx: &mut Tx,
    app_id: Uuid,
    id: Uuid,
    now: Timestamp,
) -> nudge_db::Result<bool> {
    match C::find(tx, app_id, id).await? {
        Some(campaign) if campaign.content.status() == Status::Active => {
            C::replace(tx, &campaign.completed(now)).await
        }
        _ => Ok(false),
    }
}

/// Sets a campaign `completed` that is as it was read, as the server does when it is over. The app is to be read anew
/// after the commit.
pub async fn end<C: Content>(
    tx: &mut Tx,
    campaign: Campaign<C>,
    because: &'static str,
    now: Timestamp,
) -> Result<(), Error> {
    let ended = campaign.completed(now);
    let (action, resource) = match C::KIND {
        Kind::Survey => ("survey.completed", "survey"),
        Kind::Push => ("campaign.completed", "campaign"),
    };
    let entry = Entry {
        app_id: ended.app_id,
        actor: audit::SERVER,
        action,
        resource: format!("{resource}/{}", ended.id),
        detail: json!({"version": ended.version, "status": Status::Completed, "because": because}),
    };
    audit::record(tx, &entry, now).await?;
    update(tx, &ended).await
}
