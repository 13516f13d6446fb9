//! Answers: what each type of question takes (contract 7's table).

use std::collections::HashSet;

use nudge_platform::json::{escaped, whole};
use serde_json::{Map, Value, json};

use super::question::{Format, LABEL, Question, Spec, is_date, is_web_address};

/// Why an answer is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerRefusal {
    /// Where in the value, as a JSON pointer.
    pub pointer: String,
    /// A stable reason in snake case.
    pub code: &'static str,
    /// A sentence that says what to change.
    pub detail: String,
}

type Checked = Result<Value, AnswerRefusal>;

/// The most characters of a field of contact information, and of an option in one's own words.
const MOST_FIELD: usize = LABEL;

fn refuse<T>(
    pointer: &str,
    code: &'static str,
    detail: impl Into<String>,
) -> Result<T, AnswerRefusal> {
    Err(AnswerRefusal {
        pointer: pointer.to_owned(),
        code,
        detail: detail.into(),
    })
}

fn wrong_type<T>(detail: &str) -> Result<T, AnswerRefusal> {
    refuse("", "invalid", detail)
}

/// Checks an answer; answers the value as it is kept. Null passes over what is not required, except for
/// a statement, whose answer it is.
pub fn check(question: &Question, spec: &Spec, value: &Value) -> Checked {
    if *spec == Spec::Statement {
        return match value {
            Value::Null => Ok(Value::Null),
            _ => wrong_type("a statement takes null"),
        };
    }
    if value.is_null() {
        if question.required {
            return refuse("", "required", "the question must be answered");
        }
        return Ok(Value::Null);
    }
    match spec {
        Spec::Scale { least, most } => scale(value, *least, *most),
        Spec::Thumbs => one_of(value, &["up", "down"]),
        Spec::Single { options, other } => single(value, options, *other),
        Spec::Several {
            options,
            other,
            least,
            most,
        } => several(value, options, *other, (*least, *most)),
        Spec::Ranking(options) => ranking(value, options),
        Spec::Matrix { rows, columns } => matrix(value, rows, columns, question.required),
        Spec::Text {
            least,
            most,
            format,
        } => text(value, (*least, *most), *format, question.required),
        Spec::Number { min, max, step } => number(value, *min, *max, *step),
        Spec::Date { min, max } => date(value, min.as_deref(), max.as_deref()),
        Spec::Consent => match value {
            Value::Bool(true) => Ok(Value::Bool(true)),
            _ => wrong_type("consent is given by true"),
        },
        Spec::Contact(fields) => contact(value, fields, question.required),
        Spec::Statement => Ok(Value::Null),
        Spec::Link => one_of(value, &["clicked"]),
    }
}

fn scale(value: &Value, least: i64, most: i64) -> Checked {
    let detail = format!("a whole number from {least} to {most}");
    match whole(value) {
        Some(number) if (least..=most).contains(&number) => Ok(json!(number)),
        Some(_) => refuse("", "out_of_range", detail),
        None => wrong_type(&detail),
    }
}

fn one_of(value: &Value, words: &[&str]) -> Checked {
    match value.as_str() {
        Some(word) if words.contains(&word) => Ok(value.clone()),
        _ => wrong_type(&format!("one of {}", words.join(", "))),
    }
}

/// A member that is there and not null.
fn member<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|value| !value.is_null())
}

fn option_id<'a>(
    value: &'a Value,
    options: &[String],
    pointer: &str,
) -> Result<&'a str, AnswerRefusal> {
    let Some(id) = value.as_str() else {
        return refuse(pointer, "invalid", "the id of an option");
    };
    if options.iter().any(|option| option == id) {
        Ok(id)
    } else {
        refuse(
            pointer,
            "unknown_id",
            format!("there is no option `{}`", shortened(id)),
        )
    }
}

/// Words of one's own.
fn own_words(value: &Value, allowed: bool) -> Result<String, AnswerRefusal> {
    if !allowed {
        return refuse(
            "/other",
            "not_allowed",
            "the question takes its options only",
        );
    }
    match value.as_str() {
        Some(text) if !text.trim().is_empty() && text.chars().count() <= MOST_FIELD => {
            Ok(text.to_owned())
        }
        _ => refuse(
            "/other",
            "invalid",
            format!("a text of 1 to {MOST_FIELD} characters"),
        ),
    }
}

