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
pub mod tokens;
pub mod verdict;

use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

pub use crate::campaign::Status;
use crate::campaign::{ActiveCampaign, CampaignAction, Kind};
pub use crate::lifecycle::Error;
use crate::lifecycle::{self, CommonContent};
use crate::runs::Manner;
use crate::segments::Audiences;
use crate::trigger::Terms;
use crate::variants;
pub use content::{Content, Mode, Variant};
use nudge_plugin_runtime::{Deciders, Plugins};
pub use sending::{Prepared, Sending};

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
            Mode::Transactional => Manner::Never,
            Mode::Triggered => Manner::Triggered,
            Mode::Scheduled => Manner::Scheduled,
            Mode::Broadcast => Manner::Broadcast,
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
    let sending = Arc::new(sending.await?);
    if content.mode == Mode::Transactional {
        return Ok((sending, None));
    }
    let action = CampaignAction::Send(Arc::clone(&sending));
    let running = lifecycle::active(plugins, deciders, segments, campaign, action, before.1);
    Ok((sending, Some(running.await?)))
}
