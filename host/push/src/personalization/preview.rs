//! What a variant would say to somebody, and where each value comes from.

use nudge_apps::App;
use nudge_campaigns::in_app;
use nudge_campaigns::lifecycle;
use nudge_campaigns::push::options::Options;
use nudge_campaigns::push::personalization::{Kind, Spec, Type};
use nudge_campaigns::push::verdict::{Values, Verdict};
use nudge_campaigns::push::{self, link};
use nudge_campaigns::targeting::Suppression;
use nudge_campaigns::variants::{Prepared, Variant};
use nudge_http::ApiError;
use nudge_records::events;
use nudge_wasm::PastEvent;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::services::Services;
use nudge_pipeline::personalization::{Failure, Recipient, resolve};

/// The issue where there is no such event (contract 9).
const EVENT_NOT_FOUND: &str = "event_not_found";

/// For whom to resolve, and with what.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The person.
    pub subject_id: Uuid,
    /// The event that would have caused the message.
    pub trigger_event_id: Option<Uuid>,
    /// The data that a request for a send would have.
    pub data: Option<Map<String, Value>>,
}

/// A resolved variant.
#[derive(Debug, Serialize, ToSchema)]
pub struct PreviewView {
    /// `ready`, `skipped` or `error`.
    status: &'static str,
    /// `{title, body, openAction}` of a push message; of an in-app message what SDKs get to show. Null unless it is ready.
    content: Option<Value>,
    bindings: Vec<BindingView>,
    issues: Vec<IssueView>,
}

/// What a binding stands for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BindingView {
    id: String,
    value: Option<Value>,
    r#type: Type,
    source: SourceView,
    used_fallback: bool,
}

/// Where a value comes from.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceView {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
}

/// Why a source gave no usable value.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssueView {
    #[serde(skip_serializing_if = "Option::is_none")]
    binding_id: Option<String>,
    code: String,
    message: String,
}

/// Resolves a variant for somebody; nothing is sent and nothing counted.
pub async fn preview<V: Variant>(
    services: &Services,
    app: &App,
    variant: &V,
    ask: Ask,
    fill: impl Fn(&Prepared<V::Form>, &Values) -> Result<Value, IssueView> + Send + Sync,
) -> Result<PreviewView, ApiError> {
    let prepared = Prepared::new(&services.plugins, &app.deciders, variant, None).await;
    let prepared = prepared.map_err(lifecycle::Error::from)?;
    let trigger = match ask.trigger_event_id {
        Some(id) => event(services, app, ask.subject_id, id).await?,
        None => None,
    };
    let unknown = ask.trigger_event_id.is_some() && trigger.is_none();
    let mut view = view(services, app, &prepared, (ask, trigger), fill).await?;
    if unknown {
        view.name_unknown_event();
    }
    Ok(view)
}

/// What a prepared variant would say after an event.
async fn view<F: Sync>(
    services: &Services,
    app: &App,
    prepared: &Prepared<F>,
    (ask, trigger): (Ask, Option<PastEvent>),
    fill: impl Fn(&Prepared<F>, &Values) -> Result<Value, IssueView> + Send + Sync,
) -> Result<PreviewView, ApiError> {
    let Some(accepted) = &prepared.accepted else {
        return Ok(shown(prepared, &Values::default(), fill));
    };
    let recipient = Recipient {
        subject_id: ask.subject_id,
        data: ask.data,
        trigger,
    };
    let (now, asked) = (services.clock.now(), (&prepared.spec, accepted));
    let resolved = resolve(services.resolver(), app, None, asked, &[recipient], now).await?;
    match resolved.into_iter().next() {
        Some(Ok(values)) => Ok(shown(prepared, &values, fill)),
        Some(Err(Failure::Plugin {
            code,
            detail,
            plugin,
        })) => Ok(PreviewView {
            status: "error",
            content: None,
            bindings: Vec::new(),
            issues: vec![IssueView::of_all(
                "plugin_error",
                format!(
                    "the plugin {} {} failed: {code}: {detail}",
                    plugin.name, plugin.version
                ),
            )],
        }),
        Some(Err(Failure::Unavailable)) | None => Err(ApiError::unavailable(anyhow::anyhow!(
            "the plugin could not be asked"
        ))),
    }
}

