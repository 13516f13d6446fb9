//! What each type adds to a question, as it is written (contract 7's table). What a type does not know is refused.

use serde::Deserialize;

use super::Format;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Rated {
    pub(super) scale: Option<i64>,
    pub(super) display: Option<Display>,
    pub(super) low_label: Option<String>,
    pub(super) high_label: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Display {
    Number,
    Star,
    Emoji,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Single {
    pub(super) options: Vec<Item>,
    #[serde(default)]
    pub(super) allow_other: bool,
    #[serde(default, rename = "shuffle")]
    _shuffle: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Several {
    pub(super) options: Vec<Item>,
    #[serde(default)]
    pub(super) allow_other: bool,
    #[serde(default, rename = "shuffle")]
    _shuffle: bool,
    pub(super) min_selections: Option<usize>,
    pub(super) max_selections: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pictures {
    pub(super) options: Vec<Picture>,
    #[serde(default)]
    pub(super) multiple: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ranking {
    pub(super) options: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Matrix {
    pub(super) rows: Vec<Item>,
    pub(super) columns: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Text {
    pub(super) placeholder: Option<String>,
    pub(super) min_length: Option<usize>,
    pub(super) max_length: Option<usize>,
    pub(super) format: Option<Format>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Number {
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) step: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Date {
    pub(super) min: Option<String>,
    pub(super) max: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Consent {
    pub(super) label: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Contact {
    pub(super) fields: Vec<Field>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Shown {
    pub(super) body: Option<String>,
    pub(super) button_label: Option<String>,
    pub(super) url: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) label: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Picture {
    pub(super) id: String,
    pub(super) label: String,
    pub(super) image_url: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Field {
    pub(super) id: String,
    pub(super) label: String,
    #[serde(default)]
    pub(super) required: bool,
}
