//! Push campaigns: what they say, whom they are for, and the forms in which they run (specification 2.5;
//! contract 9).

pub mod content;
pub mod ending;
pub mod http;
pub mod sending;
pub mod store;

use std::sync::Arc;

use nudge_db::{Timestamp, Tx};
use uuid::Uuid;

use crate::apps;
pub use crate::campaigns::Status;
use crate::campaigns::{Act, Kind, Running};
use crate::http::FieldError;
use crate::plugins::{self, CheckFailed, Deciders, Plugins};
use crate::runs;
pub use content::{Content, Mode, Variant};
pub use sending::{NotPrepared, Prepared, Sending};

/// Campaigns an app may have (contract 15).
pub const MOST: usize = 1_000;

/// A campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Its id.
    pub id: Uuid,
    /// The app that it belongs to.
    pub app_id: Uuid,
    /// Grows with each change.
    pub version: i64,
    /// What people wrote of it.
    pub content: Content,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it last became active.
    pub activated_at: Option<Timestamp>,
}

/// Why a campaign can't be saved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such campaign.
    #[error("no such campaign")]
    NotFound,
    /// The app has as many as it may.
    #[error("too many campaigns")]
    TooMany,
    /// Somebody changed it meanwhile.
    #[error("changed meanwhile")]
    VersionMismatch,
    /// It breaks the contract.
    #[error("invalid campaign")]
    Invalid(Vec<FieldError>),
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

impl From<plugins::Refused> for Error {
    fn from(refused: plugins::Refused) -> Self {
        match refused {
            plugins::Refused::Invalid(errors) => Self::Invalid(errors),
            plugins::Refused::Check(cause) => Self::Check(cause),
        }
    }
}

/// Everything that must hold before a campaign is saved. `before` is what it said until now: what plugins were
/// asked about then and has not changed is not asked again unless the campaign runs, so that one whose plugin
/// has become another can always be stopped.
pub async fn check(
    plugins: &Plugins,
    deciders: &Deciders,
    content: &Content,
    before: Option<&Content>,
) -> Result<(), Error> {
    let mut errors = content.check();
    if errors.is_empty() {
        errors.extend(content.plan().err().into_iter().flatten());
    }
    let runs = content.status == Status::Active;
    let terms_known = before.is_some_and(|before| {
        before.trigger == content.trigger && before.audience == content.audience
    });
    let asks = content.trigger.is_some() || content.audience.is_some();
    if asks && (runs || !terms_known) {
        match content.terms().configuration() {
            Ok(configuration) => {
                let accepted = configuration.accept(plugins, deciders, None).await;
                gather(accepted, "", &mut errors)?;
            }
            Err(wrong) => errors.extend(wrong),
        }
    }
    for (index, variant) in content
        .variants
        .iter()
        .enumerate()
        .take(content::MOST_VARIANTS)
    {
        let known = before.is_some_and(|before| before.variants.contains(variant));
        if runs || !known {
            check_personalization(
                plugins,
                deciders,
                variant,
                &format!("/variants/{index}"),
                &mut errors,
            )
            .await?;
        }
    }
    if !errors.is_empty() {
        return Err(Error::Invalid(errors));
    }
    if runs {
        let errors = content.not_activatable();
        if !errors.is_empty() {
            return Err(Error::NotActivatable(errors));
        }
    }
    Ok(())
}

/// Asks the personalization plugin what it has against a variant. What the host found already is not said twice.
pub async fn check_personalization(
    plugins: &Plugins,
    deciders: &Deciders,
    variant: &Variant,
    place: &str,
    errors: &mut Vec<FieldError>,
) -> Result<(), Error> {
    let Some(personalization) = &variant.personalization else {
        return Ok(());
    };
    let accepted = sending::configuration(personalization)
        .accept(plugins, deciders, None)
        .await;
    gather(accepted, place, errors)
}

