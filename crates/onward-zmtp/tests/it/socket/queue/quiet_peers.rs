//! A peer that seldom sends, beside one that always does.

use std::io::{ErrorKind, Write};
use std::net::TcpStream;

use onward_zmtp::PullSocket;
use onward_zmtp::socket::bounds::SHARED_TURN_BYTES;

use crate::socket::support::events::{peers, within};
use crate::socket::support::raw::Raw;
use crate::zmtp::link::frame;

/// The payload of a flood message. It is so large that a turn ends because of the bytes moved, not
/// because the queue is full.
const FLOOD_BYTES: usize = 1000;
/// The number of flood messages that may come before one of a quiet peer. It covers the turn that
/// runs, the next one, in which the runtime has not checked for events yet, and the one in which
/// both are served.
const MOST_BEFORE: usize = 3 * SHARED_TURN_BYTES / FLOOD_BYTES;
/// The number of messages of the quiet peer.
const ROUNDS: usize = 50;
/// The number of flood messages read in between.
const BETWEEN: usize = 500;
/// The number of flood messages read first, until the buffers of the operating system are full.
const BEFORE: usize = 5000;

/// A peer that always has more to read than a turn moves.
struct Flood {
    stream: TcpStream,
    frame: Vec<u8>,
    /// The number of bytes of the frame that were written.
    written: usize,
}

impl Flood {
    /// Writes as much as the operating system takes. It blocks the runtime's thread, so nothing
    /// else runs until it returns.
    fn fill(&mut self) {
        loop {
            match self.stream.write(&self.frame[self.written..]) {
                Ok(count) => self.written = (self.written + count) % self.frame.len(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

fn long_frame() -> Vec<u8> {
    [&[2][..], &(FLOOD_BYTES as u64).to_be_bytes(), &[b'.'; FLOOD_BYTES]].concat()
}

/// Returns true if the next message is one of the flood, after filling the stream with more than a
/// turn moves.
async fn is_flood(pull: &mut PullSocket, flood: &mut Flood) -> bool {
    flood.fill();
    within(pull.recv()).await.unwrap().frames()[0].len() == FLOOD_BYTES
}

/// Returns the most flood messages that come before one of the quiet peer.
async fn most_before(mut pull: PullSocket, mut flood: Flood, mut quiet: TcpStream) -> usize {
    for _ in 0..BEFORE {
        assert!(is_flood(&mut pull, &mut flood).await);
    }
    let mut most = 0;
    for _ in 0..ROUNDS {
        for _ in 0..BETWEEN {
            assert!(is_flood(&mut pull, &mut flood).await);
        }
        quiet.write_all(&frame(0, b"quiet")).unwrap();
        let mut before = 0;
        while is_flood(&mut pull, &mut flood).await {
            before += 1;
        }
        most = most.max(before);
    }
    most
}

/// Shows: M1, M3
#[tokio::test]
async fn a_message_of_a_quiet_peer_waits_for_a_bounded_number_of_a_flooding_one() {
    let pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let [flood, quiet] = [Raw::introduced(&endpoint, "PUSH").await, Raw::introduced(&endpoint, "PUSH").await]
        .map(|raw| raw.0.into_std().unwrap());
    let flood = Flood { stream: flood, frame: long_frame(), written: 0 };
    // Its messages must be sent at once.
    quiet.set_nodelay(true).unwrap();
    peers(2, || pull.statistics()).await;
    // This runs as a task among those of the connections. The future that a runtime is started with
    // is polled at other times.
    let most = tokio::spawn(most_before(pull, flood, quiet)).await.unwrap();
    assert!(most <= MOST_BEFORE, "{most} messages came before");
}
