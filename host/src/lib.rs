//! Nudge: an engagement server whose decisions are WebAssembly plugins.
//!
//! The architecture, with one event traced through these modules, is in `ARCHITECTURE.md`. In short:
//! [`router`] leads to a feature's `http`, which calls the feature's domain and `store`; committed
//! events go on to the [`pipeline`].

pub mod analytics;
pub mod apps;
pub mod attempts;
pub mod audit;
pub mod campaigns;
pub mod cli;
pub mod clock;
pub mod config;
pub mod dead_letters;
pub mod decisions;
pub mod definitions;
pub mod explain;
pub mod http;
pub mod id;
pub mod identity_keys;
pub mod ingest;
pub mod instructions;
pub mod issuer;
pub mod jobs;
pub mod keys;
pub mod links;
pub mod listener;
pub mod oidc;
pub mod openapi;
pub mod operations;
pub mod outbound;
pub mod pipeline;
pub mod plugins;
pub mod privacy;
pub mod private;
pub mod properties;
pub mod public_key;
pub mod push;
pub mod rate_limits;
pub mod retention;
pub mod router;
pub mod runs;
pub mod sealed;
pub mod secrets;
pub mod server;
pub mod services;
pub mod stats;
pub mod subjects;
pub mod surveys;
pub mod tables;
pub mod targeting;
pub mod telemetry;
pub mod traces;
pub mod users;
pub mod webhooks;
