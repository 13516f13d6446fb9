//! From bytes to a plugin.

use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use wasmtime::component::Component;

use crate::cache::digest;
use crate::compile::compile;
use crate::engine::Shared;
use crate::failure::Failed;
use crate::imports::Outline;
use crate::kind::Kind;
use crate::limits::{NAME_BYTES, SHOWN_CHARACTERS, SHOWN_NAMES, SUMMARY_BYTES, VERSION_BYTES};
use crate::plugin::{Description, Plugin, Version};
use crate::text::{listed, shown};
use crate::worlds::Pre;

/// Bytes that cannot be a plugin of this host, and why.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Something else than WebAssembly.
    #[error("this is not a WebAssembly component")]
    NotAComponent,
    /// A core module that nobody made a component of.
    #[error("this is a core WebAssembly module, not a component")]
    CoreModule,
    /// It does not export what a plugin exports.
    #[error("this component targets no world of nudge:plugin@1: {0}")]
    NoKnownWorld(String),
    /// It names a world, but what it exports or imports is not of the world's form.
    #[error("this component does not fit the world `{kind}` of nudge:plugin@1: {reason}")]
    Misfit {
        /// The world.
        kind: Kind,
        /// What is missing, or of another form.
        reason: String,
    },
    /// It asks for a function that only a newer host has.
    #[error(
        "this plugin imports the function `{}` of `{}`, which this server does not have",
        shown(.function, SHOWN_CHARACTERS), shown(.interface, SHOWN_CHARACTERS)
    )]
    MissingFunction {
        /// The interface, with its version.
        interface: String,
        /// The function; before a dot, the resource that it is of.
        function: String,
    },
    /// It asks for what plugins cannot have.
    #[error("this plugin imports what its world does not have: {}", listed(.0, SHOWN_NAMES, SHOWN_CHARACTERS))]
    ForeignImports(Vec<String>),
    /// It has more bytes than a plugin may have.
    #[error("this component has {bytes} bytes, more than the {limit} that are allowed")]
    TooLarge {
        /// What it has.
        bytes: usize,
        /// What it may have.
        limit: usize,
    },
    /// It does not compile.
    #[error("this component does not compile: {0}")]
    Compile(String),
    /// Compiling took too long.
    #[error("this component does not compile within {seconds} seconds (plugins.compileSeconds)")]
    CompileTimeout {
        /// What it may take.
        seconds: u64,
    },
    /// Compiling took more memory, or processor time, than there is for it.
    #[error("this component does not compile within the compiler's limits: {0}")]
    CompileLimits(String),
    /// The compiler cannot be run, which is no fault of the component.
    #[error("the compiler cannot be run: {0}")]
    CompilerUnavailable(#[source] std::io::Error),
    /// It cannot say what it is.
    #[error("this plugin cannot describe itself: {}", .0.detail())]
    DescribeFailed(Failed),
    /// What it says it is cannot be.
    #[error("this plugin describes itself wrongly: {0}")]
    BadDescription(String),
}

const COMPONENT_HEADER: &[u8] = b"\0asm\x0d\0\x01\0";
const MODULE_HEADER: &[u8] = b"\0asm\x01\0\0\0";

pub(crate) fn load(shared: &Arc<Shared>, bytes: &[u8]) -> Result<Plugin, LoadError> {
    let limit = shared.limits.component_bytes;
    if bytes.len() > limit {
        return Err(LoadError::TooLarge {
            bytes: bytes.len(),
            limit,
        });
    }
    if bytes.starts_with(MODULE_HEADER) {
        return Err(LoadError::CoreModule);
    }
    if !bytes.starts_with(COMPONENT_HEADER) {
        return Err(LoadError::NotAComponent);
    }

    let digest = digest(bytes);
    let component = compiled(shared, bytes, &digest)?;
    let outline = Outline::of(&component);
    let (kind, plugin) = match *outline.kinds() {
        [found] => found,
        [] => return Err(LoadError::NoKnownWorld(no_world(&outline.exports))),
        _ => {
            return Err(LoadError::NoKnownWorld(
                "it exports the interfaces of several worlds".to_owned(),
            ));
        }
    };
    let foreign = outline.foreign(kind);
    if !foreign.is_empty() {
        return Err(LoadError::ForeignImports(foreign));
    }

    let linker = shared.linkers.for_imports(outline.needs_wasi());
    let pre = linker
        .instantiate_pre(&component)
        .and_then(|linked| Pre::new(linked, kind, plugin))
        .map_err(|error| misfit(kind, &error))?;
    let version = Version {
        shared: Arc::clone(shared),
        kind,
        pre,
        digest,
        imports: outline.imports,
        exports: outline.exports,
        late_starts: AtomicU8::new(0),
    };
    let (description, _) = version.describe().map_err(LoadError::DescribeFailed)?;
    check(&description).map_err(LoadError::BadDescription)?;
    Ok(Plugin::new(version, description))
}