fn single(value: &Value, options: &[String], other: bool) -> Checked {
    let Some(object) = value.as_object() else {
        return wrong_type("{optionId} or {other}");
    };
    match (member(object, "optionId"), member(object, "other")) {
        (Some(id), None) => Ok(json!({"optionId": option_id(id, options, "/optionId")?})),
        (None, Some(words)) => Ok(json!({"other": own_words(words, other)?})),
        _ => wrong_type("exactly one of {optionId} and {other}"),
    }
}

/// Ids of options, each at most once.
fn option_ids(value: Option<&Value>, options: &[String]) -> Result<Vec<String>, AnswerRefusal> {
    let Some(ids) = value.and_then(Value::as_array) else {
        return refuse("/optionIds", "invalid", "a list of ids of options");
    };
    if ids.len() > options.len() {
        let detail = format!(
            "there are {} options, each to be selected once",
            options.len()
        );
        return refuse("/optionIds", "out_of_range", detail);
    }
    let mut selected = Vec::with_capacity(ids.len());
    for (index, id) in ids.iter().enumerate() {
        let pointer = format!("/optionIds/{index}");
        let id = option_id(id, options, &pointer)?;
        if selected.iter().any(|known| known == id) {
            return refuse(&pointer, "duplicate", "an option can be selected once");
        }
        selected.push(id.to_owned());
    }
    Ok(selected)
}

fn several(value: &Value, options: &[String], other: bool, bounds: (usize, usize)) -> Checked {
    let Some(object) = value.as_object() else {
        return wrong_type("{optionIds}");
    };
    let words = match member(object, "other") {
        Some(words) => Some(own_words(words, other)?),
        None => None,
    };
    let ids = match member(object, "optionIds") {
        None if words.is_some() => Vec::new(),
        ids => option_ids(ids, options)?,
    };
    let count = ids.len() + usize::from(words.is_some());
    let (least, most) = (bounds.0.max(1), bounds.1);
    if !(least..=most).contains(&count) {
        let detail = format!("{least} to {most} are to be selected");
        return refuse("/optionIds", "out_of_range", detail);
    }
    Ok(match words {
        Some(words) => json!({"optionIds": ids, "other": words}),
        None => json!({"optionIds": ids}),
    })
}

fn ranking(value: &Value, options: &[String]) -> Checked {
    let Some(object) = value.as_object() else {
        return wrong_type("{optionIds}, in order");
    };
    let ids = option_ids(member(object, "optionIds"), options)?;
    if ids.len() != options.len() {
        let detail = format!("all {} options are to be ranked", options.len());
        return refuse("/optionIds", "incomplete", detail);
    }
    Ok(json!({"optionIds": ids}))
}

fn matrix(value: &Value, rows: &[String], columns: &[String], required: bool) -> Checked {
    let Some(object) = value.as_object().filter(|object| !object.is_empty()) else {
        return wrong_type("{rowId: columnId}");
    };
    for (row, column) in object {
        let pointer = format!("/{}", escaped(row));
        if !rows.contains(row) {
            let detail = format!("there is no row `{}`", shortened(row));
            return refuse(&pointer, "unknown_id", detail);
        }
        match column.as_str() {
            Some(id) if columns.iter().any(|column| column == id) => {}
            _ => return refuse(&pointer, "unknown_id", "there is no such column"),
        }
    }
    let missing = rows.iter().find(|row| !object.contains_key(row.as_str()));
    if let Some(row) = missing.filter(|_| required) {
        let detail = format!("the row `{row}` must be answered");
        return refuse("", "incomplete", detail);
    }
    Ok(value.clone())
}

fn text(value: &Value, bounds: (usize, usize), format: Option<Format>, required: bool) -> Checked {
    let Some(text) = value.as_str() else {
        return wrong_type("a text");
    };
    if required && text.trim().is_empty() {
        return refuse("", "required", "the question must be answered");
    }
    let (least, most) = bounds;
    if !(least..=most).contains(&text.chars().count()) {
        let detail = format!("{least} to {most} characters");
        return refuse("", "out_of_range", detail);
    }
    let fits = match format {
        None => true,
        Some(Format::Email) => is_email(text),
        Some(Format::Url) => is_web_address(text),
        Some(Format::Phone) => is_phone(text),
    };
    if fits {
        return Ok(value.clone());
    }
    let detail = match format {
        Some(Format::Email) => "an e-mail address",
        Some(Format::Url) => "an http or https address",
        _ => "a telephone number",
    };
    refuse("", "invalid_format", detail)
}

