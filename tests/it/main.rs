//! The integration tests: one file a subject, each test on both databases where it touches one.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails where it stands"
)]
#![expect(
    clippy::needless_pass_by_value,
    clippy::too_many_lines,
    reason = "tables of cases, and literals of JSON"
)]

mod access;
mod backtest;
mod bad_http;
mod bad_json;
mod bodies;
mod broken_plugins;
mod client_sessions;
mod command_line;
mod concurrency;
mod consent;
mod dead_letters;
mod decisions;
mod definitions;
mod delays;
mod documents;
mod flows;
mod guests;
mod identified;
mod ingest_events;
mod ingest_requests;
mod instructions;
mod kills;
mod migrations;
mod outages;
mod plugin_failures;
mod plugin_state;
mod plugin_swaps;
mod plugin_tests;
mod plugins;
mod rollouts;
mod server_events;
mod server_plugins;
mod sessions;
mod surveys;
mod triggers;
mod two_servers;
