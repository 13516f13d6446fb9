//! From a variant and its recipients to messages.

use nudge_apps::App;
use nudge_campaigns::push::options::Options;
use nudge_campaigns::push::rendered::Rendered;
use nudge_campaigns::push::verdict::{Values, Verdict};
use nudge_campaigns::push::{Prepared, Sending, link};
use nudge_db::Timestamp;
use nudge_wasm::Description;

use crate::services::Services;
use nudge_pipeline::personalization::{Failure, Recipient, resolve};

/// What became of one recipient's message.
#[derive(Clone, Debug, PartialEq)]
pub enum Made {
    /// It can be sent.
    Ready(Box<Rendered>),
    /// A value is missing: it is not sent.
    Skipped(&'static str),
    /// It can't be made.
    Failed(&'static str),
    /// The plugin failed on it.
    Broken {
        /// How.
        code: &'static str,
        /// Which plugin.
        plugin: Description,
    },
    /// It can't be made now.
    Unavailable,
}

/// Makes the messages of a campaign's variant, in the order of its recipients.
pub async fn make(
    services: &Services,
    app: &App,
    campaign: &Sending,
    variant: &Prepared,
    recipients: &[Recipient],
    now: Timestamp,
) -> nudge_db::Result<Vec<Made>> {
    let options = &campaign.options;
    let Some(accepted) = &variant.accepted else {
        let made = rendered(variant, &Values::default(), options);
        return Ok(recipients.iter().map(|_| made.clone()).collect());
    };
    let (id, asked) = (Some(campaign.campaign_id), (&variant.spec, accepted));
    let resolved = resolve(services.resolver(), app, id, asked, recipients, now).await?;
    let made = resolved.into_iter().map(|resolved| match resolved {
        Ok(values) => match values.verdict(&variant.spec) {
            Verdict::Ready => rendered(variant, &values, options),
            Verdict::Skipped(reason) => Made::Skipped(reason),
            Verdict::Failed(reason) => Made::Failed(reason),
        },
        Err(Failure::Plugin { code, plugin }) => Made::Broken { code, plugin },
        Err(Failure::Unavailable) => Made::Unavailable,
    });
    Ok(made.collect())
}

fn rendered(variant: &Prepared, values: &Values, options: &Options) -> Made {
    match variant.render(values, options) {
        Ok(rendered) => Made::Ready(Box::new(rendered)),
        Err(link::NotAllowed) => Made::Failed(link::URL_NOT_ALLOWED),
    }
}
