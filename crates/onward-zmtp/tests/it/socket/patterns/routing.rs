//! ROUTER, DEALER and identities.

use std::time::Duration;

use bytes::Bytes;
use onward_zmtp::protocol::bounds::WRITE_BATCH_BYTES;
use onward_zmtp::protocol::{Identity, Message};
use onward_zmtp::socket::{DuplicateIdentity, Endpoint, Reconnect, SocketOptions, bounds};
use onward_zmtp::{DealerSocket, PullSocket, PushSocket, RouterSocket};
use tokio::io::AsyncWriteExt as _;

use crate::socket::support::events::{connected, disconnected, failed, peers, until, within};
use crate::socket::support::raw::Raw;
use crate::zmtp::link::frame;

async fn router(options: SocketOptions) -> (RouterSocket, Endpoint) {
    let router = RouterSocket::with_options(options);
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    (router, endpoint)
}

fn named(name: &'static str) -> DealerSocket {
    DealerSocket::with_options(SocketOptions::new().identity(Identity::new(name).unwrap()))
}

/// Shows: M3
#[tokio::test]
async fn a_router_replies_to_each_peer_by_the_identity_in_front() {
    let (mut router, endpoint) = router(SocketOptions::new()).await;
    let mut dealers = [named("one"), named("two"), DealerSocket::new()];
    for dealer in &mut dealers {
        dealer.connect(&endpoint).unwrap();
        dealer.send(Message::from_iter(["hello", "there"])).await.unwrap();
    }
    for _ in 0..3 {
        let message = within(router.recv()).await.unwrap();
        assert_eq!(message.frames()[1..], ["hello", "there"]);
        let identity = message.frames()[0].clone();
        router.send(Message::from_iter([identity.clone(), identity])).await.unwrap();
    }
    assert_eq!(within(dealers[0].recv()).await.unwrap().frames(), ["one"]);
    assert_eq!(within(dealers[1].recv()).await.unwrap().frames(), ["two"]);
    let made_up = within(dealers[2].recv()).await.unwrap();
    assert_eq!((made_up.frames()[0][0], made_up.byte_len()), (0, 5));
}

/// The equivalent of libzmq's `ZMQ_CONNECT_ROUTING_ID`.
///
/// Shows: M3
#[tokio::test]
async fn a_router_that_connects_knows_the_peer_by_the_identity_that_it_gave_it() {
    let mut dealer = DealerSocket::new();
    for endpoint in ["tcp://127.0.0.1:*", "inproc://known-as"] {
        let endpoint = dealer.bind(endpoint).await.unwrap();
        let mut router = RouterSocket::new();
        assert!(router.connect_as(&endpoint, Identity::new("worker").unwrap()).unwrap());
        assert!(!router.connect_as(&endpoint, Identity::new("worker").unwrap()).unwrap());
        peers(1, || router.statistics()).await;
        router.send(Message::from_iter(["worker", "hello"])).await.unwrap();
        assert_eq!(within(dealer.recv()).await.unwrap().frames(), ["hello"]);
        dealer.send("hello yourself").await.unwrap();
        assert_eq!(within(router.recv()).await.unwrap().frames(), ["worker", "hello yourself"]);
        drop(router);
        peers(0, || dealer.statistics()).await;
    }
}

/// Shows: M3
#[tokio::test]
async fn a_message_without_a_recipient_is_an_error() {
    let (mut router, _) = router(SocketOptions::new()).await;
    let error = router.send(Message::from_iter(["nobody", "hello"])).await.unwrap_err();
    assert!(error.is_unroutable());
    let error = router.try_send(Message::from_iter(["nobody", "hello"])).unwrap_err();
    assert_eq!(error.into_message().unwrap().len(), 2);
}

/// Shows: M3
#[tokio::test]
async fn a_second_peer_of_the_same_identity_is_refused_and_the_first_goes_on() {
    let (mut router, endpoint) = router(SocketOptions::new()).await;
    let mut monitor = router.monitor();
    let (mut first, second) = (named("name"), named("name"));
    first.connect(&endpoint).unwrap();
    connected(&mut monitor).await;
    second.connect(&endpoint).unwrap();
    assert!(failed(&mut monitor).await.is_refused());
    router.send(Message::from_iter(["name", "hello"])).await.unwrap();
    assert_eq!(within(first.recv()).await.unwrap().frames(), ["hello"]);
    assert_eq!(router.statistics().peers, 1);
}

/// The peer is refused before it may send, so its messages wait until the identity is free.
///
/// Shows: M3
#[tokio::test]
async fn a_peer_that_is_back_before_the_router_has_seen_it_go_loses_nothing() {
    let (mut router, endpoint) = router(SocketOptions::new()).await;
    let mut monitor = router.monitor();
    let mut gone_soon = Raw::connect(&endpoint).await;
    gone_soon.introduce_as("DEALER", "name").await;
    connected(&mut monitor).await;
    let mut back = named("name");
    back.connect(&endpoint).unwrap();
    for number in 0..10_u8 {
        back.send(vec![number]).await.unwrap();
    }
    assert!(failed(&mut monitor).await.is_refused());
    drop(gone_soon);
    for number in 0..10_u8 {
        assert_eq!(within(router.recv()).await.unwrap().frames()[1], vec![number]);
    }
}

