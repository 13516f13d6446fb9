//! Saved properties of people and their updates (specification 2.2 and 4.1, contract 5).
//!
//! An update, the memory of its `mutationId` and the note of what it changed are one transaction. The note is
//! an event of the server's own: the pipeline processes it like any other, exactly once, but it is in nobody's
//! timeline and count.

mod changes;
pub mod http;
pub mod update;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use nudge_apps::App;
use nudge_apps::subject_token::SubjectToken;
use nudge_campaigns::apps;
use nudge_campaigns::settings::Privacy;
use nudge_db::{Dialect, Timestamp, Tx};
use nudge_http::Mark;
use nudge_pipeline::Work;
use nudge_pipeline::segments::checks;
use nudge_platform::audit::{self, Entry};
use nudge_platform::event_names::PROPERTY_CHANGED;
use nudge_records::events::Source;
use nudge_records::properties as store;
use nudge_records::properties::MOST;
use nudge_records::segment_checks;
use nudge_records::subjects;
use nudge_records::subjects::current;
use nudge_records::subjects::current::TokenRefusal;
use nudge_records::subjects::{AliasKind, AliasView, NOBODY};
use serde_json::json;
use uuid::Uuid;

pub use update::{Invalid, Update};

use crate::services::Services;

/// How often an update is tried that meets others.
const MOST_TRIES: u32 = 8;
/// The pause before an update in doubt is made again, at first.
const PAUSE: Duration = Duration::from_millis(50);

/// Whose properties to update.
#[derive(Clone, Debug)]
pub enum Whom {
    /// The subject of an SDK's token, by one of its anonymous ids.
    Token(SubjectToken, String),
    /// The person with this anonymous id.
    Anonymous(String),
    /// The person with this external id.
    External(String),
    /// The subject, or the one that it was merged into.
    Subject(Uuid),
}

/// What became of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateOutcome {
    /// Whether it has taken effect now. Not if it had before, or if the privacy policy leaves nothing of it.
    pub applied: bool,
    /// Keys that the privacy policy takes out, ascending.
    pub filtered_keys: Vec<String>,
}

