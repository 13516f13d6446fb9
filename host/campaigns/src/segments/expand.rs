//! An audience with the conditions of the segments that it names, as trigger plugins get it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use nudge_db::Tx;
use nudge_platform::field_error::FieldError;
use nudge_platform::json::escaped;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Segments within segments (contract 19).
const MOST_NESTED: usize = 4;
/// Conditions of an audience, with those of the segments that it names (contract 15, 19).
const MOST_LEAVES: usize = 50;
/// Groups within groups, far beyond those that plugins take.
const MOST_GROUPS: usize = 32;

/// The code of a segment that stands in itself.
pub const CYCLE: &str = "segment_cycle";
/// The code of a segment that is not there.
pub const UNKNOWN: &str = "unknown_segment";

/// The audiences of an app's segments.
#[derive(Clone, Debug, Default)]
pub struct Audiences(HashMap<Uuid, Arc<Value>>);

/// Which events and changes may change an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touch {
    /// Events of these names.
    pub names: HashSet<String>,
    /// Properties of the person.
    pub properties: bool,
    /// Any event: it says where the person is and when it was seen.
    pub any: bool,
}

impl Audiences {
    /// Segments with their audiences.
    pub fn new(segments: impl Iterator<Item = (Uuid, Value)>) -> Self {
        Self(
            segments
                .map(|(id, audience)| (id, Arc::new(audience)))
                .collect(),
        )
    }

    /// Those of an app.
    pub async fn read(tx: &mut Tx, app_id: Uuid) -> nudge_db::Result<Self> {
        let all = super::store::audiences(tx, app_id).await?;
        Ok(Self::new(
            all.into_iter().map(|(id, _, audience)| (id, audience)),
        ))
    }

    /// The same with another audience of one.
    pub(super) fn with(&self, id: Uuid, audience: &Value) -> Self {
        let mut changed = self.clone();
        changed.0.insert(id, Arc::new(audience.clone()));
        changed
    }

    /// Whether there is a segment of this id.
    pub fn has(&self, id: Uuid) -> bool {
        self.0.contains_key(&id)
    }

    /// Segments that name a segment, or name one that does.
    pub(super) fn users_of(&self, id: Uuid) -> Vec<(Uuid, &Value)> {
        let mut found: HashSet<Uuid> = HashSet::from([id]);
        loop {
            let before = found.len();
            for (other, audience) in &self.0 {
                if named(audience).iter().any(|named| found.contains(named)) {
                    found.insert(*other);
                }
            }
            if found.len() == before {
                break;
            }
        }
        found.remove(&id);
        let users = self.0.iter().filter(|(other, _)| found.contains(other));
        users
            .map(|(other, audience)| (*other, &**audience))
            .collect()
    }

    /// Puts beside each segment's id the conditions that it has now. `of` is the segment whose audience this is. Errors have
    /// pointers into the body that has the audience as `audience`.
    pub fn expand(&self, of: Option<Uuid>, audience: &Value) -> Result<Value, Vec<FieldError>> {
        if named(audience).is_empty() {
            // The plugin says what else is wrong with it.
            return Ok(audience.clone());
        }
        let mut expansion = Expansion {
            audiences: self,
            within: of.into_iter().collect(),
            outermost: None,
            leaves: 0,
            errors: Vec::new(),
        };
        let expanded = expansion.parts(audience, "/audience");
        if expansion.errors.is_empty() {
            Ok(expanded)
        } else {
            Err(expansion.errors)
        }
    }
}

struct Expansion<'a> {
    audiences: &'a Audiences,
    /// The segments that the place stands in.
    within: Vec<Uuid>,
    /// Where the body names the segment that the place stands in: what is within it is no part of the body.
    outermost: Option<String>,
    leaves: usize,
    errors: Vec<FieldError>,
}

