//! The default plugins, compiled to components: what an app runs until it ships its own.

include!(concat!(env!("OUT_DIR"), "/plugins.rs"));
