//! The tokens in the texts of a variant, and whether each has a binding.

use nudge_platform::field_error::FieldError;
use serde_json::Value;

use super::personalization::Spec;
use super::template::{Json, Text};

/// Tokens that were found, each with the pointer of its text.
#[derive(Debug, Default)]
pub struct Tokens(Vec<(String, String)>);

impl Tokens {
    /// Reads a text of at most so many characters.
    pub fn text(&mut self, text: &str, most: usize, place: String, errors: &mut Vec<FieldError>) {
        if text.chars().count() > most {
            let detail = format!("must have at most {most} characters");
            errors.push(FieldError::new(place, "out_of_range", detail));
            return;
        }
        match Text::parse(text) {
            Ok(text) => {
                let found = text.tokens().map(|id| (id.to_owned(), place.clone()));
                self.0.extend(found);
            }
            Err(error) => {
                errors.push(FieldError::new(place, "unknown_token", error.to_string()));
            }
        }
    }

    /// Reads a JSON value.
    pub fn json(&mut self, json: &Value, place: String, errors: &mut Vec<FieldError>) {
        match Json::parse(json) {
            Ok(json) => json.tokens(&place, &mut |id, place| {
                self.0.push((id.to_owned(), place.to_owned()));
            }),
            Err(below) => {
                let detail = "`{{` begins a token `{{p.<binding id>}}`, which can stand in a value";
                errors.push(FieldError::new(place + &below, "unknown_token", detail));
            }
        }
    }

    /// What tokens have no binding.
    pub fn check(self, spec: &Spec, errors: &mut Vec<FieldError>) {
        for (id, place) in self.0 {
            if spec.binding(&id).is_none() {
                let detail = format!("the variant's personalization has no binding `{id}`");
                errors.push(FieldError::new(place, "unknown_binding", detail));
            }
        }
    }
}