/// Why an update was not taken. Nothing of it has taken effect, unless that is in doubt.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The token is revoked.
    #[error("the token is revoked")]
    TokenRevoked,
    /// The anonymous id is not one of the token's subject.
    #[error("another subject's anonymous id")]
    SubjectMismatch,
    /// There is nobody of this id.
    #[error("no such subject")]
    SubjectNotFound,
    /// Analytics consent is missing.
    #[error("no consent")]
    ConsentRequired,
    /// Somebody of the name is being erased; then a new person begins.
    #[error("somebody of the same name is being erased")]
    Erasing,
    /// The `mutationId` was used for something else.
    #[error("the mutation id is taken")]
    MutationConflict,
    /// The person would have too many properties.
    #[error("too many properties")]
    TooMany,
    /// The database.
    #[error("the database refused an update")]
    Storage(#[from] nudge_db::Error),
    /// The database did not say whether the update has taken effect.
    #[error("the database did not answer a commit")]
    InDoubt(#[source] nudge_db::Error),
}

impl From<TokenRefusal> for Error {
    fn from(refusal: TokenRefusal) -> Self {
        match refusal {
            TokenRefusal::Revoked => Self::TokenRevoked,
            TokenRefusal::Mismatch => Self::SubjectMismatch,
            TokenRefusal::Storage(cause) => Self::Storage(cause),
        }
    }
}

/// Takes an update of a person's properties, from an SDK or a server. An update by an actor has an entry in the audit log, in
/// the same transaction.
///
/// Where the database's answer got lost, the update is made again: by its mark it finds whether it had taken effect.
pub async fn take(
    services: &Services,
    app: &Arc<App>,
    (whom, source): (&Whom, Source),
    update: &Update,
    mark: Mark,
    actor: Option<&str>,
) -> Result<UpdateOutcome, Error> {
    if app.segments.is_touched_by_properties() {
        look_at_segments(services, app, whom, mark).await?;
    }
    let mut in_doubt = false;
    for tries in 1..MOST_TRIES {
        match attempt(services, app, (whom, source), update, mark, actor).await {
            // Another transaction was quicker, or the subject was merged into another just now.
            Err(Error::Storage(error) | Error::InDoubt(error))
                if error.kind() == nudge_db::Kind::Serialization => {}
            Err(Error::InDoubt(error)) if error.is_temporary() => {
                in_doubt = true;
                tokio::time::sleep(PAUSE * tries).await;
            }
            Err(Error::Storage(error)) if in_doubt && error.is_temporary() => {
                tokio::time::sleep(PAUSE * tries).await;
            }
            outcome => return outcome,
        }
    }
    attempt(services, app, (whom, source), update, mark, actor).await
}

/// Has what the person's earlier changes mean for segments decided before the next one. Nobody to be found is the update's to tell.
async fn look_at_segments(
    services: &Services,
    app: &App,
    whom: &Whom,
    mark: Mark,
) -> nudge_db::Result<()> {
    let mut tx = services.db.read().await?;
    let standing = match whom {
        Whom::Token(token, _) => match current::read(&mut tx, token).await {
            Ok(standing) => Some(standing),
            Err(TokenRefusal::Revoked | TokenRefusal::Mismatch) => None,
            Err(TokenRefusal::Storage(error)) => return Err(error),
        },
        _ => named(&mut tx, app, whom).await?,
    };
    drop(tx);
    let person = standing.map(|standing| standing.subject_id);
    checks::look_before_change(services, app, person.as_slice(), mark.begun).await
}

async fn attempt(
    services: &Services,
    app: &Arc<App>,
    (whom, source): (&Whom, Source),
    update: &Update,
    mark: Mark,
    actor: Option<&str>,
) -> Result<UpdateOutcome, Error> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let subject_id = find(&mut tx, app, whom).await?;
    let filtered_keys = filtered(&app.settings.privacy, source, update);
    let kept = update.without(&filtered_keys);
    let applied = !kept.is_empty();
    let digest = update.digest(whom);
    if !store::remember(
        &mut tx,
        app.id,
        update.mutation_id,
        subject_id,
        (&digest, mark.id),
        now,
    )
    .await?
    {
        let known = store::remembered(&mut tx, app.id, update.mutation_id).await?;
        let known = known.filter(|known| known.digest == digest);
        let known = known.ok_or(Error::MutationConflict)?;
        return Ok(UpdateOutcome {
            applied: applied && known.made_by == Some(mark.id),
            filtered_keys,
        });
    }
    let mut work = None;
    if applied {
        work = write(services, &mut tx, app, subject_id, source, &kept, now).await?;
        if let Some(actor) = actor {
            let entry = entry(services, app.id, subject_id, actor, &kept);
            audit::record(&mut tx, &entry, now).await?;
        }
    }
    tx.commit().await.map_err(Error::InDoubt)?;
    if let Some(work) = work {
        services.pipeline.submit(work);
    }
    if app.segments.is_touched_by_properties() {
        services.pipeline.segment_checks().wake();
    }
    Ok(UpdateOutcome {
        applied,
        filtered_keys,
    })
}

/// What the audit log says of an update: neither whose the properties are nor what they say.
fn entry<'a>(
    services: &Services,
    app_id: Uuid,
    subject_id: Uuid,
    actor: &'a str,
    update: &Update,
) -> Entry<'a> {
    let person = services.pseudonyms.subject(app_id, subject_id);
    Entry {
        app_id,
        actor,
        action: "person.properties_updated",
        resource: format!("person/{person}"),
        detail: json!({"set": update.set.len(), "unset": update.unset.len()}),
    }
}

