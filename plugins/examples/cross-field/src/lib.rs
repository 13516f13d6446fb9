//! Checks rules that concern several properties of an event: a discount is at most the total, an end is not
//! before its start, a coupon comes with its percentage.

use nudge_guest::validation::{Event, Validator, Violation};
use nudge_guest::{Cell, Problem, Reads, Refusal};

/// The plugin.
#[derive(Debug)]
pub struct CrossField;

/// What a definition says.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    rules: Vec<Rule>,
}

/// What two properties have to do with each other. A rule holds where one of them is missing, unless it is
/// about just that.
#[derive(Debug, serde::Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case", deny_unknown_fields)]
enum Rule {
    /// One number is at most another.
    AtMost { property: String, other: String },
    /// One date is not before another.
    NotBefore { property: String, other: String },
    /// Where one property is, another is too.
    RequiredWith { property: String, other: String },
}

/// More rules than anybody writes.
const RULES: usize = 50;

impl Rule {
    fn properties(&self) -> [&str; 2] {
        let (Self::AtMost { property, other }
        | Self::NotBefore { property, other }
        | Self::RequiredWith { property, other }) = self;
        [property, other]
    }

    /// What breaks the rule: the code, and what is asked for.
    fn broken(&self, cell: Cell<'_>, other: Cell<'_>) -> Option<(&'static str, String)> {
        match self {
            Self::AtMost { other: name, .. } => {
                let (less, more) = (cell.number()?, other.number()?);
                (less > more).then(|| ("out_of_range", format!("at most {name}, {more}")))
            }
            Self::NotBefore { other: name, .. } => {
                let (end, start) = (cell.date()?, other.date()?);
                (end < start).then(|| ("out_of_range", format!("not before {name}, {start}")))
            }
            Self::RequiredWith { other: name, .. } => (!cell.present() && other.present())
                .then(|| ("missing_required_property", format!("a value, with {name}"))),
        }
    }
}

impl Validator for CrossField {
    type Config = Config;

    fn check(config: &Config) -> Result<Reads, Vec<Problem>> {
        let mut problems = Vec::new();
        if !(1..=RULES).contains(&config.rules.len()) {
            let message = format!("must be 1 to {RULES} rules");
            problems.push(Problem::new("out_of_range", "/rules", message));
        }
        for (index, rule) in config.rules.iter().enumerate() {
            for (key, path) in ["property", "other"].into_iter().zip(rule.properties()) {
                if path.is_empty() {
                    let pointer = format!("/rules/{index}/{key}");
                    let message = "must be a property, such as cart.total";
                    problems.push(Problem::new("required", pointer, message));
                }
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Reads::new().properties(config.rules.iter().flat_map(Rule::properties)))
    }

    fn validate(
        config: &Config,
        event: &Event<'_>,
        found: &mut Vec<Violation>,
    ) -> Result<(), Refusal> {
        for rule in &config.rules {
            let [property, other] = rule.properties();
            let cell = event.property(property);
            if let Some((code, expected)) = rule.broken(cell, event.property(other)) {
                found.push(Violation {
                    code: code.to_owned(),
                    property: property.to_owned(),
                    expected,
                    actual: shown(cell),
                });
            }
        }
        Ok(())
    }
}

/// What a property has, for a person.
fn shown(cell: Cell<'_>) -> String {
    match (cell.text(), cell.number()) {
        (Some(text), _) => text.to_owned(),
        (_, Some(number)) => number.to_string(),
        _ => cell.type_name().to_owned(),
    }
}

nudge_guest::export!(CrossField: validation);

#[cfg(test)]
mod tests {
    use super::*;
    use nudge_guest::{serde_json::json, testing::ValidationTest};

    #[test]
    fn rules_hold_where_there_is_nothing_to_compare() {
        let rules = json!({"rules": [
            {"rule": "at_most", "property": "discount", "other": "total"},
            {"rule": "not_before", "property": "end", "other": "start"},
        ]});
        let definition = ValidationTest::<CrossField>::new(&rules).unwrap();
        assert!(definition.violations(&json!({})).is_empty());
        assert!(
            definition
                .violations(&json!({"discount": 5, "total": "4"}))
                .is_empty()
        );
        assert!(
            definition
                .violations(&json!({"end": "soon", "start": "2026-01-01"}))
                .is_empty()
        );
    }
}
