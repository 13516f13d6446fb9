//! Segments: conditions with a name, for audiences and triggers (contract 19).
//!
//! A segment has no list of its own that decides anything: who uses it gets its conditions ([`Audiences::expand`]), and
//! the trigger plugin decides by them as of now. The members that are kept are for sizes, for lists, and for telling who has
//! entered and who has left.

pub mod expand;
pub mod looking;
mod naming;
pub mod store;

use std::collections::BTreeSet;
use std::time::Duration;

use nudge_db::{Timestamp, Tx};
use nudge_http::{ApiError, Code};
use nudge_platform::field_error::FieldError;
use nudge_plugin_runtime::{CheckFailed, Configuration, Deciders, PluginRef, Plugins, Refused};
use nudge_wasm::Kind;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::campaign::size;
use crate::event_names;

pub use expand::{Audiences, CYCLE, Touch, named};
pub(crate) use naming::is_watched;
pub use naming::watches;
pub use store::{Use, UseKind};

/// Segments that an app may have (contract 19).
pub const MOST: usize = 200;
/// All people of an app are looked at so often, so that sizes are at most an hour old (contract 19).
pub const SWEEP_EVERY: Duration = Duration::from_mins(45);
/// Characters of a name.
const MOST_NAME: usize = 200;
/// Characters of a description.
const MOST_DESCRIPTION: usize = 2_000;
/// Bytes of an audience as JSON.
const MOST_BYTES: usize = 65_536;

/// What people write of a segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SegmentContent)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Content {
    /// 1 to 200 characters; no other segment of the app has it.
    pub name: String,
    /// At most 2,000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who is in it: `include` and `exclude`, as of an audience.
    pub audience: Value,
}

/// A segment.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Its id.
    pub id: Uuid,
    /// The app that it belongs to.
    pub app_id: Uuid,
    /// Grows with each change.
    pub version: i64,
    /// What people wrote of it.
    pub content: Content,
    /// How many people were in it.
    pub size: Option<i64>,
    /// As of when.
    pub size_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A change of somebody's membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Somebody is in the segment who was not.
    Enter,
    /// Somebody is not in the segment who was.
    Exit,
}

/// A segment's changes, which fire a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Watch {
    /// The segment.
    pub segment_id: Uuid,
    /// Which of its changes.
    pub on: Change,
}

/// Why a segment can't be saved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such segment.
    #[error("no such segment")]
    NotFound,
    /// The app has as many as it may.
    #[error("too many segments")]
    TooMany,
    /// Another one has the name.
    #[error("the name is taken")]
    NameTaken,
    /// Somebody changed it meanwhile.
    #[error("changed meanwhile")]
    VersionMismatch,
    /// It would stand in itself.
    #[error("a segment within itself")]
    Cycle(Vec<FieldError>),
    /// It breaks the contract.
    #[error("invalid segment")]
    Invalid(Vec<FieldError>),
    /// Something uses it.
    #[error("the segment is in use")]
    InUse(Vec<Use>),
    /// A plugin could not be asked.
    #[error("a plugin could not be asked")]
    Check(#[from] CheckFailed),
    /// The database.
    #[error("storage failed")]
    Storage(#[from] nudge_db::Error),
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Invalid(errors) => Self::Invalid(errors),
            Refused::Check(cause) => Self::Check(cause),
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound => Self::new(Code::NotFound),
            Error::TooMany => {
                let detail = format!("an app has at most {MOST} segments");
                Self::because(Code::LimitExceeded, detail)
            }
            Error::NameTaken => Self::new(Code::SegmentExists),
            Error::VersionMismatch => Self::overtaken(),
            Error::Cycle(errors) => Self::fields(Code::SegmentCycle, errors),
            Error::Invalid(errors) => Self::fields(Code::ValidationFailed, errors),
            Error::InUse(uses) => {
                let names = uses
                    .iter()
                    .map(Use::to_string)
                    .collect::<Vec<_>>()
                    .join(", ");
                let detail = format!("take it out of these first: {names}");
                Self::because(Code::SegmentInUse, detail).with_member("usedBy", json!(uses))
            }
            Error::Check(cause) => Self::unavailable(cause),
            Error::Storage(cause) => cause.into(),
        }
    }
}

