//! libzmq at the other end: every type, over every transport and mechanism, in both directions.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use onward_zmtp::protocol::{Message, SocketType};
use onward_zmtp::socket::kind::{self, Kind, Receives, Sends};
use onward_zmtp::socket::{Decision, MonitorEvent, Overflow, SocketOptions};
use onward_zmtp::{PullSocket, Socket, SubSocket, XsubSocket};
use tokio::task::block_in_place;

use super::events::{event, within};
use crate::zmtp::libzmq::{MECHANISMS, Peer, client_of, program, server_of};

/// The lengths of the frames of each shape, as `libzmq_peer.c` knows them.
const SHAPES: [&[usize]; 7] = [&[0], &[1], &[255], &[256], &[65_536], &[0, 3, 65_536, 0], &[8 * 1024 * 1024]];

/// A message of each shape.
fn shapes() -> Vec<Message> {
    static OCTETS: LazyLock<Bytes> =
        LazyLock::new(|| (0..=250_u8).collect::<Vec<_>>().repeat(8 * 1024 * 1024 / 251 + 1).into());
    SHAPES.iter().map(|lengths| lengths.iter().map(|length| OCTETS.slice(..*length)).collect()).collect()
}

/// The digest of each shape after the topic.
fn topical_digests() -> &'static [String] {
    static DIGESTS: LazyLock<Vec<String>> =
        LazyLock::new(|| shapes().into_iter().map(|shape| digest(&topical(shape))).collect());
    &DIGESTS
}

/// The digest of each shape.
fn digests() -> &'static [String] {
    static DIGESTS: LazyLock<Vec<String>> = LazyLock::new(|| shapes().iter().map(digest).collect());
    &DIGESTS
}

/// What `digest` of `libzmq_peer.c` prints.
fn digest(message: &Message) -> String {
    let of = |frame: &Bytes| {
        let hash = frame
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, octet| (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3));
        format!("{}:{hash:016x}", frame.len())
    };
    message.frames().iter().map(of).collect::<Vec<_>>().join(" ")
}

/// One field of the matrix.
#[derive(Debug, Clone, Copy)]
struct Field {
    transport: &'static str,
    mechanism: &'static str,
    we_bind: bool,
}

impl Field {
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for transport in ["tcp", "ipc", "abstract"] {
            for mechanism in MECHANISMS {
                for we_bind in [false, true] {
                    all.push(Self { transport, mechanism, we_bind });
                }
            }
        }
        all
    }

    /// An endpoint that nobody else uses.
    fn endpoint(self) -> String {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let unique = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        match self.transport {
            "tcp" => "tcp://127.0.0.1:*".into(),
            "ipc" => format!("ipc://{}/onward-zmtp-{unique}", std::env::temp_dir().display()),
            _ => format!("ipc://@onward-zmtp-{unique}"),
        }
    }

    fn options(self) -> SocketOptions {
        // A publisher shall drop nothing, however many it publishes until somebody hears it.
        let options = SocketOptions::new().overflow(Overflow::Wait);
        if !self.we_bind {
            return options.security(client_of(self.mechanism));
        }
        options.security(server_of(self.mechanism)).authenticate_with(|_| async { Decision::Accept })
    }

    /// Our socket and libzmq's, one bound and the other connected.
    async fn meet<T: Kind>(self, kind: &str) -> Option<(Socket<T>, Peer)> {
        let program = program()?;
        let socket = Socket::<T>::with_options(self.options());
        if self.we_bind {
            let endpoint = socket.bind(&self.endpoint()).await.unwrap().to_string();
            let (peer, _) = Peer::spawn(&program, ["connect", kind, self.mechanism, &endpoint, "0"]);
            return Some((socket, peer));
        }
        let (peer, endpoint) = Peer::spawn(&program, ["bind", kind, self.mechanism, &self.endpoint(), "0"]);
        socket.connect(endpoint.as_str()).unwrap();
        Some((socket, peer))
    }
}

