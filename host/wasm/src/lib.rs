//! Runs Nudge plugins: engine, limits, linker, calls. Knows no HTTP and no SQL.
//!
//! An [`Engine`] lives as long as the process. [`Engine::load`] makes a [`Plugin`] of a component: one
//! version, its imports checked, ready to be instantiated. Each call of a plugin gets an instance of its
//! own, which ends with it, so that nothing that a plugin does outlives the call.
//!
//! | module | holds |
//! |---|---|
//! | [`limits`] | every limit, and why it has its value |
//! | `engine`, `configuration`, `ticker` | what all plugins share |
//! | `load`, `compile`, `isolation`, `cache`, `prune`, `trusted`, `imports` | from bytes to a [`Plugin`] |
//! | `plugin`, `call`, `ahead`, `store`, `meter`, `log`, `failure` | one call |
//! | `self_test` | a decision about made-up batches |
//! | `bindings`, `worlds`, `host` | the contract in `wit/`; one file an imported interface |
//! | [`trigger`], [`validation`], [`personalization`] | what goes into a call and comes out |
//! | `projection`, `cells`, `shared` | event properties as tables |
//! | `text` | plugins' texts for people |
//!
//! All calls block; run them on threads of their own.
//!
//! # Invariants
//!
//! - **Nothing that a plugin does outlives its call.** Instances, their memory and their random numbers are made anew.
//! - **Every call is within limits** ([`limits`]) of time, memory, output, log and host calls.
//! - **The compiler of uploads is a child without environment, files or network** (`isolation`). The code that it writes is authenticated before it is loaded.
//! - **A version of the contract is served for ever** (`imports`).

mod ahead;
mod bindings;
mod cache;
mod call;
mod cells;
mod compile;
mod configuration;
mod engine;
mod failure;
mod fields;
mod host;
mod imports;
mod isolation;
mod kind;
pub mod limits;
mod load;
mod log;
mod meter;
pub mod personalization;
mod plugin;
mod processor;
mod projection;
mod prune;
mod self_test;
mod session;
mod shared;
mod store;
mod text;
mod ticker;
pub mod trigger;
mod trusted;
pub mod validation;
mod value;
mod worlds;

pub use ahead::between_calls;
pub use cache::digest;
pub use call::Call;
pub use compile::{CompileError, Compiler, ISOLATION, compile_child};
pub use engine::{Engine, EngineConfig, Error};
pub use failure::{Failed, Failure};
pub use isolation::{Isolation, isolate};
pub use kind::{Kind, UnknownKind};
pub use limits::{Limits, Lowered};
pub use load::LoadError;
pub use log::{Level, LogLine};
pub use plugin::{Description, Plugin, Problem, Reads};
pub use self_test::TriedDecision;
#[doc(hidden)]
pub use session::Session;
pub use value::{FactsUnavailable, PastEvent, Value};
