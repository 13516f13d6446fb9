//! What surveys, push campaigns and in-app messages have in common: how they are saved, what they wait for while they run, and what a
//! firing of theirs brings about.

pub mod removal;
pub mod size;

use std::sync::Arc;
use strum::{EnumString, IntoStaticStr};

use nudge_plugin_runtime::Accepted;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::in_app::Showing;
use crate::push::Sending;
use crate::segments::Watch;
use crate::surveys::Payload;
use crate::targeting::Rules;

/// Where a campaign stands. Every status may follow every other (specification 3).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    ToSchema,
    EnumString,
    IntoStaticStr,
)]
#[schema(as = CampaignStatus)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Status {
    /// Being written.
    #[default]
    Draft,
    /// Running.
    Active,
    /// Stopped for now: messages that are queued wait.
    Paused,
    /// Over: messages that are queued are sent.
    Completed,
    /// Put away: messages that are queued are not sent.
    Archived,
}

impl Status {
    /// The status of this name.
    pub fn parse(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// The status's name in the API and the database.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A campaign in force, as the pipeline needs it.
#[derive(Clone, Debug)]
pub struct ActiveCampaign {
    /// The campaign's id.
    pub id: Uuid,
    /// Its version.
    pub version: i64,
    /// Which comes first when several fire.
    pub priority: i32,
    /// Its configuration and the plugin that decides.
    pub accepted: Accepted,
    /// Whom, when and how often it may reach: what the host enforces whatever the plugin says.
    pub rules: Arc<Rules>,
    /// What a firing brings about.
    pub action: CampaignAction,
    /// The segment whose changes fire it, if that is what it waits for.
    pub watch: Option<Watch>,
    /// Whether its calendar alone fires it: no event does.
    pub by_calendar: bool,
    /// Whether it has runs, whichever plugin decides whom they are for.
    pub has_runs: bool,
}

/// What a firing brings about.
#[derive(Clone, Debug)]
pub enum CampaignAction {
    /// An instruction, with what an SDK gets to show.
    Present(Arc<Payload>),
    /// A push message.
    Send(Arc<Sending>),
    /// An instruction with an in-app message, which is made when it fires.
    Show(Arc<Showing>),
}

/// A change of a campaign, as the audit log names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Somebody made it.
    Created,
    /// Somebody changed it.
    Updated,
    /// The server ended it.
    Completed,
    /// Somebody deleted it.
    Deleted,
}

/// What sort of campaign it is. Caps and pauses are counted by it (contract 8).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// A survey, which an SDK presents.
    Survey,
    /// A push message.
    Push,
    /// An in-app message, which an SDK presents.
    InApp,
}

impl Kind {
    /// The kind of this name.
    pub fn parse(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// The kind's name in the database.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What the API and the audit log call a campaign of the kind.
    pub fn resource(self) -> &'static str {
        match self {
            Self::Survey => "survey",
            Self::Push | Self::InApp => "campaign",
        }
    }

    /// The name of a change of a campaign of the kind in the audit log.
    pub fn action(self, change: Change) -> &'static str {
        match (self, change) {
            (Self::Survey, Change::Created) => "survey.created",
            (Self::Survey, Change::Updated) => "survey.updated",
            (Self::Survey, Change::Completed) => "survey.completed",
            (Self::Survey, Change::Deleted) => "survey.deleted",
            (Self::Push | Self::InApp, Change::Created) => "campaign.created",
            (Self::Push | Self::InApp, Change::Updated) => "campaign.updated",
            (Self::Push | Self::InApp, Change::Completed) => "campaign.completed",
            (Self::Push | Self::InApp, Change::Deleted) => "campaign.deleted",
        }
    }

    /// What people call campaigns of the kind.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Survey => "surveys",
            Self::Push => "campaigns",
            Self::InApp => "in-app messages",
        }
    }

    /// Whether an SDK presents it, by an instruction.
    pub fn is_presented(self) -> bool {
        matches!(self, Self::Survey | Self::InApp)
    }
}

impl CampaignAction {
    /// Of a survey that a button opens: whether the button goes once the survey is complete.
    pub fn feedback(&self) -> Option<bool> {
        match self {
            Self::Present(payload) => payload.feedback,
            Self::Send(_) | Self::Show(_) => None,
        }
    }

    /// Whether firings bring it about. A survey that people reach by a link or a button waits for nothing.
    pub fn fires(&self) -> bool {
        match self {
            Self::Present(payload) => payload.fires,
            Self::Send(_) | Self::Show(_) => true,
        }
    }

    /// The sort of campaign that brings this about.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Present(_) => Kind::Survey,
            Self::Send(_) => Kind::Push,
            Self::Show(_) => Kind::InApp,
        }
    }
}
