//! The platform: clock, ids, secrets, configuration, the queue of jobs, outbound requests, rate limits.
//!
//! It knows no feature, no route and no HTTP server. Everything above stands on it.
//!
//! # Invariants
//!
//! - **Time, ids and randomness have one source each**: [`clock`], [`id`], [`secrets`]. SQL never asks for the time.
//! - **A clock that is set back stalls nothing.** Buckets that would take longer to fill than empty ones count as full ([`rate_limits`]); a job
//!   that is due later than any pause allows is due. Senders look through what waits when the clock was set back, and at their start ([`due`]). Ids of
//!   one process ascend all the same.
//! - **A process that has the database for itself does not poll** ([`due`]). A loop that finds nothing waits for a commit, or for the instant at which
//!   the next thing falls due. Where processes share a database, loops look every `pipeline.pollMs`.
//! - **No kind of job keeps another waiting** (`jobs/fairness.rs`, pure): at most half of a process's jobs are of one kind, each kind may have
//!   one whatever the others do, and apps without a job come first.
//! - **One caller never empties the bucket of another** ([`rate_limits`]). Requests with a write key count for the client's address first. Failed
//!   authentication refuses only credentials that fail.
//! - **A resolver that hangs delays nobody else** ([`outbound::lookups`]). Names are looked up on a few threads of their own, apart by purpose; an app has
//!   at most a quarter of them.
//! - **Requests on a customer's behalf go to public addresses only** ([`outbound`]). The guard checks each URL, resolves names itself for each
//!   connection, and connects to the addresses that it checked. It follows no redirect and uses no proxy.
//! - **Secrets at rest are sealed** ([`sealed`]): AES-256-GCM under a key derived from the master key, bound to table and row. The list of
//!   sealed columns there is the list that `nudge secrets reseal` goes through.
//! - **A key's own algorithm decides** ([`public_key`]). A token's word for its algorithm has to agree with the key. Shared secrets are no keys here.
//! - **Every table has one owner** ([`tables`]). Deletions, exports and merges go by that list, and a test holds it against the schema.
//! - **Metrics are bounded**: labels come from closed sets.

pub mod analytics;
pub mod audit;
pub mod claims;
pub mod clock;
pub mod config;
pub mod due;
pub mod event_names;
pub mod field_error;
pub mod handover;
pub mod hidden;
pub mod id;
pub mod jobs;
pub mod json;
pub mod outbound;
pub mod polls;
pub mod public_key;
pub mod rate_limits;
pub mod rounds;
pub mod schema;
pub mod sealed;
pub mod secrets;
pub mod tables;
pub mod telemetry;
pub mod traces;
pub mod turns;
pub mod wake;