/// Whether a text looks like an e-mail address: one that does may still reach nobody.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let unfit = |character: char| character.is_whitespace() || character.is_control();
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .chars()
                .all(|character| character.is_alphanumeric() || character == '-')
    };
    // RFC 5321, 4.5.3.1: lengths of the local part and of the domain.
    (1..=64).contains(&local.len())
        && domain.len() <= 255
        && !local.contains('@')
        && !local.chars().any(unfit)
        && domain.contains('.')
        && domain.split('.').all(label)
}

/// Whether a text looks like a telephone number: 5 to 15 digits (E.164) and what people put between them.
fn is_phone(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let rest = text.strip_prefix('+').unwrap_or(text);
    let between = |character: char| character.is_ascii_digit() || " -./()".contains(character);
    (5..=15).contains(&digits) && rest.chars().all(between)
}

fn number(value: &Value, min: Option<f64>, max: Option<f64>, step: Option<f64>) -> Checked {
    let Some(number) = value.as_f64().filter(|number| number.is_finite()) else {
        return wrong_type("a number");
    };
    if min.is_some_and(|min| number < min) || max.is_some_and(|max| number > max) {
        let bound =
            |bound: Option<f64>| bound.map_or_else(|| "any".to_owned(), |at| at.to_string());
        let detail = format!("a number from {} to {}", bound(min), bound(max));
        return refuse("", "out_of_range", detail);
    }
    if let Some(step) = step {
        let from = min.unwrap_or(0.0);
        let steps = (number - from) / step;
        // Steps like 0.1 have no exact form in binary, and numbers are as far from theirs as they are large.
        let inexact = 4.0 * f64::EPSILON * (number.abs() + from.abs()) / step;
        if (steps - steps.round()).abs() > inexact.max(1e-9) {
            return refuse(
                "",
                "invalid_step",
                format!("steps of {step}, from {from} on"),
            );
        }
    }
    Ok(match whole(value) {
        Some(whole) => json!(whole),
        None if value.is_u64() => value.clone(),
        None => json!(number),
    })
}

fn date(value: &Value, min: Option<&str>, max: Option<&str>) -> Checked {
    let Some(day) = value.as_str().filter(|day| is_date(day)) else {
        return wrong_type("a day, as in 2026-01-31");
    };
    if min.is_some_and(|min| day < min) || max.is_some_and(|max| day > max) {
        let (min, max) = (min.unwrap_or("any"), max.unwrap_or("any"));
        return refuse("", "out_of_range", format!("a day from {min} to {max}"));
    }
    Ok(value.clone())
}

fn contact(value: &Value, fields: &[(String, bool)], required: bool) -> Checked {
    let Some(object) = value.as_object() else {
        return wrong_type("an object with a text for each field");
    };
    let known: HashSet<&str> = fields.iter().map(|(id, _)| id.as_str()).collect();
    for (id, text) in object {
        let pointer = format!("/{}", escaped(id));
        if !known.contains(id.as_str()) {
            let detail = format!("there is no field `{}`", shortened(id));
            return refuse(&pointer, "unknown_id", detail);
        }
        if text
            .as_str()
            .is_none_or(|text| text.chars().count() > MOST_FIELD)
        {
            let detail = format!("a text of at most {MOST_FIELD} characters");
            return refuse(&pointer, "invalid", detail);
        }
    }
    let is_filled = |id: &str| {
        let text = object.get(id).and_then(Value::as_str);
        text.is_some_and(|text| !text.trim().is_empty())
    };
    for (id, is_required) in fields {
        if *is_required && !is_filled(id) {
            let pointer = format!("/{}", escaped(id));
            return refuse(
                &pointer,
                "required",
                format!("the field `{id}` must be filled in"),
            );
        }
    }
    if required && !fields.iter().any(|(id, _)| is_filled(id)) {
        return refuse("", "required", "the question must be answered");
    }
    if object.is_empty() {
        return wrong_type("at least one field");
    }
    Ok(value.clone())
}

/// What came from outside, short enough for a message.
fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}
