//! From a variant and its recipients to messages.

use nudge_apps::App;
use nudge_campaigns::push::rendered::Rendered;
use nudge_campaigns::push::verdict::{Values, Verdict};
use nudge_campaigns::push::{Prepared, Sending, link};
use nudge_campaigns::variants;
use nudge_db::Timestamp;
use nudge_wasm::Description;
use uuid::Uuid;

use crate::services::Services;
use nudge_pipeline::personalization::{Failure, Recipient, resolve};

/// What became of one recipient's message, a push message or another.
#[derive(Clone, Debug, PartialEq)]
pub enum Made<M = Rendered> {
    /// It can be sent.
    Ready(Box<M>),
    /// A value is missing: it is not sent.
    Skipped(&'static str),
    /// It can't be made.
    Failed(&'static str),
    /// The plugin failed on it.
    Broken {
        /// How.
        code: &'static str,
        /// What happened, for people.
        detail: String,
        /// Which plugin.
        plugin: Description,
    },
    /// It can't be made now.
    Unavailable,
}

/// Makes the push messages of a campaign's variant, in the order of its recipients.
pub async fn make(
    services: &Services,
    app: &App,
    campaign: &Sending,
    variant: &Prepared,
    recipients: &[Recipient],
    now: Timestamp,
) -> nudge_db::Result<Vec<Made>> {
    let render = |values: &Values| match variant.render(values, &campaign.options) {
        Ok(rendered) => Made::Ready(Box::new(rendered)),
        Err(link::NotAllowed) => Made::Failed(link::URL_NOT_ALLOWED),
    };
    let id = campaign.campaign_id;
    make_with(services, app, (id, variant), recipients, render, now).await
}

/// Makes the messages of a campaign's variant, in the order of its recipients, by what `render` makes of their values.
pub async fn make_with<F: Sync, M: Clone + Send>(
    services: &Services,
    app: &App,
    (campaign_id, variant): (Uuid, &variants::Prepared<F>),
    recipients: &[Recipient],
    render: impl Fn(&Values) -> Made<M> + Send + Sync,
    now: Timestamp,
) -> nudge_db::Result<Vec<Made<M>>> {
    let Some(accepted) = &variant.accepted else {
        let made = render(&Values::default());
        return Ok(recipients.iter().map(|_| made.clone()).collect());
    };
    let (id, asked) = (Some(campaign_id), (&variant.spec, accepted));
    let resolved = resolve(services.resolver(), app, id, asked, recipients, now).await?;
    let made = resolved.into_iter().map(|resolved| match resolved {
        Ok(values) => match values.verdict(&variant.spec) {
            Verdict::Ready => render(&values),
            Verdict::Skipped(reason) => Made::Skipped(reason),
            Verdict::Failed(reason) => Made::Failed(reason),
        },
        Err(Failure::Plugin {
            code,
            detail,
            plugin,
        }) => Made::Broken {
            code,
            detail,
            plugin: *plugin,
        },
        Err(Failure::Unavailable) => Made::Unavailable,
    });
    Ok(made.collect())
}
