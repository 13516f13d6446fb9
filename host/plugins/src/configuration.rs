//! A campaign's or definition's configuration, and the plugin that accepted it.

use std::sync::{Arc, OnceLock};

use nudge_platform::event_names::SCHEDULED;
use nudge_platform::field_error::FieldError;
use nudge_wasm::{Failed, Kind, Plugin, Problem, Reads};
use uuid::Uuid;

use super::active::{Active, Deciders, ShadowCandidate};
use super::catalogue::PluginRef;
use super::rollout::Strategy;
use super::{CheckFailed, Plugins};

/// Mistakes that are told where a configuration is kept that is refused.
const MOST_TOLD: usize = 3;

/// The code of an error about a configuration over which `check-config` broke down.
pub const CHECK_FAILED: &str = "check_config_failed";
/// What is said where a plugin refuses a configuration and gives no problem.
pub const NO_REASON: &str = "the plugin refuses the configuration and says no reason";

/// A configuration and the plugin that it is for.
#[derive(Clone, Debug)]
pub struct Configuration<'a> {
    /// What the plugin decides.
    pub kind: Kind,
    /// Which plugin.
    pub asked: PluginRef<'a>,
    /// The configuration, as JSON.
    pub text: String,
    /// A JSON pointer to where the configuration stands; what the plugin says is wrong stands below it.
    pub place: &'static str,
    /// A JSON pointer to where the plugin is named.
    pub name_place: &'static str,
}

/// What decisions under a configuration read.
#[derive(Debug)]
pub struct Reading {
    /// Names of the events; `*` is every event.
    pub event_names: Vec<String>,
    /// Event properties, as dotted paths.
    pub properties: Arc<[String]>,
    /// Whether properties of the subject are read.
    pub subject: bool,
    /// Those properties.
    pub subject_properties: Arc<[String]>,
    /// Names of events whose past is asked for.
    pub history: Vec<String>,
    digest: OnceLock<[u8; 32]>,
}

/// A configuration that its plugin accepted.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The plugin.
    pub decider: Arc<Active>,
    /// The configuration.
    pub config: Arc<str>,
    /// What the active version reads under it.
    pub reading: Arc<Reading>,
    /// What the candidate reads under it; none: there is no candidate, or it does not accept it.
    pub trial: Option<Arc<Reading>>,
    /// Whether the active version or the candidate could not be asked, so that it is to be asked again.
    pub ask_again: bool,
}

/// Why a configuration is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// What is wrong with it.
    #[error("the configuration is refused")]
    Invalid(Vec<FieldError>),
    /// The plugin could not be asked.
    #[error("the configuration could not be checked")]
    Check(#[from] CheckFailed),
}

impl Refused {
    /// The same, where the plugin broke down as what is wrong at a place: asking once more would change nothing.
    #[must_use]
    pub fn told_at(self, place: &str) -> Self {
        match self {
            Self::Check(cause) => match cause.of_plugin() {
                Some(failed) => {
                    let detail = check_failed(failed);
                    Self::Invalid(vec![FieldError::new(place, CHECK_FAILED, detail)])
                }
                None => Self::Check(cause),
            },
            Self::Invalid(_) => self,
        }
    }

    /// Whether the plugin could not be asked now: asked again it may accept the configuration.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Check(cause) if cause.of_plugin().is_none())
    }

    /// What is wrong, in a sentence; none: that is not known now, or nothing that the plugin says.
    fn sentence(&self) -> Option<String> {
        match self {
            Self::Invalid(errors) => {
                let errors = errors.iter().take(MOST_TOLD);
                let told = errors.map(|error| format!("{}: {}", error.pointer, error.detail));
                Some(told.collect::<Vec<_>>().join("; "))
            }
            Self::Check(cause) => cause.of_plugin().map(ToString::to_string),
        }
    }
}

impl From<Reads> for Reading {
    fn from(reads: Reads) -> Self {
        Self {
            event_names: reads.event_names,
            properties: reads.properties.into(),
            subject: !reads.subject_properties.is_empty(),
            subject_properties: reads.subject_properties.into(),
            history: reads.history,
            digest: OnceLock::new(),
        }
    }
}

impl Reading {
    /// The SHA-256 of the configuration that this is about, and of the properties that are read under it.
    pub fn digest_with(&self, config: &str) -> [u8; 32] {
        *self.digest.get_or_init(|| {
            let mut parts = vec![config.as_bytes()];
            parts.extend(self.properties.iter().map(String::as_bytes));
            nudge_platform::secrets::hash(&parts)
        })
    }

