//! PUB, SUB, XPUB and XSUB.

use std::time::Duration;

use onward_zmtp::protocol::Message;
use onward_zmtp::protocol::bounds::WRITE_BATCH_BYTES;
use onward_zmtp::socket::bounds::SUBSCRIPTIONS;
use onward_zmtp::socket::{Endpoint, HighWaterMark, Overflow, Reconnect, SocketOptions};
use onward_zmtp::{PubSocket, SubSocket, XpubSocket, XsubSocket};
use tokio::io::AsyncWriteExt as _;

use crate::socket::support::events::{peers, until, within};
use crate::socket::support::raw::{Raw, accept, listen};
use crate::zmtp::link::{command, frame};

async fn xpub(options: SocketOptions) -> (XpubSocket, Endpoint) {
    let xpub = XpubSocket::with_options(options);
    let endpoint = xpub.bind("tcp://127.0.0.1:*").await.unwrap();
    (xpub, endpoint)
}

async fn notice(xpub: &mut XpubSocket) -> Vec<u8> {
    within(xpub.recv()).await.unwrap().frames()[0].to_vec()
}

/// Shows: M3
#[tokio::test]
async fn a_subscriber_gets_what_begins_with_its_topics_and_nothing_else() {
    let (mut xpub, endpoint) = xpub(SocketOptions::new()).await;
    let mut sub = SubSocket::new();
    sub.subscribe("weather").unwrap();
    sub.subscribe("w").unwrap();
    sub.connect(&endpoint).unwrap();
    notice(&mut xpub).await;
    notice(&mut xpub).await;
    for topic in ["news", "weather.oslo", "wind", "", "x"] {
        xpub.send(topic).await.unwrap();
    }
    xpub.send("weather: last").await.unwrap();
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last: &Message| last.frames() != ["weather: last"]) {
        seen.push(within(sub.recv()).await.unwrap());
    }
    let seen: Vec<_> = seen.iter().map(|message| message.frames()[0].clone()).collect();
    assert_eq!(seen, ["weather.oslo", "wind", "weather: last"]);
}

/// Shows: M3
#[tokio::test]
async fn what_was_subscribed_to_twice_must_be_cancelled_twice() {
    let (mut xpub, endpoint) = xpub(SocketOptions::new()).await;
    let sub = SubSocket::new();
    sub.connect(&endpoint).unwrap();
    for _ in 0..2 {
        sub.subscribe("a").unwrap();
    }
    assert_eq!(notice(&mut xpub).await, b"\x01a");
    sub.cancel("a");
    sub.subscribe("b").unwrap();
    assert_eq!(notice(&mut xpub).await, b"\x01b");
    sub.cancel("a");
    assert_eq!(notice(&mut xpub).await, b"\x00a");
}