impl Expansion<'_> {
    fn parts(&mut self, audience: &Value, place: &str) -> Value {
        let Value::Object(members) = audience else {
            return audience.clone();
        };
        let part = |(key, value): (&String, &Value)| {
            let value = match key.as_str() {
                "include" | "exclude" => self.condition(value, &format!("{place}/{key}"), 0),
                _ => value.clone(),
            };
            (key.clone(), value)
        };
        Value::Object(members.iter().map(part).collect())
    }

    fn condition(&mut self, condition: &Value, place: &str, groups: usize) -> Value {
        let Value::Object(members) = condition else {
            return condition.clone();
        };
        if let Some(kind) = members.get("kind") {
            if kind == "segment" {
                return self.segment(members, place);
            }
            self.count(place);
            return condition.clone();
        }
        if groups > MOST_GROUPS || !self.errors.is_empty() {
            return condition.clone();
        }
        let member = |(key, value): (&String, &Value)| {
            let value = match value {
                Value::Array(list) => {
                    let each = list.iter().enumerate().map(|(index, element)| {
                        let place = format!("{place}/{}/{index}", escaped(key));
                        self.condition(element, &place, groups + 1)
                    });
                    Value::Array(each.collect())
                }
                other => other.clone(),
            };
            (key.clone(), value)
        };
        Value::Object(members.iter().map(member).collect())
    }

    fn count(&mut self, place: &str) {
        self.leaves += 1;
        if self.leaves == MOST_LEAVES + 1 {
            let detail = format!(
                "an audience has at most {MOST_LEAVES} conditions, those of the segments that it names among them"
            );
            self.wrong(place, "too_many", detail);
        }
    }

    fn wrong(&mut self, place: &str, code: &str, detail: impl Into<String>) {
        let place = self.outermost.as_deref().unwrap_or(place);
        self.errors.push(FieldError::new(place, code, detail));
    }

    fn segment(&mut self, leaf: &Map<String, Value>, place: &str) -> Value {
        for key in leaf.keys() {
            if !["kind", "segmentId", "in"].contains(&key.as_str()) {
                let place = format!("{place}/{}", escaped(key));
                self.wrong(
                    &place,
                    "unknown_key",
                    "a condition of the kind `segment` has `segmentId` and `in`",
                );
            }
        }
        let inside = leaf.get("in").and_then(Value::as_bool);
        if inside.is_none() {
            let detail = "true for who is in the segment, false for who is not";
            self.wrong(&format!("{place}/in"), "required", detail);
        }
        let id = leaf.get("segmentId").and_then(id_of);
        let found = id.and_then(|id| Some((id, Arc::clone(self.audiences.0.get(&id)?))));
        let Some((id, audience)) = found else {
            let detail = "the app has no segment of this id";
            self.wrong(&format!("{place}/segmentId"), UNKNOWN, detail);
            return Value::Null;
        };
        if self.within.contains(&id) {
            let detail = "the segment would stand in itself";
            self.wrong(&format!("{place}/segmentId"), CYCLE, detail);
            return Value::Null;
        }
        if self.within.len() >= MOST_NESTED {
            let detail = format!("segments nest at most {MOST_NESTED} deep");
            self.wrong(place, "too_deep", detail);
            return Value::Null;
        }
        let before = self.leaves;
        let is_outermost = self.outermost.is_none();
        self.outermost
            .get_or_insert_with(|| format!("{place}/segmentId"));
        self.within.push(id);
        let conditions = self.parts(&audience, place);
        self.within.pop();
        if is_outermost {
            self.outermost = None;
        }
        if self.leaves == before {
            // One without conditions counts too, so that what stands here is bounded.
            self.count(place);
        }
        json!({"kind": "segment", "segmentId": id, "in": inside, "audience": conditions})
    }
}

fn id_of(value: &Value) -> Option<Uuid> {
    Uuid::parse_str(value.as_str()?).ok()
}

/// Walks through the leaves of an audience.
fn leaves<'v>(value: &'v Value, found: &mut impl FnMut(&'v Map<String, Value>)) {
    let Value::Object(members) = value else {
        return;
    };
    if members.contains_key("kind") {
        found(members);
        return;
    }
    for value in members.values() {
        match value {
            Value::Array(list) => list.iter().for_each(|element| leaves(element, found)),
            other => leaves(other, found),
        }
    }
}

/// The segments that an audience names itself.
pub fn named(audience: &Value) -> BTreeSet<Uuid> {
    let mut ids = BTreeSet::new();
    leaves(audience, &mut |leaf| {
        if leaf.get("kind").is_some_and(|kind| kind == "segment") {
            // Something else than an id names nothing that is there: it stands for that.
            ids.insert(leaf.get("segmentId").and_then(id_of).unwrap_or_default());
        }
    });
    ids
}

