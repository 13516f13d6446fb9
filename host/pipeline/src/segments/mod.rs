//! Who is in a segment, and who enters and leaves (contract 19).
//!
//! The default trigger plugin decides, by the segment's conditions and as of now ([`decide`]): for the members of a segment, for
//! previews, and for those whose segments may have changed. Two ways lead there. What an event, a property or a merge may
//! have changed of a *watched* segment is noted in the transaction of that change, and looked at at once ([`checks`]). All
//! people of an app are gone through by a job ([`job`]), once a segment is saved, and then so often that sizes are at most an
//! hour old; that also notices what time alone changes.
//!
//! # Invariants
//!
//! - **A change is told once.** Who was in and who is are compared, and the difference is written, in one transaction that holds the
//!   person's row and has seen no newer version of it ([`members`]). What follows for campaigns is written there too: an
//!   occasion for each campaign that waits for the change. So neither two processes, nor a sweep beside events, nor a crash tells it
//!   twice or never.
//! - **Whose membership was not known before has not changed.** Until a job has gone through everybody once for the
//!   conditions as they are, only people who came later enter.

pub mod checks;
pub mod decide;
pub mod job;
mod members;
pub mod preview;
pub mod store;
