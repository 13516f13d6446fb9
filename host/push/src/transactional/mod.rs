//! Messages that a backend asks for one by one (specification 2.6, 4.4; contract 9), and tests of campaigns.

pub mod http;
pub mod test_send;

use nudge_apps::App;
use nudge_campaigns::campaign::{Kind as CampaignKind, Status as CampaignStatus};
use nudge_campaigns::in_app;
use nudge_campaigns::push::personalization::Spec;
use nudge_campaigns::push::{self, Campaign, Content, Mode};
use nudge_campaigns::store as campaigns;
use nudge_campaigns::targeting::caps::FrequencyCap;
use nudge_campaigns::targeting::{CapWindow, Schedule};
use nudge_campaigns::variants;
use nudge_db::{Kind, Timestamp, Tx};
use nudge_pipeline::audience::{self, CountedAsOf, PresentationQuestion};
use nudge_platform::field_error::FieldError;
use nudge_platform::json::escaped;
use nudge_records::deliveries::store::DeliveryRow;
use nudge_records::deliveries::{self, NewDelivery, Status, Urgency};
use nudge_records::subjects::{self, AliasKind};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::services::Services;
use crate::tokens;

/// Values of a request's data, and the longest key and text, in characters (specification 2.2).
const MOST_DATA: usize = 256;
const MOST_KEY: usize = 120;
const MOST_TEXT: usize = 8_192;
/// The longest idempotency key, in characters.
pub const MOST_IDEMPOTENCY_KEY: usize = 255;
/// How often a request is tried that meets others.
const TRIES: usize = 8;

/// What a backend asks for.
#[derive(Clone, Debug)]
pub struct Order {
    /// The campaign.
    pub campaign_id: Uuid,
    /// Whom it is for.
    pub recipient: (AliasKind, String),
    /// What fills `send_data` sources.
    pub data: Map<String, Value>,
    /// What makes the request one that can be repeated.
    pub idempotency_key: Option<String>,
}

/// What came of it.
#[derive(Debug)]
pub struct Placed {
    /// The delivery.
    pub delivery: DeliveryRow,
    /// Whether it is that of an earlier request with the same key.
    pub duplicate: bool,
}

/// Why nothing was queued.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The app has no such campaign.
    #[error("no such campaign")]
    CampaignNotFound,
    /// It is not for backends to send.
    #[error("the campaign is not transactional")]
    NotTransactional,
    /// It does not run.
    #[error("the campaign is not active")]
    NotActive,
    /// Its schedule has not begun, or is over.
    #[error("the campaign's schedule has not begun, or is over")]
    NotScheduled,
    /// There is nobody of this id.
    #[error("no such subject")]
    SubjectNotFound,
    /// A value that it takes is missing.
    #[error("data is missing")]
    MissingData(Vec<FieldError>),
    /// The database.
    #[error("the database refused a send")]
    Storage(#[from] nudge_db::Error),
}

/// What is wrong with a request's data: it is flat.
pub fn check_data(data: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if data.len() > MOST_DATA {
        let detail = format!("at most {MOST_DATA} values");
        errors.push(FieldError::new("/data", "out_of_range", detail));
    }
    for (key, value) in data {
        let detail = match value {
            _ if !(1..=MOST_KEY).contains(&key.chars().count()) => "a key has 1 to 120 characters",
            Value::Array(_) | Value::Object(_) => "must be a text, a number, a boolean or null",
            Value::String(text) if text.chars().count() > MOST_TEXT => {
                "has at most 8192 characters"
            }
            _ => continue,
        };
        let place = format!("/data/{}", escaped(key));
        errors.push(FieldError::new(place, "invalid", detail));
    }
    errors
}

/// The values that a campaign needs and data has not, by binding. A null counts as missing.
fn missing(content: &Content, data: &Map<String, Value>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = Vec::new();
    let specs = content
        .variants
        .iter()
        .filter_map(|variant| variant.personalization.as_ref());
    for spec in specs.filter_map(|personalization| Spec::read(personalization).ok()) {
        for binding in spec.required_data() {
            let there = data.get(&binding.key).is_some_and(|value| !value.is_null());
            let place = format!("/data/{}", escaped(&binding.key));
            let detail = format!(
                "the binding `{}` needs a value for `{}`",
                binding.id, binding.key
            );
            if !there && errors.iter().all(|known| known.detail != detail) {
                errors.push(FieldError::new(place, "required", detail));
            }
        }
    }
    errors
}

