//! Nudge: an engagement server whose decisions are WebAssembly plugins.
//!
//! This package is composition: [`server`] puts the packages' parts together, [`router`] lists every route, [`jobs`] every kind of job, [`cli`] the
//! commands, [`backup`] what is kept of a database. `ARCHITECTURE.md` has the packages and one event traced through them.
//!
//! # Invariants
//!
//! - **Parts are put together here and nowhere else.** No handler and no store below knows [`services::Services`].
//! - **A server that stops finishes the work in hand**: it takes no new request, answers those that it has, and ends its tasks after the last one.
//! - **One process uses a data directory, and an embedded database** ([`data_dir`]), by locks. The directory and its files are their owner's alone.
//! - **A job is registered once** ([`jobs`]); a job of a kind that nobody registered fails, and its note says which.
//! - **What is too old is removed in bounded steps** ([`retention`]).

mod data_dir;
pub mod dead_letters;
pub mod jobs;
mod listening;
mod opening;
pub mod stats;

mod assets;
pub mod backup;
pub mod book;
pub mod cli;
pub mod console;
pub mod memory;

pub mod openapi;
pub mod operations;

pub mod private;

pub mod retention;
pub mod router;

pub mod server;
pub mod services;
pub mod shop;
pub mod web_sdk;
