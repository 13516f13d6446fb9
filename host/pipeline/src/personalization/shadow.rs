//! What a shadow candidate would have resolved, against what the active version did (contract 12). It is asked
//! once the messages are made, with what the active version was shown; no message waits for it or is made of it.

use std::sync::Arc;

use nudge_campaigns::push::personalization::Spec;
use nudge_campaigns::push::verdict::{Values, Verdict};
use nudge_campaigns::settings::Privacy;
use nudge_plugin_runtime::shadow::{Comparison, Difference, MOST_WAITING, Sample};
use nudge_plugin_runtime::{Plugins, halving, logs};
use serde_json::{Value, json};
use uuid::Uuid;

use super::call::{Answer, Entry, RecipientBatch};

/// A candidate, and the recipients that it is shown.
pub(super) struct ShadowCall {
    pub campaign_id: Uuid,
    /// What would be asked of the candidate.
    pub work: RecipientBatch,
    pub entries: Vec<Entry>,
    pub spec: Spec,
    pub privacy: Privacy,
}

impl ShadowCall {
    /// Has the candidate asked when there is time, or counts that there was none. `did` is what the active version
    /// said of the entries.
    pub(super) fn offer(mut self, plugins: &Plugins, did: Vec<Answer>) {
        let (app_id, period) = (self.work.app_id, Arc::clone(&self.work.period));
        let recorder = Arc::clone(&plugins.recorder);
        self.work.kind = logs::Kind::Shadow;
        let run = move || {
            let would = halving::ask(&self.work, &self.entries);
            let period = Arc::clone(&self.work.period);
            let comparison = self.compare(did, would);
            recorder.compared(app_id, &period, comparison);
        };
        if !plugins.shadows.offer(app_id, MOST_WAITING, run) {
            plugins
                .recorder
                .compared(app_id, &period, Comparison::skipped());
        }
    }

    fn compare(&self, did: Vec<Answer>, would: Vec<Answer>) -> Comparison {
        let mut comparison = Comparison::default();
        comparison.counts.calls = 1;
        let values = |answer| Values::new(&self.spec, &self.privacy, answer);
        for ((entry, did), would) in self.entries.iter().zip(did).zip(would) {
            let difference = match (did, would) {
                (_, Answer::Failed { detail, .. }) => {
                    Some((Difference::Failed, None, Some(json!(detail))))
                }
                (Answer::Failed { detail, .. }, Answer::Resolved(_)) => {
                    Some((Difference::Recovered, Some(json!(detail)), None))
                }
                (Answer::Resolved(did), Answer::Resolved(would)) => {
                    let (did, would) = (values(did), values(would));
                    difference(&self.spec, &did, &would).map(|difference| {
                        (difference, Some(self.shown(&did)), Some(self.shown(&would)))
                    })
                }
                // What one of them could not be asked about is compared with nothing.
                _ => continue,
            };
            let Some((difference, old, new)) = difference else {
                comparison.same();
                continue;
            };
            match &entry.trigger {
                Some(event) => comparison.differs(Sample {
                    subject_id: entry.subject_id,
                    event_id: event.id,
                    campaign_id: Some(self.campaign_id),
                    difference,
                    old,
                    new,
                }),
                // Of a message that no event caused there is no sample.
                None => comparison.counts(difference),
            }
        }
        comparison
    }

    /// What each binding says, for a sample.
    fn shown(&self, values: &Values) -> Value {
        let said = self.spec.bindings.iter().map(|binding| {
            let resolved = values.get(&binding.id);
            let said = resolved.map(|resolved| match &resolved.value {
                Some(_) => json!(resolved.text),
                None => json!({"issue": resolved.issue}),
            });
            (binding.id.clone(), said.unwrap_or_default())
        });
        Value::Object(said.collect())
    }
}

/// How a message would differ.
fn difference(spec: &Spec, did: &Values, would: &Values) -> Option<Difference> {
    match (did.verdict(spec), would.verdict(spec)) {
        (Verdict::Ready, Verdict::Ready) => (!did.say_as(would)).then_some(Difference::Content),
        (Verdict::Ready, _) => Some(Difference::Removed),
        (_, Verdict::Ready) => Some(Difference::Added),
        (did, would) => (did != would).then_some(Difference::Content),
    }
}

#[cfg(test)]
mod tests {
    use nudge_wasm::Value as Cell;
    use nudge_wasm::personalization::Resolution;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_is_whether_there_is_a_message_and_what_it_says() {
        let spec = |missing: &str| {
            Spec::read(&json!({"version": 1, "missingData": missing,
                "sources": [{"id": "s", "kind": "send_data"}],
                "bindings": [{"id": "a", "sourceId": "s", "key": "a", "type": "string"}]}))
            .unwrap()
        };
        let (skips, fails) = (spec("skip"), spec("fail"));
        let values = |text: Option<&str>, issue: &str| {
            let resolution = Resolution {
                item: 0,
                binding: "a".to_owned(),
                value: text.map(|text| Cell::Text(text.to_owned())),
                text: text.unwrap_or_default().to_owned(),
                used_fallback: false,
                issue: issue.to_owned(),
                detail: String::new(),
                more: vec![("event_id".to_owned(), issue.to_owned())],
            };
            Values::new(&skips, &Privacy::default(), vec![resolution])
        };
        let (one, other) = (values(Some("x"), ""), values(Some("y"), ""));
        let (missing, wrong) = (values(None, "missing"), values(None, "type_mismatch"));
        for (did, would, expected) in [
            (&one, &one, None),
            (&one, &other, Some(Difference::Content)),
            (&one, &missing, Some(Difference::Removed)),
            (&missing, &one, Some(Difference::Added)),
            (&missing, &missing, None),
            (&missing, &wrong, Some(Difference::Content)),
        ] {
            assert_eq!(
                difference(&skips, did, would),
                expected,
                "{did:?} {would:?}"
            );
        }
        assert_eq!(
            difference(&fails, &missing, &wrong),
            Some(Difference::Content)
        );
    }
}
