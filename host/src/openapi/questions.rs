//! Questions by their types: what each adds, as the reader of flows takes it.

use serde_json::{Map, Value, json};

use super::shapes::reference;

/// The types, and the names of their schemas.
const TYPES: [(&str, &str); 18] = [
    ("nps", "NpsQuestion"),
    ("rating", "RatingQuestion"),
    ("csat", "CsatQuestion"),
    ("ces", "CesQuestion"),
    ("thumbs", "ThumbsQuestion"),
    ("single_choice", "SingleChoiceQuestion"),
    ("multiple_choice", "MultipleChoiceQuestion"),
    ("picture_choice", "PictureChoiceQuestion"),
    ("ranking", "RankingQuestion"),
    ("matrix", "MatrixQuestion"),
    ("short_text", "ShortTextQuestion"),
    ("long_text", "LongTextQuestion"),
    ("number", "NumberQuestion"),
    ("date", "DateQuestion"),
    ("consent", "ConsentQuestion"),
    ("contact_info", "ContactInfoQuestion"),
    ("statement", "StatementQuestion"),
    ("link", "LinkQuestion"),
];

/// What a type adds.
struct Extras {
    /// The members.
    members: Value,
    /// Those that must be there.
    required: &'static [&'static str],
    /// Those that may stand under `validation` instead.
    limiting: &'static [&'static str],
}

/// Puts the types in place of the one schema that the server's type has.
pub(super) fn add(schemas: &mut Map<String, Value>) {
    let common = schemas
        .get("Question")
        .and_then(|question| question.get("properties"))
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    for (kind, name) in TYPES {
        schemas.insert(name.to_owned(), question(kind, &common));
    }
    let all: Vec<Value> = TYPES.iter().map(|(_, name)| reference(name)).collect();
    let question = json!({"description": "A question; what else it has follows from its `type`.", "oneOf": all});
    schemas.insert("Question".to_owned(), question);
    for (name, schema) in parts() {
        schemas.insert(name.to_owned(), schema);
    }
}

fn question(kind: &str, common: &Map<String, Value>) -> Value {
    let extras = extras(kind);
    let mut members = common.clone();
    let of_kind = json!({"const": kind, "description": "What kind of answer it takes."});
    members.insert("type".to_owned(), of_kind);
    let mut limits = Map::new();
    let message = json!({"type": "string", "minLength": 1, "maxLength": 500, "description": "Shown where an answer is refused."});
    limits.insert("message".to_owned(), message);
    for (key, member) in extras.members.as_object().into_iter().flatten() {
        if extras.limiting.contains(&&**key) {
            limits.insert(key.clone(), member.clone());
        }
        members.insert(key.clone(), member.clone());
    }
    let validation = json!({
        "type": ["object", "null"], "additionalProperties": false, "properties": limits,
        "description": "What limits answers, instead of at the question itself; and `message`.",
    });
    members.insert("validation".to_owned(), validation);
    let required: Vec<&str> = ["id", "type", "title"]
        .iter()
        .chain(extras.required)
        .copied()
        .collect();
    json!({
        "type": "object", "description": format!("A question of the type `{kind}`."),
        "additionalProperties": false, "required": required, "properties": members,
    })
}

/// What options, fields and pictures are made of.
fn parts() -> [(&'static str, Value); 3] {
    let id = json!({"type": "string", "minLength": 1, "maxLength": 64, "description": "Its id within the question."});
    let label = label("What it says.");
    let image =
        json!({"type": "string", "maxLength": 2048, "description": "An http or https address."});
    let required = json!({"type": "boolean", "description": "Whether it must be filled in."});
    let part = |description: &str, required: &[&str], members: Value| json!({"type": "object", "description": description, "additionalProperties": false, "required": required, "properties": members});
    [
        (
            "QuestionItem",
            part(
                "An option, a row or a column.",
                &["id", "label"],
                json!({"id": id, "label": label}),
            ),
        ),
        (
            "QuestionPicture",
            part(
                "An option with a picture.",
                &["id", "label", "imageUrl"],
                json!({"id": id, "label": label, "imageUrl": image}),
            ),
        ),
        (
            "QuestionField",
            part(
                "A field of contact information.",
                &["id", "label"],
                json!({"id": id, "label": label, "required": required}),
            ),
        ),
    ]
}

fn label(description: &str) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 500, "description": description})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

/// Several parts of a question.
fn list(part: &str, description: &str) -> Value {
    json!({"type": "array", "description": description, "minItems": 1, "maxItems": 100, "items": reference(part)})
}

/// What a type adds, and which of it limits answers.
fn extras(kind: &str) -> Extras {
    let (members, required, limiting): (Value, &[&str], &[&str]) = match kind {
        "nps" => (scale(&[]), &[], &[]),
        "rating" => (scale(&[3, 4, 5, 6, 7, 10]), &[], &[]),
        "csat" => (scale(&[5]), &[], &[]),
        "ces" => (scale(&[5, 7]), &[], &[]),
        "single_choice" => (choice(), &["options"], &[]),
        "multiple_choice" => (several(), &["options"], &["minSelections", "maxSelections"]),
        "picture_choice" => (pictures(), &["options"], &[]),
        "ranking" => (
            json!({"options": list("QuestionItem", "What is put in order.")}),
            &["options"],
            &[],
        ),
        "matrix" => (
            json!({
                "rows": list("QuestionItem", "What is asked of."),
                "columns": list("QuestionItem", "What can be selected for each row."),
            }),
            &["rows", "columns"],
            &[],
        ),
        "short_text" | "long_text" => (
            words(kind == "short_text"),
            &[],
            &["minLength", "maxLength", "format"],
        ),
        "number" => (bounds_of_numbers(), &[], &["min", "max", "step"]),
        "date" => (bounds_of_days(), &[], &["min", "max"]),
        "consent" => (
            json!({"label": label("What is agreed to.")}),
            &["label"],
            &[],
        ),
        "contact_info" => (
            json!({"fields": list("QuestionField", "What is asked for.")}),
            &["fields"],
            &[],
        ),
        "statement" | "link" => (shown(), &[], &[]),
        _ => (json!({}), &[], &[]),
    };
    Extras {
        members,
        required,
        limiting,
    }
}