/// Checks what people wrote, beside what the segments that it names are.
fn check_texts(content: &Content) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = content.name.trim().chars().count();
    let is_long = content.name.chars().count() > MOST_NAME;
    if name == 0 || is_long || content.name.contains(char::is_control) {
        let detail = format!(
            "a segment has a name of 1 to {MOST_NAME} characters and no control characters"
        );
        errors.push(FieldError::new("/name", "invalid", detail));
    }
    let description = content.description.as_deref().unwrap_or_default();
    if description.chars().count() > MOST_DESCRIPTION {
        let detail = format!("at most {MOST_DESCRIPTION} characters");
        errors.push(FieldError::new("/description", "too_long", detail));
    }
    // PostgreSQL keeps no NUL in a text.
    if description.contains('\0') {
        let detail = "a description has no NUL";
        errors.push(FieldError::new("/description", "invalid", detail));
    }
    if content.audience.to_string().len() > MOST_BYTES {
        let detail = format!("at most {MOST_BYTES} bytes as JSON");
        errors.push(FieldError::new("/audience", "too_large", detail));
    } else if content.audience.is_null() {
        errors.push(no_audience());
    } else if content.audience.get("samplePercent").is_some() {
        let detail = "a segment has no sample; who uses it may take one of it";
        errors.push(FieldError::new(
            "/audience/samplePercent",
            "not_allowed",
            detail,
        ));
    }
    event_names::check(&content.audience, "/audience", &mut errors);
    errors
}

/// Null is no audience, and would be read as everybody: `{}` says so.
fn no_audience() -> FieldError {
    FieldError::new("/audience", "required", "who is meant; `{}` is everybody")
}

/// Checks what a segment says, and what that makes of the segments that stand on it. `id` is its own. Only the conditions are
/// asked of the trigger plugin that is a part of the server: they are the contract's, whatever plugin an app has.
pub async fn check(
    plugins: &Plugins,
    deciders: &Deciders,
    audiences: &Audiences,
    id: Uuid,
    content: &Content,
) -> Result<(), Error> {
    let errors = check_texts(content);
    if !errors.is_empty() {
        return Err(Error::Invalid(errors));
    }
    let with_it = audiences.with(id, &content.audience);
    let conditions = expanded(&with_it, Some(id), &content.audience)?;
    configuration(&conditions)
        .accept_built_in(plugins, deciders, None)
        .await
        .map_err(told)?;
    users(&with_it, id, false).map(drop)
}

/// The conditions behind an audience of its own, as previews ask for.
pub async fn conditions(
    plugins: &Plugins,
    deciders: &Deciders,
    audiences: &Audiences,
    audience: &Value,
) -> Result<nudge_plugin_runtime::Accepted, Error> {
    if audience.get("samplePercent").is_some() {
        let detail = "a preview has no sample: leave it out";
        let error = FieldError::new("/audience/samplePercent", "not_allowed", detail);
        return Err(Error::Invalid(vec![error]));
    }
    if audience.is_null() {
        return Err(Error::Invalid(vec![no_audience()]));
    }
    let mut errors = Vec::new();
    event_names::check(audience, "/audience", &mut errors);
    if !errors.is_empty() {
        return Err(Error::Invalid(errors));
    }
    let conditions = expanded(audiences, None, audience)?;
    check_size(&conditions.to_string()).map_err(Error::Invalid)?;
    Ok(configuration(&conditions)
        .accept_built_in(plugins, deciders, None)
        .await
        .map_err(told)?)
}

fn expanded(audiences: &Audiences, of: Option<Uuid>, audience: &Value) -> Result<Value, Error> {
    audiences.expand(of, audience).map_err(|errors| {
        if errors.iter().any(|error| error.code == CYCLE) {
            Error::Cycle(errors)
        } else {
            Error::Invalid(errors)
        }
    })
}

/// Why conditions are refused.
fn told(refused: Refused) -> Refused {
    refused.told_at("/audience")
}

/// The configuration by which the trigger plugin says who meets conditions: a campaign that every occasion fires.
pub fn configuration(conditions: &Value) -> Configuration<'static> {
    Configuration {
        kind: Kind::Trigger,
        asked: PluginRef::Slot,
        text: json!({"audience": conditions}).to_string(),
        place: "",
        name_place: "",
    }
}

/// Refuses the configuration of an audience that is too large with the conditions of the segments that it names: it is kept in
/// memory, and plugins read all of it with each call.
pub(crate) fn check_size(text: &str) -> Result<(), Vec<FieldError>> {
    if text.len() <= size::MOST_BYTES {
        return Ok(());
    }
    let detail = format!(
        "at most {} bytes as JSON, with the conditions of the segments that it names",
        size::MOST_BYTES
    );
    Err(vec![FieldError::new("/audience", "too_large", detail)])
}

/// Adds a segment.
pub async fn create(tx: &mut Tx, segment: &Segment) -> Result<(), Error> {
    // Before the count, so that two at once can't both find room.
    crate::apps::bump_version(tx, segment.app_id, segment.created_at).await?;
    if store::count(tx, segment.app_id).await? >= MOST {
        return Err(Error::TooMany);
    }
    if store::is_taken(tx, segment.app_id, &segment.content.name, segment.id).await? {
        return Err(Error::NameTaken);
    }
    store::insert(tx, segment).await?;
    note_uses(tx, segment).await?;
    hold_together(tx, segment, None).await.map(drop)
}

