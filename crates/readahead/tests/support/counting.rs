//! An allocator that counts, for tests that allow no allocation, in this crate and (by path) in others.
//!
//! A test that uses it needs `#![allow(unsafe_code)]`: a global allocator is an unsafe trait.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Allocations of this thread. Constant and without a destructor, so that counting does not itself allocate.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, with a counter.
struct Counting;

// SAFETY: every call goes unchanged to `System`, which keeps the trait's promises. Counting only touches a thread-local
// integer, and neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are `System`'s, and `pointer` came from it.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread so far.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.get()
}

#[test]
fn allocations_are_counted() {
    let before = allocations();
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(allocations() - before, 1);
}
