//! What surveys and push campaigns have in common while they run: what they wait for, and what a firing of
//! theirs brings about.

pub mod trigger;

use std::sync::Arc;

use serde_json::Value;
use uuid::Uuid;

use crate::plugins::Accepted;

/// A campaign in force, as the pipeline needs it.
#[derive(Clone, Debug)]
pub struct Running {
    /// The campaign's id.
    pub id: Uuid,
    /// Its version.
    pub version: i64,
    /// Which comes first when several fire.
    pub priority: i32,
    /// Its configuration and the plugin that decides.
    pub accepted: Accepted,
    /// What a firing brings about.
    pub act: Act,
}

/// What a firing brings about.
#[derive(Clone, Debug)]
pub enum Act {
    /// An instruction, with what an SDK gets to show.
    Present(Arc<Value>),
}
