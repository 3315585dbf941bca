//! Connections through a SOCKS 5 proxy.

use onward_zmtp::protocol::{KeyPair, Password, Security};
use onward_zmtp::socket::{Decision, Endpoint, MonitorEvent, SocketOptions, SocksProxy};
use onward_zmtp::{DealerSocket, PullSocket, PushSocket, RouterSocket};

use crate::socket::support::events::{connected, disconnected, event, peers, within};
use crate::socket::support::raw::Raw;
use crate::socket::support::socks::{
    CONNECTED, GREETING_BYTES, NAME, NO_AUTHENTICATION, REQUEST_BYTES, Socks, listen, script, through, with_login,
};
use crate::zmtp::link::introduction;

async fn bound() -> (PullSocket, u16) {
    let pull = PullSocket::new();
    let Endpoint::Tcp { port, .. } = pull.bind("tcp://*:*").await.unwrap() else { panic!("it is TCP") };
    (pull, port)
}

/// Sends a message to `host` through a proxy. Returns the address type and the host that the proxy
/// received.
async fn push_through(proxy: &mut Socks, options: SocketOptions, host: &str) -> (u8, String) {
    let (mut pull, port) = bound().await;
    let mut push = PushSocket::with_options(options);
    push.connect(format!("tcp://{host}:{port}").as_str()).unwrap();
    push.send("hello").await.unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["hello"]);
    let request = proxy.request().await;
    assert_eq!(request.port, port);
    (request.address_type, request.host)
}

/// Shows: M3
#[tokio::test]
async fn a_socket_connects_through_a_proxy_to_addresses_of_both_families() {
    let mut proxy = Socks::start(None).await;
    for (host, address_type, received) in [("127.0.0.1", 1, "127.0.0.1"), ("[::1]", 4, "::1")] {
        let options = through(proxy.proxy());
        assert_eq!(push_through(&mut proxy, options, host).await, (address_type, received.into()));
    }
}

/// Shows: M3
#[tokio::test]
async fn a_name_is_resolved_by_the_proxy() {
    let mut proxy = Socks::start(None).await;
    let options = through(proxy.proxy());
    assert_eq!(push_through(&mut proxy, options, NAME).await, (3, NAME.into()));
}

/// Shows: M3
#[tokio::test]
async fn a_proxy_gets_the_user_name_and_the_password() {
    let mut proxy = Socks::start(Some(("ali", "sesame"))).await;
    let options = through(with_login(&proxy.address, "ali", "sesame"));
    push_through(&mut proxy, options, "127.0.0.1").await;
}

/// Shows: M3
#[tokio::test]
async fn a_proxy_that_needs_no_password_is_used_although_one_is_set() {
    let mut proxy = Socks::start(None).await;
    let options = through(with_login(&proxy.address, "ali", "sesame"));
    push_through(&mut proxy, options, "127.0.0.1").await;
}

/// Shows: M3
#[tokio::test]
async fn a_proxy_changes_nothing_for_encrypted_messages_in_both_directions() {
    let proxy = Socks::start(None).await;
    let (server, client) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let security = Security::CurveClient { server: server.public(), keys: client };
    let options = SocketOptions::new()
        .security(Security::CurveServer { keys: server })
        .authenticate_with(|_| async { Decision::Accept });
    let mut router = RouterSocket::with_options(options);
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut dealer = DealerSocket::with_options(through(proxy.proxy()).security(security));
    dealer.connect(&endpoint).unwrap();
    dealer.send(vec![7; 1_000_000]).await.unwrap();
    let request = within(router.recv()).await.unwrap();
    router.send(request).await.unwrap();
    assert_eq!(within(dealer.recv()).await.unwrap().frames(), [vec![7; 1_000_000]]);
}

/// Shows: M3
#[tokio::test]
async fn what_the_peer_sends_together_with_the_reply_of_the_proxy_is_read() {
    let (listener, proxy) = listen().await;
    let mut pull = PullSocket::with_options(through(proxy));
    pull.connect("tcp://127.0.0.1:9").unwrap();
    // A reply with a name of the longest kind, and then the peer's first octets and messages.
    let reply = [&[5, 0, 0, 3, 255][..], &[b'a'; 257], &introduction(1, "PUSH"), b"\0\x05hello"].concat();
    let _proxy = script(&listener, &[(GREETING_BYTES, NO_AUTHENTICATION), (REQUEST_BYTES, &reply)]).await;
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["hello"]);
}

/// Shows: M3
#[tokio::test]
async fn a_reply_of_a_proxy_may_come_octet_by_octet() {
    let (listener, proxy) = listen().await;
    let push = PushSocket::with_options(through(proxy));
    push.connect("tcp://127.0.0.1:9").unwrap();
    let mut steps = vec![(GREETING_BYTES, &NO_AUTHENTICATION[..1]), (0, &NO_AUTHENTICATION[1..])];
    steps.push((REQUEST_BYTES, &[]));
    steps.extend(CONNECTED.chunks(1).map(|octet| (0, octet)));
    let mut raw: Raw = script(&listener, &steps).await;
    raw.introduce("PULL").await;
    peers(1, || push.statistics()).await;
}

