//! Event definitions: what events of a name must look like. The rules are the validation plugin's.

pub mod store;

use std::collections::BTreeSet;

use nudge_db::{Timestamp, Tx};
use nudge_http::{ApiError, Code};
use nudge_platform::field_error::FieldError;
use nudge_plugin_runtime as plugins;
use nudge_plugin_runtime::{Accepted, CheckFailed, Configuration, Deciders, PluginRef, Plugins};
use nudge_wasm::Kind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

/// Definitions an app may have.
pub const MOST: usize = 1_000;

/// Whether a definition is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DefinitionStatus)]
pub enum Status {
    /// Events are checked against it.
    Active,
    /// It is kept for the record.
    Archived,
}

/// What becomes of events that break a definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// They are rejected and kept as dead letters.
    #[default]
    Enforce,
    /// They are accepted and counted.
    Observe,
}

/// What becomes of properties that a definition does not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdditionalProperties {
    /// They pass.
    #[default]
    Allow,
    /// They break the definition.
    Reject,
}

/// What a definition says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = DefinitionContent)]
pub struct Content {
    /// What the event means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What becomes of events that break it.
    #[serde(default)]
    pub enforcement: Enforcement,
    /// What becomes of properties that it does not name.
    #[serde(default)]
    pub additional_properties: AdditionalProperties,
    /// The properties, as the validation plugin reads them.
    #[serde(default)]
    pub properties: Vec<Value>,
    /// The plugin that decides whether events match, in place of the app's; `properties` then only describe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validator: Option<Validator>,
}

/// A plugin that a definition names, and its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Validator {
    /// The plugin's name.
    pub plugin: String,
    /// What the plugin gets.
    #[serde(default = "nothing")]
    pub config: Value,
}

fn nothing() -> Value {
    json!({})
}

/// A definition.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Its id.
    pub id: Uuid,
    /// The app that it belongs to.
    pub app_id: Uuid,
    /// The name of the events that it is for.
    pub name: String,
    /// Grows with each change.
    pub version: i64,
    /// Whether it is in force.
    pub status: Status,
    /// What it says.
    pub content: Content,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A definition in force, as the ingest path needs it.
#[derive(Debug)]
pub struct Enforced {
    /// The definition.
    pub id: Uuid,
    /// What becomes of events that break it.
    pub enforcement: Enforcement,
    /// Its configuration and the plugin that decides.
    pub accepted: Accepted,
}

/// Why a definition can't be saved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such definition.
    #[error("no such definition")]
    NotFound,
    /// The app has a definition of this name.
    #[error("the name is taken")]
    NameTaken,
    /// The app has as many as it may.
    #[error("too many definitions")]
    TooMany,
    /// Somebody changed it meanwhile.
    #[error("changed meanwhile")]
    VersionMismatch,
    /// The validation plugin refuses it.
    #[error("invalid definition")]
    Invalid(Vec<FieldError>),
    /// The validation plugin could not be asked.
    #[error("the definition could not be checked")]
    Check(#[from] CheckFailed),
    /// The database.
    #[error("storage failed")]
    Storage(#[from] nudge_db::Error),
}

impl Content {
    /// The plugin that it names, if any.
    pub fn named_plugins(&self) -> BTreeSet<&str> {
        let validator = self.validator.iter();
        validator.map(|named| named.plugin.as_str()).collect()
    }

    /// The configuration that the validation plugin gets: of the slot's plugin what events must look like, of
    /// one that is named what stands beside its name.
    pub fn configuration(&self) -> Configuration<'_> {
        match &self.validator {
            None => self.declared(),
            Some(validator) => Configuration {
                kind: Kind::Validation,
                asked: PluginRef::Named(&validator.plugin),
                text: validator.config.to_string(),
                place: "/validator/config",
                name_place: "/validator/plugin",
            },
        }
    }

    fn declared(&self) -> Configuration<'static> {
        let config = json!({
            "properties": self.properties,
            "additionalProperties": self.additional_properties,
        });
        Configuration {
            kind: Kind::Validation,
            asked: PluginRef::Slot,
            text: config.to_string(),
            place: "",
            name_place: "",
        }
    }
}

impl Error {
    /// Whether a plugin could not be asked now: asked again it may accept.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Check(cause) if cause.of_plugin().is_none())
    }
}

impl From<plugins::Refused> for Error {
    fn from(refused: plugins::Refused) -> Self {
        match refused {
            plugins::Refused::Invalid(errors) => Self::Invalid(errors),
            plugins::Refused::Check(cause) => Self::Check(cause),
        }
    }
}

/// Everything that must hold before a definition is saved. `before` is what it said until now.
///
/// A definition that is put away is not asked about: one whose plugin has become another can always be.
pub async fn check(
    plugins: &Plugins,
    deciders: &Deciders,
    definition: &Definition,
    before: Option<&Content>,
) -> Result<(), Error> {
    let content = &definition.content;
    if definition.status == Status::Archived && before == Some(content) {
        return Ok(());
    }
    content.configuration().check(plugins, deciders).await?;
    if content.validator.is_some() && !content.properties.is_empty() {
        // They only describe, and have the form of those that decide.
        content.declared().check(plugins, deciders).await?;
    }
    Ok(())
}

/// The form in which a definition is enforced. `before` is the form in which it was until now.
pub async fn enforce(
    plugins: &Plugins,
    deciders: &Deciders,
    definition: &Definition,
    before: Option<&Enforced>,
) -> Result<Enforced, Error> {
    let configuration = definition.content.configuration();
    let before = before.map(|before| &before.accepted);
    Ok(Enforced {
        id: definition.id,
        enforcement: definition.content.enforcement,
        accepted: configuration.accept(plugins, deciders, before).await?,
    })
}

/// Adds a definition.
pub async fn create(tx: &mut Tx, plugins: &Plugins, definition: &Definition) -> Result<(), Error> {
    // Before the count, so that two at once can't both find room.
    crate::apps::bump_version(tx, definition.app_id, definition.created_at).await?;
    if store::count(tx, definition.app_id).await? >= MOST {
        return Err(Error::TooMany);
    }
    require_plugin(tx, plugins, definition).await?;
    store::insert(tx, definition)
        .await
        .map_err(|error| match error.kind() {
            nudge_db::Kind::Conflict => Error::NameTaken,
            _ => Error::Storage(error),
        })
}

/// Replaces a definition if nobody else did since it was read.
pub async fn update(tx: &mut Tx, plugins: &Plugins, definition: &Definition) -> Result<(), Error> {
    crate::apps::bump_version(tx, definition.app_id, definition.updated_at).await?;
    require_plugin(tx, plugins, definition).await?;
    if !store::update(tx, definition).await? {
        return Err(Error::VersionMismatch);
    }
    Ok(())
}

/// Has a definition checked anew where the plugin that it names was removed since.
async fn require_plugin(
    tx: &mut Tx,
    plugins: &Plugins,
    definition: &Definition,
) -> Result<(), Error> {
    if definition.status == Status::Archived {
        return Ok(());
    }
    let named = definition.content.named_plugins();
    Ok(plugins.require(tx, definition.app_id, named).await?)
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => Self::new(Code::NotFound),
            Error::NameTaken => Self::new(Code::EventDefinitionExists),
            Error::TooMany => Self::because(
                Code::LimitExceeded,
                format!("an app has at most {MOST} definitions"),
            ),
            Error::VersionMismatch => Self::overtaken(),
            Error::Invalid(errors) => Self::fields(Code::ValidationFailed, errors),
            Error::Check(cause) => Self::unavailable(cause),
            Error::Storage(cause) => cause.into(),
        }
    }
}
