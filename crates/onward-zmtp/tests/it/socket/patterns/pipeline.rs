//! PUSH and PULL.

use std::future::poll_fn;
use std::task::Poll;

use crate::socket::support::events::{connected, disconnected, event, peers, until, within};
use crate::socket::support::raw::Raw;
use crate::zmtp::link::frame;
use onward_zmtp::protocol::Message;
use onward_zmtp::protocol::bounds::LARGE_READ_BUFFER_BYTES;
use onward_zmtp::socket::bounds::TURN_BYTES;
use onward_zmtp::socket::{HighWaterMark, MonitorEvent, SocketOptions};
use onward_zmtp::{PullSocket, PushSocket};

fn number(number: u32) -> Message {
    Message::from(number.to_be_bytes().to_vec())
}

fn of(message: &Message) -> u32 {
    u32::from_be_bytes(message.frames()[0][..].try_into().unwrap())
}

pub(crate) async fn pulls(count: usize) -> (Vec<PullSocket>, PushSocket) {
    let push = PushSocket::new();
    let mut pulls = Vec::new();
    for index in 0..count {
        let pull = PullSocket::new();
        push.connect(pull.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
        peers(index + 1, || push.statistics()).await;
        pulls.push(pull);
    }
    (pulls, push)
}

/// Shows: M3
#[tokio::test]
async fn work_arrives_in_order() {
    let (mut pulls, mut push) = pulls(1).await;
    within(async {
        for sent in 0..3000 {
            push.send(number(sent)).await.unwrap();
            if sent >= 1000 {
                assert_eq!(of(&pulls[0].recv().await.unwrap()), sent - 1000);
            }
        }
    })
    .await;
}

/// One thread runs everything, so a connection may do only a limited amount between two turns of
/// another task.
///
/// Shows: M3
#[tokio::test]
async fn a_connection_that_floods_lets_other_tasks_have_their_turn() {
    let (pull, mut push) = (PullSocket::new(), PushSocket::new());
    push.connect(pull.bind("ipc://@a-flood-and-others").await.unwrap()).unwrap();
    peers(1, || push.statistics()).await;
    let payload = vec![0; 4096];
    while push.try_send(payload.clone()).is_ok() {}
    let most = TURN_BYTES + LARGE_READ_BUFFER_BYTES;
    let other = tokio::spawn(async move {
        let mut before = 0;
        while before < 500 * 4096 {
            one_turn().await;
            let more = pull.statistics().incoming.bytes - before;
            assert!(more <= most, "{more} bytes in one turn");
            before += more;
        }
    });
    within(other).await.unwrap();
}

/// Waits until the runtime has run its queue once. (`yield_now` waits until the queue is empty.)
async fn one_turn() {
    let mut is_over = false;
    poll_fn(|context| {
        if is_over {
            return Poll::Ready(());
        }
        is_over = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Shows: M3
#[tokio::test]
async fn work_goes_to_the_peers_in_turn() {
    let (mut pulls, mut push) = pulls(3).await;
    for sent in 0..9 {
        push.send(number(sent)).await.unwrap();
    }
    for (index, pull) in pulls.iter_mut().enumerate() {
        for round in 0..3 {
            assert_eq!(of(&within(pull.recv()).await.unwrap()), round * 3 + index as u32);
        }
    }
}

/// Shows: M3
#[tokio::test]
async fn work_comes_from_the_peers_in_turn() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut pushes = [PushSocket::new(), PushSocket::new()];
    for (index, push) in pushes.iter_mut().enumerate() {
        push.connect(&endpoint).unwrap();
        for _ in 0..100 {
            push.send(number(index as u32)).await.unwrap();
        }
    }
    until(|| pull.statistics().incoming.messages == 200).await;
    let mut order = Vec::new();
    for _ in 0..200 {
        order.push(of(&pull.recv().await.unwrap()));
    }
    assert!(order.chunks(2).all(|pair| pair[0] != pair[1]), "{order:?}");
}

/// Shows: M3
#[tokio::test]
async fn a_sender_feels_that_the_receiver_does_not_read_and_goes_on_when_it_does() {
    let high_water_mark = HighWaterMark::messages(10);
    let mut pull = PullSocket::with_options(SocketOptions::new().receive_high_water_mark(high_water_mark));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut push = PushSocket::with_options(SocketOptions::new().send_high_water_mark(high_water_mark));
    push.connect(&endpoint).unwrap();
    let payload = vec![7; 64 * 1024];
    let mut sent: u32 = 0;
    // The operating system buffers some megabytes at most.
    let full = tokio::time::Duration::from_millis(500);
    while tokio::time::timeout(full, push.send(payload.clone())).await.is_ok() {
        sent += 1;
        assert!(sent < 10_000, "nothing ever holds the sender up");
    }
    assert!(push.statistics().outgoing.messages <= 10);
    assert!(pull.statistics().incoming.messages <= 10);
    within(async {
        let receiving = async {
            for _ in 0..sent {
                pull.recv().await.unwrap();
            }
        };
        let sending = push.send("last");
        tokio::join!(receiving, async { sending.await.unwrap() });
        assert_eq!(pull.recv().await.unwrap().frames(), ["last"]);
    })
    .await;
}

/// Shows: M3
#[tokio::test]
async fn the_high_water_mark_in_bytes_holds_too() {
    let high_water_mark = HighWaterMark { messages: 1_000_000, bytes: 100_000 };
    let mut push = PushSocket::with_options(SocketOptions::new().send_high_water_mark(high_water_mark));
    push.connect("tcp://127.0.0.1:1").unwrap();
    let mut queued = 0;
    while push.try_send(vec![0; 1000]).is_ok() {
        queued += 1;
    }
    assert_eq!(queued, 100);
    assert_eq!(push.statistics().outgoing.bytes, 100_000);
}

/// Shows: M3
#[tokio::test]
async fn a_message_larger_than_the_high_water_mark_passes_alone() {
    let high_water_mark = HighWaterMark { messages: 10, bytes: 1000 };
    let options = SocketOptions::new().send_high_water_mark(high_water_mark).receive_high_water_mark(high_water_mark);
    let mut pull = PullSocket::with_options(options.clone());
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut push = PushSocket::with_options(options);
    push.connect(&endpoint).unwrap();
    for _ in 0..3 {
        within(push.send(vec![1; 100_000])).await.unwrap();
        assert_eq!(within(pull.recv()).await.unwrap().byte_len(), 100_000);
    }
}

/// Shows: M3
#[tokio::test]
async fn what_is_sent_before_there_is_a_peer_arrives_when_there_is_one() {
    let mut push = PushSocket::new();
    let pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    drop(pull);
    push.connect(&endpoint).unwrap();
    for sent in 0..100 {
        push.send(number(sent)).await.unwrap();
    }
    let mut pull = PullSocket::new();
    until_bound(&pull, &endpoint).await;
    for sent in 0..100 {
        assert_eq!(of(&within(pull.recv()).await.unwrap()), sent);
    }
}

/// Binds to an endpoint that other sockets have just released.
async fn until_bound(pull: &PullSocket, endpoint: &onward_zmtp::socket::Endpoint) {
    within(async {
        while pull.bind(endpoint).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Shows: M3
#[tokio::test]
async fn sending_can_wait_for_a_peer_instead() {
    let mut push = PushSocket::with_options(SocketOptions::new().wait_for_peer());
    push.connect("tcp://127.0.0.1:1").unwrap();
    assert!(push.try_send("work").unwrap_err().is_full());
    assert_eq!(push.try_send("work").unwrap_err().into_message(), Some(Message::from("work")));
}

/// Shows: M3
#[tokio::test]
async fn a_bound_sender_waits_for_its_first_peer() {
    let mut push = PushSocket::new();
    let endpoint = push.bind("tcp://127.0.0.1:*").await.unwrap();
    assert!(push.try_send("work").unwrap_err().is_full());
    let mut pull = PullSocket::new();
    pull.connect(&endpoint).unwrap();
    within(push.send("work")).await.unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["work"]);
}

/// Shows: M3
#[tokio::test]
async fn what_a_lost_peer_was_not_sent_goes_to_another() {
    let mut push = PushSocket::with_options(SocketOptions::new().send_high_water_mark(HighWaterMark::messages(100)));
    let endpoint = push.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = push.monitor();
    // The peer never reads, so messages that the operating system does not take stay in the queue.
    let stuck = Raw::introduced(&endpoint, "PULL").await;
    connected(&mut monitor).await;
    let full = tokio::time::Duration::from_millis(500);
    while tokio::time::timeout(full, push.send(vec![0; 64 * 1024])).await.is_ok() {}
    drop(stuck);
    let uncertain = event(&mut monitor, |event| match event {
        MonitorEvent::Disconnected { uncertain, .. } => Some(*uncertain),
        _ => None,
    })
    .await;
    assert!(uncertain <= 10, "{uncertain} messages were being written");
    assert_eq!(push.statistics().dropped, uncertain as u64);
    let waiting = push.statistics().outgoing.messages;
    assert!(waiting > 10, "{waiting} wait");
    let mut pull = PullSocket::new();
    pull.connect(&endpoint).unwrap();
    for _ in 0..waiting {
        within(pull.recv()).await.unwrap();
    }
}

/// Shows: M3
#[tokio::test]
async fn a_dead_peer_leaves_the_round_robin() {
    let (mut pulls, mut push) = pulls(2).await;
    let mut monitor = push.monitor();
    drop(pulls.remove(0));
    disconnected(&mut monitor).await;
    for sent in 0..10 {
        push.send(number(sent)).await.unwrap();
    }
    for sent in 0..10 {
        assert_eq!(of(&within(pulls[0].recv()).await.unwrap()), sent);
    }
}

#[tokio::test]
async fn messages_to_a_socket_that_does_not_receive_are_counted() {
    let push = PushSocket::new();
    let endpoint = push.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut raw = Raw::introduced(&endpoint, "PULL").await;
    raw.write(&frame(0, b"nobody asked")).await;
    until(|| push.statistics().discarded == 1).await;
}