/// Writes the properties and, if a campaign listens, notes what changed. The work is the pipeline's once the
/// transaction is committed.
async fn write(
    services: &Services,
    tx: &mut Tx,
    app: &App,
    subject_id: Uuid,
    source: Source,
    update: &Update,
    now: Timestamp,
) -> Result<Option<Work>, Error> {
    let before = store::values(tx, app.id, subject_id, update.keys()).await?;
    store::set(tx, app.id, subject_id, &update.set, name(source), now).await?;
    store::unset(tx, app.id, subject_id, &update.unset).await?;
    store::index_texts(tx, app.id, subject_id, &update.set, &update.unset).await?;
    if store::count(tx, app.id, subject_id).await? > MOST {
        return Err(Error::TooMany);
    }
    let is_outdated = is_outdated(tx, app).await?;
    if is_outdated || !app.segments.all.is_empty() || !app.feedback.is_empty() {
        // Whoever looks at the person's segments now has read the values of before. Open polls look again for buttons.
        subjects::store::bump_version(tx, app.id, subject_id).await?;
    }
    if is_outdated || app.segments.is_touched_by_properties() {
        segment_checks::note(tx, app.id, &[subject_id]).await?;
    }
    let listened = is_outdated || app.campaigns_for(PROPERTY_CHANGED).next().is_some();
    let changed = if listened {
        update.changes(&before)
    } else {
        Vec::new()
    };
    Ok(changes::note(services, tx, app.id, subject_id, source, &changed, now).await?)
}

/// Whether another process has changed the app meanwhile: somebody may listen for changes whom this one does not know yet. What
/// is noted and nobody listens for is dropped when it is looked at.
async fn is_outdated(tx: &mut Tx, app: &App) -> nudge_db::Result<bool> {
    Ok(match tx.dialect() {
        Dialect::Sqlite => false,
        Dialect::Postgres => apps::version(tx, app.id).await? != Some(app.version),
    })
}

/// The subject, locked, if its properties may be updated.
async fn find(tx: &mut Tx, app: &App, whom: &Whom) -> Result<Uuid, Error> {
    let mut standing = look_up(tx, app, whom).await?;
    if !matches!(whom, Whom::Token(..))
        && let Some(found) = &standing
    {
        subjects::store::lock_found(tx, app.id, found.subject_id).await?;
        // As of now: somebody else may have had the row, and withdrawn a consent.
        standing = look_up(tx, app, whom).await?;
    }
    let standing: AliasView = standing
        .filter(|standing| !standing.suppressed)
        .ok_or(Error::SubjectNotFound)?;
    if !standing.may_analyze(app) {
        return Err(Error::ConsentRequired);
    }
    Ok(standing.subject_id)
}

/// Finds a person; by a token, it is locked.
async fn look_up(tx: &mut Tx, app: &App, whom: &Whom) -> Result<Option<AliasView>, Error> {
    Ok(match whom {
        Whom::Token(token, _) if token.alias == NOBODY => {
            // Unless somebody begins anew soon, no new session would change anything.
            let is_soon = token.events_after.is_some();
            return Err(if is_soon {
                Error::Erasing
            } else {
                Error::ConsentRequired
            });
        }
        Whom::Token(token, anonymous_id) => Some(current::lock_of(tx, token, anonymous_id).await?),
        _ => named(tx, app, whom).await?,
    })
}

/// Whom an id stands for. None: nobody, or it is a token, which is more than an id.
async fn named(tx: &mut Tx, app: &App, whom: &Whom) -> nudge_db::Result<Option<AliasView>> {
    match whom {
        Whom::Token(..) => Ok(None),
        Whom::Anonymous(id) => subjects::store::find(tx, app.id, AliasKind::Anonymous, id).await,
        Whom::External(id) => subjects::store::find(tx, app.id, AliasKind::External, id).await,
        Whom::Subject(id) => subjects::store::of_subject(tx, app.id, *id).await,
    }
}

/// Keys that the policy takes out (contract 5): the denied ones, and from backends all that are not allowed.
fn filtered(privacy: &Privacy, source: Source, update: &Update) -> Vec<String> {
    let denied: BTreeSet<&str> = privacy.deny_keys.iter().map(String::as_str).collect();
    let allowed: Option<BTreeSet<&str>> = match (source, &privacy.allow_keys) {
        (Source::Sdk, _) | (_, None) => None,
        (Source::Server, Some(keys)) => Some(keys.iter().map(String::as_str).collect()),
    };
    let is_out = |key: &&str| {
        denied.contains(key)
            || allowed
                .as_ref()
                .is_some_and(|allowed| !allowed.contains(key))
    };
    let keys: BTreeSet<&str> = update.keys().filter(is_out).collect();
    keys.into_iter().map(str::to_owned).collect()
}

/// How the API names who set a property.
fn name(source: Source) -> &'static str {
    match source {
        Source::Sdk => "sdk",
        Source::Server => "api",
    }
}
