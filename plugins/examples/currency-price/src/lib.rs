//! Shows prices in the recipient's currency: converted with the rates of the configuration, and written as
//! that currency is written.

mod currency;

use std::collections::BTreeMap;

use nudge_guest::personalization::{Personalizer, Recipient, Resolution};
use nudge_guest::{Cell, Problem, Reads, Refusal, Value};

use currency::Currency;

/// The plugin.
#[derive(Debug)]
pub struct CurrencyPrice;

/// A variant's `personalization`, as far as this plugin reads it.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// The currency that amounts are in.
    base: String,
    /// How much of another currency one unit of the base currency is.
    #[serde(default)]
    rates: BTreeMap<String, f64>,
    bindings: Vec<Binding>,
}

/// A price in the message.
#[derive(Debug, serde::Deserialize)]
struct Binding {
    id: String,
    /// The amount: a value of the request, or else a property of the event that caused the message.
    key: String,
    /// A price is a text, as its currency is written, and a fallback another.
    #[serde(rename = "type", default = "string")]
    kind: String,
    fallback: Option<String>,
}

fn string() -> String {
    "string".to_owned()
}

impl Personalizer for CurrencyPrice {
    type Config = Config;

    fn check(config: &Config) -> Result<Reads, Vec<Problem>> {
        let mut problems = Vec::new();
        if Currency::of_code(&config.base).is_none() {
            let message = format!("must be one of {}", Currency::codes());
            problems.push(Problem::new("unknown_currency", "/base", message));
        }
        for (code, rate) in &config.rates {
            let pointer = format!("/rates/{code}");
            if Currency::of_code(code).is_none() {
                let message = format!("must be one of {}", Currency::codes());
                problems.push(Problem::new("unknown_currency", pointer, message));
            } else if !rate.is_finite() || *rate <= 0.0 {
                problems.push(Problem::new("out_of_range", pointer, "must be more than 0"));
            }
        }
        for (index, binding) in config.bindings.iter().enumerate() {
            if binding.kind != "string" {
                let message = "must be string: a price is the text of it";
                problems.push(Problem::new(
                    "unknown_type",
                    format!("/bindings/{index}/type"),
                    message,
                ));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Reads::new()
            .properties(config.bindings.iter().map(|binding| &binding.key))
            .subject_properties(["currency"]))
    }

    fn data_keys(config: &Config) -> Vec<String> {
        let keys = config.bindings.iter().map(|binding| binding.key.clone());
        keys.collect()
    }

    fn resolve(
        config: &Config,
        recipient: &Recipient<'_>,
        resolutions: &mut Vec<Resolution>,
    ) -> Result<(), Refusal> {
        let (currency, rate) = currency_of(config, recipient)?;
        for binding in &config.bindings {
            let Binding {
                id, key, fallback, ..
            } = binding;
            let found =
                present(recipient.data(key)).unwrap_or_else(|| recipient.trigger_property(key));
            let resolution = match (found.number(), fallback) {
                (Some(amount), _) => {
                    let text = currency.write(amount * rate);
                    Resolution {
                        value: Some(Value::Text(text.clone())),
                        text,
                        ..Resolution::default()
                    }
                }
                (None, fallback) => Resolution {
                    value: fallback.clone().map(Value::Text),
                    text: fallback.clone().unwrap_or_default(),
                    used_fallback: fallback.is_some(),
                    issue: if found.present() {
                        "type_mismatch"
                    } else {
                        "missing"
                    }
                    .to_owned(),
                    detail: format!("`{key}` is {}", found.type_name()),
                    ..Resolution::default()
                },
            };
            resolutions.push(Resolution {
                binding: id.clone(),
                ..resolution
            });
        }
        Ok(())
    }
}

/// The currency that the recipient saved, or else that of the recipient's country, where there is a rate
/// for it; the base currency otherwise.
fn currency_of(
    config: &Config,
    recipient: &Recipient<'_>,
) -> Result<(&'static Currency, f64), Refusal> {
    let saved = recipient.property("currency").text();
    let country = recipient.fact("country");
    let wanted = saved
        .and_then(Currency::of_code)
        .or_else(|| Currency::of_country(country.as_ref()?.text()?));
    if let Some(currency) = wanted {
        if currency.code == config.base {
            return Ok((currency, 1.0));
        }
        if let Some(rate) = config.rates.get(currency.code) {
            return Ok((currency, *rate));
        }
    }
    let base = Currency::of_code(&config.base);
    base.map(|base| (base, 1.0))
        .ok_or_else(|| Refusal::new("unknown_currency", "the base currency is not known"))
}

fn present(cell: Cell<'_>) -> Option<Cell<'_>> {
    cell.present().then_some(cell)
}

nudge_guest::export!(CurrencyPrice: personalization);

#[cfg(test)]
mod tests {
    use super::*;
    use nudge_guest::{serde_json::json, testing::PersonalizationTest};

    #[test]
    fn without_a_rate_prices_stay_in_the_base_currency() {
        let config = json!({"base": "EUR", "bindings": [{"id": "price", "key": "total"}]});
        let mut message = PersonalizationTest::<CurrencyPrice>::new(&config).unwrap();
        message.set_property("currency", json!("USD"));
        message.set_data(json!({"total": 1234.5}));
        assert_eq!(message.resolve()["price"].text, "1.234,50\u{a0}€");
    }
}
