//! A version in a role: what its calls are counted under.

use nudge_db::Timestamp;
use uuid::Uuid;

use super::catalogue::SERVER;

/// A version of a plugin as the active one or as a candidate, since it is that.
///
/// A version that is tried again, or becomes active, has another period: what it did before is not held against
/// it, and a roll-back can't meet it again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RolloutPeriod {
    /// Whose plugin it is; [`SERVER`] for the server's and for built-in ones.
    pub owner: Uuid,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// When it came into its role; the epoch where it has none, as built-in plugins have.
    pub since: Timestamp,
}

impl RolloutPeriod {
    /// The period of a built-in plugin.
    pub(super) fn built_in(plugin: &nudge_wasm::Plugin) -> Self {
        Self::no_role(SERVER, plugin)
    }

    /// That of a version that has no role, or none yet.
    pub fn no_role(owner: Uuid, plugin: &nudge_wasm::Plugin) -> Self {
        let description = plugin.description();
        Self {
            owner,
            name: description.name.clone(),
            version: description.version.clone(),
            since: Timestamp(0),
        }
    }

    /// What calls are counted under that are held against no role of the version.
    pub(super) fn without_role(&self) -> Self {
        Self {
            since: Timestamp(0),
            ..self.clone()
        }
    }

    /// Whether the version has no role that it could be rolled back from.
    pub(super) fn has_no_role(&self) -> bool {
        self.since == Timestamp(0)
    }
}
