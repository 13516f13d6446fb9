//! The form in which a campaign's messages are made: its texts parsed, its plugins asked.

use nudge_plugin_runtime::{Deciders, Plugins, Refused};
use uuid::Uuid;

use super::action::PreparedAction;
use super::content::Content;
use super::link::NotAllowed;
use crate::push::options::Options;
use crate::push::rendered::Rendered;
use crate::push::template::Text;
use crate::push::verdict::Values;
use crate::targeting::Schedule;
use crate::variants::{self, NotPrepared, Variants};

/// A campaign at a version, ready to make messages.
#[derive(Clone, Debug)]
pub struct Sending {
    /// The campaign.
    pub campaign_id: Uuid,
    /// Its version.
    pub version: i64,
    /// How its messages are delivered and shown.
    pub options: Options,
    /// What it says.
    pub variants: Variants<Form>,
    /// When it may be sent.
    pub schedule: Schedule,
}

/// What a variant says, ready to be filled in.
#[derive(Clone, Debug)]
pub struct Form {
    pub(super) title: Text,
    pub(super) body: Text,
    pub(super) action: PreparedAction,
}

/// A variant, ready to make messages.
pub type Prepared = variants::Prepared<Form>;

impl Sending {
    /// Prepares a campaign. What `before` knows is not asked of plugins again.
    pub async fn prepare(
        plugins: &Plugins,
        deciders: &Deciders,
        campaign_id: Uuid,
        version: i64,
        content: &Content,
        before: Option<&Self>,
    ) -> Result<Self, NotPrepared> {
        let schedule = Schedule::read(content.schedule.as_ref(), "/schedule");
        let schedule = schedule.map_err(Refused::Invalid)?;
        let before = before.map(|before| &before.variants);
        let variants = &content.variants;
        let variants = Variants::prepare(plugins, deciders, campaign_id, variants, before);
        Ok(Self {
            campaign_id,
            version,
            options: content.options.clone().unwrap_or_default(),
            variants: variants.await?,
            schedule,
        })
    }
}

impl Prepared {
    /// The message with the values of one recipient, unless they make an address of it that nobody may be led to.
    pub fn render(&self, values: &Values, options: &Options) -> Result<Rendered, NotAllowed> {
        Ok(Rendered {
            title: self.form.title.fill(values),
            body: self.form.body.fill(values),
            open_action: self.form.action.fill(values)?,
            options: options.clone(),
        })
    }
}
