//! The events that triggers decide about.

/// JSON texts of events' properties, and which of them fire.
pub(super) struct Events {
    pub(super) texts: Vec<String>,
    /// Places in the list.
    pub(super) fire: Vec<u32>,
}

impl Events {
    /// Events of 8 properties that all fire: the worst case. They are those of `cargo bench -p nudge-wasm`.
    pub(super) fn firing(count: u32) -> Self {
        let text = |number: u32| properties(number, 10 + number % 90, r#""pro""#, r#""DE""#);
        Self {
            texts: (0..count).map(text).collect(),
            fire: (0..count).collect(),
        }
    }

    /// Events of which some fire, to see that all variants decide the same.
    pub(super) fn mixed() -> Self {
        Self {
            texts: vec![
                properties(0, 10, r#""pro""#, r#""FR""#),
                properties(1, 9, r#""pro""#, r#""FR""#),
                properties(2, 20, r#""free""#, r#""DE""#),
                properties(3, 20, "null", r#""DE""#),
                properties(4, 20, r#""pro""#, r#""AT""#),
                "{}".to_owned(),
                properties(6, 99, r#""pro""#, r#""DE""#),
            ],
            fire: vec![0, 6],
        }
    }
}

fn properties(number: u32, amount: u32, plan: &str, country: &str) -> String {
    format!(
        r#"{{"order_id":"ord_{number:08}","amount":{amount}.5,"currency":"EUR","plan":{plan},"country":{country},"items":{},"coupon":null,"source":"newsletter-2026-01-autumn-sale-second-mailing"}}"#,
        number % 7
    )
}

/// The texts as one list, for runtimes that take one text a call.
pub(super) fn joined(texts: &[String]) -> String {
    let length = texts.iter().map(|text| text.len() + 1).sum::<usize>();
    let mut list = String::with_capacity(length + 1);
    for (place, text) in texts.iter().enumerate() {
        list.push(if place == 0 { '[' } else { ',' });
        list.push_str(text);
    }
    list.push(']');
    list
}
