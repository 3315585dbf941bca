//! Dropped futures, and reads without waiting.

use std::time::Duration;

use futures_util::{FutureExt, SinkExt, StreamExt, TryStreamExt};
use onward_zmtp::protocol::Message;
use onward_zmtp::{DealerSocket, PullSocket, PushSocket, RouterSocket};
use tokio::time::timeout;

use crate::socket::support::events::{peers, until, within};

async fn pair() -> (PushSocket, PullSocket) {
    let pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let push = PushSocket::new();
    push.connect(&endpoint).unwrap();
    peers(1, || push.statistics()).await;
    (push, pull)
}

/// zmq.rs (#188, #248) and tmq (#47) had these faults: cancelled reads lost messages or stalled the
/// reader.
#[tokio::test]
async fn reads_that_are_cancelled_all_the_time_lose_nothing() {
    let (mut push, mut pull) = pair().await;
    let sending = tokio::spawn(async move {
        for number in 0..2000_u32 {
            push.send(number.to_be_bytes().to_vec()).await.unwrap();
        }
        push
    });
    within(async {
        let mut expected = 0_u32;
        while expected < 2000 {
            if let Ok(message) = timeout(Duration::ZERO, pull.recv()).await {
                assert_eq!(message.unwrap().frames()[0][..], expected.to_be_bytes());
                expected += 1;
            }
        }
    })
    .await;
    sending.await.unwrap();
}

/// Shows: M5
#[tokio::test]
async fn sends_that_are_cancelled_are_sent_once_or_not_at_all() {
    let (mut push, mut pull) = pair().await;
    let mut sent = Vec::new();
    for number in 0..3000_u32 {
        if push.send(number.to_be_bytes().to_vec()).now_or_never().is_some() {
            sent.push(number);
        } else {
            tokio::task::yield_now().await;
        }
    }
    for number in sent {
        assert_eq!(within(pull.recv()).await.unwrap().frames()[0][..], number.to_be_bytes());
    }
    assert!(pull.try_recv().is_none());
}

/// Shows: M5
#[tokio::test]
async fn many_messages_are_taken_at_once() {
    let (mut push, mut pull) = pair().await;
    for number in 0..100_u32 {
        push.send(number.to_be_bytes().to_vec()).await.unwrap();
    }
    until(|| pull.statistics().incoming.messages == 100).await;
    let mut messages = Vec::new();
    assert_eq!(pull.recv_many(&mut messages, 60).await.unwrap(), 60);
    assert_eq!(pull.recv_many(&mut messages, 60).await.unwrap(), 40);
    assert!(messages.iter().zip(0_u32..).all(|(message, number)| message.frames()[0][..] == number.to_be_bytes()));
    assert_eq!(pull.recv_many(&mut messages, 0).await.unwrap(), 0);
}

/// Shows: M5
#[tokio::test]
async fn a_read_that_does_not_wait_finds_what_is_there() {
    let (mut push, mut pull) = pair().await;
    assert!(pull.try_recv().is_none());
    push.send("work").await.unwrap();
    until(|| pull.statistics().incoming.messages == 1).await;
    assert_eq!(pull.try_recv().unwrap().frames(), ["work"]);
    assert!(pull.try_recv().is_none());
}

/// Shows: M5
#[tokio::test]
async fn sockets_are_streams_and_sinks() {
    let (mut push, pull) = pair().await;
    let mut work = futures_util::stream::iter(0..100_u8).map(|number| Ok(Message::from(vec![number])));
    push.send_all(&mut work).await.unwrap();
    let received: Vec<Message> = within(pull.take(100).try_collect()).await.unwrap();
    assert!(received.iter().zip(0_u8..).all(|(message, number)| message.frames()[0][..] == [number]));
}

/// Shows: M5
#[tokio::test]
async fn the_halves_of_a_socket_work_in_two_tasks() {
    let (router, dealer) = (RouterSocket::new(), DealerSocket::new());
    dealer.connect(router.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    let (sender, receiver) = router.split();
    let echo = tokio::spawn(receiver.forward(sender));
    let (mut sender, mut receiver) = dealer.split();
    let sending = tokio::spawn(async move {
        for number in 0..1000_u32 {
            SinkExt::send(&mut sender, Message::from(number.to_be_bytes().to_vec())).await.unwrap();
        }
        sender
    });
    for number in 0..1000_u32 {
        let reply = within(receiver.next()).await.unwrap().unwrap();
        assert_eq!(reply.frames()[0][..], number.to_be_bytes());
    }
    sending.await.unwrap();
    echo.abort();
}

/// zmq.rs up to 0.5 had this fault: it wrote to the stream in `send`, so 1024 messages of 4 KiB
/// before the first read were a deadlock.
#[tokio::test]
async fn a_task_may_send_1024_messages_of_4_kib_before_it_receives_the_first() {
    let (mut push, mut pull) = pair().await;
    let payload = bytes::Bytes::from(vec![0xCD; 4096]);
    within(async {
        for _ in 0..3 {
            for _ in 0..1024 {
                push.send(payload.clone()).await.unwrap();
            }
            for _ in 0..1024 {
                pull.recv().await.unwrap();
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_task_that_always_sends_lets_others_have_their_turn() {
    let (mut push, mut pull) = pair().await;
    let reading = tokio::spawn(async move {
        loop {
            pull.recv().await.unwrap();
        }
    });
    let turn = tokio::spawn(async {});
    within(async {
        let mut sent = 0;
        while !turn.is_finished() {
            push.send("work").await.unwrap();
            sent += 1;
            assert!(sent < 1000, "the other task never had its turn");
        }
    })
    .await;
    reading.abort();
}
