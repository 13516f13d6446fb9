//! What customers write: surveys, push campaigns, in-app messages, event definitions, settings, targeting, the calendar.
//!
//! Types, checks and their tables. It knows neither people nor events, and it decides nothing about them.
//!
//! # Invariants
//!
//! - **The server knows the way through a survey** (`surveys/flow/way.rs`, pure). The next question follows from the flow of the attempt's version,
//!   the answers, and the question answered last.
//! - **No second copy of the plugins' rules.** The host routes and the plugins decide; [`targeting`] is about caps, schedules and samples,
//!   which no plugin can grant past.
//! - **No message leads to a program** ([`links`]). Addresses in surveys and messages keep one rule when they are saved, and addresses in messages again when
//!   their tokens are filled in.
//! - **Lists are streamed** ([`listing`]). A page reads stored text row by row and parses none of it.
//! - **A kind of campaign is a value in a row and a type** ([`lifecycle::Content`]): surveys, push campaigns and in-app messages share one table, one store ([`store`]) and
//!   one life cycle. Those that have variants share their rules and who gets which ([`variants`]).
//! - **A change that a snapshot shows bumps `apps.version`** in its own transaction ([`apps`]).

pub mod apps;
pub mod campaign;
pub mod definitions;
mod event_names;
pub mod in_app;
pub mod lifecycle;
pub mod links;
pub mod listing;
pub mod push;
pub mod runs;
pub mod segments;
pub mod settings;
pub mod store;
pub mod surveys;
pub mod targeting;
pub mod theme;
pub mod trigger;
pub mod variants;
pub mod webhooks;