/// Sends every shape, and each comes back.
async fn come_back<T: Sends + Receives>(kind: &str) {
    for field in Field::all() {
        let Some((mut socket, _peer)) = field.meet::<T>(kind).await else { return };
        for shape in shapes() {
            within(socket.send(shape.clone())).await.unwrap();
            assert!(within(socket.recv()).await.unwrap() == shape, "{kind} {field:?}: {}", digest(&shape));
        }
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_dealer_and_a_dealer_of_libzmq() {
    come_back::<kind::Dealer>("echo-dealer").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_dealer_and_a_router_of_libzmq() {
    come_back::<kind::Dealer>("echo-router").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pair_and_a_pair_of_libzmq() {
    come_back::<kind::Pair>("echo-pair").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_dealer_and_a_rep_of_libzmq() {
    for field in Field::all() {
        let Some((mut dealer, _peer)) = field.meet::<kind::Dealer>("echo-rep").await else { return };
        for mut shape in shapes() {
            shape.push_front("");
            shape.push_front("envelope");
            within(dealer.send(shape.clone())).await.unwrap();
            assert!(within(dealer.recv()).await.unwrap() == shape, "{field:?}: {}", digest(&shape));
        }
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_req_and_a_rep_or_router_of_libzmq() {
    for field in Field::all() {
        for kind in ["echo-rep", "echo-router"] {
            let Some((mut req, _peer)) = field.meet::<kind::Req>(kind).await else { return };
            for shape in shapes() {
                within(req.send(shape.clone())).await.unwrap();
                assert!(within(req.recv()).await.unwrap() == shape, "{kind} {field:?}: {}", digest(&shape));
            }
        }
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_rep_and_a_req_of_libzmq() {
    for field in Field::all() {
        let Some((mut rep, mut peer)) = field.meet::<kind::Rep>("ask-req").await else { return };
        for _ in SHAPES {
            let question = within(rep.recv()).await.unwrap();
            rep.send(question).await.unwrap();
        }
        assert_eq!(block_in_place(|| peer.line()), "done", "{field:?}");
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_router_and_a_req_or_dealer_of_libzmq() {
    for field in Field::all() {
        for kind in ["ask-req", "ask-dealer"] {
            let Some((mut router, mut peer)) = field.meet::<kind::Router>(kind).await else { return };
            for _ in SHAPES {
                let question = within(router.recv()).await.unwrap();
                router.send(question).await.unwrap();
            }
            assert_eq!(block_in_place(|| peer.line()), "done", "{kind} {field:?}");
        }
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_push_and_a_pull_of_libzmq() {
    for field in Field::all() {
        let Some((mut push, mut peer)) = field.meet::<kind::Push>("digest-pull").await else { return };
        for (shape, digest) in shapes().into_iter().zip(digests()) {
            within(push.send(shape)).await.unwrap();
            assert_eq!(block_in_place(|| peer.line()), *digest, "{field:?}");
        }
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pull_and_a_push_of_libzmq() {
    for field in Field::all() {
        let Some((mut pull, _peer)) = field.meet::<kind::Pull>("send-push").await else { return };
        for shape in shapes() {
            assert!(within(pull.recv()).await.unwrap() == shape, "{field:?}: {}", digest(&shape));
        }
    }
}

fn topical(mut shape: Message) -> Message {
    shape.push_front("shape");
    shape
}

/// Publishes until the first arrives, for a publisher does not know when a subscription has; then every shape.
async fn publish<T: Sends>(kind: &str) {
    for field in Field::all() {
        let Some((mut publisher, peer)) = field.meet::<T>(kind).await else { return };
        let lines = peer.lines();
        let ping = topical(Message::from("ping"));
        within(async {
            while lines.try_next().is_none() {
                publisher.send(ping.clone()).await.unwrap();
                publisher.send("nobody wants this").await.unwrap();
                tokio::task::yield_now().await;
            }
        })
        .await;
        let is_ping = digest(&ping);
        for (shape, digest) in shapes().into_iter().map(topical).zip(topical_digests()) {
            within(publisher.send(shape)).await.unwrap();
            let arrived = block_in_place(|| std::iter::repeat_with(|| lines.next()).find(|line| *line != is_ping));
            assert_eq!(arrived.as_ref(), Some(digest), "{kind} {field:?}");
        }
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pub_and_a_sub_of_libzmq() {
    publish::<kind::Pub>("digest-sub").await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_xpub_and_an_xsub_of_libzmq() {
    publish::<kind::Xpub>("digest-xsub").await;
}

/// Has libzmq publish until the first arrives, then every shape.
async fn receive<T: Receives>(kind: &str, subscribe: impl AsyncFn(&mut Socket<T>)) {
    for field in Field::all() {
        let Some((mut subscriber, mut peer)) = field.meet::<T>(kind).await else { return };
        subscribe(&mut subscriber).await;
        let ping = topical(Message::from("ping"));
        let mut ticks = tokio::time::interval(std::time::Duration::from_millis(1));
        let first = within(async {
            loop {
                tokio::select! {
                    message = subscriber.recv() => return message.unwrap(),
                    _ = ticks.tick() => peer.write_line("ping"),
                }
            }
        })
        .await;
        assert_eq!(first, ping);
        peer.write_line("go");
        for shape in shapes().into_iter().map(topical) {
            let arrived = within(async {
                loop {
                    let message = subscriber.recv().await.unwrap();
                    if message != ping {
                        return message;
                    }
                }
            })
            .await;
            assert!(arrived == shape, "{kind} {field:?}: {}", digest(&shape));
        }
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_sub_and_a_pub_of_libzmq() {
    receive("publish-pub", async |sub: &mut SubSocket| sub.subscribe("shape").unwrap()).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_xsub_and_an_xpub_of_libzmq() {
    receive("publish-xpub", async |xsub: &mut XsubSocket| xsub.send(&b"\x01shape"[..]).await.unwrap()).await;
}

/// What becomes of a connection to libzmq's socket.
async fn is_accepted<T: Kind>(endpoint: &str) -> bool {
    let socket = Socket::<T>::new();
    let mut monitor = socket.monitor();
    socket.connect(endpoint).unwrap();
    event(&mut monitor, |event| match event {
        MonitorEvent::Connected { .. } => Some(true),
        MonitorEvent::ConnectionFailed { .. } => Some(false),
        _ => None,
    })
    .await
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_pair_of_types_connects_or_is_refused_as_the_rfc_says() {
    use SocketType::{Dealer, Pair, Pub, Pull, Push, Rep, Req, Router, Sub, Xpub, Xsub};
    let Some(program) = program() else { return };
    let (mut peer, first) = Peer::spawn(&program, ["bind", "table", "null", "-", "0"]);
    let mut endpoint = first;
    for theirs in [Req, Rep, Dealer, Router, Pub, Xpub, Sub, Xsub, Push, Pull, Pair] {
        let ours = [
            (Req, is_accepted::<kind::Req>(&endpoint).await),
            (Rep, is_accepted::<kind::Rep>(&endpoint).await),
            (Dealer, is_accepted::<kind::Dealer>(&endpoint).await),
            (Router, is_accepted::<kind::Router>(&endpoint).await),
            (Pub, is_accepted::<kind::Pub>(&endpoint).await),
            (Xpub, is_accepted::<kind::Xpub>(&endpoint).await),
            (Sub, is_accepted::<kind::Sub>(&endpoint).await),
            (Xsub, is_accepted::<kind::Xsub>(&endpoint).await),
            (Push, is_accepted::<kind::Push>(&endpoint).await),
            (Pull, is_accepted::<kind::Pull>(&endpoint).await),
            (Pair, is_accepted::<kind::Pair>(&endpoint).await),
        ];
        for (ours, accepted) in ours {
            assert_eq!(accepted, ours.is_compatible_with(theirs), "our {ours} and libzmq's {theirs}");
        }
        if theirs != Pair {
            endpoint = block_in_place(|| peer.line());
        }
    }
}

/// The numbers that arrive from a libzmq that counts; none is missing or out of order until it is killed.
async fn numbers(pull: &mut PullSocket, from: u64, count: u64) {
    for expected in from..from + count {
        let message = within(pull.recv()).await.unwrap();
        assert_eq!(message.frames(), [expected.to_string()]);
    }
}

/// Waits for the first message of a libzmq that begins to count.
async fn beginning(pull: &mut PullSocket) {
    within(async { while pull.recv().await.unwrap().frames() != ["0"] {} }).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_libzmq_that_is_killed_and_started_again_in_the_middle_of_a_stream_is_found_again() {
    let Some(program) = program() else { return };
    let (peer, endpoint) = Peer::spawn(&program, ["bind", "count-push", "null", "tcp://127.0.0.1:*", "0"]);
    let mut pull = PullSocket::new();
    pull.connect(endpoint.as_str()).unwrap();
    numbers(&mut pull, 0, 5000).await;
    drop(peer);
    let (_peer, _) = Peer::spawn(&program, ["bind", "count-push", "null", &endpoint, "0"]);
    beginning(&mut pull).await;
    numbers(&mut pull, 1, 5000).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn libzmq_finds_us_again_when_we_start_again_in_the_middle_of_a_stream() {
    let Some(program) = program() else { return };
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let (_peer, _) = Peer::spawn(&program, ["connect", "count-push", "null", &endpoint.to_string(), "0"]);
    numbers(&mut pull, 0, 5000).await;
    drop(pull);
    let mut pull = PullSocket::new();
    within(async {
        while pull.bind(&endpoint).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let first = within(pull.recv()).await.unwrap();
    let first: u64 = std::str::from_utf8(&first.frames()[0]).unwrap().parse().unwrap();
    assert!(first >= 5000);
    numbers(&mut pull, first + 1, 5000).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_with_libzmq_go_on_while_nobody_receives() {
    let Some(program) = program() else { return };
    let heartbeat = onward_zmtp::protocol::Heartbeat::every(std::time::Duration::from_millis(20));
    let pull = PullSocket::with_options(SocketOptions::new().heartbeat(heartbeat));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = pull.monitor();
    let (_peer, _) = Peer::spawn(&program, ["connect", "send-push", "null", &endpoint.to_string(), "20"]);
    super::events::connected(&mut monitor).await;
    // libzmq gives up 15 heartbeats after one that was not answered.
    let longer = std::time::Duration::from_millis(20 * 20);
    assert!(tokio::time::timeout(longer, monitor.next()).await.is_err(), "the connection ended");
}
