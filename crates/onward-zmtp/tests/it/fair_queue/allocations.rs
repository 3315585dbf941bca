//! Tests that a message costs no allocation.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use allocation_counter::measure;
use futures_core::Stream;
use onward_zmtp::FairQueue;

/// A source that returns a message at two polls of three, and wakes itself at the third.
struct Steady(u32);

impl Stream for Steady {
    type Item = u32;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<u32>> {
        self.0 += 1;
        if self.0.is_multiple_of(3) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(self.0))
    }
}

/// Returns the number of allocations of ten thousand polls after the first thousand.
fn allocations(sources: u32, mut poll: impl FnMut(&mut FairQueue<u32, Steady>, &mut Context<'_>)) -> u64 {
    let mut queue = FairQueue::new();
    for key in 0..sources {
        queue.insert(key, Steady(key)).unwrap();
    }
    let mut context = Context::from_waker(Waker::noop());
    (0..1000).for_each(|_| poll(&mut queue, &mut context));
    measure(|| (0..10_000).for_each(|_| poll(&mut queue, &mut context))).count_total
}

#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn the_steady_path_allocates_nothing() {
    for sources in [1, 2, 100, 1000] {
        let count = allocations(sources, |queue, context| _ = queue.poll_recv(context));
        assert_eq!(count, 0, "{sources} sources");
    }
}

#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn batches_into_a_vector_with_room_allocate_nothing() {
    for sources in [1, 2, 100, 1000] {
        let mut messages = Vec::with_capacity(64);
        let count = allocations(sources, |queue, context| {
            let _ = queue.poll_recv_many(context, &mut messages, 64);
            messages.clear();
        });
        assert_eq!(count, 0, "{sources} sources");
    }
}

#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn looking_without_waiting_allocates_nothing() {
    assert_eq!(allocations(5, |queue, _| _ = queue.try_recv()), 0);
}
