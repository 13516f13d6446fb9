//! A subject's earlier events, as plugins get them.

use crate::bindings::types;
use crate::limits::RECENT_EVENTS;
use crate::projection::Projection;
use crate::value::PastEvent;

/// How many events a plugin gets that asks for `limit`.
pub(super) fn limit(limit: u32) -> u32 {
    limit.min(RECENT_EVENTS)
}

/// Whether an event can have this name. Databases refuse to look for a text with a NUL, which would look as
/// if they were unavailable.
pub(super) fn can_be_name(name: &str) -> bool {
    !name.contains('\0')
}

/// Events, with the properties that `paths` name.
pub(super) fn table(events: &[PastEvent], paths: &[String]) -> types::History {
    types::History {
        ids: events.iter().map(|event| event.id.to_string()).collect(),
        timestamps: events.iter().map(|event| event.timestamp).collect(),
        properties: Projection::new(paths)
            .table(events.iter().map(|event| Some(&*event.properties))),
    }
}
