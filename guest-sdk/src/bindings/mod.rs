//! What wit-bindgen makes of the contract: one module a world, all with the types of the first. `tests/bindings.rs` writes
//! and checks them.

#![expect(
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    clippy::panic,
    clippy::pedantic,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    unreachable_pub,
    unsafe_code,
    reason = "generated code"
)]

#[rustfmt::skip]
pub mod personalization;
#[rustfmt::skip]
pub mod trigger;
#[rustfmt::skip]
pub mod validation;