/// What of a component does not fit, given wasmtime's words for it.
fn misfit(kind: Kind, error: &wasmtime::Error) -> LoadError {
    missing_function(error).unwrap_or_else(|| LoadError::Misfit {
        kind,
        reason: format!("{error:#}"),
    })
}

/// The function that is missing, if that is what wasmtime says. Where a version says it otherwise, its words are shown.
fn missing_function(error: &wasmtime::Error) -> Option<LoadError> {
    let said: Vec<String> = error.chain().map(ToString::to_string).collect();
    let [import, export, cause] = said.as_slice() else {
        return None;
    };
    if cause != "function implementation is missing" {
        return None;
    }
    let interface = quoted(import, "component imports instance `")?;
    let function = quoted(export, "instance export `")?;
    // What it is stands before its name: `[method]batch.now`.
    let function = function.split_once(']').map_or(function, |(_, name)| name);
    Some(LoadError::MissingFunction {
        interface: interface.to_owned(),
        function: function.to_owned(),
    })
}

/// What stands between these words and the next quote.
fn quoted<'t>(text: &'t str, before: &str) -> Option<&'t str> {
    let (quoted, _) = text.strip_prefix(before)?.split_once('`')?;
    Some(quoted)
}

/// The component, from the cache or from the compiler.
fn compiled(shared: &Shared, bytes: &[u8], digest: &str) -> Result<Component, LoadError> {
    if let Some(code) = shared.cache.find(digest) {
        match code.load(&shared.engine) {
            Ok(component) => return Ok(component),
            Err(error) => tracing::warn!(
                component = digest,
                error = format!("{error:#}"),
                "a compiled plugin does not load and is compiled again"
            ),
        }
    }
    let code = compile(
        &shared.compiler,
        &shared.engine,
        &shared.limits,
        shared.cache.folder(),
        bytes,
    )?;
    let component = code
        .load(&shared.engine)
        .map_err(|error| LoadError::Compile(format!("{error:#}")))?;
    // A cache that is full or read-only makes the next start slower, nothing else.
    if let Err(error) = shared.cache.insert(digest, &code) {
        tracing::warn!(component = digest, %error, "a compiled plugin cannot be kept");
    }
    Ok(component)
}

fn no_world(exports: &[String]) -> String {
    if exports.is_empty() {
        "it exports nothing".to_owned()
    } else {
        let exports = listed(exports, SHOWN_NAMES, SHOWN_CHARACTERS);
        format!("it exports {exports}")
    }
}

fn check(description: &Description) -> Result<(), String> {
    let Description {
        name,
        version,
        summary,
        config_schema,
    } = description;
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > NAME_BYTES || !name.bytes().all(allowed) {
        return Err(format!(
            "its name must be 1 to {NAME_BYTES} lower-case letters, digits and hyphens, and is {:?}",
            shown(name, SHOWN_CHARACTERS)
        ));
    }
    if version.len() > VERSION_BYTES {
        return Err(format!(
            "its version must have at most {VERSION_BYTES} characters, and has {}",
            version.len()
        ));
    }
    if let Err(error) = semver::Version::parse(version) {
        return Err(format!(
            "its version must be a semantic version like 1.4.0, and is {:?}: {error}",
            shown(version, SHOWN_CHARACTERS)
        ));
    }
    if summary.len() > SUMMARY_BYTES || summary.contains('\0') {
        return Err(format!(
            "its summary must have at most {SUMMARY_BYTES} bytes and no NUL character"
        ));
    }
    if !config_schema.is_empty()
        && let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(config_schema)
    {
        return Err(format!("its configuration schema is not JSON: {error}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(name: &str, version: &str, schema: &str) -> Result<(), String> {
        summed_up(name, version, "", schema)
    }

    fn summed_up(name: &str, version: &str, summary: &str, schema: &str) -> Result<(), String> {
        check(&Description {
            name: name.to_owned(),
            version: version.to_owned(),
            summary: summary.to_owned(),
            config_schema: schema.to_owned(),
        })
    }

    #[test]
    fn descriptions_are_checked() {
        assert_eq!(
            described("cart-abandonment-2", "1.4.0-beta.1", "{}"),
            Ok(())
        );
        assert!(described("", "1.0.0", "").is_err());
        assert!(described("Cart", "1.0.0", "").is_err());
        assert!(described(&"a".repeat(65), "1.0.0", "").is_err());
        assert!(described("cart", "1.0", "").is_err());
        let version = |length: usize| format!("1.0.0-{}", "a".repeat(length - 6));
        assert!(described("cart", &version(64), "").is_ok());
        assert!(described("cart", &version(65), "").is_err());
        assert!(described("cart", "1.0.0", "{").is_err());
        assert!(summed_up("cart", "1.0.0", &"s".repeat(SUMMARY_BYTES), "").is_ok());
        assert!(summed_up("cart", "1.0.0", &"s".repeat(SUMMARY_BYTES + 1), "").is_err());
        assert!(summed_up("cart", "1.0.0", "a\0b", "").is_err());
    }
}
