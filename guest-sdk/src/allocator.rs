//! The allocator of plugins.
//!
//! The host runs each batch in a fresh instance, so what counts is how cheap the first allocations are.
//! Growing the memory is a system call and a page fault or two. This allocator hands out bytes of an arena
//! that is part of the instance's initial memory, one after another, and begins anew when nothing is live.
//! What does not fit goes to the system's allocator.
#![expect(unsafe_code, reason = "an allocator hands out raw memory")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;

/// Room for batches of some hundred events. The host looks through all of the memory after each call, so
/// what few plugins need is not there from the beginning.
const ARENA_BYTES: usize = 96 * 1024;

#[global_allocator]
static ALLOCATOR: Arena = Arena {
    bytes: UnsafeCell::new([0; ARENA_BYTES]),
    state: UnsafeCell::new(State { used: 0, live: 0 }),
};

#[repr(C, align(16))]
struct Arena {
    bytes: UnsafeCell<[u8; ARENA_BYTES]>,
    state: UnsafeCell<State>,
}

struct State {
    /// Where the free part begins.
    used: usize,
    /// How many allocations of the arena were not freed.
    live: usize,
}

// SAFETY: plugins have no threads: the contract has none to give.
unsafe impl Sync for Arena {}

impl Arena {
    fn start(&self) -> usize {
        self.bytes.get() as usize
    }

    fn contains(&self, block: *mut u8) -> bool {
        (block as usize).wrapping_sub(self.start()) < ARENA_BYTES
    }
}

// SAFETY: blocks of the arena do not overlap, because `used` only grows past them until none is live;
// they are aligned, and end within the arena. All others are the system allocator's.
unsafe impl GlobalAlloc for Arena {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: no other reference to the state lives, as nothing below allocates while this one does.
        let state = unsafe { &mut *self.state.get() };
        let begin = (self.start() + state.used).next_multiple_of(layout.align()) - self.start();
        match begin.checked_add(layout.size()) {
            Some(end) if end <= ARENA_BYTES => {
                state.used = end;
                state.live += 1;
                // SAFETY: `begin` lies within the arena.
                unsafe { self.bytes.get().cast::<u8>().add(begin) }
            }
            // SAFETY: the caller's promises are the same.
            _ => unsafe { System.alloc(layout) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !self.contains(block) {
            // SAFETY: it came from the system allocator with this layout.
            return unsafe { System.dealloc(block, layout) };
        }
        // SAFETY: as in `alloc`.
        let state = unsafe { &mut *self.state.get() };
        state.live -= 1;
        let begin = block as usize - self.start();
        if state.live == 0 {
            state.used = 0;
        } else if begin + layout.size() == state.used {
            state.used = begin;
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !self.contains(block) {
            // SAFETY: it came from the system allocator with this layout.
            return unsafe { System.realloc(block, layout, new_size) };
        }
        // SAFETY: as in `alloc`; the reference ends before anything else allocates.
        let state = unsafe { &mut *self.state.get() };
        let begin = block as usize - self.start();
        if begin + layout.size() == state.used && begin + new_size <= ARENA_BYTES {
            // The last block grows and shrinks where it is.
            state.used = begin + new_size;
            return block;
        }
        // SAFETY: the alignment was valid before, and the caller promises that the size is.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: both blocks have at least the smaller size, and do not overlap.
        unsafe {
            let new_block = self.alloc(new_layout);
            if !new_block.is_null() {
                ptr::copy_nonoverlapping(block, new_block, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
            new_block
        }
    }
}
