//! Sockets with blocking methods, in a program without a runtime.

use std::thread;
use std::time::Duration;

use onward_zmtp::blocking::{
    DealerSocket, PubSocket, PullSocket, PushSocket, RepSocket, ReqSocket, RouterSocket, SubSocket, XpubSocket,
};
use onward_zmtp::protocol::{Identity, Message};
use onward_zmtp::socket::SocketOptions;

use crate::socket::support::events::TIMEOUT;

/// Shows: M3
#[test]
fn threads_ask_and_reply_without_a_runtime() {
    let mut rep = RepSocket::new();
    let endpoint = rep.bind("tcp://127.0.0.1:*").unwrap();
    let server = thread::spawn(move || {
        for _ in 0..3 {
            let request = rep.recv().unwrap();
            rep.send(request).unwrap();
        }
        assert!(rep.recv_timeout(Duration::from_millis(1)).unwrap().is_none());
    });
    let mut req = ReqSocket::new();
    req.connect(&endpoint).unwrap();
    for number in 0..3_u8 {
        req.send([number]).unwrap();
        assert_eq!(req.recv().unwrap().frames(), [vec![number]]);
    }
    server.join().unwrap();
}

/// Shows: M3
#[test]
fn a_dropped_socket_waits_until_all_is_sent() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
    let mut push = PushSocket::new();
    push.connect(&endpoint).unwrap();
    for number in 0..20_u8 {
        push.send([number]).unwrap();
    }
    drop(push);
    for number in 0..20_u8 {
        assert_eq!(pull.recv().unwrap().frames(), [vec![number]]);
    }
    assert_eq!(pull.statistics().peers, 0);
}

/// Shows: M3
#[test]
fn waiting_ends_when_its_time_is_over() {
    let mut push = PushSocket::with_options(SocketOptions::new().wait_for_peer().linger(Duration::ZERO));
    push.connect("tcp://127.0.0.1:1").unwrap();
    assert!(!push.send_timeout("nobody comes", Duration::from_millis(1)).unwrap());
    assert!(push.try_send("nobody comes").unwrap_err().is_full());
    let mut pull = PullSocket::new();
    pull.bind("inproc://blocking-time").unwrap();
    assert!(pull.recv_timeout(Duration::from_millis(1)).unwrap().is_none());
    assert!(pull.try_recv().is_none());
    assert_eq!(push.close().unwrap(), 0);
}

/// Shows: M3
#[test]
fn a_publisher_and_its_subscriber_and_a_router_know_each_other() {
    let (mut publisher, mut sub) = (PubSocket::new(), SubSocket::new());
    sub.connect(publisher.bind("tcp://127.0.0.1:*").unwrap()).unwrap();
    sub.subscribe("news").unwrap();
    let message = loop {
        publisher.send(Message::from_iter(["news", "of the day"])).unwrap();
        if let Some(message) = sub.recv_timeout(Duration::from_millis(1)).unwrap() {
            break message;
        }
    };
    assert_eq!(message.frames(), ["news", "of the day"]);
    let mut router = RouterSocket::new();
    let endpoint = router.bind("tcp://127.0.0.1:*").unwrap();
    let mut req = ReqSocket::new();
    req.connect(&endpoint).unwrap();
    req.send("who am I?").unwrap();
    let (message, peer) = router.recv_with_peer().unwrap();
    router
        .send(Message::from_iter([message.frames()[0].clone(), "".into(), peer.address().unwrap().to_string().into()]))
        .unwrap();
    assert!(req.recv().unwrap().frames()[0].starts_with(b"127.0.0.1:"));
    router.unbind(&endpoint).unwrap();
    req.disconnect(&endpoint).unwrap();
}

/// Blocking would stop the runtime.
#[tokio::test]
async fn within_a_runtime_there_is_an_error_and_no_panic() {
    let mut pull = PullSocket::new();
    assert!(pull.bind("tcp://127.0.0.1:*").unwrap_err().is_state());
    assert!(pull.recv().unwrap_err().is_state());
    assert!(pull.close().unwrap_err().is_state());
}

/// Shows: M3
#[test]
fn a_request_and_a_reply_wait_no_longer_than_their_time() {
    let (mut rep, mut req) = (RepSocket::new(), ReqSocket::new());
    let endpoint = rep.bind("tcp://127.0.0.1:*").unwrap();
    assert!(!req.send_timeout("no peer yet", Duration::from_millis(1)).unwrap());
    req.connect(&endpoint).unwrap();
    assert!(req.send_timeout("request", TIMEOUT).unwrap());
    let (request, peer) = rep.recv_with_peer().unwrap();
    assert_eq!(request.frames(), ["request"]);
    assert!(peer.address().unwrap().ip().is_loopback());
    assert!(rep.send_timeout("reply", TIMEOUT).unwrap());
    assert_eq!(req.recv_timeout(TIMEOUT).unwrap().unwrap().frames(), ["reply"]);
}

/// Without these methods an XPUB with manual subscriptions has no subscribers.
///
/// Shows: M3
#[test]
fn a_publisher_subscribes_its_peers_and_a_router_names_them() {
    let mut publisher = XpubSocket::with_options(SocketOptions::new().manual());
    let mut sub = SubSocket::new();
    sub.connect(publisher.bind("tcp://127.0.0.1:*").unwrap()).unwrap();
    sub.subscribe("news").unwrap();
    let (message, peer) = publisher.recv_with_peer().unwrap();
    assert_eq!(message.frames(), [&b"\x01news"[..]]);
    assert!(publisher.subscribe_peer(&peer, "news").unwrap());
    publisher.send("news of the day").unwrap();
    assert_eq!(sub.recv_timeout(TIMEOUT).unwrap().unwrap().frames(), ["news of the day"]);
    assert!(publisher.cancel_peer(&peer, "news").unwrap());
    let (mut router, mut dealer) = (RouterSocket::new(), DealerSocket::new());
    let endpoint = dealer.bind("tcp://127.0.0.1:*").unwrap();
    assert!(router.connect_as(&endpoint, Identity::new("worker").unwrap()).unwrap());
    dealer.send("ready").unwrap();
    assert_eq!(router.recv().unwrap().frames(), ["worker", "ready"]);
}
