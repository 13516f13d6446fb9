//! What was checked when a version was uploaded.

use serde::Deserialize;
use serde::Serialize;
use utoipa::ToSchema;

/// Something that was checked when a version was uploaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    name: String,
    passed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl Check {
    /// A check that was passed; what is refused has no checks.
    pub(super) fn passed(name: &str, detail: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            passed: true,
            detail: Some(detail.into()),
        }
    }
}
