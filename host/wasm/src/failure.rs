//! How a call can fail. A failure is data: what follows from it is for the caller to decide.

use std::fmt;

use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::call::Call;
use crate::limits;
use crate::log::Level;
use crate::text;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The plugin broke down, or broke a rule of the contract.
    Trap(String),
    /// It took longer than its deadline.
    Deadline,
    /// It wanted more memory than there is for it.
    Memory,
    /// It gave more than may cross the boundary.
    OutputTooLarge,
    /// It said no.
    Refused {
        /// A stable code of the plugin's own.
        code: String,
        /// A sentence for a person.
        message: String,
    },
    /// The host could not do its part. Not the plugin's fault: try again.
    Unavailable,
}

impl Failure {
    /// The failure's name in the API and in metrics.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Trap(_) => "trap",
            Self::Deadline => "deadline",
            Self::Memory => "memory",
            Self::OutputTooLarge => "output_too_large",
            Self::Refused { .. } => "refused",
            Self::Unavailable => "unavailable",
        }
    }

    /// The same failure. A trap names the functions in which it happened, as far as the component says their names.
    pub(crate) fn located(self, error: &wasmtime::Error) -> Self {
        match (self, functions(error)) {
            (Self::Trap(reason), Some(functions)) => {
                Self::Trap(format!("{reason}, in {functions}"))
            }
            (failure, _) => failure,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trap(reason) => write!(formatter, "the plugin broke down: {reason}"),
            Self::Deadline => formatter.write_str("the plugin did not finish in time"),
            Self::Memory => formatter.write_str("the plugin ran out of memory"),
            Self::OutputTooLarge => formatter.write_str("the plugin's output is too large"),
            Self::Refused { code, message } => {
                formatter.write_str("the plugin refused")?;
                if !code.is_empty() {
                    write!(formatter, " ({code})")?;
                }
                if message.is_empty() {
                    formatter.write_str(", and did not say why")
                } else {
                    write!(formatter, ": {message}")
                }
            }
            Self::Unavailable => formatter.write_str("the host could not serve the plugin"),
        }
    }
}

/// A call that failed. Nothing that it asked for takes effect.
#[derive(Debug, thiserror::Error)]
#[error("{failure}")]
pub struct Failed {
    /// Why.
    pub failure: Failure,
    /// What the call cost, and what the plugin logged until then.
    pub call: Box<Call>,
}

/// How much of a failure is told, in characters.
const DETAIL_CHARACTERS: usize = 1_000;

impl Failed {
    /// What happened, for people: the failure, and the errors that the plugin logged, such as the message and place of a
    /// panic. A line that the plugin refused with is not said again. Has at most 1,000 characters and no NUL.
    pub fn detail(&self) -> String {
        let refused = match &self.failure {
            Failure::Refused { message, .. } => message.as_str(),
            _ => "",
        };
        let logged = self.call.logs.iter();
        let errors = logged
            .filter(|line| line.level == Level::Error)
            .filter(|line| !refused.lines().any(|told| told == line.message));
        let mut detail = self.failure.to_string();
        for line in errors {
            detail.push_str("; ");
            detail.push_str(&line.message);
        }
        text::shown(&detail, DETAIL_CHARACTERS)
    }

    /// Whether the host could not do its part, so that the same call may succeed later.
    pub fn is_the_hosts(&self) -> bool {
        self.failure == Failure::Unavailable
    }

    /// Whether the deadline passed while the thread hardly ran: the machine was busy, or the database slow, and
    /// nothing is known of the plugin.
    pub fn was_starved(&self) -> bool {
        self.failure == Failure::Deadline && self.call.hardly_ran
    }

    /// Whether the failure says nothing of the plugin: the host could not do its part, or let the call starve.
    pub fn is_inconclusive(&self) -> bool {
        self.is_the_hosts() || self.was_starved()
    }
}

