//! The trigger as a plugin of Extism: three conditions on the properties of each event of a batch.

#![expect(missing_docs, reason = "`plugin_fn` leaves a function's comment out")]

use extism_pdk::{FnResult, plugin_fn};
use serde::Deserialize;

#[derive(Deserialize)]
struct Properties<'a> {
    amount: Option<f64>,
    plan: Option<&'a str>,
    country: Option<&'a str>,
}

/// Takes the JSON text of a list of properties, and gives the places of those that fire: four bytes each, the lowest first.
#[plugin_fn]
pub fn evaluate(batch: String) -> FnResult<Vec<u8>> {
    let events: Vec<Properties<'_>> = serde_json::from_str(&batch)?;
    let mut fired = Vec::with_capacity(events.len() * 4);
    for (place, properties) in (0_u32..).zip(&events) {
        if properties.amount.is_some_and(|amount| amount >= 10.0)
            && properties.plan == Some("pro")
            && properties
                .country
                .is_some_and(|country| ["DE", "FR"].contains(&country))
        {
            fired.extend(place.to_le_bytes());
        }
    }
    Ok(fired)
}
