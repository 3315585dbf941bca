//! What waits takes the memory that the marks allow, and no more that counts.

use onward_zmtp::socket::{HighWaterMark, SocketOptions};
use onward_zmtp::{PullSocket, PushSocket};

use super::events::{peers, until};
use crate::zmtp::allocations::counted;

/// What may wait on either side, in bytes of payload.
const MARK: usize = 8 * 1024 * 1024;
/// By which part of it buffers of payload may be larger than what is in them.
const SLACK_PART: usize = 4;
/// What a message costs beside its payload, in bytes, both sides together: its place in a list that grows by doubling, and whose the payload is.
const BYTES_OF_A_MESSAGE: usize = 160;
/// What there is once, in bytes: the sockets, their tasks, and the buffers of a connection each way.
const BESIDE: usize = 2 * 1024 * 1024;

/// Sends until nothing is taken any more, to somebody who has stopped reading. Answers how much memory was allocated at the most, and how much payload waited.
fn fill(size: usize) -> (usize, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mark = HighWaterMark { messages: usize::MAX, bytes: MARK };
    let counted = counted(|| {
        runtime.block_on(async {
            let mut push = PushSocket::with_options(SocketOptions::new().send_mark(mark));
            let pull = PullSocket::with_options(SocketOptions::new().receive_mark(mark));
            push.connect(pull.bind(&format!("ipc://@memory-{size}")).await.unwrap()).unwrap();
            peers(1, || push.statistics()).await;
            until(|| {
                while push.try_send(vec![0xCD; size]).is_ok() {}
                pull.statistics().incoming.bytes >= MARK
            })
            .await;
            // What is still on its way comes to where it stays.
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
fn what_waits_for_a_reader_that_has_stopped_takes_no_more_memory_than_the_marks_allow() {
    for size in [100, 200, 256, 1000, 2048, 4096, 5000, 8192, 20_000, 65_536, 100_000, 300_000] {
        let (peak, waiting) = fill(size);
        assert!(waiting >= 2 * MARK, "{waiting} bytes wait on both sides");
        // One message each way may go beyond the mark.
        let (payload, messages) = (2 * (MARK + size), 2 * (MARK / size + 1));
        let most = payload + payload / SLACK_PART + messages * BYTES_OF_A_MESSAGE + BESIDE;
        assert!(peak <= most, "{peak} bytes for messages of {size} of which {waiting} bytes wait; {most} are allowed");
    }
}
