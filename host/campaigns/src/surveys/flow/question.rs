//! Questions, and what each type of them adds (contract 7's table).

mod shape;

use std::collections::HashSet;

use nudge_platform::field_error::FieldError;
use nudge_platform::json::escaped;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use shape::{
    Consent, Contact, Date, Item, Matrix, Nothing, Number, Pictures, Ranking, Rated, Several,
    Shown, Single, Text,
};
use utoipa::ToSchema;

use crate::links;

/// The most characters of a title.
pub const TITLE: usize = 1_000;
/// The most characters of a description or of what a statement says.
pub const TEXT: usize = 5_000;
/// The most characters of a label.
pub const LABEL: usize = 500;
/// The most characters of an answer in words.
pub const MOST_ANSWER: usize = 10_000;
/// Options, rows, columns or fields a question may have.
const MOST_ITEMS: usize = 100;
const MOST_ID: usize = 64;

/// The types of questions (contract 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the table of contract 7 describes them")]
pub enum QuestionType {
    Nps,
    Rating,
    Csat,
    Ces,
    Thumbs,
    SingleChoice,
    MultipleChoice,
    PictureChoice,
    Ranking,
    Matrix,
    ShortText,
    LongText,
    Number,
    Date,
    Consent,
    ContactInfo,
    Statement,
    Link,
}

/// A question. What its type adds is kept as it came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Question {
    /// Its id within the flow.
    pub id: String,
    /// What kind of answer it takes.
    pub r#type: QuestionType,
    /// What it asks.
    pub title: String,
    /// What else it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it must be answered.
    #[serde(default)]
    pub required: bool,
    /// What limits answers, instead of at the question itself; and `message`, shown where one is refused.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "limits"
    )]
    #[schema(value_type = Option<Object>)]
    pub validation: Option<Map<String, Value>>,
    /// What its type adds.
    #[serde(flatten, serialize_with = "without_nulls")]
    pub extras: Map<String, Value>,
}

/// Writes what is there of what may be `null`: to an SDK, `null` is no limit, and no text.
fn without_nulls<S: Serializer>(
    members: &Map<String, Value>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(members.iter().filter(|(_, value)| !value.is_null()))
}

#[expect(clippy::ref_option, reason = "serde asks for this")]
fn limits<S: Serializer>(
    validation: &Option<Map<String, Value>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let Some(limits) = validation else {
        return serializer.serialize_none();
    };
    without_nulls(limits, serializer)
}

/// What a question's answers are made of, typed.
#[derive(Clone, Debug, PartialEq)]
pub enum Spec {
    /// A whole number within bounds: `nps`, `rating`, `csat`, `ces`.
    Scale {
        /// The least.
        least: i64,
        /// The most.
        most: i64,
    },
    /// Up or down.
    Thumbs,
    /// One option, or words of one's own.
    Single {
        /// The options' ids.
        options: Vec<String>,
        /// Whether words of one's own are taken.
        other: bool,
    },
    /// Several options.
    Several {
        /// The options' ids.
        options: Vec<String>,
        /// Whether words of one's own are taken.
        other: bool,
        /// How many at least.
        least: usize,
        /// How many at the most.
        most: usize,
    },
    /// All options in an order.
    Ranking(Vec<String>),
    /// A column for each row.
    Matrix {
        /// The rows' ids.
        rows: Vec<String>,
        /// The columns' ids.
        columns: Vec<String>,
    },
    /// Words.
    Text {
        /// How many characters at least.
        least: usize,
        /// How many characters at the most.
        most: usize,
        /// What they have to look like.
        format: Option<Format>,
    },
    /// A number.
    Number {
        /// The least.
        min: Option<f64>,
        /// The most.
        max: Option<f64>,
        /// What it is a multiple of, counted from the least or 0.
        step: Option<f64>,
    },
    /// A day.
    Date {
        /// The first.
        min: Option<String>,
        /// The last.
        max: Option<String>,
    },
    /// Agreement.
    Consent,
    /// Fields by their ids, and whether each must be filled in.
    Contact(Vec<(String, bool)>),
    /// Nothing: it is only read.
    Statement,
    /// A click.
    Link,
}

/// What a text has to look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Format {
    Email,
    Url,
    Phone,
}

