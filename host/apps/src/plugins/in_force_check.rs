//! Whether a version accepts the configurations that it would decide under.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_campaigns::segments::Audiences;
use nudge_campaigns::{definitions, in_app, push, store as campaigns, surveys};
use nudge_db::Tx;
use nudge_platform::field_error::FieldError;
use nudge_plugin_runtime::catalogue::{Catalogue, PluginRef};
use nudge_plugin_runtime::{Configuration, Plugins, Refused};
use nudge_wasm::{Kind, Plugin};
use serde_json::Value;
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
                let configurations = self.surveys.iter().filter_map(|survey| {
                    let content = &survey.content;
                    // One that waits for nothing is not decided about.
                    content.trigger.as_ref().or(content.audience.as_ref())?;
                    let configuration = content.terms().configuration(&self.segments).ok()?;
                    Some((format!("/surveys/{}", survey.id), configuration))
                });
                let pushed = self.push.iter().filter_map(|campaign| {
                    let content = &campaign.content;
                    content.trigger.as_ref().or(content.audience.as_ref())?;
                    let configuration = content.terms().configuration(&self.segments).ok()?;
                    Some((format!("/campaigns/{}", campaign.id), configuration))
                });
                let shown = self.in_app.iter().filter_map(|campaign| {
                    let content = &campaign.content;
                    content.trigger.as_ref().or(content.audience.as_ref())?;
                    let configuration = content.terms().configuration(&self.segments).ok()?;
                    Some((format!("/campaigns/{}", campaign.id), configuration))
                });
                configurations.chain(pushed).chain(shown).collect()
            }
            Kind::Validation => {
                let configurations = self.definitions.iter().map(|definition| {
                    let place = format!("/event-definitions/{}", definition.id);
                    (place, definition.content.configuration())
                });
                configurations.collect()
            }
            Kind::Personalization => {
                let pushed = self.push.iter().flat_map(|campaign| {
                    let variants = campaign.content.variants.iter();
                    personalizations(campaign.id, variants.map(|it| it.personalization.as_ref()))
                });
                let shown = self.in_app.iter().flat_map(|campaign| {
                    let variants = campaign.content.variants.iter();
                    personalizations(campaign.id, variants.map(|it| it.personalization.as_ref()))
                });
                pushed.chain(shown).collect()
            }
        }
    }
}

/// What the variants of a campaign ask of their plugin, each with a pointer that names it.
fn personalizations<'a>(
    campaign_id: Uuid,
    variants: impl Iterator<Item = Option<&'a Value>>,
) -> impl Iterator<Item = (String, Configuration<'a>)> {
    variants.enumerate().filter_map(move |(index, variant)| {
        let place = format!("/campaigns/{campaign_id}/variants/{index}");
        Some((place, push::sending::configuration(variant?)))
    })
}

/// Asks a version about every configuration for which `decides` says that it is the one.
pub(super) async fn refusals(
    plugins: &Plugins,
    plugin: &Arc<Plugin>,
    in_force: &InForce,
    decides: impl Fn(PluginRef<'_>) -> bool,
    started: Instant,
) -> Result<Vec<FieldError>, Refused> {
    let mut errors = Vec::new();
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
        let checked = plugins.check_config(plugin, configuration.text.clone());
        match checked.await {
            Ok(Ok(_)) => {}
            Ok(Err(problems)) => {
                let found = configuration.problems(problems).into_iter().map(|error| {
                    let pointer = format!("{place}{}", error.pointer);
                    FieldError { pointer, ..error }
                });
                errors.extend(found);
            }
            Err(nudge_plugin_runtime::CheckFailed::Failed(failed)) if !failed.is_the_hosts() => {
                let detail = format!("`check-config` failed on this configuration: {failed}");
                errors.push(FieldError::new(place, "check_config_failed", detail));
            }
            Err(error) => return Err(error.into()),
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