/// Queues a message, once for each idempotency key.
pub async fn place(services: &Services, app: &App, order: &Order) -> Result<Placed, Error> {
    let mut tries = 1;
    loop {
        match attempt(services, app, order).await {
            // The person was merged into another just now, or two requests met.
            Err(Error::Storage(error)) if error.kind() == Kind::Serialization && tries < TRIES => {
                tries += 1;
            }
            outcome => return outcome,
        }
    }
}

async fn attempt(services: &Services, app: &App, order: &Order) -> Result<Placed, Error> {
    let mut tx = services.db.read().await?;
    if let Some(key) = &order.idempotency_key
        && let Some(delivery) = deliveries::store::find_by_key(&mut tx, app.id, key).await?
    {
        return Ok(Placed {
            delivery,
            duplicate: true,
        });
    }
    let campaign = campaign(&mut tx, app, order.campaign_id, services.clock.now()).await?;
    let (kind, name) = &order.recipient;
    let subject_id = subjects::store::find_owner(&mut tx, app.id, *kind, name).await?;
    let subject_id = subject_id.ok_or(Error::SubjectNotFound)?;
    let missing = missing(&campaign.content, &order.data);
    if !missing.is_empty() {
        return Err(Error::MissingData(missing));
    }
    let secrets = &services.secrets;
    let active = tokens::store::active_of(&mut tx, secrets, app.id, &[subject_id]).await?;
    let devices = active.devices();
    drop(tx);

    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let person = subjects::store::locked(&mut tx, app.id, subject_id).await?;
    // Merged into another between the two looks, which the next try finds.
    let person = person.ok_or_else(nudge_db::Error::lost_race)?;
    if person.suppressed {
        return Err(Error::SubjectNotFound);
    }
    let granted = app.settings.consent.grants(person.messaging_consent);
    let reason = match (granted, devices == 0) {
        (false, _) => Some("consent_missing"),
        (true, true) => Some("no_active_device"),
        (true, false) => full_cap(&mut tx, app, &campaign, subject_id, now).await?,
    };
    let mut new = delivery(&campaign, subject_id, order, (devices, reason), now);
    let in_hand = services.pipeline.deliveries();
    let reserved = in_hand.reserve(app.id, std::slice::from_mut(&mut new), now);
    let inserted = deliveries::queue(&mut tx, app.id, std::slice::from_ref(&new), now).await?;
    let duplicate = inserted.is_empty();
    if !duplicate && reason.is_none() {
        subjects::store::bump_version(&mut tx, app.id, subject_id).await?;
    }
    let delivery = match &order.idempotency_key {
        Some(key) if duplicate => deliveries::store::find_by_key(&mut tx, app.id, key).await?,
        _ => deliveries::store::find(&mut tx, app.id, new.id).await?,
    };
    let delivery = delivery.ok_or_else(nudge_db::Error::lost_race)?;
    tx.commit().await?;
    reserved.send(&inserted);
    Ok(Placed {
        delivery,
        duplicate,
    })
}

/// The cap that a person has reached, if there is one: the campaign's own, or the app's unless the campaign ignores that.
/// The person is locked, so that of two requests the second counts the first.
pub(crate) async fn full_cap(
    tx: &mut Tx,
    app: &App,
    campaign: &Campaign,
    subject_id: Uuid,
    now: Timestamp,
) -> nudge_db::Result<Option<&'static str>> {
    let cap_windows = cap_windows(app, campaign);
    let question = |cap_window: &CapWindow| {
        PresentationQuestion::of(subject_id, CampaignKind::Push, cap_window, now)
    };
    let questions: Vec<PresentationQuestion> = cap_windows.iter().map(question).collect();
    let counts = audience::counts(tx, app.id, &questions, CountedAsOf::now(now)).await?;
    let mut counted = cap_windows.iter().zip(counts);
    let full = counted.find(|(cap_window, count)| *count >= cap_window.max);
    Ok(full.map(|(cap_window, _)| cap_window.reason.name()))
}

