//! How much of what was committed is in memory: events, and the bytes that they have.

use std::sync::Arc;

use nudge_http::body::MOST_BODY_BYTES;
use nudge_platform::config;
use nudge_records::events::store::Stored;
use nudge_records::events::{self, Event, MOST_BYTES as MOST_EVENT_BYTES};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes are counted in units of so many.
const UNIT: usize = 1024;
/// What an event takes beside its properties.
const BESIDE: usize = 256;

/// The memory for events. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Space {
    events: Arc<Semaphore>,
    most_events: usize,
    units: Arc<Semaphore>,
    most_units: usize,
}

/// A place in memory for the events of some work; given back when it is dropped.
#[derive(Debug)]
pub struct Room {
    _events: OwnedSemaphorePermit,
    _units: OwnedSemaphorePermit,
}

/// What some events take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    events: usize,
    bytes: usize,
}

impl Size {
    /// So many events of so many bytes together.
    pub fn new(events: usize, bytes: usize) -> Self {
        Self { events, bytes }
    }

    /// Of events.
    pub fn of<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        events
            .into_iter()
            .fold(Self::new(0, 0), |size, event| Self {
                events: size.events + 1,
                bytes: size.bytes + event.properties.len() + event.name.len() + BESIDE,
            })
    }

    /// Of events that are stored.
    pub fn of_stored(events: &[Stored]) -> Self {
        Self::of(events.iter().map(|stored| &*stored.event))
    }
}

impl Space {
    /// All of it is free.
    pub(super) fn new(config: &config::Pipeline) -> Self {
        let most_events = config.memory_events.clamp(1, Semaphore::MAX_PERMITS);
        // The events of one request always fit.
        let bytes = config.memory_bytes.max(2 * MOST_BODY_BYTES);
        let most_units = (bytes / UNIT).min(Semaphore::MAX_PERMITS);
        Self {
            events: Arc::new(Semaphore::new(most_events)),
            most_events,
            units: Arc::new(Semaphore::new(most_units)),
            most_units,
        }
    }

    /// Room for so much, if there is.
    pub(super) fn try_take(&self, size: Size) -> Option<Room> {
        let (events, units) = self.permits(size);
        let events = Arc::clone(&self.events).try_acquire_many_owned(events);
        let events = events.ok()?;
        let units = Arc::clone(&self.units).try_acquire_many_owned(units);
        Some(Room {
            _events: events,
            _units: units.ok()?,
        })
    }

    /// Room for so much, when there is.
    pub(super) async fn take(&self, size: Size) -> Option<Room> {
        let (events, units) = self.permits(size);
        // In this order, so that nobody waits for what has only the other half.
        let events = Arc::clone(&self.events).acquire_many_owned(events).await;
        let events = events.ok()?;
        let units = Arc::clone(&self.units).acquire_many_owned(units).await;
        Some(Room {
            _events: events,
            _units: units.ok()?,
        })
    }

    fn permits(&self, size: Size) -> (u32, u32) {
        let of = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let events = size.events.min(self.most_events);
        let units = size.bytes.div_ceil(UNIT).min(self.most_units);
        (of(events), of(units))
    }

    /// How many of the largest requests could still be taken into memory.
    pub(super) fn free_requests(&self) -> usize {
        let events = self.events.available_permits() / events::MOST_EVENTS;
        let bytes = self.units.available_permits() * UNIT;
        events.min(bytes / MOST_BODY_BYTES)
    }

    /// How many of the largest events could still be taken into memory.
    pub(super) fn free_events(&self) -> usize {
        let bytes = self.units.available_permits() * UNIT;
        let events = self.events.available_permits();
        events.min(bytes / MOST_EVENT_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use nudge_db::Timestamp;
    use uuid::Uuid;

    use super::*;
    use nudge_platform::config::Config;

    fn event(bytes: usize) -> Event {
        Event {
            id: Uuid::nil(),
            name: "x".into(),
            timestamp: Timestamp(0),
            client_timestamp: None,
            properties: "x".repeat(bytes).into(),
        }
    }

    fn space(events: usize, bytes: usize) -> Space {
        let mut config = Config::defaults().unwrap().pipeline;
        config.memory_events = events;
        config.memory_bytes = bytes;
        Space::new(&config)
    }

    #[test]
    fn events_of_the_largest_size_do_not_fill_memory() {
        let config = Config::defaults().unwrap().pipeline;
        let space = Space::new(&config);
        let largest = vec![event(MOST_EVENT_BYTES - 256); 15];
        let size = Size::of(&largest);
        let rooms: Vec<Room> = std::iter::from_fn(|| space.try_take(size))
            .take(config.memory_events)
            .collect();
        let bytes = rooms.len() * largest.len() * MOST_EVENT_BYTES;
        assert!(bytes <= config.memory_bytes, "{bytes}");
        assert_eq!(space.free_requests(), 0);

        drop(rooms);
        let small = Size::of(&[event(300)]);
        let rooms: Vec<Room> = std::iter::from_fn(|| space.try_take(small)).collect();
        assert_eq!(
            rooms.len(),
            config.memory_events,
            "small ones are as many as before"
        );
    }

    #[tokio::test]
    async fn whatever_is_larger_than_all_waits_for_all() {
        let space = space(10, 1);
        let all = Size::of(&vec![event(MOST_EVENT_BYTES); 100]);
        let room = space.try_take(all);
        assert!(room.is_some());
        assert_eq!(space.free_events(), 0);
        let small = Size::of(&[event(1)]);
        assert!(space.try_take(small).is_none());
        let mut waits = std::pin::pin!(space.take(small));
        assert!(futures_util::FutureExt::now_or_never(&mut waits).is_none());
        drop(room);
        assert!(waits.await.is_some());
        assert_eq!(
            space.free_requests(),
            0,
            "ten events are less than a request has"
        );
        assert_eq!(space.free_events(), 10);
    }
}
