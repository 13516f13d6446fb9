//! Apps in memory: one immutable snapshot each, replaced whole when something in it changes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use futures_util::future::BoxFuture;
use nudge_campaigns::campaign::ActiveCampaign;
use nudge_campaigns::definitions::{self, Enforced, Enforcement};
use nudge_campaigns::lifecycle::Presented;
use nudge_campaigns::push::Sending;
use nudge_campaigns::segments::{self, Audiences};
use nudge_campaigns::settings::Settings;
use nudge_campaigns::store::{self as campaigns, Stored};
use nudge_campaigns::{apps as store, campaign, in_app, surveys};
use nudge_db::{Db, Timestamp, Tx};
use nudge_platform::event_names::{SESSION_BEGAN, is_reserved};
use nudge_plugin_runtime as plugins;
use nudge_plugin_runtime::catalogue::Catalogue;
use nudge_plugin_runtime::{Deciders, Plugins};
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use uuid::Uuid;

use super::key::Key;
use super::lookups::Lookups;
use crate::cors::Rule;
use crate::identity_keys::{self, IdentityKey};
use crate::keys;
use crate::segments::Segments;

/// How long to wait before plugins that could not be loaded are tried again.
const TRY_AGAIN: Duration = Duration::from_mins(1);
/// How often an app is read again because some app was forgotten meanwhile.
const MOST_TRIES: u32 = 3;

/// An app as of one version: everything that deciding about its events takes.
#[derive(Debug)]
pub struct App {
    /// Its id.
    pub id: Uuid,
    /// The workspace that it belongs to.
    pub workspace_id: Uuid,
    /// The version that this is a snapshot of.
    pub version: i64,
    /// Its settings.
    pub settings: Settings,
    /// The origins whose pages may read its answers.
    pub origins: Arc<[String]>,
    /// Its keys, by hash.
    pub keys: HashMap<[u8; 32], Arc<Key>>,
    /// Keys that verify identity tokens.
    pub identity_keys: Vec<IdentityKey>,
    /// The plugins that decide.
    pub deciders: Deciders,
    /// When this was read.
    read_at: Instant,
    /// Active definitions, by event name.
    pub definitions: HashMap<String, Arc<Enforced>>,
    /// Names of events whose active definition no plugin checks: it is not there, or refuses what the definition says.
    pub unchecked: HashSet<String>,
    /// Active campaigns.
    pub campaigns: Vec<ActiveCampaign>,
    /// Those of them that a button opens.
    pub feedback: Vec<usize>,
    /// When the last of its active surveys and in-app messages was activated.
    pub last_activation: Option<Timestamp>,
    /// Active push campaigns, as messages are made of them.
    pub push: HashMap<Uuid, Arc<Sending>>,
    /// For each event name the campaigns that read it, ascending.
    routes: HashMap<String, Vec<usize>>,
    /// The campaigns that read every event.
    everywhere: Vec<usize>,
    /// Active endpoints that are told of push deliveries.
    pub webhooks: Vec<nudge_campaigns::webhooks::Subscription>,
    /// Names of events whose past a campaign asks for.
    history: HashSet<String>,
    /// Its segments.
    pub segments: Segments,
}

impl App {
    /// Whether it may be complete once it is read anew.
    fn is_incomplete(&self) -> bool {
        self.deciders.incomplete || !self.unchecked.is_empty()
    }

    /// The campaigns that an event of this name concerns, ascending. Costs the same whatever number of
    /// campaigns other names have.
    pub fn campaigns_for(&self, name: &str) -> impl Iterator<Item = usize> {
        let named = self.routes.get(name).map_or(&[][..], Vec::as_slice);
        named.iter().chain(&self.everywhere).copied()
    }

    /// Whether a campaign asks for the past of events of this name.
    pub fn looks_back_at(&self, name: &str) -> bool {
        self.history.contains(name)
    }

    /// Whether an event of this name concerns a campaign.
    pub fn reads(&self, campaign: usize, name: &str) -> bool {
        self.campaigns_for(name).any(|other| other == campaign)
    }

    /// The campaigns that hear of the beginning of sessions, ascending. Those that read every event have it from
    /// the event that a session begins with.
    pub fn session_campaigns(&self) -> &[usize] {
        self.routes.get(SESSION_BEGAN).map_or(&[], Vec::as_slice)
    }

    /// An active campaign's index.
    pub fn campaign(&self, id: Uuid) -> Option<usize> {
        self.campaigns.iter().position(|campaign| campaign.id == id)
    }

