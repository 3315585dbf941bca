//! Counts what the program allocates, where a row asks for it.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mimalloc::MiMalloc;

/// The same for every program, as in the program `onward`. SQLite has C's in all of them.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);

struct Counting;

/// How many allocations, also such that make one larger, there are from now on until the answer is
/// called.
pub fn count_allocations() -> impl FnOnce() -> u64 {
    let before = COUNT.load(Ordering::Relaxed);
    IS_COUNTING.store(true, Ordering::Relaxed);
    move || {
        IS_COUNTING.store(false, Ordering::Relaxed);
        COUNT.load(Ordering::Relaxed) - before
    }
}

/// While nobody counts, it costs a load that always finds the same.
#[inline]
fn note() {
    if IS_COUNTING.load(Ordering::Relaxed) {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

#[expect(unsafe_code, reason = "the interface of an allocator is unsafe; everything is handed on as it came")]
// SAFETY: the other allocator keeps what the trait asks for, and gets exactly what it was asked for here.
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
