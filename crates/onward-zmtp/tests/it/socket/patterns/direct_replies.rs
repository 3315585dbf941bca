//! Replies to messages that came alone.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use onward_zmtp::protocol::Message;
use onward_zmtp::{DealerSocket, PairSocket};
use tokio::runtime::Builder;

use crate::socket::support::events::{peers, within};

fn number(number: u32) -> Message {
    Message::from(number.to_be_bytes().to_vec())
}

/// No other task of this runtime runs between the request and the moment at which the peer has its
/// reply.
///
/// Shows: M3
#[tokio::test]
async fn a_reply_is_written_by_the_task_that_sends_it() {
    let mut replies = DealerSocket::new();
    let endpoint = replies.bind("ipc://@a-reply-at-once").await.unwrap();
    let (report, reported) = mpsc::channel();
    let asks = thread::spawn(move || {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async move {
            let mut asks = DealerSocket::new();
            asks.connect(endpoint).unwrap();
            asks.send("request").await.unwrap();
            report.send(within(asks.recv()).await.unwrap()).unwrap();
        });
    });
    within(replies.recv()).await.unwrap();
    replies.try_send("reply").unwrap();
    assert_eq!(reported.recv_timeout(Duration::from_secs(10)).unwrap(), Message::from("reply"));
    asks.join().unwrap();
}

/// Shows: M3
#[tokio::test]
async fn a_reply_does_not_overtake_what_was_sent_before_it() {
    let (mut asks, mut replies) = (PairSocket::new(), PairSocket::new());
    asks.connect(replies.bind("ipc://@a-reply-in-its-place").await.unwrap()).unwrap();
    peers(1, || replies.statistics()).await;
    asks.send("request").await.unwrap();

    let mut sent = 0;
    loop {
        // No other task runs between the two calls: the message sent first is still queued when the
        // request is read.
        replies.try_send(number(sent)).unwrap();
        sent += 1;
        if replies.try_recv().is_some() {
            break;
        }
        tokio::task::yield_now().await;
    }
    replies.try_send(number(sent)).unwrap();
    for expected in 0..=sent {
        assert_eq!(within(asks.recv()).await.unwrap(), number(expected));
    }
}
