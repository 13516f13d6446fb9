//! Push campaigns: what they say, whom they are for, and the forms in which they run (specification 2.5;
//! contract 9).

pub mod action;
pub mod content;
pub mod link;
pub mod message;
pub mod options;
pub mod personalization;
pub mod rendered;
pub mod sending;
pub mod template;
pub(crate) mod tokens;
pub mod verdict;

use std::sync::Arc;

use nudge_db::{Timestamp, Tx};
use serde_json::Value;
use uuid::Uuid;

pub use crate::campaign::Status;
use crate::campaign::{ActiveCampaign, CampaignAction, Kind};
use crate::lifecycle;
pub use crate::lifecycle::{Error, create, update};
use crate::runs::Plan;
use crate::segments::Audiences;
use crate::store;
use crate::targeting::Rules;
use crate::trigger::Terms;
pub use content::{Content, Mode, Variant};
use nudge_platform::field_error::FieldError;
use nudge_plugin_runtime as plugins;
use nudge_plugin_runtime::{Deciders, Plugins};
pub use sending::{NotPrepared, Prepared, Sending};

/// A campaign.
pub type Campaign = lifecycle::Campaign<Content>;

impl lifecycle::Content for Content {
    const KIND: Kind = Kind::Push;
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[
        ("type", r#""push""#),
        ("mode", r#""triggered""#),
        ("status", r#""draft""#),
        ("priority", "0"),
        ("variants", "[]"),
    ];

    fn status(&self) -> Status {
        self.status
    }

    fn plan(&self) -> Result<Option<Plan>, Vec<FieldError>> {
        Self::plan(self)
    }

    fn terms(&self) -> Terms<'_> {
        Self::terms(self)
    }

    fn rules(&self) -> Result<Rules, Vec<FieldError>> {
        Self::rules(self)
    }
}

/// Everything that must hold before a campaign is saved. `before` is what it said until now: what plugins were
/// asked about then and has not changed is not asked again unless the campaign runs, so that one whose plugin
/// has become another can always be stopped.
pub async fn check(
    plugins: &Plugins,
    deciders: &Deciders,
    segments: &Audiences,
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
        match content.terms().configuration(segments) {
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
                variant.personalization.as_ref(),
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
    personalization: Option<&Value>,
    place: &str,
    errors: &mut Vec<FieldError>,
) -> Result<(), Error> {
    let Some(personalization) = personalization else {
        return Ok(());
    };
    let accepted = sending::configuration(personalization)
        .accept(plugins, deciders, None)
        .await;
    gather(accepted, place, errors)
}

/// Adds what a plugin found to what is known, unless the same place is wrong already.
pub(crate) fn gather<T>(
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
    segments: &Audiences,
    campaign: &Campaign,
    before: (Option<&Sending>, Option<&ActiveCampaign>),
) -> Result<(Arc<Sending>, Option<ActiveCampaign>), Error> {
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
    let configuration = content
        .terms()
        .configuration(segments)
        .map_err(Error::Invalid)?;
    let before = before.1.map(|before| &before.accepted);
    let running = ActiveCampaign {
        id: campaign.id,
        version: campaign.version,
        priority: content.priority,
        accepted: configuration.accept(plugins, deciders, before).await?,
        rules: Arc::new(content.rules().map_err(Error::Invalid)?),
        act: CampaignAction::Send(Arc::clone(&sending)),
        watch: content.terms().watch(),
    };
    Ok((sending, Some(running)))
}

/// Removes a campaign with what plugins keep for it. Its deliveries stay: they are what became of it.
pub async fn delete(tx: &mut Tx, app_id: Uuid, id: Uuid, now: Timestamp) -> Result<(), Error> {
    if !store::delete(tx, app_id, Kind::Push, id).await? {
        return Err(Error::NotFound);
    }
    Ok(crate::apps::bump_version(tx, app_id, now).await?)
}
