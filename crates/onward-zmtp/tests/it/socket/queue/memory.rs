//! Tests that waiting messages take only the memory that the high-water marks allow.

use onward_zmtp::socket::{HighWaterMark, SocketOptions};
use onward_zmtp::{PullSocket, PushSocket};

use crate::socket::support::events::{peers, until};
use crate::zmtp::allocations::counted;

/// The payload that may wait on either side, in bytes.
const HIGH_WATER_MARK: usize = 8 * 1024 * 1024;
/// The divisor for the slack: buffers may be larger than their payload by this part.
const SLACK_PART: usize = 4;
/// The cost of a message beside its payload, in bytes, for both sides together: its place in a list
/// that grows by doubling, and the owner of the payload.
const BYTES_OF_A_MESSAGE: usize = 160;
/// The fixed cost in bytes: the sockets, their tasks, and the buffers of a connection each way.
const BESIDE: usize = 2 * 1024 * 1024;

/// Sends to a peer that has stopped reading until nothing more is accepted. Returns the peak of
/// allocated memory and the payload that waited.
fn fill(size: usize) -> (usize, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let high_water_mark = HighWaterMark { messages: usize::MAX, bytes: HIGH_WATER_MARK };
    let counted = counted(|| {
        runtime.block_on(async {
            let mut push = PushSocket::with_options(SocketOptions::new().send_high_water_mark(high_water_mark));
            let pull = PullSocket::with_options(SocketOptions::new().receive_high_water_mark(high_water_mark));
            push.connect(pull.bind(&format!("ipc://@memory-{size}")).await.unwrap()).unwrap();
            peers(1, || push.statistics()).await;
            until(|| {
                while push.try_send(vec![0xCD; size]).is_ok() {}
                pull.statistics().incoming.bytes >= HIGH_WATER_MARK
            })
            .await;
            // The loop lets messages on the way reach their final queue.
            for _ in 0..1000 {
                tokio::task::yield_now().await;
                while push.try_send(vec![0xCD; size]).is_ok() {}
            }
            push.statistics().outgoing.bytes + pull.statistics().incoming.bytes
        })
    });
    (counted.peak as usize, counted.result)
}

/// Shows: M3
#[test]
fn what_waits_for_a_reader_that_has_stopped_takes_no_more_memory_than_the_high_water_marks_allow() {
    for size in [100, 200, 256, 1000, 2048, 4096, 5000, 8192, 20_000, 65_536, 100_000, 300_000] {
        let (peak, waiting) = fill(size);
        assert!(waiting >= 2 * HIGH_WATER_MARK, "{waiting} bytes wait on both sides");
        // One message each way may exceed the high-water mark.
        let (payload, messages) = (2 * (HIGH_WATER_MARK + size), 2 * (HIGH_WATER_MARK / size + 1));
        let most = payload + payload / SLACK_PART + messages * BYTES_OF_A_MESSAGE + BESIDE;
        assert!(peak <= most, "{peak} bytes for messages of {size} of which {waiting} bytes wait; {most} are allowed");
    }
}