    /// The names of the events that can trigger something and that clients send.
    pub fn trigger_names(&self) -> Vec<&str> {
        // What the server says itself no client sends.
        let sent = |name: &&str| !is_reserved(name);
        let names = self.routes.keys().map(String::as_str);
        let mut names: Vec<&str> = names.filter(sent).collect();
        names.sort_unstable();
        names
    }
}

/// All apps that this process has met.
pub struct Registry {
    db: Db,
    plugins: Plugins,
    apps: RwLock<HashMap<Uuid, Arc<App>>>,
    keys: RwLock<HashMap<[u8; 32], Uuid>>,
    /// Keys that are not in there.
    lookups: Lookups,
    /// The origins that each app of the database allows, with the version that they are of.
    origins: RwLock<HashMap<Uuid, (i64, Vec<String>)>>,
    /// How often an app turned out to be gone; changes under the lock of `apps`.
    forgotten: AtomicU64,
    /// Apps that are being read anew because another process changed them.
    catching_up: Mutex<HashSet<Uuid>>,
}

/// Whose a key's hash is.
#[derive(Debug)]
pub enum Holder {
    /// An app's; it may have expired.
    Live(Arc<App>, Arc<Key>),
    /// It was revoked.
    Revoked {
        /// The app that it belonged to.
        app_id: Uuid,
        /// The key.
        key_id: Uuid,
    },
    /// Nobody's.
    Nobody,
}

/// An app that is being read anew; until it is dropped nobody else begins with it.
pub struct CatchingUp {
    registry: Arc<Registry>,
    app_id: Uuid,
}

impl CatchingUp {
    /// Reads the app. Takes as long as loading its plugins; what was in memory serves meanwhile.
    pub async fn finish(self) {
        if let Err(error) = self.registry.refresh(self.app_id).await {
            tracing::warn!(app.id = %self.app_id, error = ?error, "a changed app can't be read and is tried again");
        }
    }
}

impl Drop for CatchingUp {
    fn drop(&mut self) {
        self.registry.catching_up.lock().remove(&self.app_id);
    }
}

impl Registry {
    /// An empty registry.
    pub fn new(db: Db, plugins: Plugins) -> Self {
        Self {
            db,
            plugins,
            apps: RwLock::default(),
            keys: RwLock::default(),
            lookups: Lookups::default(),
            origins: RwLock::default(),
            forgotten: AtomicU64::new(0),
            catching_up: Mutex::default(),
        }
    }

    /// An app, from memory or the database.
    pub async fn get(&self, id: Uuid) -> nudge_db::Result<Option<Arc<App>>> {
        match self.known(id) {
            Some(app) => Ok(Some(app)),
            None => self.refresh(id).await,
        }
    }

    /// An app as of a version or a later one. What another process has changed is read at once.
    pub async fn as_of(&self, id: Uuid, version: i64) -> nudge_db::Result<Option<Arc<App>>> {
        match self.known(id) {
            Some(app) if app.version >= version => Ok(Some(app)),
            _ => self.refresh(id).await,
        }
    }

    /// The app and key that a key's hash stands for, as far as memory knows.
    pub fn known_key(&self, hash: &[u8; 32]) -> Option<(Arc<App>, Arc<Key>)> {
        let app_id = self.keys.read().get(hash).copied()?;
        let app = self.apps.read().get(&app_id).cloned()?;
        let key = app.keys.get(hash).cloned();
        if key.is_none() {
            // It was revoked.
            self.keys.write().remove(hash);
        }
        Some((app, key?))
    }

    /// Whose a key's hash is, as the database knows.
    pub async fn by_key(&self, hash: &[u8; 32]) -> nudge_db::Result<Holder> {
        let Some(found) = self.lookups.find(&self.db, *hash).await? else {
            return Ok(Holder::Nobody);
        };
        let (app_id, key_id) = (found.app_id, found.id);
        if found.revoked {
            return Ok(Holder::Revoked { app_id, key_id });
        }
        let known = self.get(app_id).await?;
        let app = match known {
            Some(app) if !app.keys.contains_key(hash) => self.refresh(app_id).await?,
            known => known,
        };
        // The rows of a deleted app are there for a while.
        let Some(app) = app else {
            return Ok(Holder::Nobody);
        };
        let Some(key) = app.keys.get(hash).cloned() else {
            return Ok(Holder::Revoked { app_id, key_id });
        };
        self.keys.write().insert(*hash, app_id);
        Ok(Holder::Live(app, key))
    }

