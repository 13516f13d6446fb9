//! What an app has of plugins, as it is stored: its own and the server's, and which name means which.

use nudge_db::Timestamp;
use nudge_wasm::Kind;
use uuid::Uuid;

use super::rollback::Rollback;
use super::rollout::Rollout;

/// The `app_id` of plugins and slots of the server itself.
pub const SERVER: Uuid = Uuid::nil();

/// A plugin of an app or of the server.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Whose it is; [`SERVER`] for the server.
    pub app_id: Uuid,
    /// Its name.
    pub name: String,
    /// What it decides.
    pub kind: Kind,
    /// Which versions are in force.
    pub rollout: Rollout,
    /// When and why a version was rolled back last.
    pub last_rollback: Option<Rollback>,
    /// The roll-back that brought the active version, where a candidate was rolled back after it.
    pub earlier_rollback: Option<Rollback>,
    /// Grows with each change of the roll-out.
    pub revision: i64,
    /// When its first version was uploaded.
    pub created_at: Timestamp,
    /// When its roll-out last changed.
    pub updated_at: Timestamp,
}

impl Entry {
    /// The version in whose place the last roll-back put what is active since; that may be nothing.
    pub fn rolled_back_from(&self) -> Option<&str> {
        let active = self.rollout.active.as_ref();
        let active = active.map(|release| &*release.version);
        let both = [&self.last_rollback, &self.earlier_rollback];
        let brought_it = |rollback: &&Rollback| {
            rollback.role == "active" && rollback.active_version.as_deref() == active
        };
        let mut since = both.into_iter().flatten().filter(brought_it);
        since.next().map(|rollback| &*rollback.version)
    }

    /// The same with another roll-out, to which a roll-back has led.
    #[must_use]
    pub fn rolled_back(self, rollout: Rollout, rollback: Rollback, now: Timestamp) -> Self {
        let is_of_active = |rollback: &Rollback| rollback.role == "active";
        let earlier = self.last_rollback.filter(is_of_active);
        let earlier = earlier.or(self.earlier_rollback);
        Self {
            rollout,
            earlier_rollback: earlier.filter(|_| !is_of_active(&rollback)),
            last_rollback: Some(rollback),
            updated_at: now,
            ..self
        }
    }
}

/// Which plugin decides where none is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Whose it is; [`SERVER`] for the server.
    pub app_id: Uuid,
    /// What is decided.
    pub kind: Kind,
    /// The plugin's name; it may be a built-in one.
    pub plugin: String,
}

/// Which plugin a campaign or definition asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginRef<'a> {
    /// The one of the slot.
    Slot,
    /// The one of this name.
    Named(&'a str),
}

/// The plugins and slots of an app and of the server.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Plugins of both.
    pub entries: Vec<Entry>,
    /// Slots of both.
    pub slots: Vec<Slot>,
}

impl Catalogue {
    /// The plugin that a name stands for: the app's own before the server's, among those that have an active
    /// version.
    pub fn active(&self, name: &str) -> Option<&Entry> {
        let mut found = None;
        for entry in &self.entries {
            if entry.name == name && entry.rollout.active.is_some() {
                if entry.app_id != SERVER {
                    return Some(entry);
                }
                found = Some(entry);
            }
        }
        found
    }

