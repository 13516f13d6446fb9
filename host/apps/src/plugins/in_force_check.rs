//! Whether a version accepts the configurations that it would decide under.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_campaigns::lifecycle::{Campaign, Content};
use nudge_campaigns::segments::Audiences;
use nudge_campaigns::{definitions, in_app, push, store as campaigns, surveys, variants};
use nudge_db::Tx;
use nudge_platform::field_error::FieldError;
use nudge_plugin_runtime::catalogue::{Catalogue, PluginRef};
use nudge_plugin_runtime::configuration::{CHECK_FAILED, check_failed};
use nudge_plugin_runtime::{Configuration, Plugins, Refused, RolloutPeriod};
use nudge_wasm::{Kind, Plugin};
use uuid::Uuid;

/// How long the plugin may take over all of them. One that is slower would hold up every change of an app.
const TIME: Duration = Duration::from_secs(20);
/// Errors that are told; whoever mends that many asks again.
const MOST_ERRORS: usize = 100;

/// Everything of an app that has a configuration for plugins and is in force.
#[derive(Debug)]
pub(super) struct InForce {
    surveys: Vec<surveys::Survey>,
    push: Vec<push::Campaign>,
    in_app: Vec<in_app::Campaign>,
    definitions: Vec<definitions::Definition>,
    segments: Audiences,
}

/// Reads what is in force in an app.
pub(super) async fn in_force(tx: &mut Tx, app_id: Uuid) -> nudge_db::Result<InForce> {
    Ok(InForce {
        surveys: campaigns::active(tx, app_id).await?,
        push: campaigns::active(tx, app_id).await?,
        in_app: campaigns::active(tx, app_id).await?,
        definitions: definitions::store::active(tx, app_id).await?,
        segments: Audiences::read(tx, app_id).await?,
    })
}

impl InForce {
    /// The configurations of a kind, each with a pointer that names whose it is.
    fn configurations(&self, kind: Kind) -> Vec<(String, Configuration<'_>)> {
        match kind {
            Kind::Trigger => {
                let surveys = triggers(&self.surveys, &self.segments);
                let pushed = triggers(&self.push, &self.segments);
                let shown = triggers(&self.in_app, &self.segments);
                surveys.chain(pushed).chain(shown).collect()
            }
            Kind::Validation => {
                let configurations = self.definitions.iter().map(|definition| {
                    let place = format!("/event-definitions/{}", definition.id);
                    (place, definition.content.configuration())
                });
                configurations.collect()
            }
            Kind::Personalization => {
                let pushed = personalizations(&self.push);
                pushed.chain(personalizations(&self.in_app)).collect()
            }
        }
    }
}

/// The pointer that names a campaign.
fn place<C: Content>(campaign: &Campaign<C>) -> String {
    format!("/{}s/{}", C::KIND.resource(), campaign.id)
}

/// What campaigns ask of the plugin that decides about them, each with a pointer that names it.
fn triggers<'a, C: Content>(
    campaigns: &'a [Campaign<C>],
    segments: &'a Audiences,
) -> impl Iterator<Item = (String, Configuration<'a>)> {
    campaigns.iter().filter_map(|campaign| {
        let content = &campaign.content;
        // One that waits for nothing is not decided about.
        if !content.has_terms() {
            return None;
        }
        let configuration = content.terms().configuration(segments).ok()?;
        Some((place(campaign), configuration))
    })
}

/// What the variants of campaigns ask of their plugins, each with a pointer that names it.
fn personalizations<C: Content>(
    campaigns: &[Campaign<C>],
) -> impl Iterator<Item = (String, Configuration<'_>)> {
    campaigns.iter().flat_map(|campaign| {
        let variants = campaign.content.personalizations().into_iter().enumerate();
        variants.filter_map(|(index, variant)| {
            let place = format!("{}/variants/{index}", place(campaign));
            Some((place, variants::configuration(variant?)))
        })
    })
}

/// Asks a version of a plugin of `owner`'s about every configuration of an app for which `decides` says that it is the one.
pub(super) async fn refusals(
    plugins: &Plugins,
    (owner, plugin): (Uuid, &Arc<Plugin>),
    (app_id, in_force): (Uuid, &InForce),
    decides: impl Fn(PluginRef<'_>) -> bool,
    started: Instant,
) -> Result<Vec<FieldError>, Refused> {
    let mut errors = Vec::new();
    let period = Arc::new(RolloutPeriod::no_role(owner, plugin));
    for (place, configuration) in in_force.configurations(plugin.kind()) {
        if !decides(configuration.asked) || errors.len() >= MOST_ERRORS {
            continue;
        }
        if started.elapsed() > TIME {
            let detail = format!(
                "`check-config` takes too long: not all configurations were checked within {} seconds",
                TIME.as_secs()
            );
            errors.push(FieldError::new(place, "check_config_too_slow", detail));
            break;
        }
        let text = configuration.text.clone();
        let checked = plugins.check_config_and_log((app_id, &period), plugin, text);
        match checked.await {
            Ok(Ok(_)) => {}
            Ok(Err(problems)) => {
                let found = configuration.problems(problems).into_iter().map(|error| {
                    let pointer = format!("{place}{}", error.pointer);
                    FieldError { pointer, ..error }
                });
                errors.extend(found);
            }
            Err(cause) => match cause.of_plugin() {
                Some(failed) => {
                    errors.push(FieldError::new(place, CHECK_FAILED, check_failed(failed)));
                }
                None => return Err(cause.into()),
            },
        }
    }
    errors.truncate(MOST_ERRORS);
    Ok(errors)
}

/// Whether a plugin is the one that decides where something is asked for.
pub(super) fn decides(
    catalogue: &Catalogue,
    app_id: Uuid,
    name: &str,
    kind: Kind,
    asked: PluginRef<'_>,
) -> bool {
    catalogue
        .decides(kind, asked)
        .is_some_and(|entry| entry.app_id == app_id && entry.name == name)
}
