//! Queues that keep only the last message.

use onward_zmtp::protocol::Message;
use onward_zmtp::socket::{HighWaterMark, SocketOptions};
use onward_zmtp::{DealerSocket, PubSocket, PullSocket, PushSocket, SubSocket};

use crate::socket::support::events::{peers, until, within};
use crate::socket::support::raw::Raw;
use crate::zmtp::link::frame;

fn newest() -> SocketOptions {
    SocketOptions::new()
        .conflate()
        .send_high_water_mark(HighWaterMark::messages(1))
        .receive_high_water_mark(HighWaterMark::messages(1))
}

/// Shows: M3
#[tokio::test]
async fn a_receiver_that_is_late_gets_the_last_message_only() {
    let mut pull = PullSocket::with_options(newest());
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut raw = Raw::introduced(&endpoint, "PUSH").await;
    for (round, size) in [(0, 1), (1, 1000), (2, 100)] {
        for number in 0..100_u8 {
            let body = vec![number; if number % 2 == 0 { size } else { 1 }];
            let header =
                if body.len() > 255 { [&[2][..], &(body.len() as u64).to_be_bytes()].concat() } else { vec![] };
            raw.write(&if header.is_empty() { frame(0, &body) } else { [header, body].concat() }).await;
        }
        raw.write(&frame(0, &[round, 255])).await;
        let mut last = within(pull.recv()).await.unwrap();
        while last.frames() != [vec![round, 255]] {
            last = within(pull.recv()).await.unwrap();
        }
        assert!(pull.try_recv().is_none());
    }
    assert_eq!(pull.statistics().incoming.messages, 0);
}

/// Shows: M3
#[tokio::test]
async fn what_waits_for_a_peer_is_the_last_message_only() {
    for kind in 0..2 {
        let endpoint = format!("inproc://newest-{kind}");
        let mut pull = DealerSocket::new();
        let mut dealer = DealerSocket::with_options(newest());
        dealer.connect(endpoint.as_str()).unwrap();
        for number in 0..100_u8 {
            dealer.send(Message::from_iter([vec![number], vec![]])).await.unwrap();
        }
        assert_eq!(dealer.statistics().outgoing.messages, 1);
        pull.bind(endpoint.as_str()).await.unwrap();
        assert_eq!(within(pull.recv()).await.unwrap().frames()[0], vec![99]);
        peers(1, || pull.statistics()).await;
    }
}

/// Shows: M3
#[tokio::test]
async fn a_sender_never_waits_and_its_peer_gets_the_last_message_in_the_end() {
    let mut push = PushSocket::with_options(newest());
    let endpoint = push.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut pull = PullSocket::with_options(SocketOptions::new().receive_high_water_mark(HighWaterMark::messages(1)));
    pull.connect(&endpoint).unwrap();
    peers(1, || push.statistics()).await;
    let mut list: Vec<Message> = (0..10_000_u32).map(|number| Message::from(number.to_be_bytes().to_vec())).collect();
    within(push.send_many(&mut list)).await.unwrap();
    push.try_send("last").unwrap();
    while within(pull.recv()).await.unwrap().frames() != ["last"] {}
    until(|| push.statistics().outgoing.messages == 0).await;
}

/// Shows: M3
#[tokio::test]
async fn a_slow_subscriber_gets_the_newest_value() {
    let mut publisher = PubSocket::with_options(newest());
    let endpoint = publisher.bind("inproc://newest-value").await.unwrap();
    let mut sub = SubSocket::with_options(newest());
    sub.subscribe("").unwrap();
    sub.connect(&endpoint).unwrap();
    until(|| {
        publisher.try_send("begin").unwrap();
        sub.try_recv().is_some()
    })
    .await;
    for number in 0..1000_u32 {
        publisher.send(number.to_be_bytes()).await.unwrap();
    }
    publisher.send("newest").await.unwrap();
    while within(sub.recv()).await.unwrap().frames() != ["newest"] {}
    assert_eq!(publisher.statistics().dropped, 0);
}
