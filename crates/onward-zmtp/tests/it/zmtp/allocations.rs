//! Tests that count allocations.

use allocation_counter::measure;
use bytes::Bytes;
use onward_zmtp::protocol::bounds::{SHARE_BYTES, SHARED_PART};
use onward_zmtp::protocol::{Options, SocketType};

use super::link::{Seen, command, drain, feed, frame, introduced, message, pair, start};

/// The result of `work`, and the allocations that it made on this thread.
pub(crate) struct Counted<T> {
    pub(crate) result: T,
    /// The number of allocations.
    pub(crate) calls: u64,
    /// The most bytes allocated at a time, beyond those before.
    pub(crate) peak: i64,
    /// The number of bytes that are still allocated.
    pub(crate) live: i64,
}

pub(crate) fn counted<T>(work: impl FnOnce() -> T) -> Counted<T> {
    let mut result = None;
    let info = measure(|| result = Some(work()));
    let result = result.expect("the work was done");
    Counted { result, calls: info.count_total, peak: info.bytes_max as i64, live: info.bytes_current }
}

/// Returns a long frame, built by hand.
fn long_frame(body: &[u8]) -> Vec<u8> {
    [&[2][..], &(body.len() as u64).to_be_bytes(), body].concat()
}

/// Returns the bytes that stay allocated for a kept message of this index after its connection is
/// dropped, and the size of that message.
fn kept_for(bytes: &[u8], index: usize) -> (i64, usize) {
    let counted = counted(|| {
        let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
        feed(&mut pull, bytes);
        let Some(Seen::Message(kept)) = feed(&mut pull, bytes).into_iter().nth(index) else { panic!("no message") };
        kept
    });
    // The list that holds the test's own message does not count.
    let Counted { live, .. } = counted;
    (live - (counted.result.capacity() * size_of::<Bytes>()) as i64, counted.result[0].len())
}

/// Shows: M5
#[test]
fn a_small_message_is_decoded_with_one_allocation_that_of_its_payload() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    let batch = frame(0, &[5; 64]).repeat(100);
    feed(&mut pull, &batch);
    let counted = counted(|| {
        assert_eq!(pull.receive(&batch), batch.len());
        let mut messages = 0;
        while pull.poll_event(start()).unwrap().is_some() {
            messages += 1;
        }
        messages
    });
    assert_eq!(counted.result, 100);
    assert_eq!(counted.calls, 100);
}

/// Shows: M5
#[test]
fn a_batch_of_small_messages_is_encoded_without_an_allocation() {
    let mut push = introduced(Options::new(SocketType::Push), "PULL");
    let messages = || (0..100).map(|_| message(&[b"head", &[5; 64]])).collect::<Vec<_>>();
    messages().into_iter().for_each(|message| push.send(message).unwrap());
    drain(&mut push);
    let messages = messages();
    let counted = counted(|| messages.into_iter().for_each(|message| push.send(message).unwrap()));
    assert_eq!(counted.calls, 0);
}

/// Shows: M5
/// Beats: pinned-buffers
#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn a_small_message_that_is_kept_pins_nothing_but_itself() {
    let (kept, size) = kept_for(&frame(0, &[5; 16]).repeat(3000), 1000);
    assert!(kept <= size as i64, "{kept} bytes are kept for a message of {size}");
}

/// One read of many messages of 4 KiB: allocates one buffer and its sharing state, instead of a
/// copy for each message.
///
/// Shows: M5
#[test]
fn messages_that_fill_a_read_are_not_copied() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    let batch = long_frame(&[5; 4096]).repeat(15);
    feed(&mut pull, &batch);
    let mut messages = Vec::with_capacity(15);
    let counted = counted(|| {
        assert_eq!(pull.receive(&batch), batch.len());
        while let Some(event) = pull.poll_event(start()).unwrap() {
            messages.push(Seen::from(event));
        }
    });
    assert_eq!(messages.len(), 15);
    // The next buffer, its sharing state, and for each message the list of the test's own frame.
    assert!(counted.calls <= 2 + 15, "{} allocations", counted.calls);
    assert!(counted.peak < 64 * 1024 + 1024, "{} bytes were allocated", counted.peak);
}

