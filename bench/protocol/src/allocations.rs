//! Counts the allocations of the program in rows that ask for it.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mimalloc::MiMalloc;

/// The allocator of every program, the same as in the program `onward`. SQLite uses C's allocator
/// in all of them.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);

struct Counting;

/// Starts counting allocations, including reallocations. The returned function stops the count and
/// returns it.
pub fn count_allocations() -> impl FnOnce() -> u64 {
    let before = COUNT.load(Ordering::Relaxed);
    IS_COUNTING.store(true, Ordering::Relaxed);
    move || {
        IS_COUNTING.store(false, Ordering::Relaxed);
        COUNT.load(Ordering::Relaxed) - before
    }
}

/// Counts an allocation. While counting is off, it costs a load that always returns the same value.
#[inline]
fn note() {
    if IS_COUNTING.load(Ordering::Relaxed) {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

#[expect(unsafe_code, reason = "the interface of an allocator is unsafe; everything is handed on as it came")]
// SAFETY: the other allocator fulfils the contract of the trait, and gets exactly the arguments
// that were passed here.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }
}
