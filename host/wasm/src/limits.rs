//! Every limit on plugins. No other file has a number of this sort.

use std::time::Duration;

/// What a plugin may use. The operator can change these; the constants of this module are fixed by the
/// contract.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Linear memory of an instance, all its memories together.
    pub memory_bytes: usize,
    /// Wall-clock time of a trigger plugin's `evaluate`.
    pub trigger_deadline: Duration,
    /// Wall-clock time of a validation plugin's `validate`.
    pub validation_deadline: Duration,
    /// Wall-clock time of a personalization plugin's `resolve`.
    pub personalization_deadline: Duration,
    /// Wall-clock time of `describe` and of `check-config`.
    pub describe_deadline: Duration,
    /// Everything that a plugin gives to the host within a call.
    pub output_bytes: usize,
    /// What is kept of a call's log.
    pub log_bytes: usize,
    /// Calls of host functions within a call, before the allowance for each item and campaign.
    pub host_calls: u32,
    /// Elements of a table.
    pub table_elements: usize,
    /// Time for compiling a component.
    pub compile_seconds: u64,
    /// Address space for compiling a component.
    pub compile_memory_bytes: u64,
    /// Size of a component.
    pub component_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 64 << 20,
            trigger_deadline: Duration::from_millis(50),
            validation_deadline: Duration::from_millis(20),
            personalization_deadline: Duration::from_millis(50),
            describe_deadline: Duration::from_secs(1),
            output_bytes: 256 << 10,
            log_bytes: 8 << 10,
            host_calls: 1000,
            table_elements: 100_000,
            compile_seconds: 60,
            compile_memory_bytes: 2 << 30,
            component_bytes: 64 << 20,
        }
    }
}

/// What somebody allows less of than the operator. Nothing of it raises a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lowered {
    /// See [`Limits::memory_bytes`].
    pub memory_bytes: Option<usize>,
    /// The deadline of triggers and personalization.
    pub deadline: Option<Duration>,
    /// See [`Limits::validation_deadline`].
    pub validation_deadline: Option<Duration>,
    /// See [`Limits::output_bytes`].
    pub output_bytes: Option<usize>,
    /// See [`Limits::log_bytes`].
    pub log_bytes: Option<usize>,
    /// See [`Limits::host_calls`].
    pub host_calls: Option<u32>,
}

impl Limits {
    /// The lower of both, limit by limit.
    #[must_use]
    pub fn lowered(&self, to: &Lowered) -> Self {
        fn lower<T: Ord + Copy>(limit: T, to: Option<T>) -> T {
            to.map_or(limit, |to| limit.min(to))
        }
        Self {
            memory_bytes: lower(self.memory_bytes, to.memory_bytes),
            trigger_deadline: lower(self.trigger_deadline, to.deadline),
            personalization_deadline: lower(self.personalization_deadline, to.deadline),
            validation_deadline: lower(self.validation_deadline, to.validation_deadline),
            output_bytes: lower(self.output_bytes, to.output_bytes),
            log_bytes: lower(self.log_bytes, to.log_bytes),
            host_calls: lower(self.host_calls, to.host_calls),
            ..self.clone()
        }
    }

    /// How many host functions a call on a batch of this size may call: a batch of many campaigns is not a
    /// misbehaving plugin.
    pub fn host_calls_for(&self, items: usize, configurations: usize) -> u32 {
        let parts = u32::try_from(items.saturating_add(configurations)).unwrap_or(u32::MAX);
        self.host_calls
            .saturating_add(parts.saturating_mul(HOST_CALLS_PER_PART))
    }
}

/// Host functions that each item, and each campaign, definition or message, allows on top.
pub const HOST_CALLS_PER_PART: u32 = 20;

/// State of a campaign and subject.
pub const STATE_BYTES: usize = 4 << 10;

/// Key of a timer.
pub const TIMER_KEY_BYTES: usize = 128;

/// Payload of a timer.
pub const TIMER_PAYLOAD_BYTES: usize = 1 << 10;

/// Timers of a campaign and subject that one call may set.
pub const TIMERS_PER_SUBJECT: usize = 64;

/// How far ahead a timer may be due: 90 days.
pub const TIMER_AHEAD_MICROSECONDS: i64 = 90 * 24 * 60 * 60 * 1_000_000;

/// Most events that `count-events` counts.
pub const COUNTED_EVENTS: u32 = 1000;

