//! The compatible socket types, in both directions: our decisions and those of libzmq.

use onward_zmtp::Socket;
use onward_zmtp::protocol::SocketType;
use onward_zmtp::socket::kind::{self, Kind};
use onward_zmtp::socket::{Endpoint, MonitorEvent};
use tokio::task::block_in_place;

use crate::socket::support::events::{event, within};
use crate::socket::support::raw::{Raw, listen};
use crate::zmtp::link::introduction;
use crate::zmtp::peer::{Peer, program};

use SocketType::{Dealer, Pair, Pub, Pull, Push, Rep, Req, Router, Sub, Xpub, Xsub};

/// The types of libzmq, in the order in which it binds one of each.
const TYPES: [SocketType; 11] = [Req, Rep, Dealer, Router, Pub, Xpub, Sub, Xsub, Push, Pull, Pair];

/// The compatible pairs of RFC 37, each once.
const PAIRS: [(SocketType, SocketType); 12] = [
    (Req, Rep),
    (Req, Router),
    (Rep, Dealer),
    (Dealer, Dealer),
    (Dealer, Router),
    (Router, Router),
    (Pub, Sub),
    (Pub, Xsub),
    (Xpub, Sub),
    (Xpub, Xsub),
    (Push, Pull),
    (Pair, Pair),
];

/// The pairs for which libzmq differs from the RFC: none.
const LIBZMQ_DIFFERS: [(SocketType, SocketType); 0] = [];

fn contains(pairs: &[(SocketType, SocketType)], one: SocketType, other: SocketType) -> bool {
    pairs.contains(&(one, other)) || pairs.contains(&(other, one))
}

/// Sockets of libzmq of all types, either bound or to be connected.
struct Theirs {
    peer: Peer,
    /// The endpoints of the bound ones.
    bound: Option<Vec<Endpoint>>,
}

impl Theirs {
    fn bound(program: &str) -> Self {
        let (peer, first) = Peer::spawn(program, ["bind", "table", "null", "-", "0"]);
        let others = (1..TYPES.len()).map(|_| peer.line());
        let bound = std::iter::once(first).chain(others).map(|endpoint| endpoint.parse().unwrap()).collect();
        Self { peer, bound: Some(bound) }
    }

    fn connecting(program: &str) -> Self {
        let (peer, _) = Peer::spawn(program, ["connect", "table", "null", "-", "0"]);
        Self { peer, bound: None }
    }

    fn connect(&mut self, theirs: SocketType, endpoint: &str) {
        self.peer.write_line(&format!("{} {endpoint}", theirs.name().to_lowercase()));
    }

    /// Returns the endpoint of the socket of this type, if it is bound.
    fn endpoint(&self, theirs: SocketType) -> Option<&Endpoint> {
        let index = TYPES.iter().position(|known| *known == theirs)?;
        self.bound.as_ref().map(|bound| &bound[index])
    }

    /// Returns true if libzmq accepted the connection. Drops the other end.
    fn verdict<O>(&self, other_end: O) -> bool {
        block_in_place(|| {
            let is_accepted = self.peer.line() == "accepted";
            drop(other_end);
            assert!(!is_accepted || self.peer.line() == "ended");
            is_accepted
        })
    }

    /// Connects a socket of ours with the one of this type. Returns the verdict of each.
    async fn meet_ours<T: Kind>(&mut self, theirs: SocketType) -> (SocketType, [bool; 2]) {
        let socket = Socket::<T>::new();
        let mut monitor = socket.monitor();
        if let Some(endpoint) = self.endpoint(theirs) {
            socket.connect(endpoint).unwrap();
        } else {
            let endpoint = socket.bind("tcp://127.0.0.1:*").await.unwrap();
            self.connect(theirs, &endpoint.to_string());
        }
        let is_accepted = event(&mut monitor, |event| match event {
            MonitorEvent::Connected { .. } => Some(true),
            MonitorEvent::ConnectionFailed { .. } => Some(false),
            _ => None,
        })
        .await;
        (T::TYPE, [is_accepted, self.verdict(socket)])
    }

    /// Connects a raw peer that claims a type and refuses no other, so that libzmq alone decides.
    async fn meet_any_peer(&mut self, theirs: SocketType, ours: SocketType) -> bool {
        let mut raw = if let Some(endpoint) = self.endpoint(theirs) {
            Raw::connect(endpoint).await
        } else {
            let (listener, endpoint) = listen().await;
            self.connect(theirs, &endpoint);
            Raw(within(listener.accept()).await.unwrap().0)
        };
        raw.write(&introduction(1, ours.name())).await;
        self.verdict(raw)
    }
}

async fn check_ours(mut sockets: Theirs) {
    for theirs in TYPES {
        let verdicts = [
            sockets.meet_ours::<kind::Req>(theirs).await,
            sockets.meet_ours::<kind::Rep>(theirs).await,
            sockets.meet_ours::<kind::Dealer>(theirs).await,
            sockets.meet_ours::<kind::Router>(theirs).await,
            sockets.meet_ours::<kind::Pub>(theirs).await,
            sockets.meet_ours::<kind::Xpub>(theirs).await,
            sockets.meet_ours::<kind::Sub>(theirs).await,
            sockets.meet_ours::<kind::Xsub>(theirs).await,
            sockets.meet_ours::<kind::Push>(theirs).await,
            sockets.meet_ours::<kind::Pull>(theirs).await,
            sockets.meet_ours::<kind::Pair>(theirs).await,
        ];
        for (ours, verdict) in verdicts {
            assert_eq!(verdict, [contains(&PAIRS, ours, theirs); 2], "our {ours} and libzmq's {theirs}");
        }
    }
}

async fn check_any_peer(mut sockets: Theirs) {
    for theirs in TYPES {
        for ours in TYPES {
            let expected = contains(&PAIRS, ours, theirs) != contains(&LIBZMQ_DIFFERS, ours, theirs);
            let verdict = sockets.meet_any_peer(theirs, ours).await;
            assert_eq!(verdict, expected, "libzmq's {theirs} of somebody who says to be a {ours}");
        }
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_type_of_ours_that_connects_to_one_of_libzmq_is_accepted_or_refused_as_the_rfc_says() {
    let Some(program) = program() else { return };
    check_ours(Theirs::bound(&program)).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_type_of_libzmq_that_connects_to_one_of_ours_is_accepted_or_refused_as_the_rfc_says() {
    let Some(program) = program() else { return };
    check_ours(Theirs::connecting(&program)).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn libzmq_itself_accepts_and_refuses_those_who_connect_as_the_rfc_says() {
    let Some(program) = program() else { return };
    check_any_peer(Theirs::bound(&program)).await;
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn libzmq_itself_accepts_and_refuses_those_it_connects_to_as_the_rfc_says() {
    let Some(program) = program() else { return };
    check_any_peer(Theirs::connecting(&program)).await;
}
