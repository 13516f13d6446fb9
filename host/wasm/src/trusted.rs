//! The one place that turns compiled code back into something that runs.

use wasmtime::Engine;
use wasmtime::component::Component;

/// Compiled code that this host made: fresh from its compiler, or from its cache with a valid signature.
pub(crate) struct CompiledCode(Vec<u8>);

impl CompiledCode {
    /// Vouches for `bytes`: they came from this host's compiler and nobody else could have changed them.
    pub(crate) fn vouched_for(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Loads the code. Fails where another version or configuration of the engine compiled it.
    #[expect(unsafe_code, reason = "loading compiled code is loading machine code")]
    pub(crate) fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        // SAFETY: `deserialize` needs bytes that `precompile_component` made. `vouched_for` is called in two
        // places: on the compiler's own output, and on a cached file whose HMAC has been verified with a key
        // that only this host has.
        unsafe { Component::deserialize(engine, &self.0) }
    }
}
