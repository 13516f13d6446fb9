//! Push messages and webhooks (specification 2.5 to 2.8, 4.4, 4.5; contract 9, 10).
//!
//! A firing of a campaign, a transactional send or a test makes a *delivery*; the [`sender`] renders it and hands it to the push services of the
//! person's devices; [`beacons`] say what became of it there; [`webhooks`] tells endpoints.
//!
//! # Invariants
//!
//! - **A message is sent at most once more than it is known to have failed.** The sender notes a delivery as `sent` before any provider is asked. A process
//!   that ends before the answer leaves devices in doubt: nobody sends to them again, and the delivery stays `sent`, `outcome_unknown`, as it does where a
//!   provider got the message and did not answer. A message that a provider declines for now is sent again from the snapshot: the same bytes under the same ids.
//! - **A message is a function of delivery and target** (`providers/payload.rs`): no time, no randomness. Only Web Push is encrypted anew each time.
//! - **A push token is one person's device's** (`tokens/store.rs`). `push_tokens` has a row for each device of a person; a token is in one row. Whoever shows a
//!   token has it. The name of a device proves nothing.
//! - **A browser's endpoint is looked up when a message goes there**, never when it is registered, so that no answer tells which names exist.
//! - **Apps take turns** (`records/src/deliveries/in_hand/share.rs`, pure). Urgent messages go first; no app has more than about an eighth of what a process has in hand.
//! - **A refused credential rests** until a newer one is uploaded or it is deleted. No answer of a browser's endpoint is held against the shared credential.
//! - **A message that a plugin fails on is `failed`, `plugin_error`**, and where an event is behind it, a dead letter from which it is made again.
//! - **A webhook is sent at least once**, under the same id, outside of any transaction; it waits for the earlier ones of its endpoint and delivery unless those
//!   failed for good.
//! - **A receiver that hangs is nobody else's trouble** (`webhooks/fairness.rs`, pure). Claims go from endpoint to endpoint by an index that begins with it.
//!   Messages that this process makes come from memory while there is room (`apps/src/webhooks/in_hand.rs`): behind what the endpoint already has waiting none does.

pub mod campaigns;
pub mod deliveries;
pub mod router;
pub mod services;
pub mod tasks;
pub mod webhooks;

pub mod beacons;

pub mod credentials;

pub mod personalization;
pub mod providers;
pub mod sender;

pub mod tokens;
pub mod transactional;
