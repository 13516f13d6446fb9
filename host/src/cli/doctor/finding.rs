//! What the doctor finds.

use std::fmt;

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// All is well.
    Good,
    /// Somebody should look at it.
    Warning,
    /// Something does not work.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// What was looked at.
    subject: &'static str,
    /// What was seen.
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'static str>,
}

impl Finding {
    pub(super) fn good(subject: &'static str, detail: impl Into<String>) -> Self {
        Self {
            level: Level::Good,
            subject,
            detail: detail.into(),
            next: None,
        }
    }

    pub(super) fn warning(
        subject: &'static str,
        detail: impl Into<String>,
        next: &'static str,
    ) -> Self {
        Self {
            level: Level::Warning,
            next: Some(next),
            ..Self::good(subject, detail)
        }
    }

    pub(super) fn problem(
        subject: &'static str,
        detail: impl Into<String>,
        next: &'static str,
    ) -> Self {
        Self {
            level: Level::Problem,
            ..Self::warning(subject, detail, next)
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.level {
            Level::Good => "ok     ",
            Level::Warning => "warning",
            Level::Problem => "PROBLEM",
        };
        write!(formatter, "{mark}  {}: {}", self.subject, self.detail)?;
        match self.next {
            Some(next) => write!(formatter, "\n         -> {next}"),
            None => Ok(()),
        }
    }
}

/// How many findings matter so much.
pub(super) fn count(findings: &[Finding], level: Level) -> usize {
    findings
        .iter()
        .filter(|finding| finding.level == level)
        .count()
}
