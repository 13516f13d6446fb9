//! Sessions, people, and what they may ask of their data: search, profiles, timelines, the feed of all events, exports, deletion.
//!
//! # Invariants
//!
//! - **A paged list has an order that nobody moves in**: people by the id of their subject, events by time and id. A search finds nobody twice.
//! - **A deletion is a job of steps**, each of whose rows and count are one commit. It is completed after the analytics store has confirmed.
//!   From the transaction that queues it, no route shows anything of the person.
//! - **Nothing of a deleted person is stored again.** Keyed hashes of the names stay on the suppression list; a name gets a session of `NOBODY`, an alias
//!   that is in no table, until something proves to be of after the deletion (an identity token's `iat`, the time of a server's event): then a new
//!   person begins, and `aliases.events_after` keeps refusing what is of before.

pub mod feed;
pub mod privacy;
pub mod router;
pub mod segments;
pub mod services;
pub mod sessions;
pub mod tasks;
pub mod users;
