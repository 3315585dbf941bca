//! Many connections, one after the other, while messages are sent.

use onward_zmtp::socket::bounds::IDLE_SHRINK_AFTER;
use onward_zmtp::socket::kind::{Dealer, Pull, Push, Receives, Router, Sends};
use onward_zmtp::socket::{Endpoint, SocketOptions};
use onward_zmtp::{DealerSocket, PullSocket, PushSocket, RouterSocket, Socket, XpubSocket};

use crate::socket::support::events::{no_tasks, peers, until, within};
use crate::socket::support::raw::Raw;
use crate::zmtp::allocations::counted;
use crate::zmtp::link::{command, frame, greeting, metadata};

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
    // The one task left is the listener.
    until(|| metrics.num_alive_tasks() == 1).await;
    assert_eq!(router.statistics().outgoing.messages, 0);
    drop(router);
    no_tasks().await;
}

/// Returns the number of allocations for 20 000 small messages, sent and received in batches, once
/// queues and buffers have grown to their size.
fn allocations<S: Sends, R: Receives>(receive: impl AsyncFn(&mut Socket<R>, usize)) -> u64 {
    const BATCH: usize = 500;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let payload = bytes::Bytes::from(vec![0xCD; 64]);
    let (mut sender, mut receiver) = runtime.block_on(async {
        let (sender, receiver) = (Socket::<S>::new(), Socket::<R>::new());
        sender.connect(receiver.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
        peers(1, || sender.statistics()).await;
        (sender, receiver)
    });
    let mut carry = async |messages: usize| {
        for _ in 0..messages / BATCH {
            for _ in 0..BATCH {
                sender.send(payload.clone()).await.unwrap();
            }
            receive(&mut receiver, BATCH).await;
        }
    };
    runtime.block_on(carry(5 * BATCH));
    let counted = counted(|| runtime.block_on(carry(MESSAGES)));
    runtime.block_on(async { drop((sender, receiver)) });
    counted.calls
}

const MESSAGES: usize = 20_000;

async fn one_by_one<R: Receives>(receiver: &mut Socket<R>, count: usize) {
    for _ in 0..count {
        receiver.recv().await.unwrap();
    }
}

/// zmq.rs 0.7 has this fault: six allocations a message. Here there is one for the payload, and
/// those that batches share.
#[test]
fn a_small_message_costs_one_allocation_from_end_to_end() {
    let allocations = allocations::<Push, Pull>(one_by_one);
    assert!(allocations <= MESSAGES as u64 * 101 / 100, "{allocations} allocations for {MESSAGES} messages");
}

#[test]
fn a_small_message_to_a_router_costs_one_allocation_from_end_to_end() {
    let allocations = allocations::<Dealer, Router>(one_by_one);
    assert!(allocations <= MESSAGES as u64 * 101 / 100, "{allocations} allocations for {MESSAGES} messages");
}

#[test]
fn a_small_message_among_many_costs_one_allocation_from_end_to_end() {
    let allocations = allocations::<Push, Pull>(async |pull, count| {
        // The list belongs to the reader, which reuses it.
        let mut messages = Vec::with_capacity(count);
        while messages.len() < count {
            pull.recv_many(&mut messages, count).await.unwrap();
        }
    });
    assert!(allocations <= MESSAGES as u64 * 102 / 100, "{allocations} allocations for {MESSAGES} messages");
}

/// Connects a subscriber with much metadata, which disconnects in the middle of messages in both
/// directions.
async fn visit(publisher: &mut XpubSocket, endpoint: &Endpoint) {
    let mut raw = Raw::connect(endpoint).await;
    let ready = [&b"\x05READY"[..], &metadata(&[("Socket-Type", b"SUB"), ("X-Note", &[7; 4000])])].concat();
    raw.write(&[&greeting(1, "NULL", false)[..], &[6], &(ready.len() as u64).to_be_bytes(), &ready].concat()).await;
    raw.write(&[command("SUBSCRIBE", b""), frame(1, &[7; 200])].concat()).await;
    assert_eq!(within(publisher.recv()).await.unwrap().frames(), ["\u{1}"]);
    for _ in 0..10 {
        publisher.send(vec![0; 1000]).await.unwrap();
    }
    drop(raw);
    assert_eq!(within(publisher.recv()).await.unwrap().frames(), ["\0"]);
    peers(0, || publisher.statistics()).await;
}

/// libzmq had these faults (its advisories GHSA-4p5v and GHSA-wfr2): messages of peers with
/// metadata, and unfinished ones of disconnected peers, stayed in memory.
#[test]
fn subscribers_that_say_much_about_themselves_and_leave_in_the_middle_leave_no_memory() {
    const VISITS: usize = 200;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut publisher, endpoint) = runtime.block_on(async {
        let publisher = XpubSocket::new();
        let endpoint = publisher.bind("tcp://127.0.0.1:*").await.unwrap();
        (publisher, endpoint)
    });
    let mut visits = |count: usize| {
        runtime.block_on(async {
            for _ in 0..count {
                visit(&mut publisher, &endpoint).await;
            }
        });
    };
    visits(VISITS / 10);
    let counted = counted(|| visits(VISITS));
    assert!(counted.live < 100 * VISITS as i64, "{} bytes are kept of {VISITS} visits", counted.live);
    runtime.block_on(async { drop(publisher) });
}

async fn connected_over(name: &str) -> (PushSocket, PullSocket) {
    let (push, pull) = (PushSocket::new(), PullSocket::new());
    push.connect(pull.bind(&format!("ipc://@{name}")).await.unwrap()).unwrap();
    peers(1, || push.statistics()).await;
    (push, pull)
}

/// Sends many messages of 4 KB, which all arrive, and then nothing for a while.
async fn much_and_then_nothing(push: &mut PushSocket, pull: &mut PullSocket) {
    let payload = bytes::Bytes::from(vec![0xCD; 4000]);
    for _ in 0..1000 {
        push.send(payload.clone()).await.unwrap();
        drop(pull.try_recv());
    }
    until(|| pull.try_recv().is_none() && push.statistics().outgoing.messages == 0).await;
    tokio::time::advance(2 * IDLE_SHRINK_AFTER).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Shows: M5
#[test]
fn connections_over_which_nothing_passes_any_more_keep_no_large_buffers() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    // The thread keeps one buffer in which it joins batches. It exists from now on, so it is not
    // counted.
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
