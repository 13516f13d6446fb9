//! The segments of an app, as its snapshot has them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use nudge_campaigns::campaign::ActiveCampaign;
use nudge_campaigns::segments::{self, Audiences, Touch};
use nudge_plugin_runtime::{Accepted, Deciders, Plugins};
use serde_json::Value;
use uuid::Uuid;

/// A segment whose conditions can be asked about.
#[derive(Debug)]
pub struct ActiveSegment {
    /// Its id.
    pub id: Uuid,
    /// The version that its audience is of.
    pub version: i64,
    /// Its conditions, with those of the segments that it names.
    pub conditions: Value,
    /// The configuration by which the trigger plugin of the server decides who is in it.
    pub accepted: Accepted,
}

/// The segments of an app.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    /// What people wrote of them.
    pub audiences: Audiences,
    /// All whose conditions can be asked about.
    pub all: Vec<Arc<ActiveSegment>>,
    /// Those whose changes fire a campaign that runs.
    pub watched: Vec<Arc<ActiveSegment>>,
    /// What may change who is in one of the watched.
    touch: Touch,
}

impl Segments {
    /// Segments with the versions of their audiences. What the plugin said of `before` is not asked again. What it refuses is
    /// left out: it was accepted when it was saved. `unasked`: whether one is left out that could not be asked about.
    pub(crate) async fn load(
        plugins: &Plugins,
        deciders: &Deciders,
        segments: Vec<(Uuid, i64, Value)>,
        before: Option<&Self>,
        unasked: &mut bool,
    ) -> Self {
        let named = segments.iter();
        let audiences = Audiences::new(named.map(|(id, _, audience)| (*id, audience.clone())));
        let before: HashMap<Uuid, &Accepted> = before
            .iter()
            .flat_map(|before| &before.all)
            .map(|segment| (segment.id, &segment.accepted))
            .collect();
        let mut all = Vec::new();
        for (id, version, audience) in segments {
            let conditions = match audiences.expand(Some(id), &audience) {
                Ok(conditions) => conditions,
                Err(errors) => {
                    tracing::error!(segment.id = %id, ?errors, "the segment's conditions can't be put together");
                    continue;
                }
            };
            let configuration = segments::configuration(&conditions);
            let known = before.get(&id).copied();
            match configuration
                .accept_built_in(plugins, deciders, known)
                .await
            {
                Ok(accepted) => all.push(Arc::new(ActiveSegment {
                    id,
                    version,
                    conditions,
                    accepted,
                })),
                Err(error) => {
                    *unasked |= error.is_unknown();
                    tracing::error!(segment.id = %id, %error, "the segment can't be asked about");
                }
            }
        }
        Self {
            audiences,
            all,
            watched: Vec::new(),
            touch: Touch::default(),
        }
    }

    /// Finds out whose changes fire campaigns that run.
    pub(crate) fn watch(&mut self, campaigns: &[ActiveCampaign]) {
        let heard = campaigns.iter().filter_map(|campaign| campaign.watch);
        let heard: HashSet<Uuid> = heard.map(|watch| watch.segment_id).collect();
        for segment in &self.all {
            if heard.contains(&segment.id) {
                self.touch.add(&segment.conditions);
                self.watched.push(Arc::clone(segment));
            }
        }
    }

    /// Whether an event of this name may change who is in a watched segment.
    pub fn is_touched_by(&self, name: &str) -> bool {
        self.touch.any || self.touch.names.contains(name)
    }

    /// Whether a property may change who is in a watched segment.
    pub fn is_touched_by_properties(&self) -> bool {
        self.touch.properties
    }
}
