//! Tests of opening, losing and closing connections.

use std::time::Duration;

use onward_zmtp::protocol::Message;
use onward_zmtp::socket::bounds::ENDPOINTS;
use onward_zmtp::socket::{Endpoint, MonitorEvent, Reconnect, SocketOptions};
use onward_zmtp::{
    DealerSocket, PairSocket, PubSocket, PullSocket, PushSocket, RepSocket, ReqSocket, RouterSocket, SubSocket,
};
use tokio::net::TcpSocket;
use tokio::time::timeout;

use crate::socket::support::events::{connected, disconnected, event, failed, no_tasks, peers, until, within};
use crate::socket::support::raw::{Raw, accept, listen};
use crate::zmtp::link::frame;

fn quick() -> SocketOptions {
    SocketOptions::new().reconnect(Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(10) })
}

async fn rebind(bind: impl AsyncFn() -> bool) {
    within(async {
        while !bind().await {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// zmq.rs had this fault: a dropped PULL kept its connections, so a PUSH sent to it for ever
/// without effect.
///
/// Beats: undead-socket
#[tokio::test]
async fn a_dropped_socket_closes_its_connections_and_leaves_no_task() {
    let pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut raw = Raw::introduced(&endpoint, "PUSH").await;
    peers(1, || pull.statistics()).await;
    drop(pull);
    assert_eq!(raw.read_to_end().await, b"");
    drop(raw);
    no_tasks().await;
}

/// Shows: M3
#[tokio::test]
async fn a_router_that_is_gone_has_no_turn_among_those_of_a_dealer() {
    let mut dealer = DealerSocket::new();
    let (gone, mut router) = (RouterSocket::new(), RouterSocket::new());
    for router in [&gone, &router] {
        dealer.connect(router.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    }
    peers(2, || dealer.statistics()).await;
    drop(gone);
    peers(1, || dealer.statistics()).await;
    for number in 0..10_u8 {
        within(dealer.send(vec![number])).await.unwrap();
        assert_eq!(within(router.recv()).await.unwrap().frames()[1], vec![number]);
    }
}

/// Shows: M3
#[tokio::test]
async fn a_rep_that_is_gone_has_no_turn_among_those_of_a_req() {
    let mut req = ReqSocket::new();
    let (gone, mut rep) = (RepSocket::new(), RepSocket::new());
    for rep in [&gone, &rep] {
        req.connect(rep.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    }
    peers(2, || req.statistics()).await;
    drop(gone);
    peers(1, || req.statistics()).await;
    for number in 0..10_u8 {
        within(req.send(vec![number])).await.unwrap();
        let request = within(rep.recv()).await.unwrap();
        rep.send(request).await.unwrap();
        assert_eq!(within(req.recv()).await.unwrap().frames()[0], vec![number]);
    }
}

/// Shows: M3
#[tokio::test]
async fn dropping_a_socket_of_any_type_ends_all_its_tasks() {
    let (router, dealer) = (RouterSocket::new(), DealerSocket::new());
    dealer.connect(router.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    let (publisher, sub) = (PubSocket::new(), SubSocket::new());
    sub.connect(publisher.bind("inproc://life").await.unwrap()).unwrap();
    let (push, pull) = (PushSocket::new(), PullSocket::new());
    push.connect(pull.bind("ipc://@onward-zmtp-life").await.unwrap()).unwrap();
    let unconnected = PairSocket::new();
    unconnected.connect("tcp://127.0.0.1:1").unwrap();
    unconnected.connect("inproc://nobody").unwrap();
    peers(1, || dealer.statistics()).await;
    peers(1, || sub.statistics()).await;
    peers(1, || push.statistics()).await;
    drop((router, dealer, publisher, sub, push, pull, unconnected));
    no_tasks().await;
}

/// Shows: M3
#[tokio::test]
async fn a_socket_that_was_split_closes_with_its_second_half() {
    let router = RouterSocket::new();
    let dealer = DealerSocket::new();
    dealer.connect(router.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    peers(1, || router.statistics()).await;
    peers(1, || dealer.statistics()).await;
    let (mut sender, receiver) = dealer.split();
    assert_eq!((sender.statistics().peers, receiver.statistics().peers), (1, 1));
    drop(receiver);
    sender.send("still open").await.unwrap();
    let (mut receiver, router) = {
        let (sender, receiver) = router.split();
        (receiver, sender)
    };
    assert_eq!(within(receiver.recv()).await.unwrap().frames()[1], "still open");
    drop((sender, receiver, router));
    no_tasks().await;
}

/// Shows: M3
#[tokio::test]
async fn closing_sends_what_is_queued() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut push = PushSocket::new();
    push.connect(&endpoint).unwrap();
    for _ in 0..500 {
        push.send(vec![0; 1000]).await.unwrap();
    }
    let closing = tokio::spawn(push.close());
    for _ in 0..500 {
        within(pull.recv()).await.unwrap();
    }
    assert_eq!(within(closing).await.unwrap(), 0);
}

/// Shows: M3
#[tokio::test]
async fn closing_sends_what_waits_for_a_peer_that_is_yet_to_come() {
    let (listener, endpoint) = listen().await;
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut push = PushSocket::with_options(quick().linger(Duration::from_secs(20)));
    push.connect(endpoint.as_str()).unwrap();
    push.send("late").await.unwrap();
    let mut monitor = push.monitor();
    failed(&mut monitor).await;
    let closing = tokio::spawn(push.close());
    let mut pull = PullSocket::new();
    pull.bind(format!("tcp://{address}").as_str()).await.unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["late"]);
    assert_eq!(within(closing).await.unwrap(), 0);
}

/// Shows: M3
#[tokio::test]
async fn closing_gives_up_when_the_time_to_linger_is_over_and_says_what_was_not_sent() {
    let mut push = PushSocket::with_options(quick().linger(Duration::from_millis(20)));
    push.connect("tcp://127.0.0.1:1").unwrap();
    push.send("one").await.unwrap();
    push.send("two").await.unwrap();
    assert_eq!(within(push.close()).await, 2);
    no_tasks().await;
}

/// Shows: M3
#[tokio::test]
async fn a_peer_that_does_not_read_holds_closing_up_no_longer_than_the_time_to_linger() {
    let mut push = PushSocket::with_options(quick().linger(Duration::from_millis(20)));
    let endpoint = push.bind("tcp://127.0.0.1:*").await.unwrap();
    let stuck = Raw::introduced(&endpoint, "PULL").await;
    peers(1, || push.statistics()).await;
    while timeout(Duration::from_millis(100), push.send(vec![0; 1024 * 1024])).await.is_ok() {}
    assert!(within(push.close()).await > 0);
    drop(stuck);
}

/// zmq.rs had this fault: a DEALER whose ROUTER restarted lost two messages and was "not connected"
/// for ever.
///
/// Beats: lost-router
#[tokio::test]
async fn a_dealer_finds_its_router_again_after_a_restart() {
    let router = RouterSocket::new();
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut dealer = DealerSocket::with_options(quick());
    dealer.connect(&endpoint).unwrap();
    let mut monitor = dealer.monitor();
    connected(&mut monitor).await;
    for _ in 0..3 {
        drop(RouterSocket::new());
    }
    drop(router);
    disconnected(&mut monitor).await;
    dealer.send("one").await.unwrap();
    dealer.send("two").await.unwrap();
    let mut router = RouterSocket::new();
    rebind(async || router.bind(&endpoint).await.is_ok()).await;
    for expected in ["one", "two"] {
        let message = within(router.recv()).await.unwrap();
        assert_eq!(message.frames()[1], expected);
    }
}

/// Shows: M3
#[tokio::test]
async fn the_time_between_attempts_grows_and_is_reported() {
    let push = PushSocket::with_options(
        SocketOptions::new()
            .reconnect(Reconnect { first: Duration::from_millis(4), longest: Duration::from_millis(16) }),
    );
    let mut monitor = push.monitor();
    push.connect("tcp://127.0.0.1:1").unwrap();
    for expected in [4_u64, 8, 16, 16] {
        let after = event(&mut monitor, |event| match event {
            MonitorEvent::WillReconnect { after, .. } => Some(*after),
            _ => None,
        })
        .await;
        let expected = Duration::from_millis(expected);
        assert!(after >= expected / 2 && after <= expected * 3 / 2, "{after:?} in place of {expected:?}");
    }
}

/// Shows: M3
#[tokio::test]
async fn events_report_the_life_of_a_connection_and_why_it_ended() {
    let (listener, endpoint) = listen().await;
    let pull = PullSocket::with_options(quick());
    let mut monitor = pull.monitor();
    pull.connect(endpoint.as_str()).unwrap();
    let raw = accept(&listener, "PUSH").await;
    let peer = event(&mut monitor, |event| match event {
        MonitorEvent::Connected { peer, .. } => Some(peer.clone()),
        _ => None,
    })
    .await;
    assert_eq!(peer.socket_type(), onward_zmtp::protocol::SocketType::Push);
    drop(raw);
    let reason = disconnected(&mut monitor).await;
    assert!(reason.protocol().is_some_and(onward_zmtp::protocol::Error::is_disconnected), "{reason:?}");
    let stranger = accept(&listener, "SUB").await;
    let reason = failed(&mut monitor).await;
    assert!(reason.protocol().is_some_and(onward_zmtp::protocol::Error::is_incompatible), "{reason:?}");
    drop(stranger);
    pull.disconnect(endpoint.as_str()).unwrap();
    event(&mut monitor, |event| matches!(event, MonitorEvent::ConnectingEnded { .. }).then_some(())).await;
}

#[tokio::test]
async fn a_late_reader_of_events_gets_the_number_that_it_missed() {
    let pull = PullSocket::new();
    let mut monitor = pull.monitor();
    for _ in 0..=onward_zmtp::socket::bounds::MONITOR_EVENTS {
        pull.connect("inproc://nobody-comes").unwrap();
        pull.disconnect("inproc://nobody-comes").unwrap();
    }
    no_tasks().await;
    assert!(matches!(within(monitor.next()).await, Some(MonitorEvent::Missed(1))));
}

/// Shows: M3
#[tokio::test]
async fn an_unbound_endpoint_accepts_no_new_peer_and_keeps_the_others() {
    let mut pull = PullSocket::new();
    let mut monitor = pull.monitor();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut raw = Raw::introduced(&endpoint, "PUSH").await;
    peers(1, || pull.statistics()).await;
    pull.unbind(&endpoint).unwrap();
    event(&mut monitor, |event| matches!(event, MonitorEvent::ListeningEnded { .. }).then_some(())).await;
    let Endpoint::Tcp { port, .. } = endpoint.clone() else { panic!("{endpoint}") };
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err());
    raw.write(&frame(0, b"still here")).await;
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["still here"]);
    assert!(pull.unbind(&endpoint).unwrap_err().is_endpoint());
}

/// Shows: M3
#[tokio::test]
async fn a_disconnected_endpoint_gets_what_was_queued_and_no_more() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut push = PushSocket::new();
    push.connect(&endpoint).unwrap();
    peers(1, || push.statistics()).await;
    push.send("queued").await.unwrap();
    push.disconnect(&endpoint).unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["queued"]);
    peers(0, || push.statistics()).await;
    until(|| push.try_send("nobody is there").is_err()).await;
    assert!(push.disconnect(&endpoint).unwrap_err().is_endpoint());
}

/// Shows: M3
#[tokio::test]
async fn a_pair_has_one_peer() {
    let mut pair = PairSocket::new();
    let endpoint = pair.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = pair.monitor();
    let mut first = PairSocket::new();
    first.connect(&endpoint).unwrap();
    connected(&mut monitor).await;
    let second = PairSocket::new();
    second.connect(&endpoint).unwrap();
    assert!(failed(&mut monitor).await.is_refused());
    pair.send(Message::from_iter(["to", "the first"])).await.unwrap();
    assert_eq!(within(first.recv()).await.unwrap().frames(), ["to", "the first"]);
}

#[test]
fn outside_a_runtime_there_is_an_error_and_no_panic() {
    let pull = PullSocket::new();
    assert!(pull.connect("tcp://127.0.0.1:1").is_err());
    drop(pull);
}

#[tokio::test]
async fn what_was_received_before_the_peer_left_can_be_read() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut raw = Raw::introduced(&endpoint, "PUSH").await;
    raw.write(&[frame(0, b"one"), frame(0, b"two"), frame(1, b"half")].concat()).await;
    drop(raw);
    let mut monitor = pull.monitor();
    disconnected(&mut monitor).await;
    for expected in ["one", "two"] {
        assert_eq!(within(pull.recv()).await.unwrap().frames(), [expected]);
    }
    assert!(pull.try_recv().is_none());
}

/// Shows: M3
#[tokio::test]
async fn a_socket_that_does_not_linger_says_that_nothing_was_sent() {
    let mut push = PushSocket::with_options(quick().linger(Duration::ZERO));
    push.connect("tcp://127.0.0.1:1").unwrap();
    push.send("one").await.unwrap();
    push.send("two").await.unwrap();
    assert_eq!(within(push.close()).await, 2);
    no_tasks().await;
}

/// Shows: M3
#[tokio::test]
async fn a_socket_has_as_many_endpoints_as_the_limit_and_no_more() {
    let push = PushSocket::new();
    for number in 0..ENDPOINTS {
        push.connect(format!("inproc://limited-{number}").as_str()).unwrap();
    }
    assert!(push.connect("inproc://one-too-many").unwrap_err().is_limit());
    push.disconnect("inproc://limited-0").unwrap();
    push.connect("inproc://one-too-many").unwrap();
}

/// The listener accepts none: two connections fill its queue, and the next one gets no reply.
///
/// Shows: M3
#[tokio::test]
async fn an_attempt_to_connect_that_gets_no_reply_is_given_up_in_time() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let endpoint: Endpoint = format!("tcp://{}", listener.local_addr().unwrap()).parse().unwrap();
    let _queued = [Raw::connect(&endpoint).await, Raw::connect(&endpoint).await];
    let push = PushSocket::with_options(quick().connect_timeout(Duration::from_millis(20)));
    let mut monitor = push.monitor();
    push.connect(&endpoint).unwrap();
    let reason = failed(&mut monitor).await;
    let source = std::error::Error::source(&reason).and_then(|error| error.downcast_ref::<std::io::Error>());
    assert_eq!(source.map(std::io::Error::kind), Some(std::io::ErrorKind::TimedOut), "{reason:?}");
}