/// Most events that `recent-events` gives: as many as `count-events` counts.
pub const RECENT_EVENTS: u32 = COUNTED_EVENTS;

/// Properties that a configuration may read, and that one question may ask for. An event has no more.
pub const PATHS: usize = 256;

/// Keys in a dotted path. Events nest no deeper (contract 15), so that a longer path finds nothing but a key
/// that is written exactly so.
pub(crate) const PATH_KEYS: usize = 64;

/// Properties that the campaigns of a batch may read all together for their events to be read once for all.
/// Looking for more costs more than it saves.
pub(crate) const SHARED_PATHS: usize = 4096;

/// What a plugin's refusal may be, in characters: a code, and a sentence for a person.
pub(crate) const REFUSAL_CODE_CHARACTERS: usize = 64;

/// See [`REFUSAL_CODE_CHARACTERS`].
pub(crate) const REFUSAL_MESSAGE_CHARACTERS: usize = 1000;

/// Where the host cuts what an explanation says was checked, in characters.
pub(crate) const CHECK_CHARACTERS: usize = 64;

/// Where the host cuts the details of an explanation, in characters.
pub(crate) const DETAIL_CHARACTERS: usize = 1000;

/// What an element of a list counts as output, apart from its texts: a list of empty texts is not free.
pub(crate) const ELEMENT_BYTES: usize = 16;

/// Machine code of a component, and what the compiler complains about. A component of the largest size
/// compiles to less.
pub(crate) const COMPILED_BYTES: u64 = 1 << 30;

/// Compiled plugins on disk, all together: some hundred of usual size, or a few dozen with an interpreter.
pub(crate) const CACHE_BYTES: u64 = 4 << 30;

/// How long a compiled plugin may lie on disk without being loaded. A server that runs for longer compiles it again.
pub(crate) const CACHE_AGE: Duration = Duration::from_hours(90 * 24);

/// How long what a compilation leaves behind counts as under way: more than any may take. Other processes
/// may use the same folder.
pub(crate) const LEFT_BEHIND: Duration = Duration::from_hours(1);

/// Where the host cuts names and texts of a component that it shows in an error, in characters.
pub(crate) const SHOWN_CHARACTERS: usize = 100;

/// How many names of a component the host shows in an error.
pub(crate) const SHOWN_NAMES: usize = 20;

/// Where the host cuts a violation's code, in characters.
pub(crate) const CODE_CHARACTERS: usize = 64;

/// Where the host cuts what a violation found and what it expected, and its property, in characters.
pub const ACTUAL_CHARACTERS: usize = 200;

/// What the host's copy of a plugin's answer may be larger than the output limit: the output is counted by
/// content, the copy by memory layout.
pub(crate) const COPY_FACTOR: usize = 8;

/// Length of a plugin's name.
pub const NAME_BYTES: usize = 64;

/// Length of a plugin's version.
pub const VERSION_BYTES: usize = 64;

/// Length of what a plugin says of itself for people.
pub(crate) const SUMMARY_BYTES: usize = 4 << 10;

/// By how much the compiler's process gives way to this one, as `nice` counts.
pub(crate) const COMPILER_NICENESS: i32 = 5;

/// Files that the compiler's process may have open: those that it is given, and a few more while it starts.
pub(crate) const COMPILER_FILES: u64 = 16;

/// Core instances of a component. Guests that link shared libraries have dozens.
pub(crate) const CORE_INSTANCES: u32 = 64;

/// Memories of a component.
pub(crate) const MEMORIES: u32 = 4;

/// Tables of a component, and of a module: JavaScript and Go guests need two.
pub(crate) const TABLES: u32 = 16;

/// Resources (streams, pollables) that a guest may hold at a time.
pub(crate) const WASI_RESOURCES: usize = 1000;

/// Random bytes that a guest may ask WASI for at a time.
pub(crate) const WASI_RANDOM_BYTES: u64 = 64 << 10;

/// Linear memory that stays resident in a pool slot between calls: all of a small guest's. Clearing it is
/// quicker than the page faults of fresh memory.
pub(crate) const RESIDENT_MEMORY_BYTES: usize = 512 << 10;

/// Table that stays resident in a pool slot between calls.
pub(crate) const RESIDENT_TABLE_BYTES: usize = 16 << 10;

/// Time between two epochs; deadlines are whole epochs.
pub(crate) const EPOCH: Duration = Duration::from_millis(1);

/// What is kept of the compiler's complaint.
pub(crate) const COMPLAINT_BYTES: usize = 2 << 10;
