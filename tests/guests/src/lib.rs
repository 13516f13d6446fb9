//! Plugins for tests, compiled to components: guests that break the rules of the contract on request.

include!(concat!(env!("OUT_DIR"), "/plugins.rs"));