    /// Whether events of this name are read.
    pub fn has_event(&self, name: &str) -> bool {
        reads_event(&self.event_names, name)
    }
}

/// Whether a configuration that reads events of `names` reads those of this name. The event of a campaign's own occasion is always read.
pub(crate) fn reads_event(names: &[String], name: &str) -> bool {
    let matches = |read: &String| read == name || read == "*";
    name == SCHEDULED || names.iter().any(matches)
}

impl Configuration<'_> {
    /// Asks the plugin. What `before` says is not asked again: the same bytes give the same answer. Where the plugin can't be asked
    /// now, what decided before goes on, and is to be asked about again.
    ///
    /// A configuration of something that decides about people, which the version that a roll-back brought refuses, is kept
    /// without anything that decides under it: each event of it fails, and can be replayed.
    pub async fn accept(
        self,
        plugins: &Plugins,
        deciders: &Deciders,
        before: Option<&Accepted>,
    ) -> Result<Accepted, Refused> {
        let decider = self.decider(deciders)?;
        match self.accept_by(plugins, decider, before).await {
            Err(refused) if refused.is_unknown() => self.leave(decider, before).ok_or(refused),
            Err(refused) if self.kind != Kind::Validation => {
                let kept = self.keep(plugins, decider, before, &refused).await;
                kept.ok_or(refused)
            }
            answer => answer,
        }
    }

    /// Leaves a configuration to the version of the same plugin that decided under it before.
    fn leave(&self, decider: &Active, before: Option<&Accepted>) -> Option<Accepted> {
        let name = |active: &Active| active.plugin.description().name.clone();
        let before = before.filter(|before| *before.config == *self.text)?;
        let is_same = name(&before.decider) == name(decider)
            && before.decider.plugin.kind() == decider.plugin.kind();
        is_same.then(|| Accepted {
            ask_again: true,
            ..before.clone()
        })
    }

    /// Keeps a configuration that is refused, if it was accepted before or the version that was rolled back accepts it.
    async fn keep(
        &self,
        plugins: &Plugins,
        decider: &Arc<Active>,
        before: Option<&Accepted>,
        refused: &Refused,
    ) -> Option<Accepted> {
        let what = refused.sentence()?;
        let before = before.filter(|before| *before.config == *self.text);
        let reading = if let Some(before) = before {
            Arc::clone(&before.reading)
        } else {
            let rolled_back = decider.rolled_back.as_ref()?;
            let asked = plugins.check_config(rolled_back, self.text.clone());
            Arc::new(asked.await.ok()?.ok()?.into())
        };
        if before.is_none_or(|before| !before.decider.plugin.is_withdrawn()) {
            let description = decider.plugin.description();
            tracing::error!(
                plugin.name = description.name,
                plugin.version = description.version,
                problems = what,
                "the active version refuses a configuration; each of its events fails"
            );
        }
        let trial = self.trial(plugins, decider).await;
        Some(Accepted {
            ask_again: trial.is_err(),
            trial: trial.ok().flatten(),
            decider: Arc::new(decider.refusing(&what)),
            config: self.text.as_str().into(),
            reading,
        })
    }

    /// Asks the plugin of the kind that is a part of the server, whatever plugins an app has.
    pub async fn accept_built_in(
        self,
        plugins: &Plugins,
        deciders: &Deciders,
        before: Option<&Accepted>,
    ) -> Result<Accepted, Refused> {
        let decider = match deciders.built_in(self.kind) {
            Some(found) => found,
            None => self.decider(deciders)?,
        };
        self.accept_by(plugins, decider, before).await
    }

    async fn accept_by(
        &self,
        plugins: &Plugins,
        decider: &Arc<Active>,
        before: Option<&Accepted>,
    ) -> Result<Accepted, Refused> {
        if let Some(before) = before
            && *before.config == *self.text
            && before.decider.decides_like(decider)
            && !before.ask_again
        {
            return Ok(Accepted {
                decider: Arc::clone(decider),
                ..before.clone()
            });
        }
        let checked = plugins.check_config(&decider.plugin, self.text.clone());
        let reading = match checked.await? {
            Ok(reads) => Arc::new(reads.into()),
            Err(problems) => return Err(Refused::Invalid(self.problems(problems))),
        };
        let trial = self.trial(plugins, decider).await;
        Ok(Accepted {
            decider: Arc::clone(decider),
            config: self.text.as_str().into(),
            reading,
            ask_again: trial.is_err(),
            trial: trial.ok().flatten(),
        })
    }

    /// What the candidate reads. What it fails on or refuses, the active version decides, and so it does while that is not known.
    async fn trial(
        &self,
        plugins: &Plugins,
        decider: &Active,
    ) -> Result<Option<Arc<Reading>>, CheckFailed> {
        let Some(trial) = &decider.candidate else {
            return Ok(None);
        };
        let checked = plugins.check_config(&trial.plugin, self.text.clone());
        match checked.await {
            Ok(reads) => Ok(reads.ok().map(|reads| Arc::new(reads.into()))),
            Err(cause) if cause.of_plugin().is_some() => Ok(None),
            Err(cause) => {
                tracing::warn!(error = %cause, "a candidate can't be asked about a configuration; it is asked again");
                Err(cause)
            }
        }
    }

    /// Asks the plugin whether the configuration can be saved. One of which a roll-back left nothing active takes none.
    pub async fn check(self, plugins: &Plugins, deciders: &Deciders) -> Result<(), Refused> {
        let decider = self.decider(deciders)?;
        if decider.plugin.is_withdrawn() {
            let name = &decider.plugin.description().name;
            return Err(self.refused("unknown_plugin", inactive(name)));
        }
        let of_app = (deciders.app_id, &decider.period);
        let checked = plugins.check_config_and_log(of_app, &decider.plugin, self.text.clone());
        match checked.await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(problems)) => Err(Refused::Invalid(self.problems(problems))),
            Err(cause) => Err(Refused::Check(cause).told_at(self.place)),
        }
    }

    /// What is wrong with the plugin that is named.
    fn refused(&self, code: &str, detail: String) -> Refused {
        Refused::Invalid(vec![FieldError::new(self.name_place, code, detail)])
    }

    fn decider<'d>(&self, deciders: &'d Deciders) -> Result<&'d Arc<Active>, Refused> {
        if let Some(found) = deciders.find(self.kind, self.asked) {
            return Ok(found);
        }
        let name = match self.asked {
            PluginRef::Named(name) => name,
            PluginRef::Slot => "",
        };
        let (code, detail) = match deciders.named(name) {
            Some(other) => (
                "wrong_kind",
                format!(
                    "the plugin `{name}` is a {} plugin; name a {} plugin",
                    other.plugin.kind(),
                    self.kind
                ),
            ),
            None => ("unknown_plugin", inactive(name)),
        };
        Err(self.refused(code, detail))
    }

    /// What a plugin says is wrong, with pointers that begin where the configuration does. There is always something: a plugin
    /// that refuses and gives no problem refuses all the same.
    pub fn problems(&self, problems: Vec<Problem>) -> Vec<FieldError> {
        if problems.is_empty() {
            return vec![FieldError::new(self.place, "refused", NO_REASON)];
        }
        let place = |problem: &Problem| match &*problem.pointer {
            below if below.starts_with('/') => format!("{}{below}", self.place),
            // The whole, or no pointer.
            _ => self.place.to_owned(),
        };
        problems
            .into_iter()
            .map(|problem| FieldError::new(place(&problem), &problem.code, problem.message))
            .collect()
    }
}

