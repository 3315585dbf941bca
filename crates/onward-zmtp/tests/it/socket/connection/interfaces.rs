//! Names of interfaces in endpoints. Every machine has `lo`, with 127.0.0.1.

use onward_zmtp::socket::{Endpoint, MonitorEvent, Source};
use onward_zmtp::{PullSocket, PushSocket};

use crate::socket::support::events::{event, failed, peers, within};
use crate::zmtp::peer::Others;

/// Shows: M3
#[tokio::test]
async fn a_socket_binds_to_an_interface_and_returns_its_address() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://lo:*").await.unwrap();
    let Endpoint::Tcp { host, port } = &endpoint else { panic!("it is TCP") };
    assert!(host == "127.0.0.1" && *port != 0, "{endpoint}");
    let mut push = PushSocket::new();
    push.connect(&endpoint).unwrap();
    push.send("by interface").await.unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["by interface"]);
}

/// Shows: M3
#[tokio::test]
async fn an_interface_that_a_socket_is_bound_to_is_unbound_by_its_address() {
    let pull = PullSocket::new();
    let endpoint = pull.bind("tcp://lo:*").await.unwrap();
    assert!(PullSocket::new().bind(&endpoint).await.is_err());
    pull.unbind(&endpoint).unwrap();
    PullSocket::new().bind(&endpoint).await.unwrap();
}

/// Shows: M3
#[tokio::test]
async fn a_socket_connects_from_the_address_of_an_interface() {
    let pull = PullSocket::new();
    let mut monitor = pull.monitor();
    let Endpoint::Tcp { port, .. } = pull.bind("tcp://*:*").await.unwrap() else { panic!("it is TCP") };
    let push = PushSocket::new();
    push.connect(format!("tcp://lo:0;127.0.0.1:{port}").as_str()).unwrap();
    let address = event(&mut monitor, |event| match event {
        MonitorEvent::Connected { peer, .. } => Some(peer.address()),
        _ => None,
    });
    assert!(address.await.is_some_and(|address| address.ip().to_string() == "127.0.0.1"));
    let from = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let another = PushSocket::new();
    another.connect(format!("tcp://lo:{from};localhost:{port}").as_str()).unwrap();
    peers(2, || pull.statistics()).await;
}

/// Shows: M3
#[tokio::test]
async fn an_unknown_interface_is_refused_with_those_there_are() {
    let error = PullSocket::new().bind("tcp://no-such-if0:*").await.unwrap_err();
    assert!(error.is_io(), "{error}");
    assert!(error.to_string().contains("`no-such-if0` is no interface with an address (there are `"), "{error}");
    assert!(error.to_string().contains("`lo`") && error.to_string().contains("no known name"), "{error}");
}

/// An interface may come later, so an attempt to connect fails like any other.
///
/// Shows: M3
#[tokio::test]
async fn an_unknown_interface_of_a_source_is_reported_and_tried_again() {
    let push = PushSocket::new();
    let mut monitor = push.monitor();
    push.connect("tcp://no-such-if0:0;127.0.0.1:9").unwrap();
    for _ in 0..2 {
        let error = failed(&mut monitor).await;
        assert!(error.is_io() && error.to_string().contains("`lo`"), "{error}");
        assert!(error.to_string().contains("cannot connect to tcp://no-such-if0:0;127.0.0.1:9"), "{error}");
    }
}

#[test]
fn an_interface_as_a_source_is_written_as_it_is_read() {
    for text in ["tcp://eth0:0;host.name:1", "tcp://enp0s31f6.4094:7;[::1]:8"] {
        assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
    }
    let Endpoint::TcpFrom { source, .. } = "tcp://eth0:*;[::1]:8".parse().unwrap() else { panic!("it has a source") };
    assert_eq!(source, Source::Interface { name: "eth0".into(), port: 0 });
}

/// libzmq connects to an endpoint that a socket here was bound to by the name of an interface, and
/// the other way round.
///
/// Shows: M4
#[tokio::test]
async fn libzmq_means_the_same_by_an_interface() {
    let Some(mut others) = Others::libzmq() else { return };
    let (_peer, endpoint) = others.next(["bind", "pull", "null", "tcp://lo:*", "0"]);
    assert!(endpoint.starts_with("tcp://127.0.0.1:"), "{endpoint}");
    let push = PushSocket::new();
    push.connect(endpoint.replace("tcp://", "tcp://lo:0;").as_str()).unwrap();
    peers(1, || push.statistics()).await;
}
