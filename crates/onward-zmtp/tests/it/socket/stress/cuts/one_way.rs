//! Messages in one direction, each sender with one peer.

use std::time::Duration;

use onward_zmtp::protocol::Identity;
use onward_zmtp::socket::bounds::HIGH_WATER_MARK_MESSAGES;
use onward_zmtp::socket::{Reconnect, SocketOptions};
use onward_zmtp::{DealerSocket, PullSocket, PushSocket, RouterSocket};

use super::arrived::{Connections, Outcome, cut_under_load};
use super::load::{Load, SOURCES};
use super::wire::{Sends, Wire};

pub(super) fn options() -> SocketOptions {
    SocketOptions::new().reconnect(Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(10) })
}

/// Runs dealers that connect and have identities.
async fn dealers_to_a_router(load: Load) -> Outcome {
    let router = RouterSocket::new();
    let connections = Connections::of(&router);
    let wire = Wire::to(router.bind("tcp://127.0.0.1:*").await.unwrap(), Sends::WhoConnects).await;
    let dealer = |source| {
        let identity = Identity::new(vec![b'a' + source as u8]).unwrap();
        let dealer = DealerSocket::with_options(options().identity(identity));
        dealer.connect(wire.endpoint.as_str()).unwrap();
        dealer
    };
    let dealers = (0..SOURCES).map(dealer).collect();
    cut_under_load(router, connections, dealers, &[wire], load, None).await
}

/// Shows: M3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_dealers_whose_connections_are_cut_every_message_is_accounted_for_and_in_order() {
    let outcome = dealers_to_a_router(Load::MIXED).await;
    outcome.is_accounted_for(Load::MIXED);
    assert_eq!(outcome.late, 0);
}

/// Each message is a batch, so exactly the messages that were not written are counted as dropped.
///
/// Shows: M3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_dealers_whose_connections_are_cut_exactly_what_was_not_written_is_counted_as_dropped() {
    let outcome = dealers_to_a_router(Load::LARGE).await;
    outcome.is_accounted_for(Load::LARGE);
    assert_eq!((outcome.dropped, outcome.late), (outcome.unwritten, 0));
}

/// The senders are bound. They do not recognise a peer that is back before they have seen it
/// disconnect. Messages that waited for its first connection then arrive after those given to the
/// second by that time.
///
/// Shows: M3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_pushes_whose_connections_are_cut_every_message_is_accounted_for() {
    let pull = PullSocket::with_options(options());
    let connections = Connections::of(&pull);
    let (mut pushes, mut wires) = (Vec::new(), Vec::new());
    for _ in 0..SOURCES {
        let push = PushSocket::new();
        let wire = Wire::to(push.bind("tcp://127.0.0.1:*").await.unwrap(), Sends::WhoIsBound).await;
        pull.connect(wire.endpoint.as_str()).unwrap();
        pushes.push(push);
        wires.push(wire);
    }
    let outcome = cut_under_load(pull, connections, pushes, &wires, Load::MIXED, None).await;
    outcome.is_accounted_for(Load::MIXED);
    // The receiver knows its peers by its connectors, so every late message was late when it came
    // to a wire.
    assert!(outcome.late <= outcome.sent_late, "{outcome:?}");
    let waited = outcome.reconnects * HIGH_WATER_MARK_MESSAGES as u64;
    assert!(outcome.late <= waited, "{} messages came after later ones", outcome.late);
}

/// The senders connect, so their messages leave them in order. The receiver does not recognise a
/// peer. It reads the rest of the first connection and the messages of the second in turn.
///
/// Shows: M3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_pushes_that_connect_every_message_is_accounted_for_and_sent_in_order() {
    let pull = PullSocket::new();
    let connections = Connections::of(&pull);
    let wire = Wire::to(pull.bind("tcp://127.0.0.1:*").await.unwrap(), Sends::WhoConnects).await;
    let pushes = (0..SOURCES).map(|_| connected_push(&wire)).collect();
    let outcome = cut_under_load(pull, connections, pushes, &[wire], Load::MIXED, None).await;
    outcome.is_accounted_for(Load::MIXED);
    assert_eq!(outcome.sent_late, 0);
}

/// If both connect to a proxy between them, each recognises the other.
///
/// Shows: M3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_pushes_and_a_pull_that_connect_every_message_is_accounted_for_and_in_order() {
    let pull = PullSocket::with_options(options());
    let connections = Connections::of(&pull);
    let (mut pushes, mut wires) = (Vec::new(), Vec::new());
    for _ in 0..SOURCES {
        let (wire, other) = Wire::between().await;
        pull.connect(other.as_str()).unwrap();
        pushes.push(connected_push(&wire));
        wires.push(wire);
    }
    let outcome = cut_under_load(pull, connections, pushes, &wires, Load::MIXED, None).await;
    outcome.is_accounted_for(Load::MIXED);
    assert_eq!((outcome.late, outcome.sent_late), (0, 0));
}

fn connected_push(wire: &Wire) -> PushSocket {
    let push = PushSocket::with_options(options());
    push.connect(wire.endpoint.as_str()).unwrap();
    push
}

/// Runs routers, each with one dealer of the same name, which connects. Messages for a disconnected
/// peer are for no other, so they are dropped and counted.
async fn routers_to_a_dealer(load: Load) -> Outcome {
    const NAME: &str = "dealer";
    let dealer = DealerSocket::with_options(options().identity(Identity::new(NAME).unwrap()));
    let connections = Connections::of(&dealer);
    let (mut routers, mut wires) = (Vec::new(), Vec::new());
    for _ in 0..SOURCES {
        let router = RouterSocket::new();
        let wire = Wire::to(router.bind("tcp://127.0.0.1:*").await.unwrap(), Sends::WhoIsBound).await;
        dealer.connect(wire.endpoint.as_str()).unwrap();
        routers.push(router);
        wires.push(wire);
    }
    cut_under_load(dealer, connections, routers, &wires, load, Some(NAME)).await
}

/// Shows: M3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_routers_whose_connections_are_cut_every_message_is_accounted_for_and_in_order() {
    let outcome = routers_to_a_dealer(Load::MIXED).await;
    outcome.is_accounted_for(Load::MIXED);
    assert_eq!(outcome.late, 0);
}

/// Shows: M3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_routers_whose_connections_are_cut_exactly_what_was_not_written_is_counted_as_dropped() {
    let outcome = routers_to_a_dealer(Load::LARGE).await;
    outcome.is_accounted_for(Load::LARGE);
    assert_eq!((outcome.dropped, outcome.late), (outcome.unwritten, 0));
}
