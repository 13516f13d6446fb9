//! In-app messages: what they say, whom they are for, and the form in which the pipeline runs them (contract 20).

pub mod content;
pub mod showing;

use std::sync::Arc;

use nudge_plugin_runtime::{Deciders, Plugins};
use serde_json::Value;
use uuid::Uuid;

use crate::campaign::{ActiveCampaign, CampaignAction, Kind};
use crate::lifecycle::{self, CommonContent, Error, Presented};
use crate::runs::Manner;
use crate::segments::Audiences;
use crate::trigger::Terms;
use crate::variants;
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

    fn common(&self) -> CommonContent<'_> {
        CommonContent {
            status: self.status,
            priority: self.priority,
            trigger: self.trigger.as_ref(),
            audience: self.audience.as_ref(),
            schedule: self.schedule.as_ref(),
            frequency_cap: self.frequency_cap.as_ref(),
        }
    }

    fn personalizations(&self) -> Vec<Option<&Value>> {
        let variants = self.variants.iter();
        variants
            .map(|variant| variant.personalization.as_ref())
            .collect()
    }

    fn terms(&self) -> Terms<'_> {
        Self::terms(self)
    }

    fn manner(&self) -> Manner {
        match self.mode {
            Mode::Triggered => Manner::Triggered,
            Mode::Scheduled => Manner::Scheduled,
        }
    }

    async fn validate(
        &self,
        plugins: &Plugins,
        deciders: &Deciders,
        segments: &Audiences,
        before: Option<&Self>,
    ) -> Result<(), Error> {
        variants::check(plugins, deciders, segments, self, before).await
    }

    fn identify_variants(&mut self, before: Option<&Self>, new_id: impl Fn() -> Uuid) {
        variants::Content::identify(self, before, new_id);
    }
}

impl Presented for Content {
    async fn run(
        plugins: &Plugins,
        deciders: &Deciders,
        segments: &Audiences,
        campaign: &Campaign,
        before: Option<&ActiveCampaign>,
    ) -> Result<ActiveCampaign, Error> {
        let known = before.and_then(|before| match &before.action {
            CampaignAction::Show(showing) => Some(&**showing),
            _ => None,
        });
        let content = &campaign.content;
        let showing = Showing::prepare(plugins, deciders, campaign.id, content, known);
        let action = CampaignAction::Show(Arc::new(showing.await?));
        lifecycle::active(plugins, deciders, segments, campaign, action, before).await
    }
}
