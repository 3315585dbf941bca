//! Tests that every accepted message arrives, or is counted as lost with the true reason.

use std::time::Duration;

use futures_util::SinkExt;
use onward_zmtp::protocol::bounds::{MESSAGE_BYTES, MESSAGE_PARTS};
use onward_zmtp::protocol::{Identity, Limits, Message};
use onward_zmtp::socket::kind::{Dealer, Pair, Pub, Push, Sends, Xpub, Xsub};
use onward_zmtp::socket::{Error, Monitor, MonitorEvent, SocketOptions};
use onward_zmtp::{DealerSocket, PullSocket, PushSocket, RepSocket, ReqSocket, RouterSocket, Socket};
use tokio::runtime::Runtime;

use crate::socket::support::events::{connected, event, peers, until, within};
use crate::socket::support::raw::{Raw, accept, listen};
use crate::zmtp::link::{command, frame};

/// Returns the number of unsent messages in the last event.
fn unsent(monitor: &mut Monitor) -> Option<u64> {
    std::iter::from_fn(|| monitor.try_next()).find_map(|event| match event {
        MonitorEvent::Unsent { messages } => Some(messages),
        _ => None,
    })
}

fn message_of_parts(parts: usize) -> Message {
    Message::from_iter(std::iter::repeat_n("part", parts))
}

/// Shows: M3
#[tokio::test]
async fn a_dropped_socket_sends_what_is_queued_while_it_lingers() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut push = PushSocket::new();
    push.connect(&endpoint).unwrap();
    for number in 0..20_u8 {
        push.send(vec![number]).await.unwrap();
    }
    drop(push);
    for number in 0..20_u8 {
        assert_eq!(within(pull.recv()).await.unwrap().frames(), [vec![number]]);
    }
}

/// Shows: M3
#[tokio::test]
async fn a_dropped_socket_says_how_many_messages_it_could_not_send() {
    let mut push = PushSocket::with_options(SocketOptions::new().linger(Duration::from_millis(20)));
    push.connect("tcp://127.0.0.1:1").unwrap();
    let mut monitor = push.monitor();
    for _ in 0..3 {
        push.send("nobody comes").await.unwrap();
    }
    drop(push);
    let messages = event(&mut monitor, |event| match event {
        MonitorEvent::Unsent { messages } => Some(*messages),
        _ => None,
    })
    .await;
    assert_eq!(messages, 3);
    assert!(within(monitor.next()).await.is_none());
}

