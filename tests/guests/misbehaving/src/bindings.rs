//! What wit-bindgen makes of the contract.

#![expect(unsafe_code, clippy::pedantic, reason = "generated code")]

wit_bindgen::generate!({
    path: "../../../wit",
    world: "trigger",
});

export!(Misbehaving with_types_in self);

use super::Misbehaving;
