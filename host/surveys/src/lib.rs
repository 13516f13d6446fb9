//! Surveys as SDKs run them: instructions, attempts, answers; and their results.
//!
//! # Invariants
//!
//! - **An answer is taken if it is of its question's type and the way leads to it.** A request's answers are taken together or not at all, under the subject's lock.
//! - **The id of an attempt follows from its instruction's**, so that a coordinated survey hands it out before there is an attempt.
//! - **Results are sums over attempts of one pure function** (`attempts/tally.rs`). Erasing a person takes its tallies out; merging changes none.
//!   Abandonment by silence is never stored: it follows from the clock.
//! - **A cursor of instructions is a position, and positions ascend as things become available** (`instructions/polling.rs`). Pages go by priority, so that a cursor
//!   may also say how far its window is read.
//! - **A person has one button of a survey** (`instructions/feedback.rs`). Whom it is for is asked when that person polls and, while the poll waits, when the app or
//!   the person changes: properties move the person's version in an app that has buttons. What changes is written under the subject's lock, with a new position
//!   where a cursor is to see it.

pub mod attempts;
pub mod instructions;
pub mod router;
pub mod services;
pub mod surveys;