/// The keys that `validation` takes: those of the type's that limit answers.
fn limiting_keys(kind: QuestionType) -> &'static [&'static str] {
    match kind {
        QuestionType::MultipleChoice => &["minSelections", "maxSelections"],
        QuestionType::ShortText | QuestionType::LongText => &["minLength", "maxLength", "format"],
        QuestionType::Number => &["min", "max", "step"],
        QuestionType::Date => &["min", "max"],
        _ => &[],
    }
}

impl Question {
    /// What its answers are made of. The errors' pointers are relative to the question.
    pub fn spec(&self) -> Result<Spec, Vec<FieldError>> {
        let mut errors = Vec::new();
        let extras = self.with_validation(&mut errors);
        let spec = self.typed(extras, &mut errors);
        match spec {
            Some(spec) if errors.is_empty() => Ok(spec),
            _ => Err(errors),
        }
    }

    /// What the type adds, with what stands under `validation`.
    fn with_validation(&self, errors: &mut Vec<FieldError>) -> Map<String, Value> {
        let mut extras = self.extras.clone();
        for (key, value) in self.validation.iter().flatten() {
            let pointer = format!("/validation/{}", escaped(key));
            if key == "message" {
                match value.as_str() {
                    Some(message) => check_text(&pointer, message, LABEL, errors),
                    None => errors.push(FieldError::new(pointer, "invalid", "a message is a text")),
                }
            } else if !limiting_keys(self.r#type).contains(&key.as_str()) {
                let detail = "nothing that limits answers of this type";
                errors.push(FieldError::new(pointer, "unknown_key", detail));
            } else if extras.insert(key.clone(), value.clone()).is_some() {
                let detail = "say it once: at the question or under `validation`";
                errors.push(FieldError::new(pointer, "duplicate", detail));
            }
        }
        extras
    }

    fn typed(&self, extras: Map<String, Value>, errors: &mut Vec<FieldError>) -> Option<Spec> {
        match self.r#type {
            QuestionType::Nps => {
                scale(extras, Some(&[10]), 10, errors).map(|_| Spec::Scale { least: 0, most: 10 })
            }
            QuestionType::Rating => rated(extras, &[3, 4, 5, 6, 7, 10], errors),
            QuestionType::Csat => rated(extras, &[5], errors),
            QuestionType::Ces => rated(extras, &[5, 7], errors),
            QuestionType::Thumbs => read::<Nothing>(extras, errors).map(|Nothing {}| Spec::Thumbs),
            QuestionType::SingleChoice => single(extras, errors),
            QuestionType::MultipleChoice => several(extras, errors),
            QuestionType::PictureChoice => pictures(extras, errors),
            QuestionType::Ranking => {
                let Ranking { options } = read(extras, errors)?;
                Some(Spec::Ranking(items("/options", options, errors)))
            }
            QuestionType::Matrix => {
                let Matrix { rows, columns } = read(extras, errors)?;
                Some(Spec::Matrix {
                    rows: items("/rows", rows, errors),
                    columns: items("/columns", columns, errors),
                })
            }
            QuestionType::ShortText => text(extras, 1_000, errors),
            QuestionType::LongText => text(extras, MOST_ANSWER, errors),
            QuestionType::Number => number(extras, errors),
            QuestionType::Date => date(extras, errors),
            QuestionType::Consent => {
                let Consent { label } = read(extras, errors)?;
                check_text("/label", &label, LABEL, errors);
                Some(Spec::Consent)
            }
            QuestionType::ContactInfo => contact(extras, errors),
            QuestionType::Statement => shown(extras, errors).map(|()| Spec::Statement),
            QuestionType::Link => shown(extras, errors).map(|()| Spec::Link),
        }
    }
}

/// Reads what a type adds; what has another shape is named by a pointer.
fn read<T: DeserializeOwned>(
    extras: Map<String, Value>,
    errors: &mut Vec<FieldError>,
) -> Option<T> {
    match nudge_platform::json::shape(Value::Object(extras), "") {
        Ok(parsed) => Some(parsed),
        Err(error) => {
            errors.push(error);
            None
        }
    }
}

