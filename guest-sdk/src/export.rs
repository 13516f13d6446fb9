//! From a plugin's trait to a component's exports.

use crate::bindings::trigger::nudge::plugin::types as wit;
use crate::declaration::{Description, Problem, Reads, Refusal};

/// Makes a plugin the export of its component.
///
/// The second part is the plugin's kind: `trigger`, `validation` or `personalization`. The plugin's name,
/// version and summary are those of its package. Outside of components the macro is nothing, so that the
/// package can be tested like any other.
///
/// ```
/// use nudge_guest::trigger::{Decision, Event, Subject, Trigger};
/// use nudge_guest::{Problem, Reads, Refusal};
///
/// struct Always;
///
/// impl Trigger for Always {
///     type Config = nudge_guest::serde_json::Value;
///
///     fn check(_: &Self::Config) -> Result<Reads, Vec<Problem>> {
///         Ok(Reads::new().events(["app_opened"]))
///     }
///
///     fn on_event(_: &Self::Config, _: &Event<'_>, _: &Subject<'_>) -> Result<Decision, Refusal> {
///         Ok(Decision::Fire)
///     }
/// }
///
/// nudge_guest::export!(Always: trigger);
/// ```
#[macro_export]
macro_rules! export {
    ($plugin:ident: trigger) => {
        $crate::export_component!($plugin, trigger, trigger_plugin, trigger_host, export_trigger, Trigger {
            fn evaluate(batch: &Batch) -> Result<(), Refusal> { evaluate }
        });
    };
    ($plugin:ident: validation) => {
        $crate::export_component!($plugin, validation, validation_plugin, validation_host, export_validation, Validator {
            fn validate(batch: &Batch) -> Result<(), Refusal> { validate }
        });
    };
    ($plugin:ident: personalization) => {
        $crate::export_component!($plugin, personalization, personalization_plugin, personalization_host, export_personalization, Personalizer {
            fn resolve(batch: &Batch) -> Result<(), Refusal> { resolve }
        });
    };
}

/// What [`export!`] has in common for all kinds.
#[doc(hidden)]
#[macro_export]
macro_rules! export_component {
    (
        $plugin:ident, $kind:ident, $exports:ident, $imports:ident, $export:ident, $trait:ident {
            fn $decide:ident(batch: &Batch) -> Result<(), Refusal> { $run:ident }
        }
    ) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::bindings::trigger::nudge::plugin::types::{
                Description, Problem, Reads, Refusal,
            };
            use $crate::bindings::$kind::exports::nudge::plugin::$exports::Guest;
            use $crate::bindings::$kind::nudge::plugin::$imports::Batch;

            struct Component;

            impl Guest for Component {
                fn describe() -> Description {
                    $crate::log_panics();
                    let package = $crate::Description {
                        name: env!("CARGO_PKG_NAME").to_owned(),
                        version: env!("CARGO_PKG_VERSION").to_owned(),
                        summary: env!("CARGO_PKG_DESCRIPTION").to_owned(),
                        config_schema: String::new(),
                    };
                    <$plugin as $crate::$kind::$trait>::describe(package).into()
                }

                fn check_config(config: String) -> Result<Reads, Vec<Problem>> {
                    $crate::log_panics();
                    $crate::$kind::check::<$plugin>(&config)
                        .map(Into::into)
                        .map_err(|problems| problems.into_iter().map(Into::into).collect())
                }

                fn $decide(batch: &Batch) -> Result<(), Refusal> {
                    $crate::log_panics();
                    $crate::$kind::$run::<$plugin>(batch).map_err(Into::into)
                }
            }

    $crate::bindings::$kind::$export!(Component with_types_in $crate::bindings::$kind);
        };
    };
}

impl From<Description> for wit::Description {
    fn from(description: Description) -> Self {
        Self {
            name: description.name,
            version: description.version,
            summary: description.summary,
            config_schema: description.config_schema,
            more: Vec::new(),
        }
    }
}

impl From<Reads> for wit::Reads {
    fn from(reads: Reads) -> Self {
        Self {
            event_names: reads.event_names,
            properties: reads.properties,
            subject_properties: reads.subject_properties,
            more: reads
                .history
                .into_iter()
                .map(|name| ("history".to_owned(), name))
                .collect(),
        }
    }
}

impl From<Problem> for wit::Problem {
    fn from(problem: Problem) -> Self {
        Self {
            code: problem.code,
            pointer: problem.pointer,
            message: problem.message,
            more: Vec::new(),
        }
    }
}

impl From<Refusal> for wit::Refusal {
    fn from(refusal: Refusal) -> Self {
        Self {
            code: refusal.code,
            message: refusal.message,
            more: Vec::new(),
        }
    }
}
