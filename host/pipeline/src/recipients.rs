//! What personalization plugins can ask about the recipients of messages.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use nudge_apps::App;
use nudge_db::{Db, Result, Timestamp, Tx};
use nudge_wasm::personalization::Facts;
use nudge_wasm::{FactsUnavailable, PastEvent, Value};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::facts::{self, fact};
use super::history::{self, LatestQuestion};
use super::projection::Subject;
use super::store;

/// What is read of recipients before a plugin is asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    /// Whether saved properties are read.
    pub properties: bool,
    /// Newest events that are read, by name and from which instant on: outside of the call, whose time is short.
    pub newest: Vec<(String, Timestamp)>,
}

/// Recipients and what is known of them. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct KnownRecipients(Arc<RecipientFacts>);

/// The newest events by person, name and from which instant on.
type Newest = HashMap<(Uuid, String, i64), Option<PastEvent>>;

#[derive(Debug)]
struct RecipientFacts {
    app_id: Uuid,
    db: Db,
    runtime: Handle,
    subjects: HashMap<Uuid, Subject>,
    properties: HashMap<(Uuid, String), Value>,
    newest: Newest,
    aliases: Mutex<HashMap<Uuid, Vec<i64>>>,
    /// Keys that the app's privacy policy keeps from messages.
    denied: HashSet<String>,
}

/// Recipients as the items of one call.
struct View {
    recipients: KnownRecipients,
    items: Vec<Uuid>,
}

impl KnownRecipients {
    /// Reads what is known of people. Of some a batch knows more: as of events that it is about to project.
    pub(crate) fn load<'a>(
        db: &'a Db,
        app: &'a App,
        ids: &'a [Uuid],
        newer: &'a [Subject],
        reads: &'a Reads,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(async move {
            // A batch may have several messages to one person.
            let mut ids = ids.to_vec();
            ids.sort_unstable();
            ids.dedup();
            let mut tx = db.read().await?;
            let mut subjects = store::subjects_of(&mut tx, app.id, &ids).await?;
            for subject in &mut subjects {
                if let Some(newer) = newer.iter().find(|newer| newer.id == subject.id) {
                    subject.clone_from(newer);
                }
            }
            let properties = if reads.properties {
                store::properties(&mut tx, app.id, &ids).await?
            } else {
                HashMap::new()
            };
            let denied: HashSet<String> = app.settings.privacy.deny_keys.iter().cloned().collect();
            let (mut newest, mut aliases) = (Newest::new(), HashMap::new());
            if !reads.newest.is_empty() {
                aliases = history::aliases_of(&mut tx, app.id, &ids).await?;
                newest = read_newest(&mut tx, app.id, &subjects, &aliases, &reads.newest).await?;
                for event in newest.values_mut() {
                    *event = event.take().map(|event| without(&denied, event));
                }
            }
            Ok(Self(Arc::new(RecipientFacts {
                app_id: app.id,
                db: db.clone(),
                runtime: Handle::current(),
                subjects: subjects
                    .into_iter()
                    .map(|subject| (subject.id, subject))
                    .collect(),
                properties,
                newest,
                aliases: Mutex::new(aliases),
                denied,
            })))
        })
    }

    /// What a plugin may ask in a call about these people, in this order.
    pub(crate) fn view(&self, items: Vec<Uuid>) -> Box<dyn Facts> {
        Box::new(View {
            recipients: self.clone(),
            items,
        })
    }

    /// An event as messages may have it.
    pub(crate) fn permitted(&self, event: PastEvent) -> PastEvent {
        without(&self.0.denied, event)
    }
}

/// Reads people's newest events of some names. Of several aliases the newest are in no index's order; those people are
/// asked about one by one.
async fn read_newest(
    tx: &mut Tx,
    app_id: Uuid,
    subjects: &[Subject],
    aliases: &HashMap<Uuid, Vec<i64>>,
    asked: &[(String, Timestamp)],
) -> Result<Newest> {
    let mut newest = Newest::new();
    let (mut places, mut questions) = (Vec::new(), Vec::new());
    for subject in subjects {
        let own = aliases.get(&subject.id).map_or(&[][..], Vec::as_slice);
        let last_seq = subject.last_seq;
        for (name, Timestamp(since)) in asked {
            let place = (subject.id, name.clone(), *since);
            if let [alias] = own {
                places.push(place);
                questions.push(LatestQuestion {
                    alias: *alias,
                    name: name.clone(),
                    since: *since,
                    last_seq,
                });
            } else {
                let since = Some(*since);
                let found = history::recent_events(tx, app_id, own, name, since, last_seq, 1);
                let found = found.await?.pop();
                newest.insert(place, found.map(|(_, event)| event));
            }
        }
    }
    let latest = history::latest_of_many(tx, app_id, &questions).await?;
    newest.extend(places.into_iter().zip(latest));
    Ok(newest)
}

