//! Cases of personalization plugins: one message and its recipients.
//!
//! Input: `config`, `now` where it matters, and `recipients`, each with a `name`, `properties`, `withheld`,
//! `facts`, `history`, the request's `data` and the `trigger` event that caused the message, as far as they
//! matter. Output: `{"values": {recipient: {binding: {"value", "text", "usedFallback", "issue"}}}}`.

use std::collections::BTreeSet;
use std::sync::Arc;

use nudge_db::Timestamp;
use nudge_wasm::personalization::{Batch, Facts, Item, Message};
use nudge_wasm::{FactsUnavailable, PastEvent, Plugin, Reads, Value};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

use super::subject::{Described, Subject, to_json};
use super::validation::now;
use super::{BadCase, Run, check, object};

/// Most recipients of a case.
const RECIPIENTS: usize = 100;

/// What the plugin is given.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The variant's `personalization`.
    #[serde(default)]
    pub config: Json,
    /// When the message is made.
    #[serde(default)]
    now: Option<String>,
    /// Who gets it.
    pub recipients: Vec<Recipient>,
}

/// Who gets the message.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Recipient {
    /// The name under which the output has the values.
    name: String,
    #[serde(default)]
    properties: Map<String, Json>,
    #[serde(default)]
    withheld: Vec<String>,
    #[serde(default)]
    facts: Map<String, Json>,
    #[serde(default)]
    history: Vec<super::subject::Earlier>,
    /// The `data` of the request that asks for the send.
    #[serde(default)]
    data: Map<String, Json>,
    /// The properties of the event that caused the message.
    #[serde(default)]
    trigger: Option<Map<String, Json>>,
}

impl Input {
    pub(super) fn now(&self) -> Result<Timestamp, BadCase> {
        now(self.now.as_deref())
    }

    /// The recipients, as plugins may ask about them.
    pub(super) fn subjects(&self) -> Result<Vec<Subject>, BadCase> {
        if !(1..=RECIPIENTS).contains(&self.recipients.len()) {
            let message = format!("must have 1 to {RECIPIENTS} recipients");
            return Err(BadCase::new("/input/recipients", message));
        }
        let mut names = BTreeSet::new();
        for (index, Recipient { name, .. }) in self.recipients.iter().enumerate() {
            if !names.insert(name) {
                let pointer = format!("/input/recipients/{index}/name");
                let message = format!("`{name}` is there twice; each recipient has its own name");
                return Err(BadCase::new(pointer, message));
            }
        }
        let now = self.now()?;
        let recipients = self.recipients.iter().enumerate();
        recipients
            .map(|(index, recipient)| {
                let described = Described {
                    properties: recipient.properties.clone(),
                    withheld: recipient.withheld.clone(),
                    facts: recipient.facts.clone(),
                    history: recipient.history.clone(),
                };
                let pointer = format!("/input/recipients/{index}");
                let mut subject = Subject::new(&described, now, &pointer)?;
                subject.meet(now);
                Ok(subject)
            })
            .collect()
    }

    pub(super) fn run(&self, plugin: &Plugin) -> Result<Run, BadCase> {
        let (subjects, now) = (self.subjects()?, self.now()?);
        let (reads, mut run) = match check(plugin, &self.config, Run::default()) {
            Ok(checked) => checked,
            Err(run) => return Ok(run),
        };
        let batch = self.batch(&reads, now, self.recipients.len());
        Ok(match plugin.resolve(batch, Box::new(Answers(subjects))) {
            Ok(outcome) => {
                let names = self.recipients.iter().map(|recipient| &recipient.name);
                let mut values: Map<String, Json> = names
                    .map(|name| (name.clone(), Json::Object(Map::new())))
                    .collect();
                for resolution in outcome.resolutions {
                    let recipient = self.recipients.get(resolution.item as usize);
                    let place = recipient.and_then(|recipient| values.get_mut(&recipient.name));
                    if let Some(Json::Object(bindings)) = place {
                        let mut resolved = json!({
                            "value": resolution.value.map(to_json),
                            "text": resolution.text,
                            "usedFallback": resolution.used_fallback,
                            "issue": resolution.issue,
                            "detail": resolution.detail,
                        });
                        if let Json::Object(resolved) = &mut resolved {
                            resolved.extend(
                                resolution
                                    .more
                                    .into_iter()
                                    .map(|(key, value)| (key, Json::String(value))),
                            );
                        }
                        bindings.insert(resolution.binding, resolved);
                    }
                }
                run.output = json!({"values": values});
                run.note(outcome.call);
                run
            }
            Err(failed) => run.fail(failed),
        })
    }

    /// One message to `size` recipients: those of the case, over and over.
    pub(super) fn batch(&self, reads: &Reads, now: Timestamp, size: usize) -> Batch {
        let item = |(number, recipient): (u128, &Recipient)| Item {
            recipient: Uuid::from_u128(number + 1),
            data: object(&recipient.data),
            trigger: recipient.trigger.as_ref().map(|properties| PastEvent {
                id: Uuid::from_u128(u128::MAX >> 1),
                timestamp: now.0,
                properties: object(properties),
            }),
        };
        let message = Message {
            config: self.config.to_string().into(),
            properties: Arc::from(reads.properties.as_slice()),
            subject_properties: Arc::from(reads.subject_properties.as_slice()),
            items: (0..).take(size).collect(),
        };
        Batch {
            now: now.0,
            seed: 0,
            items: (0..)
                .zip(self.recipients.iter().cycle())
                .take(size)
                .map(item)
                .collect(),
            messages: vec![message],
        }
    }
}

/// What the plugin may ask: item `n` is recipient `n`, over and over.
pub(super) struct Answers(pub Vec<Subject>);

impl Answers {
    fn of(&self, item: u32) -> Option<&Subject> {
        self.0.get((item as usize).checked_rem(self.0.len())?)
    }
}

impl Facts for Answers {
    fn subject_property(&mut self, item: u32, key: &str) -> Option<Value> {
        self.of(item)?.property(key)
    }

    fn subject_fact(&mut self, item: u32, name: &str) -> Option<Value> {
        self.of(item)?.fact(name)
    }

    fn recent_events(
        &mut self,
        item: u32,
        name: &str,
        since: Option<i64>,
        limit: u32,
    ) -> Result<Vec<PastEvent>, FactsUnavailable> {
        Ok(self
            .of(item)
            .map(|subject| subject.recent(name, since, limit))
            .unwrap_or_default())
    }
}
