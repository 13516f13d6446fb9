//! From a core module to a component.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use wit_component::ComponentEncoder;

/// Wraps a module, which describes its world in a custom section, and validates the result.
pub(crate) fn from_module(file: &Path) -> Result<Vec<u8>> {
    let module = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    ComponentEncoder::default()
        .validate(true)
        .module(&module)?
        .encode()
}
