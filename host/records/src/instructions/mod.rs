//! Instructions: what an SDK is to show, from its issue to its acknowledgement.

pub mod counterpart;
pub mod feedback;
pub mod polls;
pub mod range;
pub mod recipients;
pub mod setback;
pub mod store;
pub mod views;

use std::sync::Arc;
use std::time::Duration;
use strum::{EnumString, IntoStaticStr};

use nudge_campaigns::campaign;
use nudge_campaigns::targeting::Suppression;
use nudge_db::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// When an SDK should poll again, in seconds.
pub const POLL_AFTER_SECONDS: u32 = 30;
/// How long an instruction stays on offer.
pub const LIFETIME: Duration = Duration::from_hours(168);

/// How far an instruction has come. A later one never gives way to an earlier one.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    ToSchema,
    EnumString,
    IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[schema(as = InstructionStatus)]
#[strum(serialize_all = "snake_case")]
pub enum Status {
    /// Nobody has acknowledged it.
    Issued,
    /// The SDK has it.
    Received,
    /// The person saw it.
    Displayed,
    /// The person closed it.
    Dismissed,
    /// The person pressed a button of it.
    Clicked,
    /// The SDK will not show it.
    Discarded,
    /// The person did what it asked.
    Completed,
}

impl Status {
    /// Every status, in order.
    pub const ALL: [Self; 7] = [
        Self::Issued,
        Self::Received,
        Self::Displayed,
        Self::Dismissed,
        Self::Clicked,
        Self::Discarded,
        Self::Completed,
    ];

    /// The status's name in the API and the database.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether the person has seen what is in it.
    pub fn is_seen(self) -> bool {
        matches!(
            self,
            Self::Displayed | Self::Dismissed | Self::Clicked | Self::Completed
        )
    }

    /// The status of this name.
    pub fn parse(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// What an SDK is to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// A survey.
    Survey,
    /// An in-app message.
    InApp,
    /// A button that opens a survey.
    Feedback,
}

impl Kind {
    /// The kind's name in the API and the database.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// An instruction. One firing has one, whichever way it reaches the SDK.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Its id, derived from what fired it.
    pub id: Uuid,
    /// The app.
    pub app_id: Uuid,
    /// Who is to see it.
    pub subject_id: Uuid,
    /// What it shows.
    pub kind: Kind,
    /// The message as it was made, of an in-app message: JSON.
    pub content: Option<Arc<str>>,
    /// The message's variant.
    pub variant_id: Option<Uuid>,
    /// Its place among the subject's instructions.
    pub position: i64,
    /// The campaign.
    pub campaign_id: Uuid,
    /// The campaign's version that fired.
    pub campaign_version: i64,
    /// Which comes first; higher first.
    pub priority: i32,
    /// The event that fired it.
    pub trigger_event_id: Option<Uuid>,
    /// That event's name.
    pub trigger_name: Option<String>,
    /// When it was issued.
    pub created_at: Timestamp,
    /// From when on it is on offer. It gets its position then.
    pub available_at: Timestamp,
    /// Until when it is on offer.
    pub expires_at: Timestamp,
    /// The plugin that decided, and its version.
    pub plugin: (String, String),
}

/// A firing that the host let have no effect. It is kept beside instructions, for lists of recipients and
/// explanations, and offered to nobody.
#[derive(Clone, Debug)]
pub struct Suppressed {
    /// What it would have been.
    pub instruction: Instruction,
    /// The sort of its campaign.
    pub kind: campaign::Kind,
    /// Why it is not.
    pub reason: Suppression,
}