impl Accepted {
    /// The name of the plugin, which all versions have.
    pub fn plugin_name(&self) -> &str {
        &self.decider.plugin.description().name
    }

    /// Whether the plugin gets what one of this name keeps of a person, or a timer that it has set. None: nobody knows whose
    /// that is, and whichever plugin decides gets it.
    pub fn inherits(&self, plugin: Option<&str>) -> bool {
        plugin.is_none_or(|name| name == self.plugin_name())
    }

    /// The version that decides about a subject, and what it reads.
    pub fn for_subject(&self, subject: Uuid) -> (&Arc<Plugin>, &Arc<Reading>) {
        match (&self.trial, self.decider.canary_for(subject)) {
            (Some(reading), Some(plugin)) => (plugin, reading),
            _ => (&self.decider.plugin, &self.reading),
        }
    }

    /// The candidate that is shown what the active version decides, and what it reads.
    pub fn shadow(&self) -> Option<(&ShadowCandidate, &Arc<Reading>)> {
        let trial = self.decider.candidate.as_ref()?;
        let shadow = trial.strategy == Strategy::Shadow;
        Some(trial).filter(|_| shadow).zip(self.trial.as_ref())
    }

    /// What a version of the plugin reads: the candidate or the active one.
    pub fn reading_of(&self, plugin: &Plugin) -> &Arc<Reading> {
        let candidate = self.decider.candidate.as_ref();
        let is_candidate = candidate.is_some_and(|trial| trial.plugin.digest() == plugin.digest());
        match &self.trial {
            Some(reading) if is_candidate => reading,
            _ => &self.reading,
        }
    }