/// Shows: M3
#[tokio::test]
async fn a_socket_connects_again_through_the_proxy() {
    let (pull, port) = bound().await;
    let mut proxy = Socks::start(None).await;
    let push = PushSocket::with_options(through(proxy.proxy()));
    let mut monitor = push.monitor();
    push.connect(format!("tcp://127.0.0.1:{port}").as_str()).unwrap();
    connected(&mut monitor).await;
    proxy.request().await;
    drop(pull);
    disconnected(&mut monitor).await;
    let pull = PullSocket::new();
    pull.bind(format!("tcp://*:{port}").as_str()).await.unwrap();
    connected(&mut monitor).await;
    assert_eq!(proxy.request().await.port, port);
}

/// Shows: M3
#[tokio::test]
async fn a_source_is_that_of_the_connection_to_the_proxy() {
    let (_pull, port) = bound().await;
    let mut proxy = Socks::start(None).await;
    let push = PushSocket::with_options(through(proxy.proxy()));
    push.connect(format!("tcp://127.0.0.9:0;{NAME}:{port}").as_str()).unwrap();
    assert_eq!(proxy.request().await.client.ip().to_string(), "127.0.0.9");
}

/// The other end of the stream is the proxy.
///
/// Shows: M3
#[tokio::test]
async fn a_peer_behind_a_proxy_has_no_address() {
    let (_pull, port) = bound().await;
    let proxy = Socks::start(None).await;
    let push = PushSocket::with_options(through(proxy.proxy()));
    let mut monitor = push.monitor();
    push.connect(format!("tcp://127.0.0.1:{port}").as_str()).unwrap();
    let address = event(&mut monitor, |event| match event {
        MonitorEvent::Connected { peer, .. } => Some(peer.address()),
        _ => None,
    });
    assert_eq!(address.await, None);
}

/// Shows: M3
#[tokio::test]
async fn a_proxy_is_for_tcp_and_for_connecting_only() {
    let mut proxy = Socks::start(None).await;
    for endpoint in ["ipc://*", "inproc://beside-a-proxy"] {
        let (pull, push) = (PullSocket::new(), PushSocket::with_options(through(proxy.proxy())));
        push.connect(pull.bind(endpoint).await.unwrap()).unwrap();
        peers(1, || push.statistics()).await;
    }
    let (pull, push) = (PullSocket::with_options(through(proxy.proxy())), PushSocket::new());
    push.connect(pull.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    peers(1, || push.statistics()).await;
    assert_eq!(proxy.try_request(), None);
}

#[test]
fn an_address_of_a_proxy_is_a_host_and_a_port() {
    for text in ["127.0.0.1:1080", "proxy.example.com:1080", "[::1]:1080"] {
        assert_eq!(SocksProxy::new(text).unwrap().to_string(), text);
    }
    let long = format!("{}:1", "a".repeat(2000));
    for text in ["", "proxy", "proxy:", "*:1080", "proxy:*", "proxy:0", "::1:1080", "socks5://proxy:1080", &long] {
        let error = SocksProxy::new(text).unwrap_err();
        assert!(error.is_endpoint() && error.to_string().contains("write `HOST:PORT`"), "{error}");
        assert!(error.to_string().len() < 1200);
    }
}

#[test]
fn a_user_name_that_does_not_fit_is_refused() {
    for username in ["", &"a".repeat(256)] {
        let proxy = SocksProxy::new("proxy:1080").unwrap();
        let error = proxy.credentials(username, Password::new("sesame").unwrap()).unwrap_err();
        assert!(error.is_misuse() && error.to_string().contains("1 to 255"), "{error}");
    }
    with_login("proxy:1080", &"a".repeat(255), &"b".repeat(255));
}

/// Shows: M3
#[tokio::test]
async fn a_host_that_a_proxy_cannot_get_is_refused() {
    let push = PushSocket::with_options(through(SocksProxy::new("127.0.0.1:1080").unwrap()));
    let long = format!("tcp://{}:1", "a".repeat(256));
    for (endpoint, reason) in [(long.as_str(), "has 256 bytes"), ("tcp://[fe80::1%eth0]:1", "zone")] {
        let error = push.connect(endpoint).unwrap_err();
        assert!(error.is_misuse() && error.to_string().contains(reason), "{error}");
    }
    push.connect(format!("tcp://{}:1", "a".repeat(255)).as_str()).unwrap();
}

#[test]
fn a_password_is_not_shown() {
    let options = through(with_login("proxy:1080", "ali", "sesame"));
    let shown = format!("{options:?}");
    assert!(shown.contains("proxy") && !shown.contains("sesame") && !shown.contains("115, 101"), "{shown}");
}