/// Replaces a segment if nobody else did since it was read; answers the segments that stand on it.
pub async fn update(tx: &mut Tx, segment: &Segment) -> Result<Vec<Uuid>, Error> {
    crate::apps::bump_version(tx, segment.app_id, segment.updated_at).await?;
    if store::is_taken(tx, segment.app_id, &segment.content.name, segment.id).await? {
        return Err(Error::NameTaken);
    }
    let before = store::find(tx, segment.app_id, segment.id).await?;
    if !store::update(tx, segment).await? {
        return Err(Error::VersionMismatch);
    }
    note_uses(tx, segment).await?;
    hold_together(tx, segment, before.map(|before| before.content.audience)).await
}

/// Refuses a segment that can't be put together, or with which a segment, survey or campaign that names it could not; answers
/// the segments that stand on it. It is asked in the transaction of the change, which has the app's version: two changes at
/// once may each pass by themselves. What was too large `before` there was a limit can be changed as long as it does not grow.
async fn hold_together(
    tx: &mut Tx,
    segment: &Segment,
    before: Option<Value>,
) -> Result<Vec<Uuid>, Error> {
    let audiences = Audiences::read(tx, segment.app_id).await?;
    let text = |audiences: &Audiences, audience: &Value| {
        let conditions = expanded(audiences, Some(segment.id), audience)?;
        Ok::<_, Error>(conditions.to_string())
    };
    let conditions = text(&audiences, &segment.content.audience)?;
    let was = before.and_then(|before| text(&audiences.with(segment.id, &before), &before).ok());
    let grows = was.is_none_or(|was| conditions.len() > was.len());
    let fits = |text: &str| if grows { check_size(text) } else { Ok(()) };
    fits(&conditions).map_err(Error::Invalid)?;
    let users = users(&audiences, segment.id, grows)?;
    let concerned = users.iter().copied().chain([segment.id]).collect();
    for row in naming::all(tx, segment.app_id, &concerned).await? {
        row.look(|user| {
            let configuration = user.terms.configuration(&audiences);
            let broken = |errors: Vec<FieldError>| breaks(&format!("\"{}\"", user.name), &errors);
            let configuration = configuration.and_then(|asked| fits(&asked.text));
            configuration.map_err(broken)
        })??;
    }
    Ok(users)
}

/// The segments that stand on a segment. `grows`: it may become too large for them.
fn users(audiences: &Audiences, id: Uuid, grows: bool) -> Result<Vec<Uuid>, Error> {
    let users = audiences.users_of(id);
    for (other, audience) in &users {
        let conditions = audiences.expand(Some(*other), audience);
        let fits = conditions.and_then(|conditions| {
            if grows {
                check_size(&conditions.to_string())
            } else {
                Ok(())
            }
        });
        if let Err(errors) = fits {
            return Err(breaks(&format!("the segment {other}"), &errors));
        }
    }
    Ok(users.into_iter().map(|(other, _)| other).collect())
}

fn breaks(user: &str, errors: &[FieldError]) -> Error {
    let cause = errors.first().map_or("", |error| &*error.detail);
    let detail = format!("{user}, which names this segment, could not stay: {cause}");
    Error::Invalid(vec![FieldError::new("/audience", "breaks_user", detail)])
}

async fn note_uses(tx: &mut Tx, segment: &Segment) -> Result<(), Error> {
    let named = expand::named(&segment.content.audience);
    replace_uses(tx, segment.app_id, (UseKind::Segment, segment.id), &named)
        .await?
        .map_err(Error::Invalid)
}

/// Notes which segments something names. The inner error: one is gone meanwhile.
pub async fn replace_uses(
    tx: &mut Tx,
    app_id: Uuid,
    user: (UseKind, Uuid),
    named: &BTreeSet<Uuid>,
) -> nudge_db::Result<Result<(), Vec<FieldError>>> {
    if !named.is_empty() && store::hold(tx, app_id, named).await? < named.len() {
        let detail = "it names a segment that was just removed; read the segments again";
        let error = FieldError::new("/audience", expand::UNKNOWN, detail);
        return Ok(Err(vec![error]));
    }
    store::replace_uses(tx, app_id, user, named).await?;
    Ok(Ok(()))
}

/// Removes a segment that nothing uses.
pub async fn delete(tx: &mut Tx, app_id: Uuid, id: Uuid, now: Timestamp) -> Result<(), Error> {
    // First, in the order in which whoever saves a campaign or a segment locks them.
    crate::apps::bump_version(tx, app_id, now).await?;
    // Before the uses are read: whoever begins to use it holds its row.
    if !store::delete(tx, app_id, id).await? {
        return Err(Error::NotFound);
    }
    let uses = store::uses(tx, app_id, &[id]).await?;
    if !uses.is_empty() {
        return Err(Error::InUse(
            uses.into_iter().map(|(_, used)| used).collect(),
        ));
    }
    Ok(())
}
