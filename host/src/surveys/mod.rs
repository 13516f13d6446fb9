//! Surveys: what they ask, whom they wait for, and the form in which the pipeline runs them.

pub mod flow;
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
use flow::Flow;

/// Surveys an app may have (contract 15).
pub const MOST: usize = 1_000;

/// How a survey finds its people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// An event triggers it.
    #[default]
    Triggered,
    /// A schedule does.
    Scheduled,
    /// The app asks for it.
    OnDemand,
    /// Somebody follows a link.
    LinkOnly,
}

/// Where a survey stands. Every status may follow every other (specification 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Being written.
    #[default]
    Draft,
    /// Running.
    Active,
    /// Stopped for now.
    Paused,
    /// Over.
    Completed,
    /// Put away.
    Archived,
}

/// What people write of a survey.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Content {
    /// Its name.
    pub name: String,
    /// How it finds its people.
    #[serde(default)]
    pub mode: Mode,
    /// Where it stands.
    #[serde(default)]
    pub status: Status,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Which comes first when several fire; higher first.
    #[serde(default)]
    pub priority: i32,
    /// What triggers it, as the trigger plugin reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Value>,
    /// What it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// Whom it is for, as the trigger plugin reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Value>,
    /// How it looks; handed to the SDK as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<Value>,
    /// How it behaves; handed to the SDK as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Value>,
}

/// A survey.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Its id.
    pub id: Uuid,
    /// The app that it belongs to.
    pub app_id: Uuid,
    /// Grows with each change.
    pub version: i64,
    /// What people wrote of it.
    pub content: Content,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it last became active.
    pub activated_at: Option<Timestamp>,
}

/// A campaign in force, as the pipeline needs it.
#[derive(Clone, Debug)]
pub struct Running {
    /// The campaign's id.
    pub id: Uuid,
    /// Its version.
    pub version: i64,
    /// Which comes first when several fire.
    pub priority: i32,
    /// The configuration that the trigger plugin gets.
    pub config: Arc<str>,
    /// The names of the events that it reads.
    pub event_names: Vec<String>,
    /// The properties that it reads.
    pub properties: Arc<[String]>,
    /// Whether it reads properties of the subject.
    pub reads_subject: bool,
    /// What an SDK gets to show.
    pub payload: Arc<Value>,
}

/// Why a survey can't be saved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such survey.
    #[error("no such survey")]
    NotFound,
    /// The app has as many as it may.
    #[error("too many surveys")]
    TooMany,
    /// Somebody changed it meanwhile.
    #[error("changed meanwhile")]
    VersionMismatch,
    /// It breaks the contract.
    #[error("invalid survey")]
    Invalid(Vec<FieldError>),
    /// Its flow can't be walked.
    #[error("invalid flow")]
    InvalidFlow(Vec<FieldError>),
    /// It can't run as it is.
    #[error("not activatable")]
    NotActivatable(Vec<FieldError>),
    /// The trigger plugin could not be asked.
    #[error("the trigger could not be checked")]
    Check(#[from] CheckFailed),
    /// The database.
    #[error("storage failed")]
    Storage(#[from] nudge_db::Error),
}

/// Everything that must hold before a survey is saved.
pub async fn check(plugins: &Plugins, content: &Content) -> Result<(), Error> {
    if content.name.is_empty() || content.name.chars().count() > 200 {
        return Err(Error::Invalid(vec![FieldError::new(
            "/name",
            "invalid",
            "a name has 1 to 200 characters",
        )]));
    }
    if let Some(flow) = &content.flow {
        let errors = flow::check(flow);
        if !errors.is_empty() {
            return Err(Error::InvalidFlow(errors));
        }
    }
    if content.trigger.is_some() || content.audience.is_some() {
        reads(plugins, content).await?;
    }
    if content.status == Status::Active {
        let errors = not_activatable(content);
        if !errors.is_empty() {
            return Err(Error::NotActivatable(errors));
        }
    }
    Ok(())
}

fn not_activatable(content: &Content) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if content
        .flow
        .as_ref()
        .is_none_or(|flow| flow.questions.is_empty())
    {
        errors.push(FieldError::new(
            "/flow/questions",
            "required",
            "an active survey asks at least one question",
        ));
    }
    if content.mode == Mode::Triggered && content.trigger.is_none() {
        errors.push(FieldError::new(
            "/trigger",
            "required",
            "an active triggered survey has a trigger",
        ));
    }
    errors
}

/// Asks the trigger plugin what a survey reads; an error says what is wrong with it.
async fn reads(
    plugins: &Plugins,
    content: &Content,
) -> Result<(Arc<str>, nudge_wasm::Reads), Error> {
    let mut config = serde_json::Map::new();
    for (key, part) in [
        ("trigger", &content.trigger),
        ("audience", &content.audience),
    ] {
        if let Some(part) = part {
            config.insert(key.to_owned(), part.clone());
        }
    }
    let config = json!(config).to_string();
    match plugins
        .check_config(&plugins.trigger, config.clone())
        .await?
    {
        Ok(reads) => Ok((config.into(), reads)),
        Err(problems) => Err(Error::Invalid(
            problems
                .into_iter()
                .map(|problem| FieldError::new(problem.pointer, &problem.code, problem.message))
                .collect(),
        )),
    }
}

/// The form in which the pipeline runs a survey.
pub async fn run(plugins: &Plugins, survey: &Survey) -> Result<Running, Error> {
    let (config, reads) = reads(plugins, &survey.content).await?;
    Ok(Running {
        id: survey.id,
        version: survey.version,
        priority: survey.content.priority,
        config,
        event_names: reads.event_names,
        properties: reads.properties.into(),
        reads_subject: !reads.subject_properties.is_empty(),
        payload: Arc::new(payload(survey.id, survey.version, &survey.content)),
    })
}

/// What an SDK gets to show: the survey without what decides whom it is for.
pub fn payload(id: Uuid, version: i64, content: &Content) -> Value {
    let mut survey =
        json!({"id": id, "version": version, "name": content.name, "flow": content.flow});
    for (key, part) in [("theme", &content.theme), ("settings", &content.settings)] {
        if let (Some(part), Some(survey)) = (part, survey.as_object_mut()) {
            survey.insert(key.to_owned(), part.clone());
        }
    }
    json!({"survey": survey})
}

/// Adds a survey.
pub async fn create(tx: &mut Tx, survey: &Survey) -> Result<(), Error> {
    if store::count(tx, survey.app_id).await? >= MOST {
        return Err(Error::TooMany);
    }
    store::insert(tx, survey).await?;
    Ok(crate::apps::store::touch(tx, survey.app_id, survey.created_at).await?)
}

/// Replaces a survey if nobody else did since it was read.
pub async fn update(tx: &mut Tx, survey: &Survey) -> Result<(), Error> {
    if !store::update(tx, survey).await? {
        return Err(Error::VersionMismatch);
    }
    Ok(crate::apps::store::touch(tx, survey.app_id, survey.updated_at).await?)
}

/// Removes a survey with everything that hangs on it.
pub async fn delete(tx: &mut Tx, app_id: Uuid, id: Uuid, now: Timestamp) -> Result<(), Error> {
    if !store::delete(tx, app_id, id).await? {
        return Err(Error::NotFound);
    }
    Ok(crate::apps::store::touch(tx, app_id, now).await?)
}