fn scale(
    extras: Map<String, Value>,
    scales: Option<&[i64]>,
    default: i64,
    errors: &mut Vec<FieldError>,
) -> Option<i64> {
    let is_nps = default == 10;
    let Rated {
        scale,
        display,
        low_label,
        high_label,
    } = read(extras, errors)?;
    for (key, label) in [("lowLabel", &low_label), ("highLabel", &high_label)] {
        if let Some(label) = label {
            check_text(&format!("/{key}"), label, LABEL, errors);
        }
    }
    if is_nps {
        for (key, given) in [("scale", scale.is_some()), ("display", display.is_some())] {
            if given {
                let detail = format!("a question of the type nps has no `{key}`");
                errors.push(FieldError::new(format!("/{key}"), "unknown_key", detail));
            }
        }
    }
    let scale = scale.unwrap_or(default);
    if scales.is_some_and(|scales| !scales.contains(&scale)) && !is_nps {
        let scales: Vec<String> = scales.into_iter().flatten().map(i64::to_string).collect();
        let detail = format!("the scale is one of {}", scales.join(", "));
        errors.push(FieldError::new("/scale", "out_of_range", detail));
    }
    Some(scale)
}

fn rated(extras: Map<String, Value>, scales: &[i64], errors: &mut Vec<FieldError>) -> Option<Spec> {
    let most = scale(extras, Some(scales), 5, errors)?;
    Some(Spec::Scale { least: 1, most })
}

fn single(extras: Map<String, Value>, errors: &mut Vec<FieldError>) -> Option<Spec> {
    let parsed: Single = read(extras, errors)?;
    Some(Spec::Single {
        options: items("/options", parsed.options, errors),
        other: parsed.allow_other,
    })
}

fn several(extras: Map<String, Value>, errors: &mut Vec<FieldError>) -> Option<Spec> {
    let parsed: Several = read(extras, errors)?;
    let options = items("/options", parsed.options, errors);
    let available = options.len() + usize::from(parsed.allow_other);
    let most = parsed.max_selections.unwrap_or(available);
    if most == 0 || most > available {
        let detail = format!("maxSelections is 1 to {available}, what there is to select");
        errors.push(FieldError::new("/maxSelections", "out_of_range", detail));
    }
    let least = parsed.min_selections.unwrap_or(0);
    if least > most {
        let detail = "minSelections is at most maxSelections, and what there is to select";
        errors.push(FieldError::new("/minSelections", "out_of_range", detail));
    }
    Some(Spec::Several {
        options,
        other: parsed.allow_other,
        least,
        most,
    })
}

fn pictures(extras: Map<String, Value>, errors: &mut Vec<FieldError>) -> Option<Spec> {
    let parsed: Pictures = read(extras, errors)?;
    for (index, picture) in parsed.options.iter().enumerate() {
        if !is_web_address(&picture.image_url) {
            let pointer = format!("/options/{index}/imageUrl");
            let detail = "an http or https address of at most 2,048 characters";
            errors.push(FieldError::new(pointer, "invalid", detail));
        }
    }
    let options = parsed.options.into_iter().map(|picture| Item {
        id: picture.id,
        label: picture.label,
    });
    let options = items("/options", options.collect(), errors);
    let most = if parsed.multiple { options.len() } else { 1 };
    Some(Spec::Several {
        options,
        other: false,
        least: 1,
        most,
    })
}

fn text(extras: Map<String, Value>, longest: usize, errors: &mut Vec<FieldError>) -> Option<Spec> {
    let parsed: Text = read(extras, errors)?;
    if let Some(placeholder) = &parsed.placeholder {
        check_text("/placeholder", placeholder, LABEL, errors);
    }
    let most = parsed.max_length.unwrap_or(longest);
    if most == 0 || most > MOST_ANSWER {
        let detail = format!("maxLength is 1 to {MOST_ANSWER}");
        errors.push(FieldError::new("/maxLength", "out_of_range", detail));
    }
    let least = parsed.min_length.unwrap_or(0);
    if least > most {
        let detail = format!("minLength is at most maxLength, here {most}");
        errors.push(FieldError::new("/minLength", "out_of_range", detail));
    }
    Some(Spec::Text {
        least,
        most,
        format: parsed.format,
    })
}

fn number(extras: Map<String, Value>, errors: &mut Vec<FieldError>) -> Option<Spec> {
    let Number { min, max, step } = read(extras, errors)?;
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        errors.push(FieldError::new(
            "/min",
            "out_of_range",
            "min is at most max",
        ));
    }
    if step.is_some_and(|step| step <= 0.0) {
        errors.push(FieldError::new(
            "/step",
            "out_of_range",
            "step is more than 0",
        ));
    }
    Some(Spec::Number { min, max, step })
}