/// Returns a publisher that replaces another at its endpoint.
async fn another(publisher: XpubSocket, endpoint: &Endpoint) -> XpubSocket {
    drop(publisher);
    let xpub = XpubSocket::new();
    within(async {
        while xpub.bind(endpoint).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    xpub
}

/// Shows: M3
#[tokio::test]
async fn subscriptions_are_made_again_after_a_reconnect() {
    let (xpub_one, endpoint) = xpub(SocketOptions::new()).await;
    let mut sub = SubSocket::new();
    sub.subscribe("topic").unwrap();
    sub.connect(&endpoint).unwrap();
    peers(1, || xpub_one.statistics()).await;
    let mut xpub = another(xpub_one, &endpoint).await;
    assert_eq!(notice(&mut xpub).await, b"\x01topic");
    xpub.send("topic!").await.unwrap();
    assert_eq!(within(sub.recv()).await.unwrap().frames(), ["topic!"]);
}

/// zmq.rs 0.7 has this fault: it keeps a set, so two subscriptions to a topic are one.
///
/// Shows: M3
#[tokio::test]
async fn what_was_subscribed_to_twice_must_be_cancelled_twice_after_a_reconnect_too() {
    let (xpub, endpoint) = xpub(SocketOptions::new()).await;
    let sub = SubSocket::new();
    for _ in 0..2 {
        sub.subscribe("a").unwrap();
    }
    sub.connect(&endpoint).unwrap();
    peers(1, || xpub.statistics()).await;
    let mut xpub = another(xpub, &endpoint).await;
    assert_eq!(notice(&mut xpub).await, b"\x01a");
    sub.cancel("a");
    sub.subscribe("b").unwrap();
    assert_eq!(notice(&mut xpub).await, b"\x01b");
    sub.cancel("a");
    assert_eq!(notice(&mut xpub).await, b"\x00a");
}

/// Shows: M3
#[tokio::test]
async fn nothing_comes_after_a_cancellation_even_if_it_was_on_its_way() {
    let (mut xpub, endpoint) = xpub(SocketOptions::new()).await;
    let mut sub = SubSocket::new();
    sub.subscribe("a").unwrap();
    sub.subscribe("b").unwrap();
    sub.connect(&endpoint).unwrap();
    notice(&mut xpub).await;
    notice(&mut xpub).await;
    xpub.send("a").await.unwrap();
    xpub.send("b").await.unwrap();
    until(|| sub.statistics().incoming.messages == 2).await;
    sub.cancel("a");
    assert_eq!(within(sub.recv()).await.unwrap().frames(), ["b"]);
}

/// Shows: M3
#[tokio::test]
async fn an_xpub_receives_first_subscriptions_and_last_cancellations() {
    let (mut xpub, endpoint) = xpub(SocketOptions::new()).await;
    let subs = [SubSocket::new(), SubSocket::new()];
    for sub in &subs {
        sub.connect(&endpoint).unwrap();
        sub.subscribe("a").unwrap();
    }
    assert_eq!(notice(&mut xpub).await, b"\x01a");
    until(|| xpub.statistics().peers == 2).await;
    subs[1].subscribe("b").unwrap();
    assert_eq!(notice(&mut xpub).await, b"\x01b");
    drop(subs);
    let mut ends = [notice(&mut xpub).await, notice(&mut xpub).await];
    ends.sort();
    assert_eq!(ends, [b"\x00a", b"\x00b"]);
}

/// Shows: M3
#[tokio::test]
async fn an_xpub_receives_the_end_of_a_lost_subscription_before_the_next() {
    let reconnect = Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(10) };
    let mut xpub = XpubSocket::with_options(SocketOptions::new().reconnect(reconnect));
    // A second connection is present, because then connections take turns.
    let (elsewhere, other) = listen().await;
    xpub.connect(&other).unwrap();
    let _bystander = accept(&elsewhere, "SUB").await;
    peers(1, || xpub.statistics()).await;
    let (listener, endpoint) = listen().await;
    xpub.connect(&endpoint).unwrap();
    let mut first = accept(&listener, "SUB").await;
    first.write(&command("SUBSCRIBE", b"a")).await;
    // No message of the connection is left to be read when it ends.
    assert_eq!(notice(&mut xpub).await, b"\x01a");
    drop(first);
    let mut second = accept(&listener, "SUB").await;
    second.write(&command("SUBSCRIBE", b"a")).await;
    until(|| xpub.statistics().peers == 2 && xpub.statistics().incoming.messages > 0).await;
    assert_eq!(notice(&mut xpub).await, b"\x00a");
    assert_eq!(notice(&mut xpub).await, b"\x01a");
}

/// The slow joiner of the ZeroMQ guide: publishing does not wait for subscribers, and messages
/// without a subscriber are not counted as dropped.
///
/// Shows: M3
#[tokio::test]
async fn a_message_published_before_a_subscription_has_arrived_is_dropped() {
    let (mut xpub, endpoint) = xpub(SocketOptions::new()).await;
    let mut sub = SubSocket::new();
    sub.subscribe("news").unwrap();
    xpub.send("news of before").await.unwrap();
    sub.connect(&endpoint).unwrap();
    assert_eq!(notice(&mut xpub).await, b"\x01news");
    xpub.send("news of today").await.unwrap();
    assert_eq!(within(sub.recv()).await.unwrap().frames(), ["news of today"]);
    assert_eq!(xpub.statistics().dropped, 0);
}

/// Subscribes to `topics` topics and disconnects. This leaves a notice of each subscription and one
/// of its end.
async fn come_and_go(xpub: &XpubSocket, endpoint: &Endpoint, topics: usize) {
    let before = xpub.statistics().incoming.messages;
    let mut raw = Raw::introduced(endpoint, "SUB").await;
    for topic in 0..topics {
        raw.write(&command("SUBSCRIBE", &[topic as u8])).await;
    }
    until(|| xpub.statistics().incoming.messages == before + topics).await;
    drop(raw);
    until(|| xpub.statistics().incoming.messages == before + 2 * topics).await;
}

/// The notices of disconnected peers count towards the high-water mark like any messages. A peer
/// that disconnects when the high-water mark is reached adds its final notices beyond it.
///
/// Shows: M3
#[tokio::test]
async fn an_xpub_that_does_not_receive_stops_reading_its_peers_until_it_does() {
    let (mut xpub, endpoint) = xpub(SocketOptions::new().receive_high_water_mark(HighWaterMark::messages(100))).await;
    for _ in 0..3 {
        come_and_go(&xpub, &endpoint, 20).await;
    }
    let mut raw = Raw::introduced(&endpoint, "SUB").await;
    peers(1, || xpub.statistics()).await;
    raw.write(&command("SUBSCRIBE", b"late")).await;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(xpub.statistics().incoming.messages, 120);
    for _ in 0..120 {
        notice(&mut xpub).await;
    }
    assert_eq!(notice(&mut xpub).await, b"\x01late");
}

/// Shows: M3
#[tokio::test]
async fn a_verbose_xpub_receives_every_subscription() {
    let (mut xpub, endpoint) = xpub(SocketOptions::new().verbose()).await;
    let subs = [SubSocket::new(), SubSocket::new()];
    for sub in &subs {
        sub.connect(&endpoint).unwrap();
        sub.subscribe("a").unwrap();
    }
    assert_eq!(notice(&mut xpub).await, b"\x01a");
    assert_eq!(notice(&mut xpub).await, b"\x01a");
}

/// Shows: M3
#[tokio::test]
async fn an_xsub_subscribes_by_messages_and_sends_others_upstream() {
    let (mut xpub, endpoint) = xpub(SocketOptions::new()).await;
    let mut xsub = XsubSocket::new();
    xsub.connect(&endpoint).unwrap();
    peers(1, || xsub.statistics()).await;
    xsub.send(&b"\x01topic"[..]).await.unwrap();
    assert_eq!(notice(&mut xpub).await, b"\x01topic");
    xsub.send("upstream").await.unwrap();
    assert_eq!(notice(&mut xpub).await, b"upstream");
    xpub.send("topic!").await.unwrap();
    assert_eq!(within(xsub.recv()).await.unwrap().frames(), ["topic!"]);
    xsub.send(&b"\x00topic"[..]).await.unwrap();
    assert_eq!(notice(&mut xpub).await, b"\x00topic");
}

/// Publishes until a message is dropped, or 10 000 times. Returns the number of messages.
async fn flood(publisher: &mut PubSocket) -> usize {
    for count in 0..10_000 {
        publisher.send(vec![1; 64 * 1024]).await.unwrap();
        tokio::task::yield_now().await;
        if publisher.statistics().dropped > 0 {
            return count;
        }
    }
    panic!("nothing was dropped");
}

/// Shows: M3
#[tokio::test]
async fn a_subscriber_that_does_not_read_misses_messages_which_are_counted_and_others_get_them() {
    let mut publisher = PubSocket::with_options(SocketOptions::new().send_high_water_mark(HighWaterMark::messages(10)));
    let endpoint = publisher.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut stuck = Raw::introduced(&endpoint, "SUB").await;
    stuck.write(&command("SUBSCRIBE", b"")).await;
    let mut sub = SubSocket::new();
    sub.subscribe("").unwrap();
    sub.connect(&endpoint).unwrap();
    until_received(&mut publisher, &mut sub).await;
    tokio::select! {
        _ = flood(&mut publisher) => {}
        () = async { loop { sub.recv().await.unwrap(); } } => {}
    }
    while sub.try_recv().is_some() {}
    publisher.send("still here").await.unwrap();
    within(async { while sub.recv().await.unwrap().frames() != ["still here"] {} }).await;
}

/// Publishes until the subscription has arrived.
async fn until_received(publisher: &mut PubSocket, sub: &mut SubSocket) {
    within(async {
        while sub.try_recv().is_none() {
            publisher.send("are you there").await.unwrap();
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Shows: M3
#[tokio::test]
async fn a_publisher_can_wait_for_its_slowest_subscriber_instead() {
    let options = SocketOptions::new().send_high_water_mark(HighWaterMark::messages(10)).overflow(Overflow::Wait);
    let (mut xpub, endpoint) = xpub(options).await;
    let mut sub = SubSocket::with_options(SocketOptions::new().receive_high_water_mark(HighWaterMark::messages(10)));
    sub.subscribe("").unwrap();
    sub.connect(&endpoint).unwrap();
    notice(&mut xpub).await;
    let mut sent = 0;
    while tokio::time::timeout(Duration::from_millis(500), xpub.send(vec![sent as u8; 64 * 1024])).await.is_ok() {
        sent += 1;
    }
    assert!(sent > 10);
    for number in 0..sent {
        assert_eq!(within(sub.recv()).await.unwrap().frames()[0][0], number as u8);
    }
    assert_eq!(xpub.statistics().dropped, 0);
}

#[tokio::test]
async fn a_subscription_of_a_3_0_peer_is_understood() {
    let (mut xpub, endpoint) = xpub(SocketOptions::new()).await;
    let mut raw = Raw::introduced(&endpoint, "SUB").await;
    raw.write(&frame(0, b"\x01old")).await;
    assert_eq!(notice(&mut xpub).await, b"\x01old");
    xpub.send("older").await.unwrap();
    assert_eq!(raw.read(7).await, frame(0, b"older"));
}

#[tokio::test]
async fn a_topic_that_is_too_long_is_refused() {
    let sub = SubSocket::new();
    assert!(sub.subscribe(vec![0; 1025]).unwrap_err().is_limit());
    sub.subscribe(vec![0; 1024]).unwrap();
}

/// libzmq had this fault, CVE-2021-20236: it recursed over topics of the peer's choice.
#[tokio::test]
async fn topics_that_nest_as_deeply_as_they_can_cost_no_stack() {
    let (mut xpub, endpoint) = xpub(SocketOptions::new()).await;
    let sub = SubSocket::new();
    sub.connect(&endpoint).unwrap();
    for length in 0..=1024 {
        sub.subscribe(vec![b'a'; length]).unwrap();
    }
    for _ in 0..=1024 {
        notice(&mut xpub).await;
    }
    xpub.send(vec![b'a'; 2000]).await.unwrap();
    until(|| sub.statistics().incoming.messages == 1).await;
}

/// Shows: M3
#[test]
fn a_socket_has_as_many_subscriptions_as_the_limit_and_no_more() {
    let sub = SubSocket::new();
    for number in 0..SUBSCRIPTIONS as u32 {
        sub.subscribe(number.to_be_bytes().to_vec()).unwrap();
    }
    assert!(sub.subscribe("one too many").unwrap_err().is_limit());
    sub.subscribe(0_u32.to_be_bytes().to_vec()).unwrap();
    for _ in 0..2 {
        sub.cancel(0_u32.to_be_bytes().to_vec());
    }
    sub.subscribe("one too many").unwrap();
}

/// The subscriber shuts down its sending side, then reads everything that the publisher sent until
/// it closed.
///
/// Shows: M3
#[tokio::test]
async fn what_a_publisher_has_queued_for_a_subscriber_that_leaves_is_counted_to_the_message() {
    // A message is as large as a batch, so that none is written together with another.
    const SIZE: usize = WRITE_BATCH_BYTES;
    let (mut xpub, endpoint) = xpub(SocketOptions::new().overflow(Overflow::Wait)).await;
    let mut stuck = Raw::introduced(&endpoint, "SUB").await;
    stuck.write(&command("SUBSCRIBE", b"")).await;
    notice(&mut xpub).await;
    let (mut sent, mut rounds_without_room) = (0, 0);
    until(|| {
        let before = sent;
        while xpub.try_send(vec![0; SIZE]).is_ok() {
            sent += 1;
        }
        rounds_without_room = if sent == before { rounds_without_room + 1 } else { 0 };
        rounds_without_room == 20
    })
    .await;
    stuck.0.shutdown().await.unwrap();
    peers(0, || xpub.statistics()).await;
    let read = stuck.read_to_end().await.len() / (9 + SIZE);
    assert!(read < sent, "all of {sent} were read");
    assert_eq!(xpub.statistics().dropped, (sent - read) as u64, "of {sent} that were sent, {read} were read");
}
