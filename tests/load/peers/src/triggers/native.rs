//! The three conditions in Rust, on the same text.

use std::hint::black_box;

use serde::Deserialize;

use super::events::Events;
use super::{Round, timed};

#[derive(Deserialize)]
struct Properties<'a> {
    amount: Option<f64>,
    plan: Option<&'a str>,
    country: Option<&'a str>,
}

pub(super) fn round(events: &Events) -> Round<'_> {
    Box::new(|calls| timed(events, calls, |texts| evaluate(black_box(texts))))
}

fn evaluate(texts: &[String]) -> anyhow::Result<Vec<u32>> {
    let mut fired = Vec::with_capacity(texts.len());
    for (place, text) in (0..).zip(texts) {
        let properties: Properties<'_> = serde_json::from_str(text)?;
        if properties.amount.is_some_and(|amount| amount >= 10.0)
            && properties.plan == Some("pro")
            && properties
                .country
                .is_some_and(|country| ["DE", "FR"].contains(&country))
        {
            fired.push(place);
        }
    }
    Ok(fired)
}