    /// Whether any app of the server lets pages of an origin read its answers.
    pub fn allows_origin(&self, origin: &HeaderValue) -> Rule {
        let mut rule = Rule::No;
        for (_, origins) in self.origins.read().values() {
            match Rule::of(origins, origin) {
                Rule::Any => return Rule::Any,
                Rule::This => rule = Rule::This,
                Rule::No => {}
            }
        }
        rule
    }

    /// Reads an app anew. Every route that changes what is in a snapshot calls this after its commit.
    pub fn refresh(&self, id: Uuid) -> BoxFuture<'_, nudge_db::Result<Option<Arc<App>>>> {
        Box::pin(async move {
            let mut tries = 0;
            loop {
                let forgotten = self.forgotten.load(Ordering::Acquire);
                let mut tx = self.db.read().await?;
                let Some(row) = store::find(&mut tx, id).await? else {
                    self.forget(id);
                    return Ok(None);
                };
                let loaded = load(&mut tx, row).await?;
                drop(tx);
                let before = self.known(id);
                let app = Arc::new(loaded.finish(&self.plugins, &self.db, before).await?);
                tries += 1;
                let mut apps = self.apps.write();
                if self.forgotten.load(Ordering::Acquire) != forgotten && tries < MOST_TRIES {
                    // It may be this app that was deleted meanwhile, which must not come back.
                    continue;
                }
                let origins = (app.version, app.settings.allowed_origins.clone());
                self.origins.write().insert(id, origins);
                let newest = apps.entry(id).or_insert_with(|| Arc::clone(&app));
                let completes = newest.version == app.version && newest.is_incomplete();
                if newest.version < app.version || completes {
                    *newest = app;
                }
                return Ok(Some(Arc::clone(newest)));
            }
        })
    }

    fn known(&self, id: Uuid) -> Option<Arc<App>> {
        self.apps.read().get(&id).cloned()
    }

    /// The apps in memory that another process has changed, or whose plugins could not be loaded a while ago,
    /// each to be read anew. Those that are gone are forgotten.
    pub async fn changed(self: &Arc<Self>) -> nudge_db::Result<Vec<CatchingUp>> {
        let mut tx = self.db.read().await?;
        let versions: HashMap<Uuid, i64> = store::versions(&mut tx).await?.into_iter().collect();
        self.read_origins(&mut tx, &versions).await?;
        drop(tx);
        let known: Vec<(Uuid, Arc<App>)> = {
            let apps = self.apps.read();
            apps.iter()
                .map(|(id, app)| (*id, Arc::clone(app)))
                .collect()
        };
        let mut changed = Vec::new();
        for (app_id, app) in known {
            let Some(version) = versions.get(&app_id) else {
                self.forget(app_id);
                continue;
            };
            let stale =
                app.version < *version || app.is_incomplete() && app.read_at.elapsed() >= TRY_AGAIN;
            let mut catching_up = self.catching_up.lock();
            if stale && catching_up.insert(app_id) {
                let registry = Arc::clone(self);
                changed.push(CatchingUp { registry, app_id });
            }
        }
        Ok(changed)
    }

    /// Reads the allowed origins of apps that changed, whether they are in memory or not.
    async fn read_origins(
        &self,
        tx: &mut Tx,
        versions: &HashMap<Uuid, i64>,
    ) -> nudge_db::Result<()> {
        let changed: Vec<Uuid> = {
            let seen = self.origins.read();
            let is_new = |id: &Uuid, version: i64| seen.get(id).is_none_or(|seen| seen.0 < version);
            let changed = versions
                .iter()
                .filter(|(id, version)| is_new(id, **version));
            changed.map(|(id, _)| *id).collect()
        };
        let settings = store::settings(tx, &changed).await?;
        let mut origins = self.origins.write();
        for (id, version, settings) in settings {
            let allowed = settings.map(|settings| settings.allowed_origins);
            origins.insert(id, (version, allowed.unwrap_or_default()));
        }
        origins.retain(|id, _| versions.contains_key(id));
        Ok(())
    }

    fn forget(&self, id: Uuid) {
        let mut apps = self.apps.write();
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        apps.remove(&id);
        self.origins.write().remove(&id);
    }

    /// Reads every app in memory anew that was changed, after a change that concerns them all.
    pub async fn refresh_all(self: &Arc<Self>) -> nudge_db::Result<()> {
        let known: Vec<Uuid> = {
            let apps = self.apps.read();
            apps.keys().copied().collect()
        };
        for app_id in known {
            self.refresh(app_id).await?;
        }
        Ok(())
    }
}

