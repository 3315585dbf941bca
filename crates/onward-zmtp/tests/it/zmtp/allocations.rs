//! What is allocated, counted.

use allocation_counter::measure;
use onward_zmtp::protocol::{Options, SocketType};

use super::link::{Seen, drain, feed, frame, introduced, message, start};

/// What `work` allocated on this thread.
pub(crate) struct Counted<T> {
    pub(crate) result: T,
    /// How many allocations there were.
    pub(crate) calls: u64,
    /// How many bytes there were at the most, beyond those before.
    pub(crate) peak: i64,
    /// How many bytes are still there.
    pub(crate) live: i64,
}

pub(crate) fn counted<T>(work: impl FnOnce() -> T) -> Counted<T> {
    let mut result = None;
    let info = measure(|| result = Some(work()));
    let result = result.expect("the work was done");
    Counted { result, calls: info.count_total, peak: info.bytes_max as i64, live: info.bytes_current }
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
#[test]
fn a_small_message_that_is_kept_pins_nothing_but_itself() {
    let mut pull = introduced(Options::new(SocketType::Pull), "PUSH");
    let batch = frame(0, &[5; 16]).repeat(3000);
    feed(&mut pull, &batch);
    let counted = counted(|| {
        let Some(Seen::Message(kept)) = feed(&mut pull, &batch).into_iter().nth(1000) else { panic!("no message") };
        drop(pull);
        kept
    });
    // The list of the test's own frame is 32 bytes; the connection's buffers were freed.
    assert!(counted.live <= 16 + 32, "{} bytes are kept for a message of 16", counted.live);
}

#[test]
fn a_large_payload_is_written_from_where_it_is() {
    let mut push = introduced(Options::new(SocketType::Push), "PULL");
    let large = message(&[&vec![1; 1024 * 1024]]);
    let counted = counted(|| push.send(large).unwrap());
    assert!(counted.peak < 1024, "{} bytes were allocated", counted.peak);
    assert_eq!(drain(&mut push).len(), 9 + 1024 * 1024);
}