impl View {
    fn subject(&self, item: u32) -> Option<&Subject> {
        self.recipients
            .0
            .subjects
            .get(self.items.get(item as usize)?)
    }

    fn recent(
        &self,
        item: u32,
        name: &str,
        since: Option<i64>,
        limit: u32,
    ) -> Result<Vec<PastEvent>> {
        let known = &self.recipients.0;
        let Some(subject) = self.subject(item) else {
            return Ok(Vec::new());
        };
        if let (1, Some(since)) = (limit, since)
            && let Some(newest) = known.newest.get(&(subject.id, name.to_owned(), since))
        {
            return Ok(newest.iter().cloned().collect());
        }
        let read_already = {
            let aliases = known.aliases.lock();
            aliases.get(&subject.id).cloned()
        };
        let (db, app_id, id) = (known.db.clone(), known.app_id, subject.id);
        let (name, last_seq) = (name.to_owned(), subject.last_seq);
        let (aliases, events) = known.runtime.block_on(async move {
            let mut tx = db.read().await?;
            let aliases = match read_already {
                Some(aliases) => aliases,
                None => history::aliases(&mut tx, app_id, id).await?,
            };
            let events =
                history::recent_events(&mut tx, app_id, &aliases, &name, since, last_seq, limit)
                    .await?;
            Ok::<_, nudge_db::Error>((aliases, events))
        })?;
        let mut known_aliases = known.aliases.lock();
        known_aliases.insert(id, aliases);
        Ok(events
            .into_iter()
            .map(|(_, event)| without(&known.denied, event))
            .collect())
    }
}

impl Facts for View {
    fn subject_property(&mut self, item: u32, key: &str) -> Option<Value> {
        let known = &self.recipients.0;
        let id = self.items.get(item as usize)?;
        let value = known.properties.get(&(*id, key.to_owned()))?;
        if known.denied.contains(key) {
            return Some(Value::Withheld);
        }
        Some(value.clone())
    }

    fn subject_fact(&mut self, item: u32, name: &str) -> Option<Value> {
        fact(self.subject(item)?, name)
    }

    fn recent_events(
        &mut self,
        item: u32,
        name: &str,
        since: Option<i64>,
        limit: u32,
    ) -> std::result::Result<Vec<PastEvent>, FactsUnavailable> {
        self.recent(item, name, since, limit)
            .map_err(|error| facts::unavailable(&error))
    }
}

/// An event without the properties that the privacy policy keeps from messages. Values stay as they are written; of
/// properties that can't be read nobody knows what they say, and none is let through.
fn without(denied: &HashSet<String>, event: PastEvent) -> PastEvent {
    if denied.is_empty() {
        return event;
    }
    let permitted = permitted(denied, &event.properties).unwrap_or_else(|error| {
        tracing::error!(event.id = %event.id, error = %error, "an event's properties can't be read and are kept from messages");
        "{}".to_owned()
    });
    PastEvent {
        properties: permitted.into(),
        ..event
    }
}

/// An object in JSON without members of these names.
fn permitted(denied: &HashSet<String>, properties: &str) -> serde_json::Result<String> {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(properties)?;
    members.retain(|key, _| !denied.contains(key));
    serde_json::to_string(&members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_policy_denies_goes_and_the_rest_stays_as_it_is_written() {
        let denied = HashSet::from(["secret".to_owned()]);
        let text = r#"{"a": 12345678901234567890123, "secret": 1, "\u0073ecret": {"a": 2}, "b": {"secret": [3]}}"#;
        assert_eq!(
            permitted(&denied, text).unwrap(),
            r#"{"a":12345678901234567890123,"b":{"secret": [3]}}"#
        );
    }

    #[test]
    fn of_what_cannot_be_read_nothing_is_let_through() {
        let event = |properties: &str| PastEvent {
            id: Uuid::nil(),
            timestamp: 0,
            properties: properties.into(),
        };
        let denied = HashSet::from(["secret".to_owned()]);
        for text in [
            "",
            "secret",
            r#"["secret"]"#,
            r#"{"secret": 1"#,
            r#"{"secret": 1} x"#,
            r#"{"secret": 1, "\ud800": 2}"#,
        ] {
            let shown = without(&denied, event(text));
            assert_eq!(&*shown.properties, "{}", "{text}");
        }
        let all = without(&HashSet::new(), event(r#"{"secret": 1}"#));
        assert_eq!(&*all.properties, r#"{"secret": 1}"#);
    }
}
