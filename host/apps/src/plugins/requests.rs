//! What requests about plugins say: paths and bodies.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use nudge_http::{ApiError, Code};
use nudge_plugin_runtime::rollout::Strategy;
use nudge_wasm::Kind;
use nudge_wasm::limits::{NAME_BYTES, VERSION_BYTES};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::changes::Change;

/// The plugin, and where the path goes on the version, that a path names. What can't be a name is the name of
/// nothing.
#[derive(Clone, Debug)]
pub struct PluginPath {
    /// The name of the plugin.
    pub name: String,
    /// The version; empty where the path ends before it.
    pub version: String,
}

/// The kind that a path names.
#[derive(Clone, Copy, Debug)]
pub struct KindPath(pub(super) Kind);

/// How a version comes into force.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActivateRequest {
    /// The version.
    version: String,
    /// `instant` unless given.
    #[serde(default)]
    strategy: StrategyName,
    /// How many of a hundred subjects a canary decides about, 1 to 100.
    percent: Option<u8>,
    /// Whether the plugin is put into its kind's slot too.
    #[serde(default)]
    slot: bool,
}

/// How a version comes into force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StrategyName {
    /// It decides at once.
    #[default]
    Instant,
    /// It sees everything and decides nothing.
    Shadow,
    /// It decides about some subjects.
    Canary,
}

/// Nothing: the path says it all.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmptyRequest {}

/// What goes into a slot.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SlotRequest {
    /// The plugin's name; it may be a built-in one.
    pub(super) plugin: String,
}

impl<S: Send + Sync> FromRequestParts<S> for PluginPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let text = params(parts, state).await?;
        let (name, version) = (text("name"), text("version"));
        let name_byte =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let version_byte = |byte: u8| byte.is_ascii_alphanumeric() || b".-+".contains(&byte);
        let is_name = name.len() <= NAME_BYTES && name.bytes().all(name_byte);
        let is_version = version.len() <= VERSION_BYTES && version.bytes().all(version_byte);
        if is_name && is_version {
            Ok(Self { name, version })
        } else {
            Err(ApiError::new(Code::NotFound))
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for KindPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let kind = params(parts, state).await?("kind").parse();
        kind.map(Self).map_err(|_| ApiError::new(Code::NotFound))
    }
}

async fn params<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
) -> Result<impl Fn(&str) -> String, ApiError> {
    let params = RawPathParams::from_request_parts(parts, state).await;
    let params = params.map_err(|_| ApiError::new(Code::NotFound))?;
    Ok(move |wanted: &str| {
        let found = params.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, text)| text.to_owned()).unwrap_or_default()
    })
}

impl ActivateRequest {
    pub(super) fn change(self) -> Result<Change, ApiError> {
        let percent = |detail| Err(ApiError::field("/percent", "invalid", detail));
        let strategy = match (self.strategy, self.percent) {
            (StrategyName::Canary, share) => match share.and_then(Strategy::canary) {
                None => return percent("a canary has a percent from 1 to 100"),
                canary => canary,
            },
            (_, Some(_)) => return percent("only a canary has a percent"),
            (StrategyName::Instant, None) => None,
            (StrategyName::Shadow, None) => Some(Strategy::Shadow),
        };
        Ok(Change::Activate {
            version: self.version,
            strategy,
            slot: self.slot,
        })
    }
}