/// An app as the database has it, before the plugins were asked about it.
struct Loaded {
    row: store::AppRow,
    settings: Settings,
    keys: HashMap<[u8; 32], Arc<Key>>,
    identity_keys: Vec<IdentityKey>,
    catalogue: Catalogue,
    definitions: Vec<definitions::Definition>,
    surveys: Vec<Stored>,
    push_campaigns: Vec<Stored>,
    in_app: Vec<Stored>,
    webhooks: Vec<nudge_campaigns::webhooks::Subscription>,
    segments: Vec<(Uuid, i64, Value)>,
}

async fn load(tx: &mut Tx, row: store::AppRow) -> nudge_db::Result<Loaded> {
    let settings = serde_json::from_str(&row.settings)
        .map_err(|cause| nudge_db::Error::corrupt("apps", "settings", cause))?;
    let keys = keys::store::unrevoked(tx, row.id).await?;
    let keys = keys
        .into_iter()
        .map(|(hash, key)| (hash, Arc::new(key)))
        .collect();
    let identity_keys = identity_keys::store::list(tx, row.id).await?;
    let catalogue = plugins::store::catalogue(tx, row.id).await?;
    let definitions = definitions::store::active(tx, row.id).await?;
    let surveys = campaigns::active_stored(tx, row.id, campaign::Kind::Survey).await?;
    let push_campaigns = campaigns::active_stored(tx, row.id, campaign::Kind::Push).await?;
    let in_app = campaigns::active_stored(tx, row.id, campaign::Kind::InApp).await?;
    let webhooks = nudge_campaigns::webhooks::subscriptions(tx, row.id).await?;
    let segments = segments::store::audiences(tx, row.id).await?;
    Ok(Loaded {
        row,
        settings,
        keys,
        identity_keys,
        catalogue,
        definitions,
        surveys,
        push_campaigns,
        in_app,
        webhooks,
        segments,
    })
}

impl Loaded {
    fn last_activation(&self) -> Option<Timestamp> {
        let presented = self.surveys.iter().chain(&self.in_app);
        let activations = presented.map(|campaign| campaign.activated_at);
        activations.max().flatten()
    }

    /// Loads the plugins and asks them what each configuration reads, but for what `before` knows already. What
    /// a plugin refuses does not run; that it was accepted when it was saved makes this a defect worth an error
    /// in the log, not a reason to stop.
    async fn finish(
        self,
        plugins: &Plugins,
        db: &Db,
        before: Option<Arc<App>>,
    ) -> nudge_db::Result<App> {
        let last_activation = self.last_activation();
        let before = before.as_deref();
        let known = before.map(|before| &before.deciders);
        let lowered = self.settings.plugins.lowered();
        let deciders =
            plugins::active::resolve(plugins, db, &self.catalogue, known, &lowered).await?;
        let known = before.map(|before| &before.segments);
        let mut segments = Segments::load(plugins, &deciders, self.segments, known).await;
        let (definitions, unchecked) = enforce(plugins, &deciders, self.definitions, before).await;
        let running: HashMap<Uuid, &ActiveCampaign> = before
            .iter()
            .flat_map(|before| &before.campaigns)
            .map(|campaign| (campaign.id, campaign))
            .collect();
        let decided = (&deciders, &segments.audiences);
        let surveys = run_presented::<surveys::Content>(plugins, decided, self.surveys, &running);
        let mut campaigns = surveys.await?;
        let messages = run_presented::<in_app::Content>(plugins, decided, self.in_app, &running);
        campaigns.extend(messages.await?);
        let pushed = run_push(plugins, decided, self.push_campaigns, before, &running);
        let (push, running) = pushed.await?;
        campaigns.extend(running);
        let (routes, everywhere) = routes(&campaigns);
        segments.watch(&campaigns);
        Ok(App {
            origins: self.settings.allowed_origins.as_slice().into(),
            id: self.row.id,
            workspace_id: self.row.workspace_id,
            version: self.row.version,
            settings: self.settings,
            keys: self.keys,
            identity_keys: self.identity_keys,
            deciders,
            read_at: Instant::now(),
            definitions,
            unchecked,
            history: history(&campaigns),
            feedback: feedback(&campaigns),
            campaigns,
            last_activation,
            push,
            routes,
            everywhere,
            webhooks: self.webhooks,
            segments,
        })
    }
}