/// Adds what a plugin found to what is known, unless the same place is wrong already.
fn gather<T>(
    outcome: Result<T, plugins::Refused>,
    place: &str,
    errors: &mut Vec<FieldError>,
) -> Result<(), Error> {
    match outcome {
        Ok(_) => Ok(()),
        Err(plugins::Refused::Invalid(found)) => {
            for error in found {
                let pointer = format!("{place}{}", error.pointer);
                if errors.iter().all(|known| known.pointer != pointer) {
                    errors.push(FieldError { pointer, ..error });
                }
            }
            Ok(())
        }
        Err(plugins::Refused::Check(cause)) => Err(cause.into()),
    }
}

/// The forms in which an active campaign runs: how it makes messages and, unless backends ask for each of them,
/// what it waits for. `before` are the forms in which it ran until now.
pub async fn run(
    plugins: &Plugins,
    deciders: &Deciders,
    campaign: &Campaign,
    before: (Option<&Sending>, Option<&Running>),
) -> Result<(Arc<Sending>, Option<Running>), Error> {
    let content = &campaign.content;
    let sending = Sending::prepare(
        plugins,
        deciders,
        campaign.id,
        campaign.version,
        content,
        before.0,
    );
    let sending = Arc::new(sending.await.map_err(|cause| match cause {
        NotPrepared::Refused(refused) => refused.into(),
        NotPrepared::Template(cause) => Error::Invalid(vec![FieldError::new(
            "/variants",
            "unknown_token",
            cause.to_string(),
        )]),
    })?);
    if content.mode == Mode::Transactional {
        return Ok((sending, None));
    }
    let configuration = content.terms().configuration().map_err(Error::Invalid)?;
    let before = before.1.map(|before| &before.accepted);
    let running = Running {
        id: campaign.id,
        version: campaign.version,
        priority: content.priority,
        accepted: configuration.accept(plugins, deciders, before).await?,
        rules: Arc::new(content.rules().map_err(Error::Invalid)?),
        act: Act::Send(Arc::clone(&sending)),
    };
    Ok((sending, Some(running)))
}

/// Adds a campaign.
pub async fn create(tx: &mut Tx, campaign: &Campaign) -> Result<(), Error> {
    // Before the count, so that two at once can't both find room.
    apps::store::touch(tx, campaign.app_id, campaign.created_at).await?;
    if store::count(tx, campaign.app_id).await? >= MOST {
        return Err(Error::TooMany);
    }
    store::insert(tx, campaign).await?;
    plan(tx, campaign, campaign.created_at).await
}

/// Replaces a campaign if nobody else did since it was read.
pub async fn update(tx: &mut Tx, campaign: &Campaign) -> Result<(), Error> {
    if !store::update(tx, campaign).await? {
        return Err(Error::VersionMismatch);
    }
    plan(tx, campaign, campaign.updated_at).await?;
    Ok(apps::store::touch(tx, campaign.app_id, campaign.updated_at).await?)
}

/// Notes when a campaign runs next.
async fn plan(tx: &mut Tx, campaign: &Campaign, now: Timestamp) -> Result<(), Error> {
    let planned = runs::Campaign {
        app_id: campaign.app_id,
        id: campaign.id,
        kind: Kind::Push,
        active: campaign.content.status == Status::Active,
        plan: campaign.content.plan().map_err(Error::Invalid)?,
    };
    Ok(runs::plan(tx, &planned, now).await?)
}

/// Sets an active campaign `completed`, as the server does when nothing is left to do; answers whether it was still
/// active.
pub async fn complete(
    tx: &mut Tx,
    app_id: Uuid,
    id: Uuid,
    now: Timestamp,
) -> nudge_db::Result<bool> {
    let Some(mut campaign) = store::find(tx, app_id, id).await? else {
        return Ok(false);
    };
    if campaign.content.status != Status::Active {
        return Ok(false);
    }
    campaign.content.status = Status::Completed;
    campaign.version += 1;
    campaign.updated_at = now;
    store::update(tx, &campaign).await
}

/// Removes a campaign with what plugins keep for it. Its deliveries stay: they are what became of it.
pub async fn delete(tx: &mut Tx, app_id: Uuid, id: Uuid, now: Timestamp) -> Result<(), Error> {
    if !store::delete(tx, app_id, id).await? {
        return Err(Error::NotFound);
    }
    Ok(apps::store::touch(tx, app_id, now).await?)
}
