//! The form in which the messages of an in-app campaign are made: its plugins asked, its texts ready to be filled in.

use std::time::Duration;

use nudge_plugin_runtime::{Deciders, Plugins};
use serde_json::{Value, json};
use uuid::Uuid;

use super::content::{Content, Layout, Style};
use crate::push::action::PreparedAction;
use crate::push::link::NotAllowed;
use crate::push::template::Text;
use crate::push::verdict::Values;
use crate::surveys::localization::Localization;
use crate::targeting::Suppression;
use crate::variants::{self, NotPrepared, Variants};

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
    pub variants: Variants<Form>,
}

/// What a variant says, ready to be filled in.
#[derive(Clone, Debug)]
pub struct Form {
    pub(super) layout: Layout,
    pub(super) texts: Value,
    pub(super) image_url: Option<String>,
    pub(super) buttons: Vec<PreparedButton>,
    pub(super) dismissible: bool,
    pub(super) localization: Option<Localization>,
}

/// A variant, ready to make messages.
pub type Prepared = variants::Prepared<Form>;

#[derive(Clone, Debug)]
pub(super) struct PreparedButton {
    pub(super) id: String,
    pub(super) style: Option<Style>,
    pub(super) action: PreparedAction,
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
        let before = before.map(|before| &before.variants);
        let variants = &content.variants;
        let variants = Variants::prepare(plugins, deciders, campaign_id, variants, before);
        let seconds = content.expires_after_seconds;
        Ok(Self {
            campaign_id,
            lifetime: seconds.map(|seconds| Duration::from_secs(seconds.into())),
            theme: content.theme.clone(),
            variants: variants.await?,
        })
    }

    /// The message of a variant, in a person's language, with the values of that person: the JSON that SDKs get.
    pub fn render(
        &self,
        variant: &Prepared,
        values: &Values,
        locale: Option<&str>,
    ) -> Result<String, Suppression> {
        variant.render(values, locale, self.theme.as_ref())
    }
}

impl Prepared {
    /// The message, in a person's language and as a theme has it, with the values of that person: the JSON that SDKs get.
    pub fn render(
        &self,
        values: &Values,
        locale: Option<&str>,
        theme: Option<&Value>,
    ) -> Result<String, Suppression> {
        let message = self.fill(values, locale, theme);
        let message = message.map_err(|NotAllowed| Suppression::UrlNotAllowed)?;
        let text = message.to_string();
        if text.len() > MOST_BYTES {
            return Err(Suppression::PayloadTooLarge);
        }
        Ok(text)
    }

    fn fill(
        &self,
        values: &Values,
        locale: Option<&str>,
        theme: Option<&Value>,
    ) -> Result<Value, NotAllowed> {
        let form = &self.form;
        let mut texts = form.texts.clone();
        let localization = form.localization.as_ref();
        let spoken = localization.map(|localization| localization.apply(&mut texts, locale));
        let text = |place: &str| -> Option<String> {
            let text = texts.pointer(place)?.as_str()?;
            // Texts that are no templates were refused when they were saved.
            Some(Text::parse(text).unwrap_or_default().fill(values))
        };
        let mut buttons = Vec::with_capacity(form.buttons.len());
        for (index, button) in form.buttons.iter().enumerate() {
            buttons.push(json!({
                "id": button.id,
                "label": text(&format!("/buttons/{index}/label")).unwrap_or_default(),
                "style": button.style.unwrap_or(if index == 0 { Style::Primary } else { Style::Secondary }),
                "openAction": button.action.fill(values)?,
            }));
        }
        let mut message = json!({
            "variantId": self.id,
            "layout": form.layout,
            "title": text("/title"),
            "body": text("/body"),
            "imageUrl": form.image_url,
            "buttons": buttons,
            "dismissible": form.dismissible,
            "theme": theme,
        });
        if let (Some(spoken), Some(message)) = (spoken, message.as_object_mut()) {
            message.insert("locale".to_owned(), Value::from(spoken));
        }
        Ok(message)
    }
}
