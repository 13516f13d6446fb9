//! Campaigns.

pub mod ending;
pub mod http;
pub mod survey_removal;
