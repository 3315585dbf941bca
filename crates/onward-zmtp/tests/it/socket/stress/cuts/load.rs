//! The load: its senders, the sizes of messages, and their labels.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onward_zmtp::Socket;
use onward_zmtp::protocol::Message;
use onward_zmtp::protocol::bounds::WRITE_BATCH_BYTES;
use onward_zmtp::socket::kind::Sends;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, yield_now};

/// The number of connections that are cut at a time.
pub(super) const SOURCES: usize = 4;
/// The payload of a source's last message.
pub(super) const LAST: &[u8] = b"last";
/// The number of bytes in a label.
pub(super) const LABEL: usize = 16;

/// The messages that sources send between cuts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// The number of messages that arrive from each source between two cuts.
    pub(super) between_cuts: u64,
    /// The payloads of most messages, and of one in `large_one_in`.
    small: usize,
    large: usize,
    large_one_in: u64,
    /// The most messages in a batch of a connection. If a batch was written in part, all of its
    /// messages are counted as dropped, because the socket does not track where each ends.
    pub(super) batch: u64,
}

impl Load {
    /// Small messages with large ones among them.
    pub(super) const MIXED: Self = Self::of(100, 20_000, 50);
    /// Messages that fill a batch each, so that exactly those that were not written whole are
    /// counted as dropped.
    pub(super) const LARGE: Self =
        Self { between_cuts: 10, batch: 1, ..Self::of(WRITE_BATCH_BYTES, WRITE_BATCH_BYTES, 1) };

    const fn of(small: usize, large: usize, large_one_in: u64) -> Self {
        let group = small * (large_one_in as usize - 1) + large;
        // One group may be cut on either side, and the last message may exceed the batch.
        let batch = (WRITE_BATCH_BYTES / group + 2) as u64 * large_one_in;
        Self { between_cuts: 100, small, large, large_one_in, batch }
    }

    fn payload(self, number: u64) -> Vec<u8> {
        vec![0; if number.is_multiple_of(self.large_one_in) { self.large } else { self.small }]
    }
}

/// Returns the start of every message: its source and its number. Only an identity and the
/// delimiter of a request come before it.
pub(super) fn label(source: u64, number: u64) -> Vec<u8> {
    [source.to_be_bytes(), number.to_be_bytes()].concat()
}

pub(super) fn read_label(label: &[u8]) -> (usize, u64) {
    let (source, number) = label.split_at(8);
    (u64::from_be_bytes(source.try_into().unwrap()) as usize, u64::from_be_bytes(number.try_into().unwrap()))
}

/// A source that sends numbers until it is stopped.
pub(super) struct Source<T> {
    pub(super) stop: oneshot::Sender<()>,
    /// The number that it sends now, or will send next.
    pub(super) number: Arc<AtomicU64>,
    /// Returns the socket and the number of messages that it accepted.
    pub(super) task: JoinHandle<(Socket<T>, u64)>,
}

impl<T: Sends + Send + 'static> Source<T> {
    /// Starts a source. Puts an identity in front, if there is one.
    pub(super) fn start(source: usize, mut socket: Socket<T>, load: Load, to: Option<&'static str>) -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let now = Arc::<AtomicU64>::default();
        let at = now.clone();
        let task = tokio::spawn(async move {
            let mut number = 0;
            let message = |number, payload: Vec<u8>| {
                let front = to.map(|identity| identity.as_bytes().to_vec());
                front.into_iter().chain([label(source as u64, number), payload]).map(bytes::Bytes::from).collect()
            };
            while stopped.try_recv().is_err() {
                send(&mut socket, message(number, load.payload(number))).await;
                number += 1;
                at.store(number, Ordering::SeqCst);
            }
            send(&mut socket, message(number, LAST.to_vec())).await;
            (socket, number + 1)
        });
        Self { stop, number: now, task }
    }
}

/// Sends as soon as there is a peer.
async fn send<T: Sends>(socket: &mut Socket<T>, message: Message) {
    while let Err(error) = socket.send(message.clone()).await {
        assert!(error.is_unroutable(), "{error}");
        yield_now().await;
    }
}
