//! Many connections, one after the other, while messages flow.

use onward_zmtp::socket::SocketOptions;
use onward_zmtp::socket::limits::REST_AFTER;
use onward_zmtp::{DealerSocket, PullSocket, PushSocket, RouterSocket};

use super::events::{no_tasks, peers, until, within};
use crate::zmtp::allocations::counted;

fn number(message: &onward_zmtp::protocol::Message) -> u32 {
    u32::from_be_bytes(message.frames()[0][..].try_into().unwrap())
}

/// Shows: M3
#[tokio::test]
async fn a_hundred_peers_in_a_row_under_load_get_everything_in_order_and_nothing_twice() {
    let mut push = PushSocket::new();
    let endpoint = push.bind("tcp://127.0.0.1:*").await.unwrap();
    let sending = tokio::spawn(async move {
        for number in 0.. {
            if push.send(u32::to_be_bytes(number).to_vec()).await.is_err() {
                break;
            }
        }
    });
    let mut last = None;
    for _ in 0..100 {
        let mut pull = PullSocket::new();
        pull.connect(&endpoint).unwrap();
        for _ in 0..200 {
            let found = number(&within(pull.recv()).await.unwrap());
            assert!(last.is_none_or(|last| last < found), "{found} after {last:?}");
            last = Some(found);
        }
    }
    sending.abort();
}

#[tokio::test]
async fn a_socket_that_never_receives_takes_ever_new_peers() {
    let router = RouterSocket::with_options(SocketOptions::new().peers(2));
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    for _ in 0..10 {
        let dealer = DealerSocket::new();
        dealer.connect(&endpoint).unwrap();
        peers(1, || router.statistics()).await;
        drop(dealer);
        peers(0, || router.statistics()).await;
    }
}

#[tokio::test]
async fn peers_that_come_and_go_leave_nothing_behind() {
    let mut router = RouterSocket::new();
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    for _ in 0..200 {
        let mut dealer = DealerSocket::new();
        dealer.connect(&endpoint).unwrap();
        dealer.send("hello").await.unwrap();
        let message = within(router.recv()).await.unwrap();
        router.send(message).await.unwrap();
        within(dealer.recv()).await.unwrap();
    }
    peers(0, || router.statistics()).await;
    let metrics = tokio::runtime::Handle::current().metrics();
    // The listener.
    until(|| metrics.num_alive_tasks() == 1).await;
    assert_eq!(router.statistics().outgoing.messages, 0);
    drop(router);
    no_tasks().await;
}

/// A fault of zmq.rs 0.7: six allocations a message. Here it is the payload's, and what batches share.
#[test]
fn a_small_message_costs_one_allocation_from_end_to_end() {
    const MESSAGES: u64 = 20_000;
    const BATCH: u64 = 500;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let payload = bytes::Bytes::from(vec![0xCD; 64]);
    let (mut push, mut pull) = runtime.block_on(async {
        let (push, pull) = (PushSocket::new(), PullSocket::new());
        push.connect(pull.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
        peers(1, || push.statistics()).await;
        (push, pull)
    });
    let mut carry = async |messages: u64| {
        for _ in 0..messages / BATCH {
            for _ in 0..BATCH {
                push.send(payload.clone()).await.unwrap();
            }
            for _ in 0..BATCH {
                pull.recv().await.unwrap();
            }
        }
    };
    // Queues and buffers grow to what they need.
    runtime.block_on(carry(5 * BATCH));
    let counted = counted(|| runtime.block_on(carry(MESSAGES)));
    assert!(counted.calls <= MESSAGES + MESSAGES / 100, "{} allocations for {MESSAGES} messages", counted.calls);
    runtime.block_on(async { drop((push, pull)) });
}

async fn connected_over(name: &str) -> (PushSocket, PullSocket) {
    let (push, pull) = (PushSocket::new(), PullSocket::new());
    push.connect(pull.bind(&format!("ipc://@{name}")).await.unwrap()).unwrap();
    peers(1, || push.statistics()).await;
    (push, pull)
}

/// Many messages of 4 KB, all of which arrive; then nothing for a while.
async fn much_and_then_nothing(push: &mut PushSocket, pull: &mut PullSocket) {
    let payload = bytes::Bytes::from(vec![0xCD; 4000]);
    for _ in 0..1000 {
        push.send(payload.clone()).await.unwrap();
        drop(pull.try_recv());
    }
    until(|| pull.try_recv().is_none() && push.statistics().outgoing.messages == 0).await;
    tokio::time::advance(2 * REST_AFTER).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Shows: M5
#[test]
fn connections_over_which_nothing_passes_any_more_keep_no_large_buffers() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    // The one buffer in which the thread puts batches together, which it keeps, is there from now on.
    runtime.block_on(async {
        let (mut push, mut pull) = connected_over("buffers-before").await;
        much_and_then_nothing(&mut push, &mut pull).await;
    });
    let (mut push, mut pull) = runtime.block_on(connected_over("buffers-at-rest"));
    let counted = counted(|| runtime.block_on(much_and_then_nothing(&mut push, &mut pull)));
    assert!(counted.peak > 200 * 1024, "{} bytes are no large buffers", counted.peak);
    assert!(counted.live < 100 * 1024, "{} bytes are kept", counted.live);
    runtime.block_on(async { drop((push, pull)) });
}
