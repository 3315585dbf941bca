//! Conditions that sockets must survive.

use std::time::Duration;

use futures_util::FutureExt as _;
use onward_zmtp::protocol::Message;
use onward_zmtp::socket::bounds::HIGH_WATER_MARK_MESSAGES;
use onward_zmtp::socket::{Reconnect, SocketOptions};
use onward_zmtp::{DealerSocket, PullSocket, PushSocket, RouterSocket};

use crate::socket::support::events::{peers, until, within};
use crate::socket::support::raw::{Raw, accept, listen};
use crate::zmtp::link::frame;

/// The payload of a large message.
const PAYLOAD: usize = 64 * 1024;

/// A peer that reconnects does not overtake itself, although each of its connections gets turns.
///
/// Shows: M3
#[tokio::test]
async fn what_came_before_a_reconnect_is_read_before_what_comes_after_it() {
    let reconnect = Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(10) };
    let mut pull = PullSocket::with_options(SocketOptions::new().reconnect(reconnect));
    let (listener, endpoint) = listen().await;
    pull.connect(&endpoint).unwrap();
    let mut unread = 0;
    for connection in 0..4_u8 {
        let mut raw = accept(&listener, "PUSH").await;
        for number in 0..10 {
            raw.write(&frame(0, &[connection * 10 + number])).await;
        }
        unread += 10;
        until(|| pull.statistics().incoming.messages == unread).await;
        drop(raw);
        peers(0, || pull.statistics()).await;
        if connection == 1 {
            // Some messages have been read, and some not, when the next connection comes.
            for expected in 0..15 {
                assert_eq!(within(pull.recv()).await.unwrap().frames()[0], vec![expected]);
            }
            unread = pull.statistics().incoming.messages;
        }
    }
    for expected in 15..40 {
        assert_eq!(within(pull.recv()).await.unwrap().frames()[0], vec![expected]);
    }
}

/// Messages that a lost peer did not get are sent to it when it is back. First come those that its
/// connection had taken, then the backlog for any peer, then those queued for this peer.
///
/// Shows: M3
#[tokio::test]
async fn what_a_lost_peer_did_not_get_keeps_its_order() {
    let reconnect = Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(10) };
    let mut push = PushSocket::with_options(SocketOptions::new().reconnect(reconnect));
    let (listener, endpoint) = listen().await;
    push.connect(&endpoint).unwrap();
    let mut number = 0_u32;
    // More messages wait than its connection takes at a time. Further ones are sent when the peer
    // is there but does not read.
    send_large(&mut push, &mut number, 200).await;
    let stuck = accept(&listener, "PULL").await;
    peers(1, || push.statistics()).await;
    send_large(&mut push, &mut number, 20).await;
    drop(stuck);
    let mut raw = accept(&listener, "PULL").await;
    let mut last = None;
    while last != Some(number - 1) {
        let bytes = raw.read(9 + PAYLOAD).await;
        let found = u32::from_be_bytes(bytes[9..13].try_into().unwrap());
        assert!(last.is_none_or(|last| last < found), "{found} after {last:?}");
        last = Some(found);
    }
}

/// Sends `count` more, each with its number.
async fn send_large(push: &mut PushSocket, number: &mut u32, count: usize) {
    for _ in 0..count {
        let payload = [&number.to_be_bytes()[..], &vec![0; PAYLOAD - 4]].concat();
        within(push.send(payload)).await.unwrap();
        *number += 1;
    }
}

/// Shows: M3
#[tokio::test]
async fn a_peer_that_stops_reading_holds_up_no_other_peer_of_a_router() {
    let mut router = RouterSocket::new();
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut stuck = Raw::introduced(&endpoint, "DEALER").await;
    stuck.write(&frame(0, b"here I am")).await;
    let stuck_identity = within(router.recv()).await.unwrap().frames()[0].clone();
    let flood = || Message::from_iter([stuck_identity.clone(), vec![0; 64 * 1024].into()]);
    while router.try_send(flood()).is_ok() {}
    let mut dealer = DealerSocket::new();
    dealer.connect(&endpoint).unwrap();
    for _ in 0..100 {
        dealer.send("request").await.unwrap();
        let request = within(router.recv()).await.unwrap();
        within(router.send(request)).await.unwrap();
        assert_eq!(within(dealer.recv()).await.unwrap().frames(), ["request"]);
        // The full peer may still take some more.
        let _ = router.try_send(flood());
    }
}

/// Shows: M3
#[tokio::test]
async fn a_peer_that_stops_reading_is_passed_over_by_a_push() {
    let mut push = PushSocket::new();
    let endpoint = push.bind("tcp://127.0.0.1:*").await.unwrap();
    let _stuck = Raw::introduced(&endpoint, "PULL").await;
    let mut pull = PullSocket::new();
    pull.connect(&endpoint).unwrap();
    peers(2, || push.statistics()).await;
    // The number exceeds what waits for one peer, in its queue and on the way.
    for _ in 0..2000 {
        within(push.send(vec![0; 64 * 1024])).await.unwrap();
        while pull.try_recv().is_some() {}
    }
}

/// The other end disappears in the middle of a frame, as when its process is killed. Other peers
/// continue.
///
/// Shows: M3
#[tokio::test]
async fn a_peer_that_is_killed_in_the_middle_of_a_message_affects_no_other() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut good = Raw::introduced(&endpoint, "PUSH").await;
    for round in 0..20 {
        let mut killed = Raw::introduced(&endpoint, "PUSH").await;
        let whole = frame(1, b"first").into_iter().chain(frame(0, &[7; 200])).collect::<Vec<_>>();
        killed.write(&[&frame(0, b"whole")[..], &whole[..whole.len() - 1 - round * 10]].concat()).await;
        assert_eq!(within(pull.recv()).await.unwrap().frames(), ["whole"]);
        // The stream ends with a reset.
        killed.0.set_zero_linger().unwrap();
        drop(killed);
        until(|| pull.statistics().peers == 1).await;
        good.write(&frame(0, b"good")).await;
        assert_eq!(within(pull.recv()).await.unwrap().frames(), ["good"]);
    }
    assert!(pull.try_recv().is_none());
}

/// libzmq drops it.
///
/// Shows: M3
#[tokio::test]
async fn a_router_waits_for_a_peer_whose_queue_is_full_and_drops_nothing() {
    let mut router = RouterSocket::new();
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut dealer = DealerSocket::new();
    dealer.connect(&endpoint).unwrap();
    dealer.send("here I am").await.unwrap();
    let identity = within(router.recv()).await.unwrap().frames()[0].clone();
    let mut sent: u32 = 0;
    let message = |number: u32| {
        let body: Vec<u8> = [&number.to_be_bytes()[..], &[0; 64 * 1024]].concat();
        Message::from_iter([identity.clone(), body.into()])
    };
    // The high-water mark in bytes is reached before the high-water mark in messages.
    while sent < HIGH_WATER_MARK_MESSAGES as u32 && router.try_send(message(sent)).is_ok() {
        sent += 1;
    }
    assert!(router.send(message(sent)).now_or_never().is_none());
    within(router.send(message(sent))).await.unwrap();
    for number in 0..=sent {
        assert_eq!(within(dealer.recv()).await.unwrap().frames()[0][..4], number.to_be_bytes());
    }
    assert_eq!(router.statistics().dropped, 0);
}
