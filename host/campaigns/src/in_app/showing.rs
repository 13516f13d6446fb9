//! The form in which the messages of an in-app campaign are made: its plugins asked, its texts ready to be filled in.

use std::time::Duration;

use nudge_plugin_runtime::{Accepted, Deciders, Plugins};
use serde_json::{Value, json};
use uuid::Uuid;

use super::content::{Content, Layout, Style, Variant};
use crate::push::NotPrepared;
use crate::push::action::PreparedAction;
use crate::push::link::NotAllowed;
use crate::push::personalization::Spec;
use crate::push::sending::{choose, resolving};
use crate::push::template::{Text, UnknownForm};
use crate::push::verdict::Values;
use crate::surveys::localization::Localization;
use crate::targeting::Suppression;

/// The bytes of a rendered message as JSON: as many as those of an event (contract 15).
const MOST_BYTES: usize = 64 * 1024;

/// A campaign at a version, ready to make messages.
#[derive(Clone, Debug)]
pub struct Showing {
    /// The campaign.
    pub campaign_id: Uuid,
    /// How long a message stays on offer; none: as long as a survey.
    pub lifetime: Option<Duration>,
    /// How it looks.
    theme: Option<Value>,
    /// What it says.
    pub variants: Vec<Prepared>,
}

/// A variant, ready to make messages.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The variant.
    pub id: Uuid,
    weight: f64,
    layout: Layout,
    texts: Value,
    image_url: Option<String>,
    buttons: Vec<PreparedButton>,
    dismissible: bool,
    localization: Option<Localization>,
    /// What its tokens stand for.
    pub spec: Spec,
    /// Who resolves that; none where there is nothing to resolve.
    pub accepted: Option<Accepted>,
}

#[derive(Clone, Debug)]
struct PreparedButton {
    id: String,
    style: Option<Style>,
    action: PreparedAction,
}

impl Showing {
    /// Prepares a campaign. What `before` knows is not asked of plugins again.
    pub async fn prepare(
        plugins: &Plugins,
        deciders: &Deciders,
        campaign_id: Uuid,
        content: &Content,
        before: Option<&Self>,
    ) -> Result<Self, NotPrepared> {
        let mut variants = Vec::with_capacity(content.variants.len());
        for variant in &content.variants {
            let known = before.and_then(|before| before.variant(variant.id.unwrap_or_default()));
            let known = known.and_then(|known| known.accepted.as_ref());
            variants.push(Prepared::new(plugins, deciders, variant, known).await?);
        }
        let seconds = content.expires_after_seconds;
        Ok(Self {
            campaign_id,
            lifetime: seconds.map(|seconds| Duration::from_secs(seconds.into())),
            theme: content.theme.clone(),
            variants,
        })
    }

    /// A variant by its id.
    pub fn variant(&self, id: Uuid) -> Option<&Prepared> {
        self.variants.iter().find(|variant| variant.id == id)
    }

    /// The variant that a person gets, always the same one while weights stay: a stable hash of campaign and
    /// person, by weight.
    pub fn variant_for(&self, subject_id: Uuid) -> Option<&Prepared> {
        let weights: Vec<f64> = self.variants.iter().map(|variant| variant.weight).collect();
        self.variants
            .get(choose(self.campaign_id, subject_id, &weights)?)
    }

    /// The message of a variant, in a person's language, with the values of that person: the JSON that SDKs get.
    pub fn render(
        &self,
        variant: &Prepared,
        values: &Values,
        locale: Option<&str>,
    ) -> Result<String, Suppression> {
        let message = variant.fill(values, locale, self.theme.as_ref());
        let message = message.map_err(|NotAllowed| Suppression::UrlNotAllowed)?;
        let text = message.to_string();
        if text.len() > MOST_BYTES {
            return Err(Suppression::PayloadTooLarge);
        }
        Ok(text)
    }
}

impl Prepared {
    async fn new(
        plugins: &Plugins,
        deciders: &Deciders,
        variant: &Variant,
        before: Option<&Accepted>,
    ) -> Result<Self, NotPrepared> {
        let personalization = variant.personalization.as_ref();
        let resolving = resolving(plugins, deciders, personalization, before);
        let (spec, accepted) = resolving.await?;
        let buttons = variant.buttons.iter().map(|button| {
            Ok(PreparedButton {
                id: button.id.clone(),
                style: button.style,
                action: PreparedAction::new(&button.open_action)?,
            })
        });
        Ok(Self {
            id: variant.id.unwrap_or_default(),
            weight: variant.weight,
            layout: variant.layout,
            texts: variant.texts(),
            image_url: variant.image_url.clone(),
            buttons: buttons.collect::<Result<_, UnknownForm>>()?,
            dismissible: variant.dismissible,
            localization: variant.localization.clone(),
            spec,
            accepted,
        })
    }

    fn fill(
        &self,
        values: &Values,
        locale: Option<&str>,
        theme: Option<&Value>,
    ) -> Result<Value, NotAllowed> {
        let mut texts = self.texts.clone();
        if let Some(localization) = &self.localization {
            localization.apply(&mut texts, locale);
        }
        let text = |place: &str| -> Option<String> {
            let text = texts.pointer(place)?.as_str()?;
            // Texts that are no templates were refused when they were saved.
            Some(Text::parse(text).unwrap_or_default().fill(values))
        };
        let mut buttons = Vec::with_capacity(self.buttons.len());
        for (index, button) in self.buttons.iter().enumerate() {
            buttons.push(json!({
                "id": button.id,
                "label": text(&format!("/buttons/{index}/label")).unwrap_or_default(),
                "style": button.style.unwrap_or(if index == 0 { Style::Primary } else { Style::Secondary }),
                "openAction": button.action.fill(values)?,
            }));
        }
        Ok(json!({
            "variantId": self.id,
            "layout": self.layout,
            "title": text("/title"),
            "body": text("/body"),
            "imageUrl": self.image_url,
            "buttons": buttons,
            "dismissible": self.dismissible,
            "theme": theme,
        }))
    }
}