/// Definitions with what their plugins read, and the events of those in force that no plugin takes: nobody knows whether they match.
async fn enforce(
    plugins: &Plugins,
    deciders: &Deciders,
    definitions: Vec<definitions::Definition>,
    before: Option<&App>,
) -> (HashMap<String, Arc<Enforced>>, HashSet<String>) {
    let (mut all, mut unchecked) = (HashMap::new(), HashSet::new());
    for definition in definitions {
        let before = before.and_then(|before| before.definitions.get(&definition.name));
        let before = before.map(|before| &**before);
        match definitions::enforce(plugins, deciders, &definition, before).await {
            Ok(enforced) => {
                all.insert(definition.name.clone(), Arc::new(enforced));
            }
            Err(error) => {
                tracing::error!(definition.id = %definition.id, error = %error, "events of a definition can't be checked");
                if definition.content.enforcement == Enforcement::Enforce {
                    unchecked.insert(definition.name);
                }
            }
        }
    }
    (all, unchecked)
}

/// Campaigns of a kind that SDKs present, in the form in which they run.
async fn run_presented<C: Presented>(
    plugins: &Plugins,
    (deciders, segments): (&Deciders, &Audiences),
    campaigns: Vec<Stored>,
    running: &HashMap<Uuid, &ActiveCampaign>,
) -> nudge_db::Result<Vec<ActiveCampaign>> {
    let mut all = Vec::new();
    for campaign in campaigns {
        let campaign = campaign.read::<C>()?;
        let before = running.get(&campaign.id).copied();
        match C::run(plugins, deciders, segments, &campaign, before).await {
            Ok(running) => all.push(running),
            Err(error) => {
                let kind = C::KIND.name();
                tracing::error!(campaign.id = %campaign.id, campaign.kind = kind, error = %error, problems = ?error.fields(), "campaign does not run");
            }
        }
    }
    Ok(all)
}

/// Names of events whose past a campaign asks for.
fn history(campaigns: &[ActiveCampaign]) -> HashSet<String> {
    let asked = campaigns
        .iter()
        .flat_map(|campaign| campaign.accepted.history());
    asked.cloned().collect()
}

/// The surveys that a button opens.
fn feedback(campaigns: &[ActiveCampaign]) -> Vec<usize> {
    let campaigns = campaigns.iter().enumerate();
    let opened = campaigns.filter(|(_, campaign)| campaign.act.feedback().is_some());
    opened.map(|(index, _)| index).collect()
}

/// Push campaigns in the forms in which they run: how their messages are made, and what they wait for.
async fn run_push(
    plugins: &Plugins,
    (deciders, segments): (&Deciders, &Audiences),
    campaigns: Vec<Stored>,
    before: Option<&App>,
    running: &HashMap<Uuid, &ActiveCampaign>,
) -> nudge_db::Result<(HashMap<Uuid, Arc<Sending>>, Vec<ActiveCampaign>)> {
    let (mut sendings, mut all) = (HashMap::new(), Vec::new());
    for campaign in campaigns {
        let campaign = campaign.read()?;
        let id = campaign.id;
        let sending = before.and_then(|before| before.push.get(&id));
        let before = (sending.map(|sending| &**sending), running.get(&id).copied());
        match nudge_campaigns::push::run(plugins, deciders, segments, &campaign, before).await {
            Ok((sending, running)) => {
                sendings.insert(id, sending);
                all.extend(running);
            }
            Err(error) => {
                tracing::error!(campaign.id = %id, error = %error, problems = ?error.fields(), "campaign does not run");
            }
        }
    }
    Ok((sendings, all))
}

/// For each event name the campaigns that read it, and those that read every event, all ascending.
fn routes(campaigns: &[ActiveCampaign]) -> (HashMap<String, Vec<usize>>, Vec<usize>) {
    let mut routes: HashMap<String, Vec<usize>> = HashMap::new();
    let mut everywhere = Vec::new();
    for (index, campaign) in campaigns.iter().enumerate() {
        for name in campaign.accepted.event_names() {
            if name == "*" {
                everywhere.push(index);
            } else {
                routes.entry(name.clone()).or_default().push(index);
            }
        }
    }
    for indexes in routes.values_mut().chain([&mut everywhere]) {
        indexes.dedup();
    }
    (routes, everywhere)
}
