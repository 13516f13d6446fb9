//! Which of a subject's instructions a poll asks for.

use nudge_db::Timestamp;

/// What of a subject's instructions is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// Only positions after this one, or of surveys that were activated after `since`.
    pub after: i64,
    /// None: only positions after `after`.
    pub since: Option<Timestamp>,
    /// Only positions up to this one.
    pub until: i64,
    /// Only what comes after this priority and position; none: everything.
    pub below: Option<(i64, i64)>,
}