/// Scales that can be asked for; none: there is one, and it is not said.
fn scale(scales: &[i64]) -> Value {
    let mut members = json!({
        "lowLabel": label("What stands at the least."),
        "highLabel": label("What stands at the most."),
    });
    if let (Some(members), false) = (members.as_object_mut(), scales.is_empty()) {
        let scale = json!({"type": "integer", "enum": scales, "description": "The most; 5 unless given. The least is 1."});
        let display = json!({"type": "string", "enum": ["number", "star", "emoji"], "description": "How it is shown."});
        members.extend([("scale".to_owned(), scale), ("display".to_owned(), display)]);
    }
    members
}

fn choice() -> Value {
    json!({
        "options": list("QuestionItem", "What can be selected."),
        "allowOther": flag("Whether words of one's own are taken."),
        "shuffle": flag("Whether the options come in another order each time."),
    })
}

fn pictures() -> Value {
    json!({
        "options": list("QuestionPicture", "What can be selected."),
        "multiple": flag("Whether several can be selected."),
    })
}

fn several() -> Value {
    let mut members = choice();
    for (key, description) in [
        ("minSelections", "So many must be selected."),
        ("maxSelections", "So many can be selected."),
    ] {
        if let Some(members) = members.as_object_mut() {
            let number = json!({"type": "integer", "minimum": 0, "description": description});
            members.insert(key.to_owned(), number);
        }
    }
    members
}

fn words(is_short: bool) -> Value {
    let most = if is_short { "1,000" } else { "10,000" };
    json!({
        "placeholder": label("What stands in the empty field."),
        "minLength": {"type": "integer", "minimum": 0, "description": "The least characters."},
        "maxLength": {"type": "integer", "minimum": 1, "maximum": 10_000, "description": format!("The most characters; {most} unless given.")},
        "format": {"type": "string", "enum": ["email", "url", "phone"], "description": "What an answer has to look like."},
    })
}

fn bounds_of_numbers() -> Value {
    json!({
        "min": {"type": "number", "description": "The least."},
        "max": {"type": "number", "description": "The most."},
        "step": {"type": "number", "exclusiveMinimum": 0, "description": "Answers are multiples of it, counted from `min` or 0."},
    })
}

fn bounds_of_days() -> Value {
    json!({
        "min": {"type": "string", "format": "date", "description": "The first day."},
        "max": {"type": "string", "format": "date", "description": "The last day."},
    })
}

fn shown() -> Value {
    json!({
        "body": {"type": "string", "minLength": 1, "maxLength": 5_000, "description": "What it says."},
        "buttonLabel": label("What stands on its button."),
        "url": {"type": "string", "description": "Where it leads."},
    })
}

#[cfg(test)]
mod tests {
    use nudge_campaigns::surveys::flow::question::Question;

    use super::*;

    /// A member's example by its schema.
    fn example(schema: &Value, schemas: &Map<String, Value>) -> Value {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            return example(&schemas[name.rsplit('/').next().unwrap()], schemas);
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(values) = schema.get("enum") {
            return values[0].clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds[0].as_str(),
            kind => kind.as_str(),
        };
        match kind.unwrap() {
            "object" => {
                let members = schema["properties"].as_object().unwrap();
                let filled = members
                    .iter()
                    .filter(|(key, _)| *key != "validation")
                    .map(|(key, member)| (key.clone(), example(member, schemas)));
                filled.collect::<Map<_, _>>().into()
            }
            "array" => json!([example(&schema["items"], schemas)]),
            "boolean" => json!(true),
            "integer" | "number" => json!(1),
            _ if schema["format"] == "date" => json!("2026-01-31"),
            // An id.
            _ if schema["maxLength"] == 64 => json!("a"),
            _ => json!("https://shop.example.com"),
        }
    }

    /// The reader of flows knows each member that is described, and each that it demands is required.
    #[test]
    fn the_reader_takes_what_is_described() {
        let common = json!({"id": {"type": "string"}, "title": {"type": "string"}});
        let mut schemas = Map::new();
        schemas.insert("Question".to_owned(), json!({"properties": common}));
        add(&mut schemas);
        for (kind, name) in TYPES {
            let schema = &schemas[name];
            let whole = example(schema, &schemas);
            let question: Question = serde_json::from_value(whole.clone()).unwrap();
            assert!(question.spec().is_ok(), "{whole}: {:?}", question.spec());
            let required = schema["required"].as_array().unwrap();
            let least: Map<_, _> = whole
                .as_object()
                .unwrap()
                .iter()
                .filter(|(key, _)| required.contains(&json!(key)))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            let question: Question = serde_json::from_value(least.into()).unwrap();
            assert!(question.spec().is_ok(), "{kind}: {:?}", question.spec());
            for key in extras(kind).limiting {
                let mut moved = whole.clone();
                let members = moved.as_object_mut().unwrap();
                let value = members.remove(*key).unwrap();
                members.insert("validation".to_owned(), json!({*key: value}));
                let question: Question = serde_json::from_value(moved).unwrap();
                assert!(question.spec().is_ok(), "{kind}: {:?}", question.spec());
            }
        }
    }
}
