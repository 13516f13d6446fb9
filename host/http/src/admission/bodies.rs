//! Memory for bodies, of which each address has a share.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::refuse;
use crate::body::MOST_BODY_BYTES;
use crate::error::ApiError;

/// Bodies are counted in units of so many bytes.
const UNIT: usize = 1024;
/// The least room that there is: one body always fits, whatever is made of it, as none takes more than all of it.
const LEAST: usize = 4 * MOST_BODY_BYTES;
/// An address has one part of so many of the room, and [`LEAST`] at least.
const PARTS: usize = 4;

/// All the room.
#[derive(Debug)]
pub(super) struct Bodies {
    free: Arc<Semaphore>,
    units: usize,
    /// What one address takes at the most.
    units_of_one: usize,
    /// What each address takes that takes any.
    addresses: Arc<Mutex<HashMap<[u8; 16], usize>>>,
}

/// Memory for a body; given back when it is dropped.
#[derive(Debug)]
pub struct Room {
    free: Arc<Semaphore>,
    /// As much as there is: one body always fits.
    most: usize,
    taken: Option<OwnedSemaphorePermit>,
    /// None: it is of nobody's share.
    share: Option<AddressShare>,
}

/// What a body takes of its address's share; given back when it is dropped.
#[derive(Debug)]
struct AddressShare {
    address: [u8; 16],
    most: usize,
    taken: usize,
    addresses: Arc<Mutex<HashMap<[u8; 16], usize>>>,
}

impl Bodies {
    /// All of it is free.
    pub(super) fn new(bytes: usize) -> Self {
        let of = |bytes: usize| (bytes.max(LEAST) / UNIT).min(Semaphore::MAX_PERMITS);
        let units = of(bytes);
        Self {
            free: Arc::new(Semaphore::new(units)),
            units,
            units_of_one: of(bytes / PARTS),
            addresses: Arc::default(),
        }
    }

    /// What is taken, in bytes.
    pub(super) fn taken_bytes(&self) -> usize {
        self.units.saturating_sub(self.free.available_permits()) * UNIT
    }

    /// Room for a body, none of it taken yet.
    pub(super) fn room(&self, sender: Option<[u8; 16]>) -> Room {
        Room {
            free: Arc::clone(&self.free),
            most: self.units,
            taken: None,
            share: sender.map(|address| AddressShare {
                address,
                most: self.units_of_one,
                taken: 0,
                addresses: Arc::clone(&self.addresses),
            }),
        }
    }
}

impl Room {
    /// Makes the room what so many bytes take, or refuses.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), ApiError> {
        let wanted = bytes.div_ceil(UNIT).min(self.most);
        let has = self
            .taken
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        // The address's share first: what is beyond that takes nothing from others.
        let mut share = |units| {
            let share = self.share.as_mut();
            share.is_none_or(|share| share.resize(units))
        };
        if !share(wanted) {
            return Err(refuse("bodies"));
        }
        if wanted < has {
            // What is split off is dropped, and with it given back.
            drop(
                self.taken
                    .as_mut()
                    .and_then(|taken| taken.split(has - wanted)),
            );
        } else if wanted > has {
            let more = u32::try_from(wanted - has).unwrap_or(u32::MAX);
            let more = Arc::clone(&self.free).try_acquire_many_owned(more);
            let more = more.map_err(|_| {
                share(has);
                refuse("bodies")
            })?;
            match &mut self.taken {
                Some(taken) => taken.merge(more),
                None => self.taken = Some(more),
            }
        }
        Ok(())
    }
}

impl AddressShare {
    /// Takes so many units, or gives back what is more; answers whether the share has as many.
    fn resize(&mut self, units: usize) -> bool {
        // One body always fits.
        let wanted = units.min(self.most);
        let mut addresses = self.addresses.lock();
        let all = addresses.entry(self.address).or_default();
        let others = all.saturating_sub(self.taken);
        let fits = wanted <= self.taken || others + wanted <= self.most;
        if fits {
            *all = others + wanted;
            self.taken = wanted;
        }
        if *all == 0 {
            addresses.remove(&self.address);
        }
        fits
    }
}

impl Drop for AddressShare {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;

    const MIB: usize = MOST_BODY_BYTES;

    #[test]
    fn bodies_take_what_they_are_long() {
        let bodies = Bodies::new(0);
        let mut room = bodies.room(None);
        room.resize(3 * MIB).unwrap();
        let mut other = bodies.room(None);
        other.resize(MIB).unwrap();
        let refused = other.resize(MIB + 1).unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable);
        room.resize(1).unwrap();
        other.resize(3 * MIB).unwrap();
        drop((room, other));
        assert_eq!(bodies.taken_bytes(), 0);
    }

    #[test]
    fn an_address_leaves_room_to_the_others() {
        let bodies = Bodies::new(32 * MIB);
        let (one, two) = (Some([1; 16]), Some([2; 16]));
        let take = |sender, bytes| {
            let mut room = bodies.room(sender);
            room.resize(bytes).map(|()| room)
        };
        let mut rooms: Vec<Room> = (0..8).map(|_| take(one, MIB).unwrap()).collect();
        assert_eq!(take(one, 1).unwrap_err().code(), Code::Unavailable);
        assert_eq!(
            bodies.taken_bytes(),
            8 * MIB,
            "what is refused takes nothing"
        );
        take(two, 8 * MIB).unwrap();
        take(None, 24 * MIB).unwrap();
        // Whoever has room gives some back, or keeps it.
        assert!(rooms[0].resize(MIB + 1).is_err());
        rooms[0].resize(MIB).unwrap();
        rooms[0].resize(MIB / 2).unwrap();
        take(one, MIB / 2).unwrap();
        drop(rooms);
        // One body always fits.
        take(one, 30 * MIB).unwrap();
        assert!(bodies.addresses.lock().is_empty());
        assert_eq!(bodies.taken_bytes(), 0);
    }
}
