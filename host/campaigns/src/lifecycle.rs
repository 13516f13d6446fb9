//! Campaigns as they are saved: what all kinds have in common before they run.

use std::collections::BTreeSet;
use std::sync::Arc;

use nudge_db::{Timestamp, Tx};
use nudge_http::{ApiError, Code};
use nudge_platform::audit::{self, Entry};
use nudge_platform::field_error::FieldError;
use nudge_plugin_runtime::{CheckFailed, Deciders, Plugins, Refused};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::campaign::{ActiveCampaign, CampaignAction, Change, Kind, Status, size};
use crate::push::personalization::named_plugin;
use crate::runs::{self, Manner, Plan};
use crate::segments::{self, Audiences, UseKind};
use crate::store::{self, Hold, Stored};
use crate::targeting::Rules;
use crate::trigger::Terms;

/// Campaigns of a kind that an app may have (contract 15).
pub const MOST: usize = 1_000;

/// A campaign, with what people wrote of it.
#[derive(Clone, Debug)]
pub struct Campaign<C> {
    /// Its id.
    pub id: Uuid,
    /// The app that it belongs to.
    pub app_id: Uuid,
    /// Grows with each change.
    pub version: i64,
    /// What people wrote of it.
    pub content: C,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it last became active.
    pub activated_at: Option<Timestamp>,
}

/// What people write of campaigns of a kind.
pub trait Content: Serialize + DeserializeOwned + Send + Sync {
    /// The kind.
    const KIND: Kind;

    /// Members that a stored campaign may lack which an older server wrote, with the JSON of their meaning.
    const DEFAULTS: &'static [(&'static str, &'static str)];

    /// What it has in common with campaigns of all kinds.
    fn common(&self) -> CommonContent<'_>;

    /// Where the campaign stands.
    fn status(&self) -> Status {
        self.common().status
    }

    /// What the tokens of each of its variants stand for, if it has variants and they have any.
    fn personalizations(&self) -> Vec<Option<&Value>> {
        Vec::new()
    }

    /// Whether its trigger plugin has something to accept before it is saved.
    fn has_terms(&self) -> bool {
        let terms = self.terms();
        terms.trigger.is_some() || terms.audience.is_some()
    }

    /// What its trigger plugin decides by.
    fn terms(&self) -> Terms<'_>;

    /// How it finds its people.
    fn manner(&self) -> Manner;

    /// Checks what must hold before it is saved, whatever its kind. `before` is what it said until now.
    fn validate(
        &self,
        plugins: &Plugins,
        deciders: &Deciders,
        segments: &Audiences,
        before: Option<&Self>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Gives its variants, if it has any, the ids that they lack. `before` is what it said until now.
    fn identify_variants(&mut self, _before: Option<&Self>, _new_id: impl Fn() -> Uuid) {}

    /// Reads what the host goes by.
    fn compile(&self) -> Result<Compiled, Vec<FieldError>> {
        let common = self.common();
        let rules = Rules::compile(common.audience, common.schedule, common.frequency_cap)?;
        let plan = Plan::read(self.manner(), common.trigger, &rules.schedule)?;
        Ok(Compiled { rules, plan })
    }
}

/// The members that campaigns of every kind have, as people wrote them.
#[derive(Clone, Copy, Debug)]
pub struct CommonContent<'c> {
    /// Where the campaign stands.
    pub status: Status,
    /// Which comes first when several fire; higher first.
    pub priority: i32,
    /// What triggers it.
    pub trigger: Option<&'c Value>,
    /// Whom it is for.
    pub audience: Option<&'c Value>,
    /// When it may reach people.
    pub schedule: Option<&'c Value>,
    /// How often it may reach a person.
    pub frequency_cap: Option<&'c Value>,
}

/// What the host goes by of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    /// What it enforces: sampling, schedule, caps.
    pub rules: Rules,
    /// When it runs by the calendar; none: by what people do.
    pub plan: Option<Plan>,
}

/// What people write of campaigns that SDKs present.
pub trait Presented: Content {
    /// The form in which the pipeline runs a campaign. `before` is the form in which it ran until now.
    fn run(
        plugins: &Plugins,
        deciders: &Deciders,
        segments: &Audiences,
        campaign: &Campaign<Self>,
        before: Option<&ActiveCampaign>,
    ) -> impl Future<Output = Result<ActiveCampaign, Error>> + Send;
}

