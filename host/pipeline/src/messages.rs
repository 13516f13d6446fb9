//! The in-app messages of a batch. They are made before its effects are written, since no transaction spans a plugin call, and kept as they were made.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nudge_apps::App;
use nudge_campaigns::campaign::CampaignAction;
use nudge_campaigns::in_app::{Prepared, Showing};
use nudge_campaigns::push::verdict::{Values, Verdict as Resolution};
use nudge_campaigns::targeting::Suppression;
use nudge_db::Timestamp;
use nudge_records::events::store::Stored;
use nudge_wasm::{Description, PastEvent};
use uuid::Uuid;

use super::Inner;
use super::evaluate::{CampaignItem, Item};
use super::projection::Subject;
use crate::delivery_rules::{DeliveryRules, Verdict};
use crate::personalization::{Failure, Recipient, Resolver, resolve_for};

/// When a message is made that could not be made now.
const LATER: Duration = Duration::from_secs(5);

/// What became of the message of a firing.
#[derive(Clone, Debug)]
pub(super) enum Message {
    /// It is shown.
    Ready {
        /// The variant.
        variant_id: Uuid,
        /// What SDKs get.
        content: String,
    },
    /// It can't be made of what there is.
    Suppressed(Suppression),
    /// The plugin failed on it.
    Broken {
        /// How.
        code: &'static str,
        /// What happened, for people.
        detail: String,
        /// Which plugin.
        plugin: Description,
    },
    /// The plugin could not be asked properly; it is asked again then.
    Later(Timestamp),
}

/// Messages by their firings.
pub(super) type Messages = HashMap<CampaignItem, Message>;

/// Firings of one variant, each with whom it is for.
type Group<'a> = Vec<(CampaignItem, &'a Subject)>;

/// Makes the messages of those firings that pass the delivery rules by themselves. No other passes them after others did.
pub(super) async fn make(
    inner: &Inner,
    app: &App,
    items: &[Item],
    subjects: &[Subject],
    fired: &[CampaignItem],
    delivery_rules: &DeliveryRules,
) -> nudge_db::Result<Messages> {
    let mut groups: HashMap<(usize, Uuid), Group<'_>> = HashMap::new();
    for firing in fired {
        let Some(running) = app.campaigns.get(firing.campaign) else {
            continue;
        };
        let CampaignAction::Show(showing) = &running.action else {
            continue;
        };
        let item = items.get(firing.item);
        let subject = item.and_then(|it| subjects.get(it.subject));
        let passes =
            |subject: &&Subject| delivery_rules.assess(app, running, subject) == Verdict::Passes;
        let Some(subject) = subject.filter(passes) else {
            continue;
        };
        // Without a variant of any weight there is nothing to show.
        if let Some(variant) = showing.variants.of(subject.id) {
            let group = groups.entry((firing.campaign, variant.id)).or_default();
            group.push((*firing, subject));
        }
    }
    let mut messages = Messages::new();
    for ((campaign, variant), group) in groups {
        let running = app.campaigns.get(campaign);
        let Some(CampaignAction::Show(showing)) = running.map(|running| &running.action) else {
            continue;
        };
        if let Some(variant) = showing.variants.get(variant) {
            let made = of_variant(
                inner,
                app,
                (showing, variant),
                items,
                &group,
                delivery_rules.now,
            );
            messages.extend(made.await?);
        }
    }
    Ok(messages)
}

/// Makes the messages of a variant, all in one go.
async fn of_variant(
    inner: &Inner,
    app: &App,
    (showing, variant): (&Showing, &Prepared),
    items: &[Item],
    group: &Group<'_>,
    now: Timestamp,
) -> nudge_db::Result<Vec<(CampaignItem, Message)>> {
    let mut made = Vec::with_capacity(group.len());
    let Some(accepted) = &variant.accepted else {
        for (firing, subject) in group {
            let message = filled(showing, variant, &Values::default(), subject);
            made.push((*firing, message));
        }
        return Ok(made);
    };
    let recipients: Vec<Recipient> = group
        .iter()
        .map(|(firing, subject)| Recipient {
            subject_id: subject.id,
            data: None,
            // Of the campaign's own occasion there is no event that anybody sent.
            trigger: items
                .get(firing.item)
                .filter(|item| item.stored.seq >= 0)
                .map(|item| past(&item.stored)),
        })
        .collect();
    let people: Vec<Subject> = group
        .iter()
        .map(|(_, subject)| (*subject).clone())
        .collect();
    let by = Resolver {
        db: &inner.db,
        plugins: &inner.plugins,
    };
    let (id, asked) = (Some(showing.campaign_id), (&variant.spec, accepted));
    let resolved = resolve_for(by, app, id, asked, (&recipients, &people), now).await?;
    for ((firing, subject), resolved) in group.iter().zip(resolved) {
        let message = match resolved {
            Ok(values) => match values.verdict(&variant.spec) {
                Resolution::Ready => filled(showing, variant, &values, subject),
                Resolution::Skipped(reason) | Resolution::Failed(reason) => {
                    Message::Suppressed(Suppression::of_verdict(reason))
                }
            },
            Err(Failure::Plugin {
                code,
                detail,
                plugin,
            }) => Message::Broken {
                code,
                detail,
                plugin: *plugin,
            },
            Err(Failure::Unavailable) => Message::Later(now.plus(LATER)),
        };
        made.push((*firing, message));
    }
    Ok(made)
}

fn filled(showing: &Showing, variant: &Prepared, values: &Values, subject: &Subject) -> Message {
    match showing.render(variant, values, subject.locale.as_deref()) {
        Ok(content) => Message::Ready {
            variant_id: variant.id,
            content,
        },
        Err(reason) => Message::Suppressed(reason),
    }
}

/// An event as plugins get it.
pub(super) fn past(stored: &Stored) -> PastEvent {
    PastEvent {
        id: stored.event.id,
        timestamp: stored.event.timestamp.0,
        properties: Arc::clone(&stored.event.properties),
    }
}