    /// The plugin that a name stands for where people look it up: the app's own before the server's, active
    /// or not.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        let named = |entry: &&Entry| entry.name == name;
        let own = |entry: &&Entry| entry.app_id != SERVER;
        let mut of_name = self.entries.iter().filter(named);
        let found = of_name.clone().find(own);
        found.or_else(|| of_name.next())
    }

    /// The name in a slot: the app's before the server's. None: the built-in plugin's.
    pub fn slot(&self, kind: Kind) -> Option<&Slot> {
        let of_kind = |slot: &&Slot| slot.kind == kind;
        let own = |slot: &&Slot| slot.app_id != SERVER;
        let mut slots = self.slots.iter().filter(of_kind);
        let found = slots.clone().find(own);
        found.or_else(|| slots.next())
    }

    /// The stored plugin that decides; none: a built-in one does, or nothing.
    pub fn decides(&self, kind: Kind, asked: PluginRef<'_>) -> Option<&Entry> {
        let name = match asked {
            PluginRef::Slot => &self.slot(kind)?.plugin,
            PluginRef::Named(name) => name,
        };
        self.active(name).filter(|entry| entry.kind == kind)
    }

    /// The same after a plugin changed.
    #[must_use]
    pub fn with_entry(mut self, entry: Entry) -> Self {
        self.entries
            .retain(|other| (other.app_id, &other.name) != (entry.app_id, &entry.name));
        self.entries.push(entry);
        self
    }

    /// The same with a slot as it will be.
    #[must_use]
    pub fn with_slot(mut self, slot: Slot) -> Self {
        self = self.without_slot(slot.app_id, slot.kind);
        self.slots.push(slot);
        self
    }

    /// The same without a slot.
    #[must_use]
    pub fn without_slot(mut self, app_id: Uuid, kind: Kind) -> Self {
        self.slots
            .retain(|other| (other.app_id, other.kind) != (app_id, kind));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::rollout::Release;
    use super::*;

    const APP: Uuid = Uuid::from_u128(1);

    fn entry(app_id: Uuid, name: &str, active: bool) -> Entry {
        let release = Release {
            version: "1.0.0".to_owned(),
            digest: app_id.to_string(),
        };
        let now = Timestamp(0);
        let rollout = Rollout::default();
        Entry {
            app_id,
            name: name.to_owned(),
            kind: Kind::Trigger,
            rollout: if active {
                rollout.activate(release, now)
            } else {
                rollout
            },
            last_rollback: None,
            earlier_rollback: None,
            revision: 1,
            created_at: now,
            updated_at: now,
        }
    }

    fn slot(app_id: Uuid, plugin: &str) -> Slot {
        Slot {
            app_id,
            kind: Kind::Trigger,
            plugin: plugin.to_owned(),
        }
    }

    fn decides(catalogue: &Catalogue, asked: PluginRef<'_>) -> Option<(Uuid, String)> {
        let entry = catalogue.decides(Kind::Trigger, asked)?;
        Some((entry.app_id, entry.name.clone()))
    }

    #[test]
    fn an_apps_own_plugin_wins_once_it_is_active() {
        let server = Catalogue::default().with_entry(entry(SERVER, "cart", true));
        let waiting = server.clone().with_entry(entry(APP, "cart", false));
        let own = server.clone().with_entry(entry(APP, "cart", true));
        let cart = PluginRef::Named("cart");

        assert_eq!(decides(&server, cart), Some((SERVER, "cart".to_owned())));
        assert_eq!(decides(&waiting, cart), Some((SERVER, "cart".to_owned())));
        assert_eq!(decides(&own, cart), Some((APP, "cart".to_owned())));
        assert_eq!(waiting.find("cart").map(|found| found.app_id), Some(APP));
        assert_eq!(decides(&own, PluginRef::Named("other")), None);
    }

    #[test]
    fn a_slot_is_the_apps_then_the_servers_then_the_built_in() {
        let none = Catalogue::default()
            .with_entry(entry(SERVER, "all", true))
            .with_entry(entry(APP, "own", true));
        let server = none.clone().with_slot(slot(SERVER, "all"));
        let both = server.clone().with_slot(slot(APP, "own"));
        let back = both.clone().with_slot(slot(APP, "default-trigger"));

        assert_eq!(decides(&none, PluginRef::Slot), None);
        assert_eq!(
            decides(&server, PluginRef::Slot),
            Some((SERVER, "all".to_owned()))
        );
        assert_eq!(
            decides(&both, PluginRef::Slot),
            Some((APP, "own".to_owned()))
        );
        assert_eq!(decides(&back, PluginRef::Slot), None);
        let cleared = both.without_slot(APP, Kind::Trigger);
        assert_eq!(
            decides(&cleared, PluginRef::Slot),
            Some((SERVER, "all".to_owned()))
        );
    }

    #[test]
    fn the_roll_back_of_a_candidate_leaves_known_what_brought_the_active_version() {
        let now = Timestamp(0);
        let rollback = |version: &str, role: &str| {
            Rollback::requested(now, version, role, Some("1.0.0".to_owned()))
        };
        let before = entry(APP, "cart", true);
        let rollout = before.rollout.clone();
        let mut after = before.rolled_back(rollout.clone(), rollback("2.0.0", "active"), now);
        for candidate in ["3.0.0", "4.0.0"] {
            after = after.rolled_back(rollout.clone(), rollback(candidate, "candidate"), now);
            let last = after.last_rollback.as_ref();
            assert_eq!(last.map(|last| &*last.version), Some(candidate));
            assert_eq!(after.rolled_back_from(), Some("2.0.0"));
        }
        after = after.rolled_back(rollout, rollback("5.0.0", "active"), now);
        assert_eq!(after.rolled_back_from(), Some("5.0.0"));
        assert_eq!(after.earlier_rollback, None);
    }

    #[test]
    fn a_plugin_of_another_kind_decides_nothing() {
        let catalogue = Catalogue::default().with_entry(entry(APP, "cart", true));
        assert!(
            catalogue
                .decides(Kind::Validation, PluginRef::Named("cart"))
                .is_none()
        );
    }
}
