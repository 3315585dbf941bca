//! The peer at the other end: in events, with each message, and by allowed addresses.

use onward_zmtp::protocol::{Identity, KeyPair, Security};
use onward_zmtp::socket::{Decision, Endpoint, MonitorEvent, RemotePeer, SocketOptions};
use onward_zmtp::{DealerSocket, PairSocket, PullSocket, PushSocket, RouterSocket};

use crate::socket::support::events::{event, failed, peers, within};
use crate::socket::support::raw::Raw;

async fn connected(monitor: &mut onward_zmtp::socket::Monitor) -> RemotePeer {
    event(monitor, |event| match event {
        MonitorEvent::Connected { peer, .. } => Some(peer.clone()),
        _ => None,
    })
    .await
}

/// Shows: M3
#[tokio::test]
async fn events_say_the_address_of_a_peer_on_both_sides() {
    for endpoint in ["tcp://127.0.0.1:*", "tcp://*:*"] {
        let (pull, push) = (PullSocket::new(), PushSocket::new());
        let (mut ours, mut theirs) = (pull.monitor(), push.monitor());
        let Endpoint::Tcp { port, .. } = pull.bind(endpoint).await.unwrap() else { panic!("it is TCP") };
        push.connect(format!("tcp://127.0.0.1:{port}").as_str()).unwrap();
        let (at_pull, at_push) = (connected(&mut ours).await, connected(&mut theirs).await);
        assert_eq!(at_push.address(), Some(([127, 0, 0, 1], port).into()));
        assert!(at_pull.address().is_some_and(|address| address.ip().is_ipv4() && address.port() != port));
        drop(push);
        let gone = event(&mut ours, |event| match event {
            MonitorEvent::Disconnected { peer, .. } => Some(peer.clone()),
            _ => None,
        })
        .await;
        assert_eq!(gone, at_pull);
    }
    let (pull, push) = (PullSocket::new(), PushSocket::new());
    let mut monitor = pull.monitor();
    push.connect(pull.bind("inproc://without-address").await.unwrap()).unwrap();
    assert_eq!(connected(&mut monitor).await.address(), None);
}

/// Shows: M3
#[tokio::test]
async fn a_message_comes_with_the_address_and_the_key_of_its_sender() {
    let (server, client) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let (key, of_client) = (server.public(), client.public());
    let options = SocketOptions::new()
        .security(Security::CurveServer { keys: server })
        .authenticate_with(|_| async { Decision::Accept });
    let mut router = RouterSocket::with_options(options);
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    let security = Security::CurveClient { server: key, keys: client };
    let mut dealer = DealerSocket::with_options(SocketOptions::new().security(security));
    let mut other = DealerSocket::with_options(
        SocketOptions::new()
            .security(Security::CurveClient { server: key, keys: KeyPair::generate().unwrap() })
            .identity(Identity::new("other").unwrap()),
    );
    for dealer in [&mut dealer, &mut other] {
        dealer.connect(&endpoint).unwrap();
        for _ in 0..3 {
            dealer.send("hello").await.unwrap();
        }
    }
    for _ in 0..6 {
        let (message, peer) = within(router.recv_with_peer()).await.unwrap();
        let is_other = message.frames()[0] == "other";
        assert_eq!(peer.client_key() == Some(of_client), !is_other);
        assert_eq!(peer.identity().is_some(), is_other);
        assert!(peer.address().is_some_and(|address| address.ip().is_loopback()));
        assert_eq!(peer.endpoint(), &endpoint);
    }
}

/// Shows: M3
#[tokio::test]
async fn a_message_of_a_peer_that_has_gone_still_comes_with_its_sender() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    for _ in 0..3 {
        let mut push = PushSocket::new();
        push.connect(&endpoint).unwrap();
        push.send("one").await.unwrap();
        push.send("two").await.unwrap();
        assert_eq!(within(push.close()).await, 0);
    }
    peers(0, || pull.statistics()).await;
    let (_sender, mut pair) = PairSocket::new().split();
    assert!(pair.try_recv().is_none());
    for _ in 0..6 {
        let (_, peer) = within(pull.recv_with_peer()).await.unwrap();
        assert_eq!(peer.socket_type(), onward_zmtp::protocol::SocketType::Push);
    }
}

/// Shows: M3
#[tokio::test]
async fn a_connection_from_an_address_that_is_not_allowed_is_closed_unread() {
    let options = SocketOptions::new().allow_from("127.0.0.2".parse().unwrap()).allow_from("::1".parse().unwrap());
    let mut pull = PullSocket::with_options(options);
    let mut monitor = pull.monitor();
    let Endpoint::Tcp { port, .. } = pull.bind("tcp://*:*").await.unwrap() else { panic!("it is TCP") };
    let endpoint: Endpoint = format!("tcp://127.0.0.1:{port}").parse().unwrap();
    let mut raw = Raw::connect(&endpoint).await;
    assert!(raw.read_to_end().await.is_empty());
    let reason = failed(&mut monitor).await;
    assert!(reason.is_refused() && reason.to_string().contains("127.0.0.1"), "{reason}");
    for endpoint in [format!("tcp://127.0.0.2:0;127.0.0.1:{port}"), format!("tcp://[::1]:{port}")] {
        let mut push = PushSocket::new();
        push.connect(endpoint.as_str()).unwrap();
        push.send("allowed").await.unwrap();
        assert_eq!(within(pull.recv()).await.unwrap().frames(), ["allowed"]);
    }
}
