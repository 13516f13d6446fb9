//! Push messages (specification 2.5 to 2.7, 4.4; contract 9).
//!
//! A firing of a campaign, a transactional send or a test makes a *delivery*; the [`sender`] renders it and hands
//! it to the push services of the person's devices; [`beacons`] say what became of it there.

pub mod beacons;
pub mod campaigns;
pub mod credentials;
pub mod deliveries;
pub mod personalization;
pub mod providers;
pub mod sender;
pub mod template;
pub mod tokens;
pub mod transactional;
