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
mod api_fuzz;
mod apps;
mod attempts;
mod audience;
mod audit_log;
mod backtest;
mod bad_http;
mod bad_json;
mod beacons;
mod bodies;
mod broken_plugins;
mod bulk_replays;
mod campaigns;
mod caps;
mod client_sessions;
mod command_line;
mod concurrency;
mod consent;
mod cross_origin;
mod dead_letters;
mod decisions;
mod definitions;
mod delays;
mod deletion;
mod deletion_kills;
mod deliveries;
mod documents;
mod explain;
mod exports;
mod few_connections;
mod flows;
mod guests;
mod hostile_plugins;
mod identified;
mod identity;
mod identity_keys;
mod ingest_events;
mod ingest_requests;
mod instructions;
mod keys;
mod kills;
mod left_over;
mod lifecycle;
mod localization;
mod lost_races;
mod matrix;
mod mended_events;
mod merging;
mod migrations;
mod oidc;
mod outages;
mod overload;
mod person;
mod personalization;
mod plans;
mod plugin_budget;
mod plugin_candidates;
mod plugin_command;
mod plugin_command_remote;
mod plugin_deploy;
mod plugin_failures;
mod plugin_logs;
mod plugin_shadows;
mod plugin_state;
mod plugin_swaps;
mod plugin_tests;
mod plugins;
mod polls;
mod properties;
mod property_triggers;
mod push_credentials;
mod push_flow;
mod push_providers;
mod push_tokens;
mod rate_limits;
mod receiver;
mod retention;
mod rollouts;
mod rotation;
mod run_kills;
mod runs;
mod safeguards;
mod schedules;
mod server_events;
mod server_plugins;
mod sessions;
mod settings;
mod stats;
mod survey_results;
mod surveys;
mod transactional;
mod triggers;
mod two_servers;
mod users;
mod webhook_addresses;
mod webhook_delivery;
mod webhook_health;
mod webhook_signatures;
mod webhooks;
