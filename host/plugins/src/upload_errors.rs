//! What is wrong with a component, in words for whoever made it.

use nudge_platform::field_error::FieldError;
use nudge_wasm::{Failed, Failure, LoadError};

/// An upload is one thing; there is no part of it that a pointer could name.
const WHOLE: &str = "";

/// Imports that are told; a component that has more is not one by mistake.
const MOST_IMPORTS: usize = 50;
/// Characters of a name or reason that are told: they are the component's, which may have any length.
const MOST_CHARACTERS: usize = 500;

/// The beginning of a text, if it is long.
pub(super) fn cut(text: &str) -> &str {
    let end = text.char_indices().nth(MOST_CHARACTERS);
    end.map_or(text, |(end, _)| text.get(..end).unwrap_or_default())
}

/// What is wrong with a component and how to mend it. None: nothing is; the server could not do its part.
pub fn of_load(error: &LoadError) -> Option<Vec<FieldError>> {
    let one = |code: &str, detail: String| Some(vec![FieldError::new(WHOLE, code, detail)]);
    match error {
        LoadError::NotAComponent => one(
            "not_a_component",
            "this is not a WebAssembly component; send the bytes of the .wasm file that the build made"
                .to_owned(),
        ),
        LoadError::CoreModule => one(
            "not_a_component",
            "this is a core WebAssembly module, not a component; build for wasm32-wasip2, or wrap the module \
             with `wasm-tools component new`"
                .to_owned(),
        ),
        LoadError::NoKnownWorld(reason) => one(
            "no_known_world",
            format!(
                "the component targets no world of nudge:plugin@1 ({}); export exactly one of trigger-plugin, \
                 validation-plugin and personalization-plugin",
                cut(reason)
            ),
        ),
        LoadError::Misfit { kind, reason } => one(
            "bad_export",
            format!(
                "the component names the world `{kind}`, but something that it exports or imports is missing or of \
                 another form ({}); build it against the nudge:plugin@1 package of this server",
                cut(reason)
            ),
        ),
        LoadError::MissingFunction { interface, function } => Some(vec![missing(interface, function)]),
        LoadError::ForeignImports(names) => {
            Some(names.iter().take(MOST_IMPORTS).map(|name| foreign_import(name)).collect())
        }
        LoadError::TooLarge { bytes, limit } => one(
            "too_large",
            format!(
                "the component has {bytes} bytes and may have {limit}; build it for size, and strip debug \
                 information"
            ),
        ),
        LoadError::Compile(_) | LoadError::CompileTimeout { .. } | LoadError::CompileLimits(_) => {
            Some(vec![of_compiler(error)])
        }
        LoadError::CompilerUnavailable(_) => None,
        LoadError::DescribeFailed(failed) => of_self_test("`describe`", failed),
        LoadError::BadDescription(reason) => one(
            "bad_description",
            format!("what the plugin says of itself cannot be: {}", cut(reason)),
        ),
    }
}

/// What is wrong with a component that does not compile.
fn of_compiler(error: &LoadError) -> FieldError {
    let (code, detail) = match error {
        LoadError::CompileTimeout { seconds } => (
            "compile_limit",
            format!(
                "the component does not compile within {seconds} seconds; make it smaller, its largest functions \
                 first, or have the server's `plugins.compileSeconds` raised"
            ),
        ),
        LoadError::CompileLimits(reason) => (
            "compile_limit",
            format!(
                "the component does not compile within the memory and processor time that there are ({}); make it \
                 smaller, its largest functions first, or have the server's `plugins.compileMemoryBytes` and \
                 `plugins.compileSeconds` raised",
                cut(reason)
            ),
        ),
        other => (
            "does_not_compile",
            format!(
                "{}; check it with `wasm-tools validate`",
                cut(&other.to_string())
            ),
        ),
    };
    FieldError::new(WHOLE, code, detail)
}

fn foreign_import(name: &str) -> FieldError {
    let detail = format!(
        "the component imports `{}`, which its world does not have; a plugin gets nudge:plugin/log, the host \
         interface of its own kind and a WASI 0.2 without access to anything: remove what needs more",
        cut(name)
    );
    FieldError::new(WHOLE, "foreign_import", detail)
}

