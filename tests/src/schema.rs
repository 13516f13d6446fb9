//! Whether JSON fits a schema of the server's description: as much of JSON Schema as the description uses.

use serde_json::{Map, Value};

/// What does not fit, with its place; nothing where everything does. `document` has the schemas that others name.
pub fn faults(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(document, schema, value, "", &mut faults);
    faults
}

fn check(document: &Value, schema: &Value, value: &Value, place: &str, faults: &mut Vec<String>) {
    let Value::Object(schema) = schema else {
        if *schema == Value::Bool(false) {
            faults.push(format!("{place}: nothing may stand here"));
        }
        return;
    };
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        match document.pointer(name.trim_start_matches('#')) {
            Some(named) => check(document, named, value, place, faults),
            None => faults.push(format!("{place}: there is no {name}")),
        }
    }
    check_value(schema, value, place, faults);
    check_parts(document, schema, value, place, faults);
    check_several(document, schema, value, place, faults);
}

/// The value's type, and what it may be.
fn check_value(schema: &Map<String, Value>, value: &Value, place: &str, faults: &mut Vec<String>) {
    let mut wrong = |what: &str, wanted: &Value| {
        faults.push(format!("{place}: {value} is not {what} {wanted}"));
    };
    if let Some(wanted) = schema.get("type") {
        let fits = match wanted {
            Value::Array(types) => types.iter().any(|one| is_of(one, value)),
            one => is_of(one, value),
        };
        if !fits {
            wrong("of type", wanted);
        }
    }
    if let Some(wanted) = schema.get("const").filter(|wanted| *wanted != value) {
        wrong("", wanted);
    }
    if let Some(wanted) = schema.get("enum") {
        let allowed = wanted.as_array().is_some_and(|all| all.contains(value));
        if !allowed {
            wrong("one of", wanted);
        }
    }
    let measure = |length: usize| f64::from(u32::try_from(length).unwrap_or(u32::MAX));
    let length = value.as_str().map(|text| measure(text.chars().count()));
    let count = value.as_array().map(|items| measure(items.len()));
    for (key, is_least, measured) in [
        ("minimum", true, value.as_f64()),
        ("maximum", false, value.as_f64()),
        ("minLength", true, length),
        ("maxLength", false, length),
        ("minItems", true, count),
        ("maxItems", false, count),
    ] {
        let (Some(wanted), Some(measured)) = (schema.get(key), measured) else {
            continue;
        };
        let limit = wanted.as_f64().unwrap_or_default();
        if (is_least && measured < limit) || (!is_least && measured > limit) {
            wrong(key, wanted);
        }
    }
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    }
}

/// The members of an object and the items of an array.
fn check_parts(
    document: &Value,
    schema: &Map<String, Value>,
    value: &Value,
    place: &str,
    faults: &mut Vec<String>,
) {
    if let (Some(schema), Value::Array(items)) = (schema.get("items"), value) {
        for (number, item) in items.iter().enumerate() {
            check(document, schema, item, &format!("{place}/{number}"), faults);
        }
    }
    let Value::Object(members) = value else {
        return;
    };
    for name in schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        if !name.as_str().is_some_and(|name| members.contains_key(name)) {
            faults.push(format!("{place}: there is no {name}"));
        }
    }
    let known = schema.get("properties").and_then(Value::as_object);
    for (name, member) in members {
        let known = known.and_then(|known| known.get(name));
        if let Some(schema) = known.or_else(|| schema.get("additionalProperties")) {
            check(document, schema, member, &format!("{place}/{name}"), faults);
        }
    }
}

/// Schemas of which all, one or any must fit.
fn check_several(
    document: &Value,
    schema: &Map<String, Value>,
    value: &Value,
    place: &str,
    faults: &mut Vec<String>,
) {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    for part in list("allOf").into_iter().flatten() {
        check(document, part, value, place, faults);
    }
    for key in ["oneOf", "anyOf"] {
        let Some(parts) = list(key) else { continue };
        let mut found: Vec<Vec<String>> = Vec::new();
        for part in parts {
            let mut of_part = Vec::new();
            check(document, part, value, place, &mut of_part);
            found.push(of_part);
        }
        let fitting = found.iter().filter(|faults| faults.is_empty()).count();
        if fitting == 0 {
            let nearest = found.into_iter().min_by_key(Vec::len).unwrap_or_default();
            faults.push(format!(
                "{place}: {value} fits none of {key}: {}",
                nearest.join("; ")
            ));
        } else if key == "oneOf" && fitting > 1 {
            faults.push(format!("{place}: {value} fits {fitting} of oneOf"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_found() {
        let document =
            json!({"components": {"schemas": {"Id": {"type": "string", "minLength": 2}}}});
        let schema = json!({"type": "object", "required": ["id"], "additionalProperties": false, "properties": {
            "id": {"$ref": "#/components/schemas/Id"},
            "n": {"oneOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
            "list": {"type": "array", "items": {"enum": ["a", "b"]}},
        }});
        let count = |value: Value| faults(&document, &schema, &value).len();
        assert_eq!(count(json!({"id": "ab", "n": null, "list": ["a"]})), 0);
        assert_eq!(count(json!({"id": "a"})), 1);
        assert_eq!(count(json!({"n": 0, "list": ["c"], "more": 1})), 4);
        assert_eq!(count(json!([])), 1);
    }
}
