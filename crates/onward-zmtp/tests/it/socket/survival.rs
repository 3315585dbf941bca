//! What sockets must live through. Short here; `cargo xtask soak sockets` makes it long.
//!
//! `ONWARD_ROUNDS` says how many connections there are of each kind that never finish a handshake: five for each round (default: 10).

use std::time::Duration;

use onward_zmtp::protocol::Message;
use onward_zmtp::socket::{Reconnect, SocketOptions, limits};
use onward_zmtp::{DealerSocket, PullSocket, PushSocket, RouterSocket};

use tokio::sync::Mutex;

use super::events::{no_tasks, number, peers, until, within};
use super::raw::{Raw, accept, listen};
use crate::zmtp::link::{frame, greeting};

/// The payload of a message that is large.
const PAYLOAD: usize = 64 * 1024;

fn rounds() -> usize {
    number("ONWARD_ROUNDS").unwrap_or(10)
}

/// A peer that comes back does not get ahead of itself, although each of its connections has its turns.
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
            // Some have been read, and some not, when the next connection comes.
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

/// What a lost peer did not get goes to it when it is back: first what its connection had taken, then what waited for any, then what
/// waited for this peer.
///
/// Shows: M3
#[tokio::test]
async fn what_a_lost_peer_did_not_get_keeps_its_order() {
    let reconnect = Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(10) };
    let mut push = PushSocket::with_options(SocketOptions::new().reconnect(reconnect));
    let (listener, endpoint) = listen().await;
    push.connect(&endpoint).unwrap();
    let mut number = 0_u32;
    // More than its connection takes at a time waits for it, and more comes when it is there, but does not read.
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

/// Sends so many more, each with its number.
async fn send_large(push: &mut PushSocket, number: &mut u32, count: usize) {
    for _ in 0..count {
        let payload = [&number.to_be_bytes()[..], &vec![0; PAYLOAD - 4]].concat();
        within(push.send(payload)).await.unwrap();
        *number += 1;
    }
}

/// Beside as many that say nothing as drip one octet after the other, whoever introduces itself as usual is served.
///
/// Shows: M3
#[tokio::test]
async fn thousands_that_say_nothing_or_drip_keep_nobody_out_and_leave_nothing_behind() {
    are_in_nobodys_way(limits::PENDING_HANDSHAKES).await;
}

/// Nor where all of them may stay.
///
/// Shows: M3
#[tokio::test]
async fn thousands_that_say_nothing_or_drip_and_are_not_sent_away_keep_nobody_out_and_leave_nothing_behind() {
    are_in_nobodys_way(usize::MAX).await;
}

async fn are_in_nobodys_way(pending_handshakes: usize) {
    // Both ends are in this process, which may not have more than twenty thousand files at a time.
    static FILES: Mutex<()> = Mutex::const_new(());
    let _files = FILES.lock().await;
    let count = (rounds() * 5).min(4900);
    let mut pull = PullSocket::with_options(SocketOptions::new().pending_handshakes(pending_handshakes));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut silent = Vec::new();
    let mut dripping = Vec::new();
    let mut push = PushSocket::new();
    let greeting = greeting(1, "NULL", false);
    for octet in 0..count {
        silent.push(Raw::connect(&endpoint).await);
        dripping.push(Raw::connect(&endpoint).await);
        drip(&dripping, &greeting, octet);
        if octet == count / 2 {
            push.connect(&endpoint).unwrap();
        }
        if octet > count / 2 {
            push.send("work").await.unwrap();
            assert_eq!(within(pull.recv()).await.unwrap().frames(), ["work"]);
        }
    }
    assert_eq!(pull.statistics().peers, 1);
    let served = count - count / 2 - 1;
    println!(
        "connections={} attempted={served} acknowledged={served} lost=0 duplicated=0 recovered=0 seed=0",
        count * 2
    );
    drop((push, pull, silent, dripping));
    no_tasks().await;
}

/// One octet more from one in twenty of them, in turn. Some have been shown the door.
fn drip(all: &[Raw], greeting: &[u8], round: usize) {
    for (index, raw) in all.iter().enumerate().skip(round % 20).step_by(20) {
        let octet = (round - index) / 20;
        let _ = raw.0.try_write(&greeting[octet % greeting.len()..][..1]);
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
        dealer.send("question").await.unwrap();
        let question = within(router.recv()).await.unwrap();
        within(router.send(question)).await.unwrap();
        assert_eq!(within(dealer.recv()).await.unwrap().frames(), ["question"]);
        // It may take some more meanwhile.
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
    // More than what waits for one peer, in its queue and on the way.
    for _ in 0..2000 {
        within(push.send(vec![0; 64 * 1024])).await.unwrap();
        while pull.try_recv().is_some() {}
    }
}

/// The other end is gone without a word in the middle of a frame, as when its process is killed; those beside it go on.
///
/// Shows: M3
#[tokio::test]
async fn a_peer_that_is_killed_in_the_middle_of_a_message_disturbs_nobody() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut good = Raw::introduced(&endpoint, "PUSH").await;
    for round in 0..20 {
        let mut killed = Raw::introduced(&endpoint, "PUSH").await;
        let whole = frame(1, b"first").into_iter().chain(frame(0, &[7; 200])).collect::<Vec<_>>();
        killed.write(&[&frame(0, b"whole")[..], &whole[..whole.len() - 1 - round * 10]].concat()).await;
        assert_eq!(within(pull.recv()).await.unwrap().frames(), ["whole"]);
        // With a reset in place of an end.
        killed.0.set_zero_linger().unwrap();
        drop(killed);
        until(|| pull.statistics().peers == 1).await;
        good.write(&frame(0, b"good")).await;
        assert_eq!(within(pull.recv()).await.unwrap().frames(), ["good"]);
    }
    assert!(pull.try_recv().is_none());
}
