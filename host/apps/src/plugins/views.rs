//! Plugins as the API shows them (contract 12).

use nudge_platform::clock;
use nudge_plugin_runtime::active::{Active, Origin};
use nudge_plugin_runtime::catalogue::Entry;
use nudge_plugin_runtime::check::Check;
use nudge_plugin_runtime::rollback::Rollback;
use nudge_plugin_runtime::rollout::Rollout;
use nudge_plugin_runtime::store::Version;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::statistics::views::HealthView;

/// A version of a plugin.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionView {
    name: String,
    /// `trigger`, `personalization` or `validation`.
    kind: &'static str,
    version: String,
    /// The component's SHA-256, in hexadecimal.
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<i64>,
    /// `ready`: it can be activated.
    state: &'static str,
    imports: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// A JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    config_schema: Option<Value>,
    checks: Vec<Check>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uploaded_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uploaded_at: Option<String>,
}

/// Which version decides, and which is tried.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RolloutView {
    /// `instant`, `shadow` or `canary`.
    strategy: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<u8>,
    /// What a roll-back brings back.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_version: Option<String>,
    /// When the candidate, or without one the active version, came in.
    since: String,
}

/// A plugin.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginView {
    pub(super) name: String,
    kind: &'static str,
    /// `app`, `server` or `builtin`.
    scope: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout: Option<RolloutView>,
    /// Whether it decides where no plugin is named.
    slot: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
}

/// A plugin with its versions.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PluginDetailView {
    #[serde(flatten)]
    plugin: PluginView,
    versions: Vec<VersionView>,
    health: HealthView,
    /// When and why a version was rolled back last.
    #[serde(rename = "lastRollback", skip_serializing_if = "Option::is_none")]
    last_rollback: Option<Rollback>,
}

/// What is active after a change.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActivationView {
    name: String,
    active_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout: Option<RolloutView>,
}

/// A slot and the plugin that is in it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SlotView {
    kind: &'static str,
    plugin: String,
    /// The version that decides.
    version: String,
    /// Where the plugin comes from: `app`, `server` or `builtin`.
    scope: &'static str,
}

fn filled(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn schema(text: &str) -> Option<Value> {
    // It was JSON when it was uploaded.
    serde_json::from_str(text).ok()
}

impl VersionView {
    /// A version that somebody uploaded.
    pub(super) fn stored(name: &str, kind: nudge_wasm::Kind, version: Version) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.as_str(),
            version: version.release.version,
            digest: version.release.digest,
            size_bytes: Some(version.size_bytes),
            state: "ready",
            imports: version.imports,
            description: filled(&version.description),
            config_schema: schema(&version.config_schema),
            checks: version.checks,
            uploaded_by: Some(version.uploaded_by),
            uploaded_at: Some(clock::to_text(version.uploaded_at)),
        }
    }

    /// The one version of a built-in plugin.
    pub(super) fn built_in(active: &Active) -> Self {
        let description = active.plugin.description();
        Self {
            name: description.name.clone(),
            kind: active.plugin.kind().as_str(),
            version: description.version.clone(),
            digest: active.plugin.digest().to_owned(),
            size_bytes: None,
            state: "ready",
            imports: active.plugin.imports().to_vec(),
            description: filled(&description.summary),
            config_schema: schema(&description.config_schema),
            checks: Vec::new(),
            uploaded_by: None,
            uploaded_at: None,
        }
    }
}

impl RolloutView {
    fn of(rollout: &Rollout) -> Option<Self> {
        let activated_at = rollout.activated_at?;
        let candidate = rollout.candidate.as_ref();
        let strategy = candidate.map(|candidate| candidate.strategy);
        let since = candidate.map_or(activated_at, |candidate| candidate.since);
        Some(Self {
            strategy: strategy.map_or("instant", nudge_plugin_runtime::rollout::Strategy::name),
            candidate_version: candidate.map(|candidate| candidate.release.version.clone()),
            percent: strategy.and_then(nudge_plugin_runtime::rollout::Strategy::percent),
            previous_version: rollout
                .previous
                .as_ref()
                .map(|previous| previous.version.clone()),
            since: clock::to_text(since),
        })
    }
}

impl PluginView {
    /// A plugin that somebody uploaded.
    pub(super) fn stored(entry: &Entry, slot: bool) -> Self {
        Self {
            name: entry.name.clone(),
            kind: entry.kind.as_str(),
            scope: Origin::of(entry.app_id).name(),
            active_version: active_version(&entry.rollout),
            rollout: RolloutView::of(&entry.rollout),
            slot,
            created_at: Some(clock::to_text(entry.created_at)),
            updated_at: Some(clock::to_text(entry.updated_at)),
        }
    }

    /// A built-in plugin.
    pub(super) fn built_in(active: &Active, slot: bool) -> Self {
        let description = active.plugin.description();
        Self {
            name: description.name.clone(),
            kind: active.plugin.kind().as_str(),
            scope: active.origin.name(),
            active_version: Some(description.version.clone()),
            rollout: None,
            slot,
            created_at: None,
            updated_at: None,
        }
    }

    /// The same with its versions and how it fares.
    pub(super) fn with(
        self,
        versions: Vec<VersionView>,
        health: HealthView,
        last_rollback: Option<Rollback>,
    ) -> PluginDetailView {
        PluginDetailView {
            plugin: self,
            versions,
            health,
            last_rollback,
        }
    }
}

fn active_version(rollout: &Rollout) -> Option<String> {
    let active = rollout.active.as_ref();
    active.map(|release| release.version.clone())
}

impl ActivationView {
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            name: entry.name.clone(),
            active_version: active_version(&entry.rollout),
            rollout: RolloutView::of(&entry.rollout),
        }
    }
}

impl SlotView {
    /// A slot with a plugin that somebody uploaded.
    pub(super) fn stored(entry: &Entry) -> Option<Self> {
        Some(Self {
            kind: entry.kind.as_str(),
            plugin: entry.name.clone(),
            version: active_version(&entry.rollout)?,
            scope: Origin::of(entry.app_id).name(),
        })
    }

    /// A slot with a built-in plugin.
    pub(super) fn built_in(active: &Active) -> Self {
        let description = active.plugin.description();
        Self {
            kind: active.plugin.kind().as_str(),
            plugin: description.name.clone(),
            version: description.version.clone(),
            scope: active.origin.name(),
        }
    }
}
