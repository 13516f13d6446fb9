//! Which plugin decides about which part of a batch.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use nudge_apps::App;
use nudge_platform::secrets;
use nudge_plugin_runtime::RolloutPeriod;
use nudge_wasm::Plugin;
use uuid::Uuid;

use super::evaluate::{Item, Routes};
use super::projection::Subject;

/// The campaigns and items that one version of a plugin decides about.
#[derive(Debug)]
pub(super) struct Group {
    /// The version.
    pub plugin: Arc<Plugin>,
    /// What its calls are counted under.
    pub period: Arc<RolloutPeriod>,
    /// The seed of its random numbers.
    pub seed: u64,
    /// The campaigns, and for each the items that concern it.
    pub routes: Routes,
}

impl Group {
    /// The items that concern any of the campaigns, and those before them whose past the campaigns ask for,
    /// ascending.
    pub(super) fn items(&self, app: &App, items: &[Item]) -> Vec<usize> {
        let mut concerned = vec![false; items.len()];
        let mut last: HashMap<usize, usize> = HashMap::new();
        for index in self.routes.values().flatten() {
            if let (Some(concerned), Some(item)) = (concerned.get_mut(*index), items.get(*index)) {
                *concerned = true;
                let last = last.entry(item.subject).or_insert(*index);
                *last = (*last).max(*index);
            }
        }
        let campaigns = self
            .routes
            .keys()
            .filter_map(|campaign| app.campaigns.get(*campaign));
        let names: HashSet<&str> = campaigns
            .flat_map(|running| &running.accepted.reading_of(&self.plugin).history)
            .map(String::as_str)
            .collect();
        if !names.is_empty() {
            for (index, (item, concerned)) in items.iter().zip(&mut concerned).enumerate() {
                let before = last.get(&item.subject).is_some_and(|last| index < *last);
                let counts = item.timer.is_none() && item.firing_id.is_none();
                *concerned |= before && counts && names.contains(&*item.stored.event.name);
            }
        }
        let concerned = concerned.into_iter().enumerate();
        concerned
            .filter_map(|(item, concerned)| concerned.then_some(item))
            .collect()
    }
}

/// Divides a batch among the plugins. Apps with one plugin have one group.
pub(crate) fn of(app: &App, items: &[Item], subjects: &[Subject], routes: Routes) -> Vec<Group> {
    let mut groups = Groups {
        app_id: app.id,
        all: Vec::new(),
    };
    for (campaign, routed) in routes {
        let Some(running) = app.campaigns.get(campaign) else {
            continue;
        };
        let accepted = &running.accepted;
        if accepted.trial.is_none() {
            let group = groups.of(&accepted.decider.plugin, &accepted.decider.period);
            group.routes.insert(campaign, routed);
            continue;
        }
        // Events of names that only the candidate reads, or only the active version, came here too.
        for index in routed {
            let Some(item) = items.get(index) else {
                continue;
            };
            let Some(subject) = subjects.get(item.subject) else {
                continue;
            };
            let (plugin, reading) = accepted.for_subject(subject.id);
            if item.is_read(reading) {
                let group = groups.of(plugin, accepted.decider.period_of(plugin));
                group.routes.entry(campaign).or_default().push(index);
            }
        }
    }
    groups.all
}

/// What shadow candidates are shown of a batch: what each would be asked if it were active.
pub(crate) fn shadows(app: &App, items: &[Item], routes: &Routes) -> Vec<Group> {
    let mut groups = Groups {
        app_id: app.id,
        all: Vec::new(),
    };
    for (campaign, routed) in routes {
        let running = app.campaigns.get(*campaign);
        let Some((candidate, reading)) = running.and_then(|running| running.accepted.shadow())
        else {
            continue;
        };
        let is_read = |index: &&usize| {
            let item = items.get(**index);
            item.is_some_and(|item| item.is_read(reading))
        };
        let read: Vec<usize> = routed.iter().filter(is_read).copied().collect();
        if !read.is_empty() {
            let group = groups.of(&candidate.plugin, &candidate.period);
            group.routes.insert(*campaign, read);
        }
    }
    groups.all
}

struct Groups {
    app_id: Uuid,
    all: Vec<Group>,
}

impl Groups {
    fn of(&mut self, plugin: &Arc<Plugin>, period: &Arc<RolloutPeriod>) -> &mut Group {
        let same = |group: &Group| Arc::ptr_eq(&group.plugin, plugin);
        let place = self.all.iter().position(same).unwrap_or(self.all.len());
        if place == self.all.len() {
            self.all.push(Group {
                plugin: Arc::clone(plugin),
                period: Arc::clone(period),
                seed: seed(self.app_id, plugin),
                routes: Routes::new(),
            });
        }
        #[expect(clippy::indexing_slicing, reason = "pushed above if it was not there")]
        &mut self.all[place]
    }
}

/// The seed of a plugin's random numbers: the same for every version of the plugin in the same app.
pub fn seed(app_id: Uuid, plugin: &Plugin) -> u64 {
    let name = &plugin.description().name;
    let hash = secrets::hash(&[app_id.as_bytes(), name.as_bytes()]);
    hash.first_chunk()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