fn date(extras: Map<String, Value>, errors: &mut Vec<FieldError>) -> Option<Spec> {
    let Date { min, max } = read(extras, errors)?;
    for (key, day) in [("min", &min), ("max", &max)] {
        if day.as_deref().is_some_and(|day| !is_date(day)) {
            let detail = "a day, as in 2026-01-31";
            errors.push(FieldError::new(format!("/{key}"), "invalid", detail));
        }
    }
    // Days written alike sort as they follow each other.
    if min.is_some() && max.is_some() && min > max {
        errors.push(FieldError::new(
            "/min",
            "out_of_range",
            "min is at most max",
        ));
    }
    Some(Spec::Date { min, max })
}

fn contact(extras: Map<String, Value>, errors: &mut Vec<FieldError>) -> Option<Spec> {
    let Contact { fields } = read(extras, errors)?;
    let required: Vec<bool> = fields.iter().map(|field| field.required).collect();
    let fields = fields.into_iter().map(|field| Item {
        id: field.id,
        label: field.label,
    });
    let ids = items("/fields", fields.collect(), errors);
    Some(Spec::Contact(ids.into_iter().zip(required).collect()))
}

fn shown(extras: Map<String, Value>, errors: &mut Vec<FieldError>) -> Option<()> {
    let parsed: Shown = read(extras, errors)?;
    if let Some(body) = &parsed.body {
        check_text("/body", body, TEXT, errors);
    }
    if let Some(label) = &parsed.button_label {
        check_text("/buttonLabel", label, LABEL, errors);
    }
    if parsed.url.as_deref().is_some_and(|url| !is_link(url)) {
        let detail = "an address with a scheme, of at most 2,048 characters";
        errors.push(FieldError::new("/url", "invalid", detail));
    }
    Some(())
}

/// The ids of options, rows, columns or fields: some, each once.
fn items(pointer: &str, items: Vec<Item>, errors: &mut Vec<FieldError>) -> Vec<String> {
    if items.is_empty() || items.len() > MOST_ITEMS {
        let detail = format!("1 to {MOST_ITEMS} of them");
        errors.push(FieldError::new(pointer, "out_of_range", detail));
    }
    let mut seen = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let at = format!("{pointer}/{index}");
        check_id(&format!("{at}/id"), &item.id, errors);
        if !seen.insert(item.id.as_str()) {
            let detail = "another one has this id";
            errors.push(FieldError::new(format!("{at}/id"), "duplicate", detail));
        }
        check_text(&format!("{at}/label"), &item.label, LABEL, errors);
    }
    items.into_iter().map(|item| item.id).collect()
}

/// An id is short and fits into a path of ids (localization).
pub(super) fn check_id(pointer: &str, id: &str, errors: &mut Vec<FieldError>) {
    let length = id.chars().count();
    let unfit = |character: char| character == '/' || character.is_control();
    if !(1..=MOST_ID).contains(&length) || id.chars().any(unfit) {
        let detail = format!("an id has 1 to {MOST_ID} characters, no slash among them");
        errors.push(FieldError::new(pointer, "invalid", detail));
    }
}

/// A text has at least one character and at most `most`.
pub(super) fn check_text(pointer: &str, text: &str, most: usize, errors: &mut Vec<FieldError>) {
    if text.is_empty() || text.chars().count() > most {
        let detail = format!("a text of 1 to {most} characters");
        errors.push(FieldError::new(pointer, "invalid", detail));
    }
}

/// Whether a text is an address of the web.
pub(super) fn is_web_address(text: &str) -> bool {
    links::Kind::Web.has(text)
}

/// Whether a text is an address that an app may be asked to open.
pub(super) fn is_link(text: &str) -> bool {
    links::Kind::Any.has(text)
}

/// Whether a text is a day of the calendar, `2026-01-31`.
pub(super) fn is_date(text: &str) -> bool {
    // chrono takes signs, spaces and single digits too.
    let form = |(place, byte): (usize, u8)| match place {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 10
        && text.bytes().enumerate().all(form)
        && chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}