    /// Whether properties of the subject are read, by the active version or the candidate.
    pub fn reads_subject(&self) -> bool {
        self.reading.subject || self.trial.as_ref().is_some_and(|trial| trial.subject)
    }

    /// Names of events whose past the active version or the candidate asks for, some twice.
    pub fn history(&self) -> impl Iterator<Item = &String> {
        let trial = self.trial.iter().flat_map(|trial| &trial.history);
        self.reading.history.iter().chain(trial)
    }

    /// Names of the events that the active version or the candidate reads, some twice.
    pub fn event_names(&self) -> impl Iterator<Item = &String> {
        let trial = self.trial.iter().flat_map(|trial| &trial.event_names);
        self.reading.event_names.iter().chain(trial)
    }
}

/// What is said where nothing of a plugin is active.
fn inactive(name: &str) -> String {
    format!("no plugin `{name}` is active in this app; upload it and activate a version first")
}

/// What is said where `check-config` broke down.
pub fn check_failed(failed: &Failed) -> String {
    format!(
        "`check-config` failed on this configuration: {}",
        failed.detail()
    )
}

#[cfg(test)]
mod tests {
    use nudge_db::Timestamp;
    use nudge_wasm::{Compiler, Engine, EngineConfig, Limits};

    use super::*;
    use crate::RolloutPeriod;
    use crate::active::Origin;

    fn active(component: &[u8]) -> Active {
        let folder = tempfile::tempdir().unwrap();
        let config = EngineConfig {
            cache_dir: folder.path().to_owned(),
            cache_key: [0; 32],
            compiler: Compiler::InProcess,
            limits: Limits::default(),
            pool_slots: 1,
            made_ahead: 0,
        };
        let plugin = Engine::new(config).unwrap().load(component).unwrap();
        Active {
            origin: Origin::BuiltIn,
            period: Arc::new(RolloutPeriod {
                owner: Uuid::nil(),
                name: plugin.description().name.clone(),
                version: plugin.description().version.clone(),
                since: Timestamp(0),
            }),
            plugin: Arc::new(plugin),
            candidate: None,
            rolled_back: None,
        }
    }

    #[test]
    fn what_cant_be_asked_is_left_to_the_version_before_and_asked_again() {
        let configuration = |text: &str| Configuration {
            kind: Kind::Trigger,
            asked: PluginRef::Slot,
            text: text.to_owned(),
            place: "",
            name_place: "",
        };
        let decider = Arc::new(active(nudge_plugins::DEFAULT_TRIGGER));
        let before = Accepted {
            decider: Arc::clone(&decider),
            config: "{}".into(),
            reading: Arc::new(Reads::default().into()),
            trial: None,
            ask_again: false,
        };
        let left = configuration("{}").leave(&decider, Some(&before));
        assert!(left.unwrap().ask_again);
        let nothing_said_before = [
            configuration("[]").leave(&decider, Some(&before)),
            configuration("{}").leave(&decider, None),
            configuration("{}").leave(&active(nudge_plugins::DEFAULT_VALIDATION), Some(&before)),
        ];
        assert!(nothing_said_before.iter().all(Option::is_none));
    }

    #[test]
    fn an_occasion_need_not_be_named() {
        for (named, reads_purchases) in [("visit", false), ("purchase", true), ("*", true)] {
            let reading = Reading::from(Reads {
                event_names: vec![named.to_owned()],
                ..Reads::default()
            });
            assert!(reading.has_event(SCHEDULED), "{named}");
            assert_eq!(reading.has_event("purchase"), reads_purchases, "{named}");
        }
    }

    #[test]
    fn what_a_plugin_refuses_has_a_place_and_a_reason() {
        let configuration = Configuration {
            kind: Kind::Trigger,
            asked: PluginRef::Slot,
            text: String::new(),
            place: "/trigger/config",
            name_place: "/trigger/plugin",
        };
        let told = configuration.problems(Vec::new());
        assert_eq!(
            told,
            [FieldError::new("/trigger/config", "refused", NO_REASON)]
        );
        for (pointer, place) in [
            ("", "/trigger/config"),
            ("/a/b", "/trigger/config/a/b"),
            ("not a pointer", "/trigger/config"),
        ] {
            let problem = Problem {
                code: "wrong".to_owned(),
                pointer: pointer.to_owned(),
                message: "Change it.".to_owned(),
            };
            let told = configuration.problems(vec![problem]);
            assert_eq!(told, [FieldError::new(place, "wrong", "Change it.")]);
        }
    }
}
