//! In-app messages: what they say, whom they are for, and the form in which the pipeline runs them (contract 20).

pub mod content;
pub mod showing;

use std::sync::Arc;

use nudge_db::{Timestamp, Tx};
use nudge_platform::field_error::FieldError;
use nudge_plugin_runtime::{Deciders, Plugins};
use uuid::Uuid;

use crate::campaign::{ActiveCampaign, CampaignAction, Kind, Status};
use crate::lifecycle::{self, Error};
use crate::push::content::MOST_VARIANTS;
use crate::push::{NotPrepared, check_personalization, gather};
use crate::runs::Plan;
use crate::segments::Audiences;
use crate::surveys::removal;
use crate::targeting::Rules;
use crate::trigger::Terms;
use crate::{store, theme};
pub use content::{Content, Mode, Variant};
pub use showing::{Prepared, Showing};

/// An in-app message.
pub type Campaign = lifecycle::Campaign<Content>;

impl lifecycle::Content for Content {
    const KIND: Kind = Kind::InApp;
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[
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

/// Everything that must hold before an in-app message is saved, as of push campaigns. `before` is what it said until now.
pub async fn check(
    plugins: &Plugins,
    deciders: &Deciders,
    segments: &Audiences,
    content: &Content,
    before: Option<&Content>,
) -> Result<(), Error> {
    let mut errors = content.check();
    if let Some(shown) = &content.theme
        && before.is_none_or(|before| before.theme.as_ref() != Some(shown))
    {
        theme::check(shown, &mut errors)?;
    }
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
    for (index, variant) in content.variants.iter().enumerate().take(MOST_VARIANTS) {
        if runs || before.is_none_or(|before| !before.variants.contains(variant)) {
            let (asked, place) = (
                variant.personalization.as_ref(),
                format!("/variants/{index}"),
            );
            check_personalization(plugins, deciders, asked, &place, &mut errors).await?;
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

/// The form in which the pipeline runs an in-app message. `before` is the form in which it ran until now.
pub async fn run(
    plugins: &Plugins,
    deciders: &Deciders,
    segments: &Audiences,
    campaign: &Campaign,
    before: Option<&ActiveCampaign>,
) -> Result<ActiveCampaign, Error> {
    let content = &campaign.content;
    let known = before.and_then(|before| match &before.act {
        CampaignAction::Show(showing) => Some(&**showing),
        _ => None,
    });
    let showing = Showing::prepare(plugins, deciders, campaign.id, content, known);
    let showing = showing.await.map_err(|cause| match cause {
        NotPrepared::Refused(refused) => refused.into(),
        NotPrepared::Template(cause) => Error::Invalid(vec![FieldError::new(
            "/variants",
            "unknown_token",
            cause.to_string(),
        )]),
    })?;
    let configuration = content
        .terms()
        .configuration(segments)
        .map_err(Error::Invalid)?;
    let before = before.map(|before| &before.accepted);
    Ok(ActiveCampaign {
        id: campaign.id,
        version: campaign.version,
        priority: content.priority,
        accepted: configuration.accept(plugins, deciders, before).await?,
        rules: Arc::new(content.rules().map_err(Error::Invalid)?),
        act: CampaignAction::Show(Arc::new(showing)),
        watch: content.terms().watch(),
    })
}

/// Removes an in-app message with everything that hangs on it. Its instructions go by a job that the transaction queues;
/// nothing leads there without the campaign.
pub async fn delete(
    tx: &mut Tx,
    app_id: Uuid,
    id: Uuid,
    actor: &str,
    now: Timestamp,
) -> Result<(), Error> {
    if !store::delete(tx, app_id, Kind::InApp, id).await? {
        return Err(Error::NotFound);
    }
    removal::begin_campaign(tx, app_id, id, actor, now).await?;
    Ok(crate::apps::bump_version(tx, app_id, now).await?)
}