/// A peer beyond the limit of peers is refused before it may send, too.
///
/// Shows: M3
#[tokio::test]
async fn a_peer_too_many_loses_nothing() {
    let mut pull = PullSocket::with_options(SocketOptions::new().peers(1));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = pull.monitor();
    let first = Raw::introduced(&endpoint, "PUSH").await;
    connected(&mut monitor).await;
    let mut second = PushSocket::new();
    second.connect(&endpoint).unwrap();
    second.send("patience").await.unwrap();
    assert!(failed(&mut monitor).await.is_refused());
    drop(first);
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["patience"]);
}

/// Shows: M3
#[tokio::test]
async fn an_identity_is_handed_over_if_asked() {
    let options = SocketOptions::new().duplicate_identity(DuplicateIdentity::TakeOver);
    let (mut router, endpoint) = router(options).await;
    let mut monitor = router.monitor();
    // With a reconnect, the first peer would take the identity over again.
    let never = Reconnect { first: Duration::from_secs(3600), longest: Duration::from_secs(3600) };
    let first =
        DealerSocket::with_options(SocketOptions::new().identity(Identity::new("name").unwrap()).reconnect(never));
    first.connect(&endpoint).unwrap();
    connected(&mut monitor).await;
    let mut second = named("name");
    second.connect(&endpoint).unwrap();
    disconnected(&mut monitor).await;
    router.send(Message::from_iter(["name", "hello"])).await.unwrap();
    assert_eq!(within(second.recv()).await.unwrap().frames(), ["hello"]);
}

/// Shows: M3
#[tokio::test]
async fn what_came_before_an_identity_was_handed_over_is_read_before_what_comes_after_it() {
    let options = SocketOptions::new().duplicate_identity(DuplicateIdentity::TakeOver);
    let (mut router, endpoint) = router(options).await;
    let mut monitor = router.monitor();
    // A peer that loses its identity does not even close its end.
    let mut all = Vec::new();
    for connection in 0..3_u8 {
        let mut raw = Raw::connect(&endpoint).await;
        raw.introduce_as("DEALER", "name").await;
        connected(&mut monitor).await;
        for number in 0..10 {
            raw.write(&frame(0, &[connection * 10 + number])).await;
        }
        let unread = 10 * (usize::from(connection) + 1);
        until(|| router.statistics().incoming.messages == unread).await;
        all.push(raw);
    }
    for expected in 0..30 {
        assert_eq!(within(router.recv()).await.unwrap().frames()[1], vec![expected]);
    }
}

/// The peer shuts down its sending side, then reads everything that the router sent until it
/// closed.
///
/// Shows: M3
#[tokio::test]
async fn what_a_router_has_queued_for_a_peer_that_leaves_is_counted_to_the_message() {
    // A message is as large as a batch, so that none is written together with another.
    const SIZE: usize = WRITE_BATCH_BYTES;
    let (mut router, endpoint) = router(SocketOptions::new()).await;
    let mut stuck = Raw::connect(&endpoint).await;
    stuck.introduce_as("DEALER", "stuck").await;
    peers(1, || router.statistics()).await;
    let mut sent = 0;
    let mut fill = || {
        let before = sent;
        while router.try_send(Message::from_iter([Bytes::from("stuck"), vec![0; SIZE].into()])).is_ok() {
            sent += 1;
        }
        sent == before
    };
    let mut rounds_without_room = 0;
    until(|| {
        rounds_without_room = if fill() { rounds_without_room + 1 } else { 0 };
        rounds_without_room == 20
    })
    .await;
    assert!(sent * SIZE > bounds::HIGH_WATER_MARK_BYTES, "{sent} messages do not fill a queue");
    stuck.0.shutdown().await.unwrap();
    peers(0, || router.statistics()).await;
    let read = stuck.read_to_end().await.len() / (9 + SIZE);
    assert_eq!(router.statistics().dropped, (sent - read) as u64, "of {sent} that were sent, {read} were read");
}

#[tokio::test]
async fn a_limit_on_peers_is_kept() {
    let (router, endpoint) = router(SocketOptions::new().peers(2)).await;
    let mut monitor = router.monitor();
    let dealers = [DealerSocket::new(), DealerSocket::new(), DealerSocket::new()];
    for dealer in &dealers {
        dealer.connect(&endpoint).unwrap();
    }
    assert!(failed(&mut monitor).await.is_refused());
    peers(2, || router.statistics()).await;
}

#[tokio::test]
async fn a_message_of_a_router_needs_more_than_an_identity() {
    let (mut router, _) = router(SocketOptions::new()).await;
    assert!(router.send("alone").await.unwrap_err().is_state());
    assert!(router.send(Message::new()).await.unwrap_err().is_state());
}
