//! What wit-bindgen makes of the contract.

#![cfg_attr(target_arch = "wasm32", expect(unsafe_code, reason = "generated code"))]
#![expect(clippy::pedantic, reason = "generated code")]

wit_bindgen::generate!({
    path: "../../../wit",
    world: "validation",
});

// The names of the exports are no names for the linkers of other targets.
#[cfg(target_arch = "wasm32")]
export!(Misbehaving with_types_in self);

#[cfg(target_arch = "wasm32")]
use super::Misbehaving;