/// Why a campaign can't be saved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such campaign.
    #[error("no such campaign")]
    NotFound,
    /// The app has as many of the kind as it may.
    #[error("too many campaigns")]
    TooMany(Kind),
    /// It is larger than one may be.
    #[error("too large a campaign")]
    TooLarge,
    /// It has more values than one may have.
    #[error("too many values in a campaign")]
    TooMuch,
    /// With it the app's surveys and campaigns are larger than all may be.
    #[error("too large campaigns")]
    TooLargeTogether,
    /// Somebody changed it meanwhile.
    #[error("changed meanwhile")]
    VersionMismatch,
    /// It breaks the contract.
    #[error("invalid campaign")]
    Invalid(Vec<FieldError>),
    /// A survey's flow can't be walked.
    #[error("invalid flow")]
    InvalidFlow(Vec<FieldError>),
    /// Its colours can't be read on one another.
    #[error("low contrast")]
    LowContrast(Vec<FieldError>),
    /// It can't run as it is.
    #[error("not activatable")]
    NotActivatable(Vec<FieldError>),
    /// A plugin could not be asked.
    #[error("a plugin could not be asked")]
    Check(#[from] CheckFailed),
    /// The database.
    #[error("storage failed")]
    Storage(#[from] nudge_db::Error),
}

impl Error {
    /// Whether a plugin could not be asked now: asked again it may accept.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Check(cause) if cause.of_plugin().is_none())
    }

    /// What is wrong, field by field.
    pub fn fields(&self) -> &[FieldError] {
        match self {
            Self::Invalid(errors)
            | Self::InvalidFlow(errors)
            | Self::LowContrast(errors)
            | Self::NotActivatable(errors) => errors,
            _ => &[],
        }
    }
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
            Error::TooMany(kind) => {
                let detail = format!("an app has at most {MOST} {}", kind.plural());
                Self::because(Code::LimitExceeded, detail)
            }
            Error::TooLarge => {
                let detail = format!("it has at most {} bytes as JSON", size::MOST_BYTES);
                Self::because(Code::LimitExceeded, detail)
            }
            Error::TooMuch => {
                let detail = "it has far more values than its length is good for";
                Self::because(Code::LimitExceeded, detail)
            }
            Error::TooLargeTogether => {
                let detail = format!(
                    "the surveys, campaigns and event definitions of an app have at most {} bytes as JSON together; remove some first",
                    size::MOST_TOTAL
                );
                Self::because(Code::LimitExceeded, detail)
            }
            Error::VersionMismatch => Self::overtaken(),
            Error::Invalid(errors) => Self::fields(Code::ValidationFailed, errors),
            Error::InvalidFlow(errors) => Self::fields(Code::InvalidFlow, errors),
            Error::LowContrast(errors) => Self::fields(Code::LowContrast, errors),
            Error::NotActivatable(errors) => Self::fields(Code::NotActivatable, errors),
            Error::Check(cause) => Self::unavailable(cause),
            Error::Storage(cause) => cause.into(),
        }
    }
}

impl<C: Content> Campaign<C> {
    /// A new one.
    pub fn new(id: Uuid, app_id: Uuid, content: C, now: Timestamp) -> Self {
        Self {
            id,
            app_id,
            version: 1,
            activated_at: (content.status() == Status::Active).then_some(now),
            content,
            created_at: now,
            updated_at: now,
        }
    }

    /// The next version, and whether the campaign becomes active with it.
    #[must_use]
    pub fn changed(self, content: C, now: Timestamp) -> (Self, bool) {
        let activated =
            content.status() == Status::Active && self.content.status() != Status::Active;
        let changed = Self {
            version: self.version + 1,
            content,
            updated_at: now,
            activated_at: if activated {
                Some(now)
            } else {
                self.activated_at
            },
            ..self
        };
        (changed, activated)
    }
}

/// Asks the trigger plugin whether it accepts what a campaign waits for and whom it is for. `before` is what the campaign said until
/// now: what has not changed is not asked again unless the campaign runs, so that one whose plugin has become another can always
/// be stopped.
pub(crate) async fn check_terms<C: Content>(
    plugins: &Plugins,
    deciders: &Deciders,
    segments: &Audiences,
    content: &C,
    before: Option<&C>,
) -> Result<(), Refused> {
    let is_known = before.is_some_and(|before| {
        let (before, now) = (before.common(), content.common());
        before.trigger == now.trigger && before.audience == now.audience
    });
    if !content.has_terms() || is_known && content.status() != Status::Active {
        return Ok(());
    }
    let terms = content.terms();
    let errors = terms.check_event_names();
    if !errors.is_empty() {
        return Err(Refused::Invalid(errors));
    }
    let configuration = terms.configuration(segments);
    let configuration = configuration.map_err(Refused::Invalid)?;
    if !is_known {
        segments::check_size(&configuration.text).map_err(Refused::Invalid)?;
    }
    configuration.check(plugins, deciders).await
}