/// Shows: M5
#[test]
fn a_message_of_some_size_that_comes_alone_pins_nothing_but_itself() {
    let (kept, size) = kept_for(&long_frame(&[5; 8000]), 0);
    assert!(kept <= size as i64, "{kept} bytes are kept for a message of {size}");
}

/// Shows: M5
#[test]
fn a_small_message_among_large_ones_pins_nothing_but_itself() {
    let (kept, size) = kept_for(&[long_frame(&[5; 4096]), frame(0, &[5; 16])].concat().repeat(15), 1);
    assert_eq!(size, 16);
    assert!(kept <= 16, "{kept} bytes are kept for a message of {size}");
}

/// A kept message pins at most a fixed multiple of its own size, and nothing at all if it is small.
/// Messages received with it make no difference.
///
/// Shows: M5
#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn a_message_that_is_kept_pins_no_buffer_that_is_large_beside_it() {
    for size in [256, 1024, 2000, 4000, 4096, 8000, 16_384, 20_000, 65_536] {
        // Enough messages to make the buffer large, then to fill it.
        let (kept, size) = kept_for(&long_frame(&vec![5; size]).repeat(1024 * 1024 / size), 600 * 1024 / size);
        let most = if size < SHARE_BYTES { size } else { SHARED_PART * size + 100 };
        assert!(kept <= most as i64, "{kept} bytes are kept for a message of {size}");
    }
}

/// A peer that knows which frames share a buffer cannot make the socket keep more memory by mixing
/// them with others.
///
/// Shows: M5
#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn large_frames_among_what_is_not_kept_pin_nothing_but_themselves() {
    let mix = [long_frame(&[5; 4096]), command("NOTHING", &[0; 200]).repeat(500)].concat().repeat(100);
    let counted = counted(|| {
        let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
        (feed(&mut pull, &mix), pull)
    });
    assert_eq!(counted.result.0.len(), 100);
    assert!(counted.live < 4 * 100 * 4096, "{} bytes are kept", counted.live);
}

/// Shows: M5
#[test]
fn a_connection_that_rests_keeps_no_large_buffers() {
    let counted = counted(|| {
        let (mut push, mut pull) = pair(Options::new(SocketType::Push), Options::new(SocketType::Pull));
        for _ in 0..3 {
            while !push.output().is_full() {
                push.send(message(&[&[5; 1000]])).unwrap();
            }
            feed(&mut pull, &drain(&mut push));
        }
        push.shrink_idle();
        pull.shrink_idle();
        (push, pull)
    });
    assert!(counted.live < 80 * 1024, "{} bytes are kept", counted.live);
}

/// Messages kept together pin the buffers that they came in, which are hardly larger than the
/// messages.
///
/// Shows: M5
#[test]
#[cfg_attr(miri, ignore = "many steps, which others take one by one")]
fn messages_that_wait_take_the_memory_of_their_payload_and_hardly_more() {
    for size in [1024, 4096, 20_000, 65_536, 100_000] {
        let count = 8 * 1024 * 1024 / size;
        let batch = long_frame(&vec![5; size]).repeat(count);
        let counted = counted(|| {
            let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
            let kept = feed(&mut pull, &batch);
            (kept, pull)
        });
        assert_eq!(counted.result.0.len(), count);
        let payload = (count * size) as i64;
        assert!(counted.live < payload * 3 / 2, "{} bytes for {payload} of {size} each", counted.live);
    }
}

#[test]
fn a_large_payload_is_written_from_where_it_is() {
    let mut push = introduced(Options::new(SocketType::Push), "PULL");
    let large = message(&[&vec![1; 1024 * 1024]]);
    let counted = counted(|| push.send(large).unwrap());
    assert!(counted.peak < 1024, "{} bytes were allocated", counted.peak);
    assert_eq!(drain(&mut push).len(), 9 + 1024 * 1024);
}
