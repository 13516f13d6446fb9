//! The decision about an event, if it was kept.

use nudge_apps::App;
use nudge_db::{Timestamp, Tx};
use nudge_platform::id;
use nudge_records::decisions;
use nudge_records::decisions::record::{Item, Record};
use nudge_records::events::store::Stored;
use uuid::Uuid;

use super::{About, Call, Error, FoundDecision, Told, make, recall, subject};
use crate::projection::Subject;
use crate::services::Services;

/// Decisions of a subject after an event that are looked through for the one about it.
const MOST_DECISIONS: i64 = 100;

/// Asks the version that decided about an event, if the decision was kept: what decides today need not be there.
pub async fn ask_kept(
    services: &Services,
    app: &App,
    campaign_id: Uuid,
    (alias, stored): (i64, &Stored),
) -> Result<Option<Told>, Error> {
    let mut tx = services.db.read().await?;
    let Some(subject) = subject(&mut tx, app, alias).await? else {
        return Ok(None);
    };
    let about = (app, campaign_id, stored);
    let call = kept(&mut tx, services, about, &subject, None).await?;
    drop(tx);
    match call {
        Some(call) => make(services, app.id, call).await.map(Some),
        None => Ok(None),
    }
}

/// The call in which it was decided about an event, or since an instant about a timer of it, if that was kept.
pub(super) async fn kept(
    tx: &mut Tx,
    services: &Services,
    (app, campaign_id, stored): About<'_>,
    subject: &Subject,
    timer_since: Option<Timestamp>,
) -> Result<Option<Call>, Error> {
    let found = find(tx, (app.id, subject.id, campaign_id), stored, timer_since).await?;
    let Some(found) = found else {
        return Ok(None);
    };
    // A version that is gone can't say why; the one that decides today may.
    let digest = &found.record.plugin.digest;
    let Ok(plugin) = services.plugins.by_digest(&services.db, digest).await else {
        return Ok(None);
    };
    Ok(recall(tx, services, app, subject, plugin, found).await?)
}

/// The decision about an event and campaign, or since an instant about a timer of it, if it was kept.
async fn find(
    tx: &mut Tx,
    (app_id, subject_id, campaign_id): (Uuid, Uuid, Uuid),
    stored: &Stored,
    timer_since: Option<Timestamp>,
) -> nudge_db::Result<Option<FoundDecision>> {
    let from = id::first_of(timer_since.unwrap_or(stored.received_at));
    let rows = decisions::store::of_subject(tx, app_id, subject_id, from, MOST_DECISIONS).await?;
    for row in rows {
        let Ok(record) = Record::decode(&row.record) else {
            continue;
        };
        let is_it = |item: &Item| {
            item.event_id == stored.event.id && item.timer.is_some() == timer_since.is_some()
        };
        let concerned = |number: usize| {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let mut campaigns = record.campaigns.iter();
            campaigns.position(|it| it.id == campaign_id && it.items.contains(&number))
        };
        let mut items = record.items.iter().enumerate();
        let place = items.find_map(|(number, item)| {
            let campaign = is_it(item).then(|| concerned(number)).flatten()?;
            Some((number, campaign))
        });
        if let Some((item, campaign)) = place {
            return Ok(Some(FoundDecision {
                id: row.id,
                record,
                campaign,
                item,
            }));
        }
    }
    Ok(None)
}
