//! Event definitions: what events of a name must look like. The rules are the validation plugin's.

pub mod http;
pub mod store;

use std::sync::Arc;

use nudge_db::{Timestamp, Tx};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::http::FieldError;
use crate::plugins::{CheckFailed, Plugins};

/// Definitions an app may have.
pub const MOST: usize = 1_000;

/// Whether a definition is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
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
    /// What becomes of events that break it.
    pub enforcement: Enforcement,
    /// The configuration that the plugin gets.
    pub config: Arc<str>,
    /// The properties that the plugin reads.
    pub properties: Arc<[String]>,
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

impl Definition {
    /// The configuration that the plugin of the validation slot gets.
    fn config(&self) -> String {
        json!({
            "properties": self.content.properties,
            "additionalProperties": self.content.additional_properties,
        })
        .to_string()
    }
}

/// Asks the plugin what a definition reads; an error says what is wrong with it.
pub async fn enforce(plugins: &Plugins, definition: &Definition) -> Result<Enforced, Error> {
    let config = definition.config();
    match plugins
        .check_config(&plugins.validation, config.clone())
        .await?
    {
        Ok(reads) => Ok(Enforced {
            enforcement: definition.content.enforcement,
            config: config.into(),
            properties: reads.properties.into(),
        }),
        Err(problems) => Err(Error::Invalid(
            problems
                .into_iter()
                .map(|problem| FieldError::new(problem.pointer, &problem.code, problem.message))
                .collect(),
        )),
    }
}

/// Adds a definition.
pub async fn create(tx: &mut Tx, definition: &Definition) -> Result<(), Error> {
    if store::count(tx, definition.app_id).await? >= MOST {
        return Err(Error::TooMany);
    }
    store::insert(tx, definition)
        .await
        .map_err(|error| match error.kind() {
            nudge_db::Kind::Conflict => Error::NameTaken,
            _ => Error::Storage(error),
        })?;
    Ok(crate::apps::store::touch(tx, definition.app_id, definition.created_at).await?)
}

/// Replaces a definition if nobody else did since it was read.
pub async fn update(tx: &mut Tx, definition: &Definition) -> Result<(), Error> {
    if !store::update(tx, definition).await? {
        return Err(Error::VersionMismatch);
    }
    Ok(crate::apps::store::touch(tx, definition.app_id, definition.updated_at).await?)
}