#[tokio::test]
async fn a_socket_that_has_sent_everything_does_not_say_that_anything_is_unsent() {
    let mut pull = PullSocket::new();
    let mut push = PushSocket::new();
    push.connect(pull.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    let mut monitor = push.monitor();
    push.send("work").await.unwrap();
    drop(push);
    within(pull.recv()).await.unwrap();
    while let Some(event) = within(monitor.next()).await {
        assert!(!matches!(event, MonitorEvent::Unsent { .. }), "{event:?}");
    }
}

/// A program that returns from `main` right after `send`.
///
/// Shows: M3
#[test]
fn a_runtime_that_ends_before_anything_is_connected_counts_all_that_is_lost() {
    let runtime = Runtime::new().unwrap();
    let mut monitor = runtime.block_on(async {
        let mut push = PushSocket::new();
        push.connect("tcp://127.0.0.1:1").unwrap();
        for _ in 0..20 {
            push.send("lost").await.unwrap();
        }
        push.monitor()
    });
    drop(runtime);
    assert_eq!(unsent(&mut monitor), Some(20));
}

/// Messages in the queues of a connection whose task is dropped are counted, and so are those it
/// had encoded.
///
/// Shows: M3
#[test]
fn a_runtime_that_ends_with_a_peer_that_does_not_read_counts_all_that_is_lost() {
    let runtime = Runtime::new().unwrap();
    let (mut monitor, sent, _stuck) = runtime.block_on(async {
        let mut push = PushSocket::new();
        let endpoint = push.bind("tcp://127.0.0.1:*").await.unwrap();
        let stuck = Raw::introduced(&endpoint, "PULL").await;
        peers(1, || push.statistics()).await;
        let mut sent = 0;
        let monitor = push.monitor();
        let mut idle = 0;
        while idle < 100 {
            match push.try_send(vec![0; 100_000]) {
                Ok(()) => (sent, idle) = (sent + 1, 0),
                Err(_) => idle += 1,
            }
            tokio::task::yield_now().await;
        }
        (monitor, sent, stuck)
    });
    drop(runtime);
    let (mut uncertain, mut unsent) = (0, 0);
    for event in std::iter::from_fn(|| monitor.try_next()) {
        match event {
            MonitorEvent::Disconnected { uncertain: messages, .. } => uncertain += messages as u64,
            MonitorEvent::Unsent { messages } => unsent += messages,
            _ => {}
        }
    }
    // The operating system has the rest.
    assert!(unsent > 100 && uncertain + unsent <= sent, "{uncertain} and {unsent} of {sent}");
}

/// Shows: M3
#[test]
fn closing_before_main_returns_delivers_everything() {
    let receiving = Runtime::new().unwrap();
    let mut pull = PullSocket::new();
    let endpoint = receiving.block_on(pull.bind("tcp://127.0.0.1:*")).unwrap();
    let sending = Runtime::new().unwrap();
    let lost = sending.block_on(async {
        let mut push = PushSocket::new();
        push.connect(&endpoint).unwrap();
        for number in 0..20_u8 {
            push.send(vec![number]).await.unwrap();
        }
        push.close().await
    });
    drop(sending);
    assert_eq!(lost, 0);
    receiving.block_on(async {
        for number in 0..20_u8 {
            assert_eq!(within(pull.recv()).await.unwrap().frames(), [vec![number]]);
        }
    });
}

fn names_the_bound(error: &Error, bound: &str) {
    assert!(error.is_limit() && error.to_string().contains(bound), "{error}");
}

/// Checks that every way to send rejects a message that is too large, and then sends the next.
async fn refuses<T: Sends>(endpoint: &str) {
    let mut socket = Socket::<T>::new();
    socket.bind(endpoint).await.unwrap();
    names_the_bound(&within(socket.send(message_of_parts(MESSAGE_PARTS + 1))).await.unwrap_err(), "1024");
    let error = socket.try_send(message_of_parts(MESSAGE_PARTS + 1)).unwrap_err();
    names_the_bound(error.error(), "1024");
    assert_eq!(error.into_message().unwrap().len(), MESSAGE_PARTS + 1);
    let mut list = vec![message_of_parts(MESSAGE_PARTS + 1), Message::from("next")];
    names_the_bound(&within(socket.send_many(&mut list)).await.unwrap_err(), "1024");
    assert_eq!(list.len(), 2);
    names_the_bound(
        &within(SinkExt::feed(&mut socket, message_of_parts(MESSAGE_PARTS + 1))).await.unwrap_err(),
        "1024",
    );
    names_the_bound(&within(socket.send(vec![0; MESSAGE_BYTES + 1])).await.unwrap_err(), &MESSAGE_BYTES.to_string());
}

/// Shows: M3
#[tokio::test]
async fn a_message_beyond_the_bounds_of_the_socket_is_refused_before_it_is_queued() {
    refuses::<Push>("inproc://too-large-push").await;
    refuses::<Dealer>("inproc://too-large-dealer").await;
    refuses::<Pair>("inproc://too-large-pair").await;
    refuses::<Pub>("inproc://too-large-pub").await;
    refuses::<Xpub>("inproc://too-large-xpub").await;
    refuses::<Xsub>("inproc://too-large-xsub").await;
}

/// The frames in front of the program's own are sent, too.
///
/// Shows: M3
#[tokio::test]
async fn the_envelope_of_a_req_and_of_a_rep_counts_among_the_parts() {
    let (mut req, mut rep) = (ReqSocket::new(), RepSocket::new());
    req.connect(rep.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    names_the_bound(&req.send(message_of_parts(MESSAGE_PARTS)).await.unwrap_err(), "1024");
    within(req.send(message_of_parts(MESSAGE_PARTS - 1))).await.unwrap();
    assert_eq!(within(rep.recv()).await.unwrap().len(), MESSAGE_PARTS - 1);
    names_the_bound(&rep.send(message_of_parts(MESSAGE_PARTS)).await.unwrap_err(), "1024");
    rep.send("short").await.unwrap();
    assert_eq!(within(req.recv()).await.unwrap().frames(), ["short"]);
}

/// Shows: M3
#[tokio::test]
async fn the_identity_in_front_of_a_message_of_a_router_does_not_count_among_the_parts() {
    let mut router = RouterSocket::new();
    let options = SocketOptions::new().identity(Identity::new("name").unwrap());
    let mut dealer = DealerSocket::with_options(options);
    dealer.connect(router.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    peers(1, || router.statistics()).await;
    let mut message = message_of_parts(MESSAGE_PARTS);
    message.push_front("name");
    within(router.send(message.clone())).await.unwrap();
    assert_eq!(within(dealer.recv()).await.unwrap().len(), MESSAGE_PARTS);
    message.push("one too many");
    names_the_bound(&router.send(message).await.unwrap_err(), "1024");
}

fn parts(message_parts: usize) -> Limits {
    let mut limits = Limits::default();
    limits.message_parts = message_parts;
    limits
}

/// Shows: M3
#[tokio::test]
async fn who_accepts_more_also_sends_more_and_who_accepts_less_does_not_send_less() {
    let mut pull = PullSocket::with_options(SocketOptions::new().limits(parts(MESSAGE_PARTS + 1)));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    for options in
        [SocketOptions::new().limits(parts(MESSAGE_PARTS + 1)), SocketOptions::new().send_limits(parts(2000))]
    {
        let mut push = PushSocket::with_options(options);
        push.connect(&endpoint).unwrap();
        within(push.send(message_of_parts(MESSAGE_PARTS + 1))).await.unwrap();
        assert_eq!(within(pull.recv()).await.unwrap().len(), MESSAGE_PARTS + 1);
    }
    let mut push = PushSocket::with_options(SocketOptions::new().limits(parts(1)));
    push.connect(&endpoint).unwrap();
    within(push.send(message_of_parts(2))).await.unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().len(), 2);
}

async fn end(monitor: &mut Monitor) -> (Error, usize, usize) {
    event(monitor, |event| match event {
        MonitorEvent::Disconnected { reason, uncertain, lost, .. } => Some((reason.clone(), *uncertain, *lost)),
        _ => None,
    })
    .await
}

/// Shows: M3
#[tokio::test]
async fn a_message_that_the_peer_refuses_is_reported_with_the_reason_of_the_peer() {
    let directory = tempfile::tempdir().unwrap();
    let path = format!("ipc://{}", directory.path().join("refuses").display());
    for endpoint in ["tcp://127.0.0.1:*", &path] {
        let mut pull = PullSocket::with_options(SocketOptions::new().limits(parts(4)));
        let endpoint = pull.bind(endpoint).await.unwrap();
        let mut push = PushSocket::new();
        let mut monitor = push.monitor();
        push.connect(&endpoint).unwrap();
        within(push.send(message_of_parts(5))).await.unwrap();
        for _ in 0..500 {
            push.send(vec![1; 10_000]).await.unwrap();
        }
        let (reason, _, _) = end(&mut monitor).await;
        assert!(reason.is_refused() && reason.to_string().contains("5 parts"), "{reason}");
        // Messages queued behind it arrive over the next connection.
        within(pull.recv()).await.unwrap();
    }
}

/// Shows: M3
#[tokio::test]
async fn a_frame_that_is_too_large_is_reported_with_the_reason_of_the_peer() {
    let mut limits = Limits::default();
    limits.frame_bytes = 1000;
    let pull = PullSocket::with_options(SocketOptions::new().limits(limits));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut push = PushSocket::new();
    let mut monitor = push.monitor();
    push.connect(&endpoint).unwrap();
    within(push.send(vec![0; 50_000_000])).await.unwrap();
    let (reason, uncertain, _) = end(&mut monitor).await;
    assert!(reason.is_refused() && reason.to_string().contains("1000"), "{reason}");
    assert_eq!(uncertain, 1);
}

/// Shows: M3
#[tokio::test]
async fn messages_queued_for_one_peer_are_reported_as_lost_when_it_leaves() {
    let mut router = RouterSocket::new();
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = router.monitor();
    let mut stuck = Raw::connect(&endpoint).await;
    stuck.introduce_as("DEALER", "stuck").await;
    connected(&mut monitor).await;
    let mut sent = 0;
    let mut idle = 0;
    while idle < 100 {
        match router.try_send(Message::from_iter(["stuck".into(), bytes::Bytes::from(vec![0; 100_000])])) {
            Ok(()) => (sent, idle) = (sent + 1, 0),
            Err(_) => idle += 1,
        }
        tokio::task::yield_now().await;
    }
    drop(stuck);
    let (_, uncertain, lost) = end(&mut monitor).await;
    assert!(lost > 100 && lost + uncertain <= sent, "{lost} and {uncertain} of {sent}");
    assert_eq!(router.statistics().dropped, (lost + uncertain) as u64);
}

/// The write fails first, while received messages are still in the operating system.
///
/// Shows: M3
#[tokio::test]
async fn what_a_peer_sent_before_it_closed_is_received_though_it_cannot_be_written_to_any_more() {
    let (listener, endpoint) = listen().await;
    let mut dealer = DealerSocket::new();
    let mut monitor = dealer.monitor();
    dealer.connect(endpoint.as_str()).unwrap();
    let mut raw = accept(&listener, "ROUTER").await;
    connected(&mut monitor).await;
    // The peer never reads, so closing its stream resets the connection.
    for _ in 0..100 {
        dealer.send(vec![0; 100_000]).await.unwrap();
    }
    until(|| dealer.statistics().outgoing.messages < 100).await;
    raw.write(&[frame(0, b"last words"), command("ERROR", b"\x0ethat is enough")].concat()).await;
    drop(raw);
    let (reason, ..) = end(&mut monitor).await;
    assert!(reason.to_string().contains("that is enough"), "{reason}");
    assert_eq!(within(dealer.recv()).await.unwrap().frames(), ["last words"]);
}
