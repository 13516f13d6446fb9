//! What hostile bytes meet first, each as a function that takes any bytes and must return: no panic, no
//! endless loop, no memory without bound. Some also check a law that must hold whatever the bytes are.
//!
//! `cargo test -p fuzz` replays `corpus/` and mutates it; `.ci/fuzz` drives the same functions by coverage
//! (`fuzz_targets/`).
#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a target fails by panicking"
)]

mod credentials;
mod outputs;
mod plugins;
mod requests;
mod urls;

pub use credentials::{claims, cursors, identities, keys, tokens};
pub use outputs::outputs;
pub use plugins::{audiences, components, definitions, triggers};
pub use requests::{answers, bodies, flows, ingest, patches};
pub use urls::urls;

/// A target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its folder in `corpus/`.
    pub name: &'static str,
    /// Takes any bytes.
    pub run: fn(&[u8]),
    /// How many mutations a short run makes: fewer where one costs more.
    pub mutations: u32,
}

const fn target(name: &'static str, run: fn(&[u8]), mutations: u32) -> Target {
    Target {
        name,
        run,
        mutations,
    }
}

/// All targets.
pub const TARGETS: [Target; 16] = [
    target("bodies", bodies, 2000),
    target("ingest", ingest, 2000),
    target("triggers", triggers, 2000),
    target("audiences", audiences, 2000),
    target("definitions", definitions, 2000),
    target("flows", flows, 2000),
    target("answers", answers, 2000),
    target("tokens", tokens, 2000),
    target("cursors", cursors, 2000),
    target("identities", identities, 2000),
    target("urls", urls, 2000),
    target("patches", patches, 2000),
    target("keys", keys, 1000),
    target("claims", claims, 2000),
    target("components", components, 100),
    target("outputs", outputs, 100),
];

/// Seeds that are too large for the corpus, or compiled.
pub fn seeds(name: &str) -> Vec<Vec<u8>> {
    match name {
        "components" => vec![test_guests::VERSIONED.to_vec()],
        _ => Vec::new(),
    }
}

/// The two parts of an input that needs two: before and after its first blank line.
fn halves(input: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(input).ok()?;
    Some(text.split_once("\n\n").unwrap_or((text, "{}")))
}
