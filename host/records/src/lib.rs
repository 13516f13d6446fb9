//! The rows that an event leaves: subjects, events, dead letters, instructions, deliveries, decisions, scheduled work, webhook messages, counts.
//!
//! Types and SQL, shared by the pipeline, the ingest and the routes above. It calls no plugin.
//!
//! # Invariants
//!
//! - **Every statement carries its tenant**: `app_id`, or ids that were read with it; the recovery loop and the pollers read those of all apps.
//!   Events belong to an *alias*; the alias leads to the subject, so that merging subjects rewrites no event.
//! - **Whatever changes a subject, or a plugin's state of it, moves `subjects.version`**: the pipeline remembers subjects by it.
//! - **One place says whether a subject token works** ([`subjects::current`]): while its alias, the alias's epoch and its subject are as it says. A route that
//!   writes asks in the transaction that writes.
//! - **Two subjects become one in one transaction** (`subjects/merge.rs`) that locks both rows. The identified one stays; the other's rows become
//!   its own, its instructions behind its own, so that no cursor is past them. Code outside of the pipeline that writes rows of a subject locks its row first.
//! - **Every index of `events` but one begins with the alias**, so that a request dirties the page or two that it touches anyway. The one of the feed begins
//!   with the app and the name and goes on by receipt, so that all requests of a commit share the last page of each name. An `eventId` is unique within its alias.
//! - **A webhook's message is in the transaction of the transition that it tells of.** Its id follows from endpoint, delivery or dead letter, and
//!   type; its body is written once. It is made as claimed where the process that makes it has room to send it.
//! - **A delivery's states go forward.** Each is an instant in a column of its own; the transition is made by the one writer that finds the column
//!   empty. It is counted and told to webhooks in the same transaction.
//! - **Every decision can be made again** ([`decisions`]). A call that takes effect is kept with the version, the numbers of the events, digests of the
//!   configurations, and all that the plugin asked and was told.
//! - **Work that the host does later is a row** ([`scheduled_work`]), claimed and consumed as timers are. A firing that waits keeps its id.
//! - **A dead letter and the event that it becomes are one transaction.**
//! - **Counts are not on a request's path** ([`stats`]): they are counted after the commit and written twice a second. A crash loses as much.

pub mod across_shards;
pub mod dead_letters;
pub mod decisions;
pub mod deliveries;
pub mod events;
pub mod instructions;
pub mod properties;
pub mod pseudonyms;
pub mod rejected;
pub mod scheduled_work;
pub mod search;
pub mod segment_checks;
pub mod services;
pub mod stats;
pub mod subjects;
pub mod tasks;
pub mod webhooks;
