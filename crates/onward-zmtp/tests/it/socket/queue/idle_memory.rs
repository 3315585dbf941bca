//! Tests that an idle connection takes little memory.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;

use onward_zmtp::RouterSocket;
use onward_zmtp::socket::Endpoint;
use onward_zmtp::socket::bounds::IDLE_SHRINK_AFTER;

use crate::socket::support::events::{peers, within};
use crate::zmtp::allocations::counted;
use crate::zmtp::link::{frame, introduction};

/// The most memory that an idle connection may take, in bytes.
const MOST: usize = 30_000;

/// A peer of hand-made bytes. It runs on a thread whose allocations are not counted.
struct Peer(TcpStream);

impl Peer {
    fn introduced(endpoint: &Endpoint) -> Self {
        let Endpoint::Tcp { host, port } = endpoint else { panic!("{endpoint} is not TCP") };
        let mut peer = Self(TcpStream::connect((host.as_str(), *port)).unwrap());
        peer.0.write_all(&introduction(1, "DEALER")).unwrap();
        peer.read(64);
        let header = peer.read(2);
        peer.read(usize::from(header[1]));
        peer
    }

    fn read(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Sends a burst and reads it again.
    fn echo(&mut self, burst: &[u8]) {
        let mut stream = self.0.try_clone().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || stream.write_all(burst).unwrap());
            assert_eq!(self.read(burst.len()), burst);
        });
    }
}

/// Returns the memory that each idle connection takes after its peer has sent `burst`, which has
/// `messages` messages, and received it again.
fn idle(count: usize, burst: Vec<u8>, messages: usize) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let counted = counted(|| {
        let mut router = RouterSocket::new();
        let (done, is_done) = mpsc::channel::<()>();
        let peers_of_thread = runtime.block_on(async {
            let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
            let peers_of_thread = thread::spawn(move || {
                let mut all: Vec<Peer> = (0..count).map(|_| Peer::introduced(&endpoint)).collect();
                all.iter_mut().for_each(|peer| peer.echo(&burst));
                // The streams stay open until the memory is counted.
                let _ = is_done.recv();
            });
            for _ in 0..count * messages {
                let message = within(router.recv()).await.unwrap();
                router.send(message).await.unwrap();
            }
            peers(count, || router.statistics()).await;
            rest(&mut router).await;
            peers_of_thread
        });
        (router, done, peers_of_thread)
    });
    let (router, done, peers_of_thread) = counted.result;
    drop((router, done));
    peers_of_thread.join().unwrap();
    counted.live as usize / count
}

/// Lets the time pass after which connections give memory back, while the program receives.
async fn rest(router: &mut RouterSocket) {
    tokio::time::pause();
    for _ in 0..4 {
        assert!(tokio::time::timeout(2 * IDLE_SHRINK_AFTER, router.recv()).await.is_err());
    }
}

/// Shows: M5
#[test]
fn each_of_a_thousand_connections_that_have_said_little_takes_little_memory() {
    let each = idle(1000, frame(0, &[5; 100]), 1);
    assert!(each <= MOST, "{each} bytes for each connection");
}

/// Shows: M5
#[test]
fn a_connection_gives_back_the_memory_of_a_burst_of_short_messages() {
    let each = idle(100, frame(0, &[5; 100]).repeat(2000), 2000);
    assert!(each <= MOST, "{each} bytes for each connection");
}

/// Shows: M5
#[test]
fn a_connection_gives_back_the_memory_of_a_burst_of_long_messages() {
    let long = [&[2][..], &3000_u64.to_be_bytes(), &[5; 3000]].concat();
    let each = idle(100, long.repeat(500), 500);
    assert!(each <= MOST, "{each} bytes for each connection");
}

/// Shows: M5
#[test]
fn a_connection_gives_back_the_memory_of_a_burst_of_messages_of_many_frames() {
    let parts = [frame(1, &[5; 10]), frame(0, &[5; 10])].concat();
    let each = idle(100, parts.repeat(2000), 2000);
    assert!(each <= MOST, "{each} bytes for each connection");
}
