//! From a core module to a component.

use anyhow::Result;
use wit_component::ComponentEncoder;

/// Wraps a module, which describes its world in a custom section, and validates the result.
pub(crate) fn from_module(module: &[u8]) -> Result<Vec<u8>> {
    ComponentEncoder::default()
        .validate(true)
        .module(module)?
        .encode()
}