/// Every cap window that a message of a campaign has to pass.
pub(crate) fn cap_windows(app: &App, campaign: &Campaign) -> Vec<CapWindow> {
    let cap = FrequencyCap::read(campaign.content.frequency_cap.as_ref(), "/frequencyCap");
    // What was saved was checked.
    let cap = cap.unwrap_or_default();
    cap.cap_windows(campaign.id, CampaignKind::Push, &app.settings.frequency)
}

/// A campaign that backends may send. Days and hours of its schedule are not asked: somebody waits for the message.
async fn campaign(tx: &mut Tx, app: &App, id: Uuid, now: Timestamp) -> Result<Campaign, Error> {
    let campaign = campaigns::find::<push::Content>(tx, app.id, id).await?;
    let Some(campaign) = campaign else {
        let shown = campaigns::find::<in_app::Content>(tx, app.id, id).await?;
        return Err(match shown {
            Some(_) => Error::NotTransactional,
            None => Error::CampaignNotFound,
        });
    };
    if campaign.content.mode != Mode::Transactional {
        return Err(Error::NotTransactional);
    }
    if campaign.content.status != CampaignStatus::Active {
        return Err(Error::NotActive);
    }
    let schedule = Schedule::read(campaign.content.schedule.as_ref(), "/schedule");
    // What was saved was checked.
    if !schedule.unwrap_or_default().is_within(now) {
        return Err(Error::NotScheduled);
    }
    Ok(campaign)
}

/// The delivery of an order. `found`: how many devices, and why it is not sent at all.
fn delivery(
    campaign: &Campaign,
    subject_id: Uuid,
    order: &Order,
    found: (usize, Option<&str>),
    now: Timestamp,
) -> NewDelivery {
    let (devices, reason) = found;
    let variant_id = variants::of(campaign.id, subject_id, &campaign.content.variants);
    let data = || Value::Object(order.data.clone()).to_string();
    NewDelivery {
        id: nudge_platform::id::new(now),
        campaign_id: campaign.id,
        campaign_version: campaign.version,
        variant_id: variant_id.unwrap_or_default(),
        subject_id,
        event: None,
        data: reason.is_none().then(data),
        idempotency_key: order.idempotency_key.clone(),
        test: false,
        recipients: i64::try_from(devices).unwrap_or(i64::MAX),
        status: if reason.is_some() {
            Status::Skipped
        } else {
            Status::Queued
        },
        reason: reason.map(str::to_owned),
        content: None,
        urgency: Urgency::Urgent,
        node: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn data_is_flat_and_has_limits() {
        let wrong = |data: Value| check_data(data.as_object().unwrap()).len();
        assert_eq!(wrong(json!({"a": "x", "b": 1, "c": true, "d": null})), 0);
        assert_eq!(wrong(json!({"a": [], "b": {}, "": 1})), 3);
        assert_eq!(wrong(json!({"a": "x".repeat(MOST_TEXT)})), 0);
        assert_eq!(wrong(json!({"a": "x".repeat(MOST_TEXT + 1)})), 1);
        assert_eq!(wrong(json!({"k".repeat(MOST_KEY + 1): 1})), 1);
        let many: Map<String, Value> = (0..=MOST_DATA).map(|n| (n.to_string(), json!(1))).collect();
        assert_eq!(check_data(&many).len(), 1);
    }

    #[test]
    fn what_any_variant_needs_is_needed_once() {
        let personalization = json!({"version": 1, "sources": [{"id": "s", "kind": "send_data"}],
            "bindings": [{"id": "code", "sourceId": "s", "key": "code", "type": "string"},
                {"id": "name", "sourceId": "s", "key": "name", "type": "string", "fallback": "you"}]});
        let variant = json!({"title": "{{p.code}}", "personalization": personalization});
        let content: Content =
            serde_json::from_value(json!({"name": "n", "variants": [variant, variant]})).unwrap();
        let missing = |data: Value| missing(&content, data.as_object().unwrap());
        assert!(missing(json!({"code": "X"})).is_empty());
        assert_eq!(missing(json!({"code": null})).len(), 1);
        let found = missing(json!({}));
        assert_eq!((found.len(), found[0].pointer.as_str()), (1, "/data/code"));
        assert!(found[0].detail.contains("`code`"));
    }
}