impl PreviewView {
    /// Says that the event which would have caused the message is none of the person's, unless a binding that reads it
    /// says so.
    fn name_unknown_event(&mut self) {
        let reads_it = |issue: &IssueView| {
            let mut bindings = self.bindings.iter();
            issue.code == EVENT_NOT_FOUND
                && bindings.any(|binding| {
                    Some(&binding.id) == issue.binding_id.as_ref()
                        && binding.source.kind == Kind::TriggerEvent.name()
                })
        };
        if !self.issues.iter().any(reads_it) {
            let message = message(EVENT_NOT_FOUND, "");
            self.issues
                .push(IssueView::of_all(EVENT_NOT_FOUND, message));
        }
    }
}

/// An event of a person, whichever alias it came under.
async fn event(
    services: &Services,
    app: &App,
    subject_id: Uuid,
    id: Uuid,
) -> nudge_db::Result<Option<PastEvent>> {
    let mut tx = services.db.read().await?;
    let stored = events::store::of_subject(&mut tx, app.id, subject_id, id).await?;
    Ok(stored.map(|stored| PastEvent {
        id: stored.event.id,
        timestamp: stored.event.timestamp.0,
        properties: std::sync::Arc::clone(&stored.event.properties),
    }))
}

/// What a push message says.
pub(super) fn of_push(prepared: &push::Prepared, values: &Values) -> Result<Value, IssueView> {
    match prepared.render(values, &Options::default()) {
        Ok(rendered) => Ok(json!({
            "title": rendered.title,
            "body": rendered.body,
            "openAction": rendered.open_action,
        })),
        Err(error) => Err(IssueView::of_all(link::URL_NOT_ALLOWED, error.to_string())),
    }
}

/// What an in-app message says, in a person's language and without a theme, which is the campaign's.
pub(super) fn of_in_app(
    prepared: &in_app::Prepared,
    values: &Values,
    locale: Option<&str>,
) -> Result<Value, IssueView> {
    match prepared.render(values, locale, None) {
        Ok(message) => Ok(serde_json::from_str(&message).unwrap_or_default()),
        Err(Suppression::UrlNotAllowed) => {
            let message = link::NotAllowed.to_string();
            Err(IssueView::of_all(link::URL_NOT_ALLOWED, message))
        }
        Err(reason) => {
            let message = "the message is larger than 64 KiB".to_owned();
            Err(IssueView::of_all(reason.name(), message))
        }
    }
}

impl IssueView {
    /// An issue that no single binding is to blame for.
    fn of_all(code: &str, message: String) -> Self {
        Self {
            binding_id: None,
            code: code.to_owned(),
            message,
        }
    }
}

fn shown<F>(
    prepared: &Prepared<F>,
    values: &Values,
    fill: impl Fn(&Prepared<F>, &Values) -> Result<Value, IssueView>,
) -> PreviewView {
    let spec: &Spec = &prepared.spec;
    let (mut bindings, mut issues) = (Vec::new(), Vec::new());
    for binding in &spec.bindings {
        let resolved = values.get(&binding.id).cloned().unwrap_or_default();
        if !resolved.issue.is_empty() {
            issues.push(IssueView {
                binding_id: Some(binding.id.clone()),
                code: resolved.issue.clone(),
                message: message(&resolved.issue, &resolved.detail),
            });
        }
        bindings.push(BindingView {
            id: binding.id.clone(),
            value: resolved.value,
            r#type: binding.kind,
            source: SourceView {
                kind: binding.source.name().to_owned(),
                event_id: resolved.event.0,
                timestamp: resolved.event.1,
            },
            used_fallback: resolved.used_fallback,
        });
    }
    let (status, content) = match values.verdict(spec) {
        Verdict::Ready => match fill(prepared, values) {
            Ok(content) => ("ready", Some(content)),
            Err(issue) => {
                issues.push(issue);
                ("error", None)
            }
        },
        Verdict::Skipped(_) => ("skipped", None),
        Verdict::Failed(_) => ("error", None),
    };
    PreviewView {
        status,
        content,
        bindings,
        issues,
    }
}

/// An issue in a sentence.
fn message(issue: &str, detail: &str) -> String {
    match issue {
        "missing" => "the source has no value".to_owned(),
        EVENT_NOT_FOUND => "there is no such event".to_owned(),
        "filtered_by_privacy" => "the app's privacy policy withholds the value".to_owned(),
        _ if detail.is_empty() => issue.to_owned(),
        _ => detail.to_owned(),
    }
}
