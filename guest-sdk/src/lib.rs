//! What authors of Nudge plugins depend on, and how to write one.
//!
//! A plugin decides one of three things, and is of one of three kinds:
//!
//! | kind | trait | decides |
//! |---|---|---|
//! | trigger | [`Trigger`](trigger::Trigger) | which events fire a campaign |
//! | validation | [`Validator`](validation::Validator) | whether an event matches its definition |
//! | personalization | [`Personalizer`](personalization::Personalizer) | what the bindings of a message stand for |
//!
//! It is a WebAssembly component, and runs in a sandbox: it sees its configuration, the events and what the
//! server answers about them. It has no clock, files or network, so that every decision can be run again.
//!
//! # From nothing to an active plugin
//!
//! The program `nudge` brings this crate, the contract and everything else that a project needs:
//!
//! ```text
//! nudge plugin new cart-abandonment --kind trigger
//! cd cart-abandonment
//! nudge plugin test
//! ```
//!
//! `test` builds the component, adds the target wasm32-wasip2 where it is missing, and runs the cases in
//! `cases/` on the component, under the limits of a server. Then change `src/lib.rs`: this is a whole plugin.
//! It fires when there is no purchase within 30 minutes of a change of the cart.
//!
//! ```
//! use std::time::Duration;
//!
//! use nudge_guest::trigger::{Decision, Event, Subject, Timer, Trigger};
//! use nudge_guest::{Problem, Reads, Refusal};
//!
//! struct CartAbandonment;
//!
//! #[derive(serde::Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Config {
//!     minutes: u64,
//! }
//!
//! impl Trigger for CartAbandonment {
//!     type Config = Config;
//!
//!     fn check(config: &Config) -> Result<Reads, Vec<Problem>> {
//!         if !(1..=1440).contains(&config.minutes) {
//!             return Err(vec![Problem::new("out_of_range", "/minutes", "must be from 1 to 1440")]);
//!         }
//!         Ok(Reads::new().events(["cart_updated", "purchased"]).properties(["items"]))
//!     }
//!
//!     fn on_event(config: &Config, event: &Event<'_>, subject: &Subject<'_>) -> Result<Decision, Refusal> {
//!         if event.name() == "purchased" || event.number("items") == Some(0.0) {
//!             subject.cancel_timer("abandoned");
//!         } else {
//!             subject.set_timer("abandoned", Duration::from_mins(config.minutes), &[]);
//!         }
//!         Ok(Decision::Pass)
//!     }
//!
//!     fn on_timer(_: &Config, _: &Timer<'_>, _: &Subject<'_>) -> Result<Decision, Refusal> {
//!         Ok(Decision::Fire)
//!     }
//! }
//!
//! nudge_guest::export!(CartAbandonment: trigger);
//!
//! // A unit test: the plugin runs natively, against a host in memory whose clock the test moves.
//! use nudge_guest::serde_json::json;
//! use nudge_guest::testing::TriggerTest;
//!
//! let mut campaign = TriggerTest::<CartAbandonment>::new(&json!({"minutes": 30})).unwrap();
//! campaign.send("ana", "cart_updated", json!({"items": 2}));
//! campaign.send("ben", "cart_updated", json!({"items": 1}));
//! campaign.advance(Duration::from_mins(20));
//! campaign.send("ben", "purchased", json!({}));
//!
//! let fired = campaign.advance(Duration::from_mins(20));
//! assert_eq!(fired.len(), 1);
//! assert_eq!(fired[0].subject, "ana");
//!
//! // What is wrong with a configuration is named by its place.
//! let problems = TriggerTest::<CartAbandonment>::new(&json!({"minutes": "30"})).err().unwrap();
//! assert_eq!(problems[0].pointer, "/minutes");
//! ```
//!
//! `cargo test` runs that; a case says the same of the component:
//!
//! ```json
//! {
//!   "name": "a cart that is left alone fires, one that is bought does not",
//!   "input": {
//!     "config": {"minutes": 30},
//!     "events": [
//!       {"name": "cart_updated", "subject": "ana", "properties": {"items": 2}},
//!       {"name": "cart_updated", "subject": "ben", "properties": {"items": 1}},
//!       {"name": "purchased", "subject": "ben", "at": "+20m"}
//!     ]
//!   },
//!   "expect": {"fired": [{"timer": "abandoned", "subject": "ana", "at": "+30m"}]}
//! }
//! ```
//!
//! To a server, once it is said which one (a URL, an app, an admin's token; `nudge dev --show-keys` prints all three):
//!
//! ```text
//! export NUDGE_PLUGIN__URL=http://127.0.0.1:8480 NUDGE_PLUGIN__APP=… NUDGE_PLUGIN__TOKEN=…
//! nudge plugin check
//! nudge plugin push
//! nudge plugin activate
//! ```
//!
//! A survey or campaign then names it in its `trigger`, with the configuration:
//! `{"kind": "plugin", "plugin": "cart-abandonment", "config": {"minutes": 30}}`. An event definition names a
//! validation plugin in `validator`, a variant's `personalization` one of its kind in `plugin`.
//!
//! With `nudge plugin activate --slot` it takes the place of the built-in plugin of its kind instead, for all
//! that name none. A trigger plugin then gets the parts of every campaign that are a trigger plugin's to read,
//! so that `Config` has the one above as a field: `{"trigger": {"minutes": 30}}`.
//!
//! The plugin's name, version and summary are those of its package. A version never changes: raise it for the
//! next one.
//!
//! # Cases
//!
//! A file in `cases/` has one case or a list of them: `{"name", "input", "expect"}`, of which only `input` is
//! required. `sdk/cases.schema.json` of a project is a JSON Schema of them. Every case runs twice and must
//! give the same both times.
//!
//! | kind | input | output |
//! |---|---|---|
//! | trigger | `config`, `events` (`name`, `at`, `subject`, `properties`), `now`, `until`, `subject`, `subjects` | `fired` (`event` or `timer`, `subject`, `at`), `states`, `timers`, `explanations` |
//! | validation | `config`, `properties`, `now` | `valid`, `violations` (`code`, `property`, `expected`, `actual`) |
//! | personalization | `config`, `recipients` (`name`, `properties`, `withheld`, `facts`, `history`, `data`, `trigger`), `now` | `values`, by recipient and binding (`value`, `text`, `usedFallback`, `issue`, `detail`) |
//! | any | a configuration that the plugin refuses | `problems` (`code`, `pointer`, `message`) |
//! | any | what a call fails on | `failure` (`trap`, `deadline`, `memory`, `output_too_large`, `refused`), `detail` |
//!
//! Instants are `+30m` after the start, or `2026-01-31T09:30:00Z`. A trigger's subjects have `properties`,
//! `withheld`, `facts` and a `history` of earlier events; events of one instant are one batch, and timers fire
//! as time passes. `expect` is a part of the output: keys that it does not have are not compared, arrays are
//! compared whole, `null` also stands for what is not there.
//!
//! # What to know
//!
//! - **`check` declares what decisions read.** The server calls a plugin for these events only and sends
//!   these properties only. Asking for another property is a mistake that the first test shows.
//! - **All or nothing.** Firings, state and timers of a batch take effect together when the plugin returns,
//!   and not at all when it refuses, panics or passes a limit (64 MiB of memory, 50 ms, 1,000 host calls).
//! - **Nothing stays in memory.** Keep what must last with [`set_state`](trigger::Subject::set_state): 4 KiB
//!   for each subject and campaign.
//! - **Panics** reach the plugin's [`log`] with their message and place.
//! - **Speed.** Columns and properties are fetched once a batch and read without a call to the server;
//!   history, state and facts are a call each.

#[cfg(target_arch = "wasm32")]
mod allocator;
#[doc(hidden)]
pub mod bindings;
mod cell;
pub mod config;
mod declaration;
mod export;
pub mod filter;
mod history;
mod instant;
pub mod log;
mod panics;
pub mod personalization;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod trigger;
pub mod validation;
mod value;

pub use cell::{Cell, Table};
pub use declaration::{Description, Problem, Reads, Refusal};
pub use history::{History, PastEvent};
pub use instant::{Calendar, Instant};
#[doc(hidden)]
pub use panics::log_panics;
pub use value::Value;

pub use serde;
pub use serde_json;