/// Why the host ends a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Stop {
    #[error("more than {0} host calls")]
    TooManyHostCalls(u32),
    #[error("output too large")]
    OutputTooLarge,
    #[error("facts unavailable")]
    Unavailable,
    #[error("there is no batch in this call")]
    NoBatch,
    #[error("there is no {what} {index}")]
    OutOfRange { what: &'static str, index: u32 },
    #[error("item {item} does not concern campaign {campaign}")]
    Unconcerned { campaign: u32, item: u32 },
    #[error("a state has at most {} bytes", limits::STATE_BYTES)]
    StateTooLarge,
    #[error("a timer's key has at most {} bytes", limits::TIMER_KEY_BYTES)]
    TimerKeyTooLong,
    #[error("a timer's key has no NUL")]
    TimerKeyWithNul,
    #[error("a timer's payload has at most {} bytes", limits::TIMER_PAYLOAD_BYTES)]
    TimerPayloadTooLarge,
    #[error(
        "a call sets at most {} timers for a campaign and subject",
        limits::TIMERS_PER_SUBJECT
    )]
    TooManyTimers,
    #[error("at most {} properties can be read at a time", limits::PATHS)]
    TooManyPaths,
    #[error("a timer is due at most 90 days ahead")]
    TimerTooFarAhead,
    #[error(
        "a value is no JSON: a number is finite, an array or object is complete and not too deep"
    )]
    NotJson,
}

/// Says what an error of a call means. `memory_denied`: whether the call was refused memory before.
pub(crate) fn failure_of(error: &wasmtime::Error, memory_denied: bool) -> Failure {
    match error.downcast_ref::<Stop>() {
        Some(Stop::OutputTooLarge) => return Failure::OutputTooLarge,
        Some(Stop::Unavailable) => return Failure::Unavailable,
        Some(stop) => return Failure::Trap(stop.to_string()),
        None => {}
    }
    if error.downcast_ref::<Trap>() == Some(&Trap::Interrupt) {
        return Failure::Deadline;
    }
    if memory_denied {
        return Failure::Memory;
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return Failure::Unavailable;
    }
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return Failure::Trap(format!("the plugin exited with status {}", exit.0));
    }
    let reason = error.root_cause().to_string();
    // The type of this error is private to wasmtime.
    if reason.contains("fuel allocated for hostcalls has been exhausted") {
        return Failure::OutputTooLarge;
    }
    Failure::Trap(reason)
}

/// How many functions a trap names.
const FUNCTIONS: usize = 3;
/// The longest name of a function that is told, in bytes.
const FUNCTION_NAME_BYTES: usize = 100;

/// The functions that ran when an error happened, the innermost first.
fn functions(error: &wasmtime::Error) -> Option<String> {
    let backtrace = error.downcast_ref::<WasmBacktrace>()?;
    let names = backtrace
        .frames()
        .iter()
        .filter_map(|frame| frame.func_name())
        .filter(|name| is_an_authors(name))
        .take(FUNCTIONS)
        .collect::<Vec<_>>();
    (!names.is_empty()).then(|| names.join(" called by "))
}

/// Whether an author may know a function by this name. Names that compilers make begin with `_`.
fn is_an_authors(name: &str) -> bool {
    name.len() <= FUNCTION_NAME_BYTES
        && name.starts_with(|character: char| character.is_ascii_alphabetic())
        && name
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::LogLine;

    #[test]
    fn functions_are_told_by_names_of_their_authors() {
        for name in ["decide", "exports_plugin_evaluate", "average.part.0", "f2"] {
            assert!(is_an_authors(name), "{name}");
        }
        let long = "f".repeat(101);
        for name in [
            "",
            "_ZN4core9panicking5panic17h0E",
            "_RNvCs1_1a1b",
            "a b",
            "a\u{1b}[1m",
            &long,
        ] {
            assert!(!is_an_authors(name), "{name}");
        }
    }

    #[test]
    fn a_refusal_without_a_reason_is_told_as_one() {
        for (code, message, told) in [
            ("c", "m", "the plugin refused (c): m"),
            ("", "m", "the plugin refused: m"),
            ("c", "", "the plugin refused (c), and did not say why"),
            ("", "", "the plugin refused, and did not say why"),
        ] {
            let refused = Failure::Refused {
                code: code.to_owned(),
                message: message.to_owned(),
            };
            assert_eq!(refused.to_string(), told);
        }
    }

    #[test]
    fn what_a_plugin_refused_with_and_logged_is_told_once() {
        let line = |level, message: &str| LogLine {
            level,
            message: message.to_owned(),
        };
        let call = Call {
            logs: vec![
                line(Level::Info, "begun"),
                line(Level::Error, "Error: no total"),
                line(Level::Error, "onEvent@src/plugin.js:26"),
            ],
            ..Call::default()
        };
        let failure = Failure::Refused {
            code: "exception".to_owned(),
            message: "Error: no total".to_owned(),
        };
        let failed = Failed {
            failure,
            call: Box::new(call),
        };
        assert_eq!(
            failed.detail(),
            "the plugin refused (exception): Error: no total; onEvent@src/plugin.js:26"
        );
    }
}