/// The form in which the pipeline runs a campaign that brings about `action`. `before` is the form in which it ran until now.
pub(crate) async fn active<C: Content>(
    plugins: &Plugins,
    deciders: &Deciders,
    segments: &Audiences,
    campaign: &Campaign<C>,
    action: CampaignAction,
    before: Option<&ActiveCampaign>,
) -> Result<ActiveCampaign, Error> {
    let content = &campaign.content;
    let configuration = content.terms().configuration(segments);
    let configuration = configuration.map_err(Error::Invalid)?;
    let before = before.map(|before| &before.accepted);
    let accepted = configuration.accept(plugins, deciders, before).await?;
    let Compiled { rules, plan } = content.compile().map_err(Error::Invalid)?;
    Ok(ActiveCampaign {
        id: campaign.id,
        version: campaign.version,
        priority: content.common().priority,
        accepted,
        rules: Arc::new(rules),
        action,
        watch: content.terms().watch(),
        by_calendar: content.terms().is_by_calendar(),
        has_runs: plan.is_some(),
    })
}

/// Adds a campaign.
pub async fn create<C: Content>(
    tx: &mut Tx,
    plugins: &Plugins,
    campaign: &Campaign<C>,
) -> Result<(), Error> {
    // Before the count, so that two at once can't both find room.
    crate::apps::bump_version(tx, campaign.app_id, campaign.created_at).await?;
    if store::count(tx, campaign.app_id, C::KIND).await? >= MOST {
        return Err(Error::TooMany(C::KIND));
    }
    require_plugins(tx, plugins, campaign).await?;
    let compiled = campaign.content.compile().map_err(Error::Invalid)?;
    let was_watched = is_watched(tx, campaign).await?;
    store::insert(tx, campaign, &compiled).await?;
    let named = named_segments(&campaign.content);
    note_segments(tx, campaign, &named, was_watched).await?;
    plan(tx, campaign, compiled, campaign.created_at).await
}

/// Replaces a campaign if nobody else did since it was read.
pub async fn update<C: Content>(
    tx: &mut Tx,
    plugins: &Plugins,
    campaign: &Campaign<C>,
) -> Result<(), Error> {
    // Before segments and plugins are read, so that none is changed meanwhile.
    crate::apps::bump_version(tx, campaign.app_id, campaign.updated_at).await?;
    require_plugins(tx, plugins, campaign).await?;
    let compiled = campaign.content.compile().map_err(Error::Invalid)?;
    let was_watched = is_watched(tx, campaign).await?;
    let named = segments_in_use(tx, campaign).await?;
    if !store::update(tx, campaign, &compiled).await? {
        return Err(Error::VersionMismatch);
    }
    note_segments(tx, campaign, &named, was_watched).await?;
    plan(tx, campaign, compiled, campaign.updated_at).await
}

/// Has a campaign checked anew where a plugin that it names was removed since. One that was stopped can stay so without, and a
/// draft can name what is named in what it takes the place of.
async fn require_plugins<C: Content>(
    tx: &mut Tx,
    plugins: &Plugins,
    campaign: &Campaign<C>,
) -> Result<(), Error> {
    let status = campaign.content.status();
    if !matches!(status, Status::Draft | Status::Active) {
        return Ok(());
    }
    let mut named = named_plugins(&campaign.content);
    if status == Status::Draft
        && !named.is_empty()
        && let Some(before) = store::find::<C>(tx, campaign.app_id, campaign.id).await?
    {
        let known = named_plugins(&before.content);
        named.retain(|name| !known.contains(name));
    }
    Ok(plugins.require(tx, campaign.app_id, named).await?)
}

/// The plugins that a campaign names: for its trigger, and for what stands in its texts.
pub fn named_plugins<C: Content>(content: &C) -> BTreeSet<&str> {
    let trigger = content.terms().named_plugin();
    let texts = content.personalizations().into_iter().flatten();
    texts.filter_map(named_plugin).chain(trigger).collect()
}

/// Whether a campaign that runs waits already for the changes that this one waits for.
async fn is_watched<C: Content>(tx: &mut Tx, campaign: &Campaign<C>) -> Result<bool, Error> {
    Ok(match campaign.content.terms().watch() {
        Some(watch) => segments::is_watched(tx, campaign.app_id, watch.segment_id).await?,
        None => false,
    })
}