fn missing(interface: &str, function: &str) -> FieldError {
    let detail = format!(
        "the component imports the function `{}` of `{}`, which this server does not have; build it for an older \
         version of the contract, or update the server",
        cut(function),
        cut(interface)
    );
    FieldError::new(WHOLE, "foreign_import", detail)
}

/// What is wrong with a component that fails in its self-test. None: the server had no room for the call.
pub(super) fn of_self_test(call: &str, failed: &Failed) -> Option<Vec<FieldError>> {
    if failed.failure == Failure::Unavailable {
        return None;
    }
    let detail = format!(
        "the self-test called {call}, and it failed ({}): {}",
        failed.failure.code(),
        cut(&failed.detail())
    );
    Some(vec![FieldError::new(WHOLE, "self_test_failed", detail)])
}

/// A component that could be run, but not under its name, or not reliably.
pub fn refused(code: &str, detail: impl Into<String>) -> Vec<FieldError> {
    vec![FieldError::new(WHOLE, code, detail)]
}

#[cfg(test)]
mod tests {
    use nudge_wasm::Kind;

    use super::*;

    fn failed(failure: Failure) -> Failed {
        Failed {
            failure,
            call: Box::default(),
        }
    }

    fn assert_says(error: &LoadError, code: &str, words: &str) {
        let errors = of_load(error).unwrap();
        assert_eq!(errors[0].code, code);
        assert!(errors[0].detail.contains(words), "{}", errors[0].detail);
    }

    #[test]
    fn every_fault_of_a_component_has_words_that_say_what_to_do() {
        let text = String::new;
        for (error, code, words) in [
            (
                LoadError::NotAComponent,
                "not_a_component",
                "send the bytes",
            ),
            (LoadError::CoreModule, "not_a_component", "component new"),
            (
                LoadError::NoKnownWorld(text()),
                "no_known_world",
                "export exactly one",
            ),
            (
                LoadError::Misfit {
                    kind: Kind::Trigger,
                    reason: text(),
                },
                "bad_export",
                "build it against",
            ),
            (
                LoadError::MissingFunction {
                    interface: text(),
                    function: "batch.weather".to_owned(),
                },
                "foreign_import",
                "`batch.weather`",
            ),
            (
                LoadError::ForeignImports(vec!["env".to_owned()]),
                "foreign_import",
                "`env`",
            ),
        ] {
            assert_says(&error, code, words);
        }
    }

    #[test]
    fn a_component_beyond_a_limit_and_one_that_fails_have_such_words_too() {
        let text = String::new;
        for (error, code, words) in [
            (
                LoadError::TooLarge { bytes: 2, limit: 1 },
                "too_large",
                "2 bytes",
            ),
            (LoadError::Compile(text()), "does_not_compile", "validate"),
            (
                LoadError::CompileTimeout { seconds: 60 },
                "compile_limit",
                "60 seconds; make it smaller, its largest functions first, or have the server's `plugins.compileSeconds`",
            ),
            (
                LoadError::CompileLimits(text()),
                "compile_limit",
                "`plugins.compileMemoryBytes`",
            ),
            (
                LoadError::DescribeFailed(failed(Failure::Memory)),
                "self_test_failed",
                "(memory)",
            ),
            (
                LoadError::BadDescription(text()),
                "bad_description",
                "cannot be",
            ),
        ] {
            assert_says(&error, code, words);
        }
    }

    #[test]
    fn no_component_makes_the_words_long() {
        let long = "ä".repeat(100_000);
        let imports = vec![long.clone(); 1_000];
        for error in [
            LoadError::ForeignImports(imports),
            LoadError::NoKnownWorld(long.clone()),
            LoadError::BadDescription(long),
        ] {
            let errors = of_load(&error).unwrap();
            assert!(errors.len() <= MOST_IMPORTS);
            assert!(errors.iter().all(|error| error.detail.len() < 2_000));
        }
    }

    #[test]
    fn the_servers_own_trouble_is_not_the_components() {
        let trouble = LoadError::CompilerUnavailable(std::io::Error::other("no disk"));
        assert_eq!(of_load(&trouble), None);
        let busy = failed(Failure::Unavailable);
        assert_eq!(of_load(&LoadError::DescribeFailed(busy)), None);
    }
}
