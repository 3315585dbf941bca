//! Which types go together, whoever is bound.

use onward_zmtp::Socket;
use onward_zmtp::protocol::SocketType;
use onward_zmtp::socket::kind::{self, Kind};
use onward_zmtp::socket::{Monitor, MonitorEvent};
use tokio::task::block_in_place;

use crate::socket::events::event;
use crate::zmtp::peer::{Peer, program};

use SocketType::{Dealer, Pair, Pub, Pull, Push, Rep, Req, Router, Sub, Xpub, Xsub};

/// The types of libzmq, in the order in which it binds one of each.
const TYPES: [SocketType; 11] = [Req, Rep, Dealer, Router, Pub, Xpub, Sub, Xsub, Push, Pull, Pair];

/// A socket of libzmq, or what makes one, that sockets of ours meet.
trait Meets {
    /// Whether a socket of ours and it are connected in the end.
    async fn meets<T: Kind>(&mut self) -> bool;
}

/// What libzmq is bound to.
struct Bound(String);

impl Meets for Bound {
    async fn meets<T: Kind>(&mut self) -> bool {
        let socket = Socket::<T>::new();
        let mut monitor = socket.monitor();
        socket.connect(self.0.as_str()).unwrap();
        is_accepted(&mut monitor).await
    }
}

/// A libzmq that connects a socket of this type to wherever it is told to.
struct Visitor<'a>(&'a mut Peer, SocketType);

impl Meets for Visitor<'_> {
    async fn meets<T: Kind>(&mut self) -> bool {
        let socket = Socket::<T>::new();
        let mut monitor = socket.monitor();
        let endpoint = socket.bind("tcp://127.0.0.1:*").await.unwrap();
        self.0.write_line(&format!("{} {endpoint}", self.1.name().to_lowercase()));
        is_accepted(&mut monitor).await
    }
}

/// What becomes of the first connection.
async fn is_accepted(monitor: &mut Monitor) -> bool {
    event(monitor, |event| match event {
        MonitorEvent::Connected { .. } => Some(true),
        MonitorEvent::ConnectionFailed { .. } => Some(false),
        _ => None,
    })
    .await
}

/// Has sockets of ours of each type meet one of libzmq.
async fn check_each(theirs: SocketType, meets: &mut impl Meets) {
    let ours = [
        (Req, meets.meets::<kind::Req>().await),
        (Rep, meets.meets::<kind::Rep>().await),
        (Dealer, meets.meets::<kind::Dealer>().await),
        (Router, meets.meets::<kind::Router>().await),
        (Pub, meets.meets::<kind::Pub>().await),
        (Xpub, meets.meets::<kind::Xpub>().await),
        (Sub, meets.meets::<kind::Sub>().await),
        (Xsub, meets.meets::<kind::Xsub>().await),
        (Push, meets.meets::<kind::Push>().await),
        (Pull, meets.meets::<kind::Pull>().await),
        (Pair, meets.meets::<kind::Pair>().await),
    ];
    for (ours, accepted) in ours {
        assert_eq!(accepted, ours.is_compatible_with(theirs), "our {ours} and libzmq's {theirs}");
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_type_of_ours_that_connects_to_one_of_libzmq_is_accepted_or_refused_as_the_rfc_says() {
    let Some(program) = program() else { return };
    let (peer, mut endpoint) = Peer::spawn(&program, ["bind", "table", "null", "-", "0"]);
    for theirs in TYPES {
        check_each(theirs, &mut Bound(endpoint.clone())).await;
        if theirs != Pair {
            endpoint = block_in_place(|| peer.line());
        }
    }
}

/// Shows: M4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_type_of_libzmq_that_connects_to_one_of_ours_is_accepted_or_refused_as_the_rfc_says() {
    let Some(program) = program() else { return };
    let (mut peer, _) = Peer::spawn(&program, ["connect", "table", "null", "-", "0"]);
    for theirs in TYPES {
        check_each(theirs, &mut Visitor(&mut peer, theirs)).await;
    }
}
