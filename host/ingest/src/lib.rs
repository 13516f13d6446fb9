//! Taking events and property updates: parse, check, validate, commit. Also from the SDKs of others ([`collection`]).
//!
//! # Invariants
//!
//! - **A 200 means on disk.** The answer is sent after the commit, on SQLite with `synchronous=FULL`. A request that can't be committed is a 503,
//!   and nothing of it is stored.
//! - **Requests are committed in groups** ([`commit`]), all or nothing: events, their row in `pending`, and dead letters. Large groups are committed side by side, small
//!   ones one at a time.
//! - **Memory is bounded.** Events in memory hold permits, by number and by bytes. Without one, a request is committed unclaimed and read back later.
//! - **An event whose id is already stored counts as accepted**, even if the definition has since become stricter or its time has passed.
//! - **One plugin call validates many requests** (`validation/batcher.rs`): up to 500 events. A call that fails is made again for each request alone, then taken apart.
//! - **Lifecycle events are ignored, not refused, while the toggle is off**, so that an SDK empties its queue.
//! - **A changed property is an event of the server's own** (`properties/changes.rs`), `$property_changed`, in the transaction of the update. It belongs to a
//!   *system alias*, which no client can name.
//! - **Looking for events of a name is bounded**: dry runs and proposals look through the newest 50,000 events and say so.

pub mod beacon;
mod body;
pub mod collection;
pub mod commit;
pub mod definitions;
pub mod event;
pub mod http;
pub mod kept;
mod owner;
pub mod properties;
pub mod rejected;
pub mod router;
mod schema;
pub mod services;
pub mod submission;
mod taking;
mod turns;
pub mod validation;
