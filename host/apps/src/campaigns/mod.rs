//! Campaigns.

pub mod ending;
pub mod http;
pub mod push_ending;
pub mod survey_ending;
pub mod survey_removal;
