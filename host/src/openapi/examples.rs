//! An example of each operation, written once: `operations.json` has the requests, in an order in which they work one after
//! the other, and `answers.json` what a server answered. A test sends each request, and writes the answers anew.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::operations::Operation;

/// Answers by operation, and facts of the server that gave them, such as `appId`.
pub type RecordedAnswers = Map<String, Value>;

/// Answers that are no JSON, with their media types: one message of a stream, and bytes.
const TEXTS: [(&str, &str, &str); 2] = [
    (
        "stream_events",
        "text/event-stream",
        include_str!("stream.txt"),
    ),
    (
        "download_export",
        "application/zip",
        "The bytes of export.zip.",
    ),
];

impl Operation {
    /// The body of lines, filled in.
    pub fn text(&self, known: &RecordedAnswers) -> Option<String> {
        let lines: Vec<String> = self
            .lines
            .iter()
            .map(|line| fill(line, known).to_string())
            .collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// The value with what is known in place of the names. A name that is not known stays.
pub fn fill(value: &Value, known: &RecordedAnswers) -> Value {
    match value {
        Value::String(text) => fill_text(text, known),
        Value::Array(items) => items.iter().map(|item| fill(item, known)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), fill(value, known)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn fill_text(text: &str, known: &RecordedAnswers) -> Value {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{")
        && let Some((name, after)) = after.split_once("}}")
    {
        let found = find(name, known);
        if let Some(found) = found
            && before.is_empty()
            && after.is_empty()
            && filled.is_empty()
        {
            return found.clone();
        }
        filled.push_str(before);
        match found.and_then(Value::as_str) {
            Some(found) => filled.push_str(found),
            None => filled.extend(["{{", name, "}}"]),
        }
        rest = after;
    }
    filled.push_str(rest);
    filled.into()
}

fn find<'k>(name: &str, known: &'k RecordedAnswers) -> Option<&'k Value> {
    let (first, rest) = name.split_once('.').unwrap_or((name, ""));
    let value = known.get(first)?;
    let value = value.get("data").unwrap_or(value);
    let pointer = format!("/{}", rest.replace('.', "/"));
    if rest.is_empty() {
        Some(value)
    } else {
        value.pointer(&pointer)
    }
}

/// Gives each operation of the document its example.
pub(super) fn add(document: &mut Value, examples: &[Operation]) -> serde_json::Result<()> {
    let known: RecordedAnswers = serde_json::from_str(include_str!("answers.json"))?;
    let paths = document.get_mut("paths").and_then(Value::as_object_mut);
    let operations = paths
        .into_iter()
        .flatten()
        .filter_map(|(_, item)| item.as_object_mut())
        .flat_map(|item| item.values_mut());
    for operation in operations {
        let id = operation.get("operationId").and_then(Value::as_str);
        let id = id.map(str::to_owned);
        let example = examples
            .iter()
            .find(|example| Some(&*example.operation) == id.as_deref());
        if let Some(example) = example {
            complete(operation, example, &known);
        }
        let text = TEXTS
            .iter()
            .find(|(operation, ..)| Some(*operation) == id.as_deref());
        if let Some((_, media_type, text)) = text {
            let place = format!("/responses/200/content/{}", media_type.replace('/', "~1"));
            let described = operation.pointer_mut(&place).and_then(Value::as_object_mut);
            if let Some(described) = described {
                described.insert("example".to_owned(), json!(text));
            }
        }
    }
    Ok(())
}

fn complete(operation: &mut Value, example: &Operation, known: &RecordedAnswers) {
    let app = BTreeMap::from([("appId".to_owned(), json!("{{appId}}"))]);
    let parameters = operation
        .get_mut("parameters")
        .and_then(Value::as_array_mut);
    for parameter in parameters.into_iter().flatten() {
        let name = parameter
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let given = [&example.path, &example.query, &app];
        let given = given.iter().find_map(|values| values.get(name));
        if let (Some(given), Some(parameter)) = (given, parameter.as_object_mut()) {
            parameter.insert("example".to_owned(), fill(given, known));
        }
    }
    let body = example.text(known).map(Value::from);
    let body = body.or_else(|| example.body.as_ref().map(|body| fill(body, known)));
    if let Some(body) = body {
        give(operation.pointer_mut("/requestBody/content"), &body);
    }
    let status = example.status.map_or_else(
        || first_success(operation),
        |status| Some(status.to_string()),
    );
    let answer = known
        .get(&example.operation)
        .filter(|answer| !answer.is_null());
    if let (Some(status), Some(answer)) = (status, answer) {
        let content = operation.pointer_mut(&format!("/responses/{status}/content"));
        give(content, answer);
    }
}

/// The lowest status of a success.
pub fn first_success(operation: &Value) -> Option<String> {
    let responses = operation.get("responses")?.as_object()?;
    let mut statuses: Vec<&String> = responses
        .keys()
        .filter(|status| status.starts_with('2'))
        .collect();
    statuses.sort();
    statuses.first().map(|status| (*status).clone())
}

/// Puts an example where the content of a body is described; lists as CSV have none.
fn give(content: Option<&mut Value>, example: &Value) {
    let types = content.and_then(Value::as_object_mut);
    let described = types
        .into_iter()
        .flatten()
        .filter(|(media_type, _)| *media_type != "text/csv");
    for (_, described) in described {
        if let Some(described) = described.as_object_mut() {
            described.insert("example".to_owned(), example.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_facts_and_parts_of_answers() {
        let known = json!({"appId": "a", "list": {"data": {"items": [{"id": "one", "n": 1}]}}});
        let known = known.as_object().unwrap();
        let filled = fill(
            &json!([
                "{{list.items.0.n}}",
                "/{{appId}}/{{list.items.0.id}}",
                "{{none}}"
            ]),
            known,
        );
        assert_eq!(filled, json!([1, "/a/one", "{{none}}"]));
    }
}