impl Touch {
    /// What may change the answer of conditions.
    pub fn add(&mut self, conditions: &Value) {
        leaves(
            conditions,
            &mut |leaf| match leaf.get("kind").and_then(Value::as_str) {
                Some("event") => {
                    let name = leaf.get("eventName").and_then(Value::as_str);
                    self.names.extend(name.map(str::to_owned));
                }
                Some("user_property") => self.properties = true,
                Some("segment") => {
                    if let Some(audience) = leaf.get("audience") {
                        self.add(audience);
                    }
                }
                _ => self.any = true,
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(number: u128) -> Value {
        json!({"kind": "segment", "segmentId": Uuid::from_u128(number), "in": true})
    }

    fn platform() -> Value {
        json!({"kind": "platform", "in": ["ios"]})
    }

    fn audiences(of: &[(u128, Value)]) -> Audiences {
        Audiences::new(
            of.iter()
                .map(|(id, audience)| (Uuid::from_u128(*id), audience.clone())),
        )
    }

    fn codes(outcome: Result<Value, Vec<FieldError>>) -> Vec<(String, String)> {
        let errors = outcome.unwrap_err().into_iter();
        errors.map(|error| (error.pointer, error.code)).collect()
    }

    #[test]
    fn conditions_come_beside_the_id() {
        let audiences = audiences(&[
            (1, json!({"include": {"all": [leaf(2)]}})),
            (2, json!({"exclude": platform()})),
        ]);
        let expanded = audiences
            .expand(
                None,
                &json!({"include": {"any": [leaf(1)]}, "samplePercent": 5}),
            )
            .unwrap();
        let inner = expanded
            .pointer("/include/any/0/audience/include/all/0/audience")
            .unwrap();
        assert_eq!(*inner, json!({"exclude": platform()}));
        assert_eq!(expanded.get("samplePercent"), Some(&json!(5)));
        let mut touch = Touch::default();
        touch.add(&expanded);
        assert!(touch.any && !touch.properties);
    }

    #[test]
    fn what_can_not_be_is_named() {
        let own = Uuid::from_u128(1);
        let cyclic = audiences(&[
            (1, json!({"include": leaf(2)})),
            (2, json!({"include": leaf(1)})),
        ]);
        assert_eq!(
            codes(cyclic.expand(Some(own), &json!({"include": leaf(2)}))),
            [("/audience/include/segmentId".into(), CYCLE.into())]
        );
        assert_eq!(
            codes(cyclic.expand(None, &json!({"include": {"all": [platform(), leaf(7)]}}))),
            [("/audience/include/all/1/segmentId".into(), UNKNOWN.into())]
        );
        let given = json!({"kind": "segment", "segmentId": own, "audience": {}});
        let found = codes(cyclic.expand(None, &json!({"include": given})));
        let found: Vec<&str> = found.iter().map(|(_, code)| code.as_str()).collect();
        assert_eq!(found, ["unknown_key", "required", CYCLE]);
    }

    #[test]
    fn nested_conditions_count_and_depth_is_bounded() {
        let chain: Vec<(u128, Value)> = (1..6)
            .map(|number| (number, json!({"include": leaf(number + 1)})))
            .collect();
        let mut chain = chain;
        chain.push((6, json!({"include": platform()})));
        let chain = audiences(&chain);
        assert!(chain.expand(None, &json!({"include": leaf(3)})).is_ok());
        assert_eq!(
            codes(chain.expand(None, &json!({"include": {"any": [platform(), leaf(2)]}}))),
            [(
                "/audience/include/any/1/segmentId".into(),
                "too_deep".into()
            )]
        );
        let many: Vec<Value> = (0..25).map(|_| platform()).collect();
        let many = audiences(&[(1, json!({"include": {"all": many}}))]);
        let twice = json!({"include": {"all": [leaf(1), leaf(1)]}});
        assert!(many.expand(None, &twice).is_ok());
        let more = json!({"include": {"all": [leaf(1), leaf(1), platform()]}});
        assert_eq!(
            codes(many.expand(None, &more)),
            [("/audience/include/all/2".into(), "too_many".into())]
        );
        let more = json!({"include": {"all": [platform(), leaf(1), leaf(1)]}});
        let pointer = "/audience/include/all/2/segmentId";
        assert_eq!(
            codes(many.expand(None, &more)),
            [(pointer.into(), "too_many".into())]
        );
        // Segments without conditions can't multiply.
        let empty = audiences(&[
            (1, json!({"include": {"all": vec![leaf(2); 50]}})),
            (2, json!({"include": {"all": vec![leaf(3); 50]}})),
            (3, json!({})),
        ]);
        assert!(
            codes(empty.expand(None, &json!({"include": {"all": vec![leaf(1); 50]}}))).len() < 5
        );
    }

    #[test]
    fn those_who_name_a_segment_are_found_through_others() {
        let all = audiences(&[
            (1, json!({})),
            (2, json!({"include": leaf(1)})),
            (3, json!({"exclude": {"any": [leaf(2)]}})),
            (4, json!({})),
        ]);
        let mut users: Vec<Uuid> = all
            .users_of(Uuid::from_u128(1))
            .into_iter()
            .map(|(id, _)| id)
            .collect();
        users.sort_unstable();
        assert_eq!(users, [2, 3].map(Uuid::from_u128));
    }
}
