//! One way in which an event breaks its definition.

use serde::Deserialize;
use serde::Serialize;
use utoipa::ToSchema;

/// One way in which an event breaks its definition (contract 11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Violation {
    /// A stable reason.
    pub code: String,
    /// The property.
    pub property: String,
    /// What the definition asks for.
    pub expected: String,
    /// What the event has.
    pub actual: String,
}
