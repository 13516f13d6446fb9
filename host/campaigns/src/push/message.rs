//! A resolved message for one delivery.

use std::time::Duration;

use nudge_db::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use crate::push::options::Options;

/// A resolved message for one delivery. It is the same on each retry.
#[derive(Clone, Debug)]
pub struct Message {
    /// The delivery, which beacons name.
    pub delivery_id: Uuid,
    /// When the delivery was queued: `ttlSeconds` counts from here.
    pub created_at: Timestamp,
    /// Whether somebody tries the campaign out.
    pub test: bool,
    /// The headline.
    pub title: String,
    /// The text.
    pub body: String,
    /// What opening it does: `{action, url?, actionJson?}`, resolved.
    pub open_action: Value,
    /// How it is delivered.
    pub options: Options,
}

impl Message {
    /// Whether it is for now or never: a second attempt would be too late.
    pub fn is_for_now(&self) -> bool {
        self.options.ttl_seconds == Some(0)
    }

    /// When it is not worth sending any longer; none: it always is, or it [is for now or never](Self::is_for_now).
    pub fn expires_at(&self) -> Option<Timestamp> {
        let lifetime = self.options.ttl_seconds.filter(|seconds| *seconds > 0)?;
        Some(self.created_at.plus(Duration::from_secs(lifetime.into())))
    }
}