/// The segments that a campaign names. One that was put away needs them no longer.
fn named_segments<C: Content>(content: &C) -> BTreeSet<Uuid> {
    match content.status() {
        Status::Archived => BTreeSet::new(),
        _ => content.terms().segments(),
    }
}

/// The segments that a changed campaign names. While a campaign was put away, a segment that it names may have been removed. Such a
/// campaign takes any status but `active` all the same, and uses none of its segments until it names others.
async fn segments_in_use<C: Content>(
    tx: &mut Tx,
    campaign: &Campaign<C>,
) -> Result<BTreeSet<Uuid>, Error> {
    let (app_id, content) = (campaign.app_id, &campaign.content);
    let named = named_segments(content);
    if named.is_empty() || content.status() == Status::Active {
        return Ok(named);
    }
    if segments::store::hold(tx, app_id, &named).await? == named.len() {
        return Ok(named);
    }
    let before = store::find::<C>(tx, app_id, campaign.id).await?;
    let names_the_same = before.is_some_and(|before| before.content.terms().segments() == named);
    Ok(if names_the_same {
        BTreeSet::new()
    } else {
        named
    })
}

/// Notes which segments a campaign names.
async fn note_segments<C: Content>(
    tx: &mut Tx,
    campaign: &Campaign<C>,
    named: &BTreeSet<Uuid>,
    was_watched: bool,
) -> Result<(), Error> {
    let content = &campaign.content;
    let kind = match C::KIND {
        Kind::Survey => UseKind::Survey,
        Kind::Push | Kind::InApp => UseKind::Campaign,
    };
    let (app_id, id) = (campaign.app_id, campaign.id);
    let noted = segments::replace_uses(tx, app_id, (kind, id), named).await?;
    noted.map_err(Error::Invalid)?;
    if !named.is_empty() {
        // They may be others than those that the request was checked with.
        let audiences = Audiences::read(tx, app_id).await?;
        let configuration = content.terms().configuration(&audiences);
        configuration.map_err(Error::Invalid)?;
    }
    // Who is in a segment is known as of the last hour as long as nobody waits for its changes. Whoever is in already when
    // somebody begins to wait enters nothing.
    let Some(watch) = content.terms().watch() else {
        return Ok(());
    };
    if content.status() == Status::Active && !was_watched {
        segments::looking::anew(tx, app_id, &[watch.segment_id], campaign.updated_at).await?;
    }
    Ok(())
}

/// Notes when a campaign runs next.
async fn plan<C: Content>(
    tx: &mut Tx,
    campaign: &Campaign<C>,
    compiled: Compiled,
    now: Timestamp,
) -> Result<(), Error> {
    let planned = runs::Campaign {
        app_id: campaign.app_id,
        id: campaign.id,
        kind: C::KIND,
        active: campaign.content.status() == Status::Active,
        plan: compiled.plan,
    };
    Ok(runs::plan(tx, &planned, now).await?)
}

/// Completes a campaign that is as it was read, as the server does when it is over; answers whether it still was. The app
/// is to be read anew after the commit.
pub async fn end(
    tx: &mut Tx,
    campaign: Stored,
    because: &'static str,
    now: Timestamp,
) -> nudge_db::Result<bool> {
    let (app_id, id) = (campaign.app_id, campaign.id);
    let was = complete(tx, campaign, because, now).await?;
    if was {
        runs::stop(tx, app_id, id, now).await?;
    }
    Ok(was)
}

/// Completes a campaign that runs, as the server does once its only run is over; answers whether it still ran. Its runs are
/// the caller's.
pub async fn complete_after_run(
    tx: &mut Tx,
    app_id: Uuid,
    id: Uuid,
    now: Timestamp,
) -> nudge_db::Result<bool> {
    match store::stored(tx, app_id, id, Hold::No).await? {
        Some(campaign) if campaign.is_active() => {
            complete(tx, campaign, "its run is over", now).await
        }
        _ => Ok(false),
    }
}

async fn complete(
    tx: &mut Tx,
    campaign: Stored,
    because: &'static str,
    now: Timestamp,
) -> nudge_db::Result<bool> {
    let kind = campaign.kind()?;
    let completed = campaign.completed(now)?;
    if !store::replace(tx, &completed).await? {
        return Ok(false);
    }
    let entry = Entry {
        app_id: completed.app_id,
        actor: audit::SERVER,
        action: kind.action(Change::Completed),
        resource: format!("{}/{}", kind.resource(), completed.id),
        detail: json!({
            "version": completed.version, "status": Status::Completed, "because": because,
        }),
    };
    audit::record(tx, &entry, now).await?;
    crate::apps::bump_version(tx, completed.app_id, now).await?;
    Ok(true)
}
