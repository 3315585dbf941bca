//! Many messages sent at once, and the path of short messages.

use std::time::Duration;

use futures_util::FutureExt;
use onward_zmtp::protocol::Message;
use onward_zmtp::socket::{HighWaterMark, QueueSize, SocketOptions};
use onward_zmtp::{DealerSocket, PubSocket, PullSocket, PushSocket, RouterSocket, SubSocket};
use tokio::time::timeout;

use super::pipeline::pulls;
use crate::socket::support::events::{peers, until, within};

fn numbers(range: std::ops::Range<u32>) -> Vec<Message> {
    range.map(|number| Message::from(number.to_be_bytes().to_vec())).collect()
}

/// Returns messages of all kinds and sizes: long and short in turn, and several short ones in a
/// row.
fn mixed(count: usize) -> Vec<Message> {
    let payload = |length: usize, index: usize| vec![index as u8; length];
    let message = |index: usize| match index % 7 {
        0 => Message::from(payload(256, index)),
        1 => Message::from_iter([payload(3, index), payload(4, index)]),
        2 => Message::from(payload(5000, index)),
        3 => Message::from(payload(255, index)),
        4 => Message::from(payload(0, index)),
        _ => Message::from(payload(index % 64, index)),
    };
    (0..count).map(message).collect()
}

/// Shows: M5
#[tokio::test]
async fn all_of_a_list_arrive_in_order_though_they_are_more_than_the_high_water_mark() {
    let (mut pulls, mut push) = pulls(1).await;
    let mut list = numbers(0..5000);
    let mut received = Vec::new();
    within(async {
        tokio::join!(async { push.send_many(&mut list).await.unwrap() }, async {
            while received.len() < 5000 {
                pulls[0].recv_many(&mut received, 512).await.unwrap();
            }
        });
    })
    .await;
    assert!(list.is_empty());
    assert_eq!(received, numbers(0..5000));
}

/// Shows: M5
#[tokio::test]
async fn a_list_goes_to_the_peers_in_turn() {
    let (mut pulls, mut push) = pulls(3).await;
    push.send_many(&mut numbers(0..9)).await.unwrap();
    for (pull, first) in pulls.iter_mut().zip(0..) {
        for round in 0..3 {
            assert_eq!(within(pull.recv()).await.unwrap(), numbers(0..9)[first + 3 * round]);
        }
    }
}

/// Shows: M5
#[tokio::test]
async fn what_a_cancelled_list_has_not_sent_is_left_in_it() {
    let high_water_mark = SocketOptions::new().send_high_water_mark(HighWaterMark::messages(10));
    let mut push = PushSocket::with_options(high_water_mark);
    let pull = PullSocket::new();
    push.connect(pull.bind("inproc://a-cancelled-list").await.unwrap()).unwrap();
    peers(1, || push.statistics()).await;
    let mut list = numbers(0..30);
    assert!(push.send_many(&mut list).now_or_never().is_none());
    assert_eq!(list, numbers(10..30));
    assert_eq!(push.statistics().outgoing.messages, 10);
}

/// Shows: M5
#[tokio::test]
async fn a_list_ends_at_a_message_without_frames_which_is_left_as_the_first() {
    let (mut pulls, mut push) = pulls(1).await;
    let mut list = numbers(0..3);
    list.insert(2, Message::new());
    assert!(push.send_many(&mut list).await.unwrap_err().is_state());
    assert_eq!(list, [Message::new(), numbers(2..3)[0].clone()]);
    let mut received = Vec::new();
    while received.len() < 2 {
        within(pulls[0].recv_many(&mut received, 10)).await.unwrap();
    }
    assert_eq!(received, numbers(0..2));
}

/// Shows: M5
#[tokio::test]
async fn a_router_and_a_publisher_send_lists_too() {
    let mut router = RouterSocket::new();
    let mut dealer = DealerSocket::new();
    dealer.connect(router.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    dealer.send_many(&mut numbers(0..2)).await.unwrap();
    let mut replies = vec![within(router.recv()).await.unwrap(), within(router.recv()).await.unwrap()];
    router.send_many(&mut replies).await.unwrap();
    assert_eq!(within(dealer.recv()).await.unwrap(), numbers(0..1)[0]);

    let (mut publisher, mut subscriber) = (PubSocket::new(), SubSocket::new());
    subscriber.connect(publisher.bind("ipc://@a-list-of-news").await.unwrap()).unwrap();
    subscriber.subscribe("").unwrap();
    while subscriber.try_recv().is_none() {
        publisher.send_many(&mut vec![Message::from("news"); 2]).await.unwrap();
        tokio::task::yield_now().await;
    }
}

/// Shows: M3
#[tokio::test]
async fn messages_of_all_sizes_keep_their_order_among_one_another() {
    let mut pull = PullSocket::new();
    let mut push = PushSocket::new();
    push.connect(pull.bind("ipc://@messages-of-all-sizes").await.unwrap()).unwrap();
    let sent = mixed(3000);
    let sending = async {
        for message in sent.clone() {
            push.send(message).await.unwrap();
        }
        push.send_many(&mut sent.clone()).await.unwrap();
    };
    let mut received = Vec::new();
    let receiving = async {
        while received.len() < 2 * sent.len() {
            received.push(pull.recv().await.unwrap());
            pull.recv_many(&mut received, 2 * sent.len()).await.unwrap();
        }
    };
    within(async { tokio::join!(sending, receiving) }).await;
    assert!(received.iter().eq(sent.iter().chain(&sent)));
}

/// Shows: M3
#[tokio::test]
async fn the_high_water_mark_in_messages_counts_short_ones_one_by_one_on_both_sides() {
    reach_high_water_marks("ipc://@short-messages-and-a-limit", 4, 100).await;
}

/// Shows: M3
#[tokio::test]
async fn the_high_water_mark_in_bytes_counts_the_payload_of_short_messages_on_both_sides() {
    reach_high_water_marks("ipc://@short-messages-and-bytes", 64, 16).await;
}

/// Sends messages of `length` bytes to a peer that does not read, until the sender must wait. Then
/// `most` messages are on each side.
async fn reach_high_water_marks(endpoint: &str, length: usize, most: usize) {
    let high_water_mark = HighWaterMark { messages: 100, bytes: 1000 };
    let mut pull = PullSocket::with_options(SocketOptions::new().receive_high_water_mark(high_water_mark));
    let mut push = PushSocket::with_options(SocketOptions::new().send_high_water_mark(high_water_mark));
    push.connect(pull.bind(endpoint).await.unwrap()).unwrap();
    peers(1, || push.statistics()).await;
    let mut sent = 0;
    while timeout(Duration::from_millis(500), push.send(vec![1; length])).await.is_ok() {
        sent += 1;
    }
    assert_eq!(pull.statistics().incoming, QueueSize { messages: most, bytes: most * length });
    assert_eq!(push.statistics().outgoing, QueueSize { messages: most, bytes: most * length });
    let mut received = Vec::new();
    while received.len() < sent {
        within(pull.recv_many(&mut received, 7)).await.unwrap();
    }
    until(|| pull.statistics().incoming.messages == 0).await;
}
