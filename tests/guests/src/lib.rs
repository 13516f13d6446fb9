//! Plugins for tests, compiled to components: guests that break the rules of the contract on request, and
//! guests that come with all of WASI.

include!(concat!(env!("OUT_DIR"), "/plugins.rs"));
include!(concat!(env!("OUT_DIR"), "/plugins_wasip2.rs"));
