//! Addresses: their text, binding and releasing them, and connections over them.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use onward_zmtp::protocol::{Identity, Message};
use onward_zmtp::socket::kind::{Dealer, Kind, Pair, Pub, Pull, Push, Rep, Req, Router, Sub, Xpub, Xsub};
use onward_zmtp::socket::{Endpoint, HighWaterMark, MonitorEvent, Reconnect, SocketOptions, Source, TcpKeepalive};
use onward_zmtp::{DealerSocket, PubSocket, PullSocket, PushSocket, RouterSocket, Socket, SubSocket};

use crate::socket::support::events::{connected, event, failed, no_tasks, peers, until, within};
use crate::socket::support::raw::Raw;

fn quick() -> SocketOptions {
    SocketOptions::new().reconnect(Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(1) })
}

/// Returns a port without a listener.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The operating system chooses the port of a connecting socket, now and then the very port that it
/// connects to. Here it has no other choice.
///
/// Shows: M3
#[tokio::test]
async fn a_socket_that_the_system_connects_to_itself_lets_go_and_tries_again() {
    let port = free_port();
    let mut push = PushSocket::with_options(quick());
    let mut monitor = push.monitor();
    push.connect(format!("tcp://127.0.0.1:{port};127.0.0.1:{port}").as_str()).unwrap();
    push.send("to nobody").await.unwrap();
    for _ in 0..3 {
        let reason = failed(&mut monitor).await;
        assert!(reason.is_io() && reason.to_string().contains("itself"), "{reason}");
    }
    assert_eq!(push.statistics().peers, 0);
}

/// Shows: M3
#[tokio::test]
async fn a_port_that_a_socket_was_connected_to_itself_over_is_free_for_who_listens() {
    let port = free_port();
    let push = PushSocket::with_options(quick());
    let mut monitor = push.monitor();
    push.connect(format!("tcp://127.0.0.1:{port};127.0.0.1:{port}").as_str()).unwrap();
    failed(&mut monitor).await;
    let pull = PullSocket::new();
    within(async { while pull.bind(format!("tcp://127.0.0.1:{port}").as_str()).await.is_err() {} }).await;
}

/// Shows: M3
#[tokio::test]
async fn a_socket_connects_from_the_configured_address() {
    let pull = PullSocket::new();
    let Endpoint::Tcp { port, .. } = pull.bind("tcp://127.0.0.1:*").await.unwrap() else { panic!("it is TCP") };
    let push = PushSocket::new();
    let from = free_port();
    push.connect(format!("tcp://127.0.0.2:{from};127.0.0.1:{port}").as_str()).unwrap();
    peers(1, || pull.statistics()).await;
    let another = PushSocket::new();
    another.connect(format!("tcp://127.0.0.3:*;localhost:{port}").as_str()).unwrap();
    peers(2, || pull.statistics()).await;
}

/// Shows: M3
#[tokio::test]
async fn a_source_of_another_kind_than_the_destination_is_named() {
    let push = PushSocket::with_options(quick());
    let mut monitor = push.monitor();
    push.connect("tcp://[::1]:0;127.0.0.1:9").unwrap();
    assert!(failed(&mut monitor).await.to_string().contains("source of its kind"));
}

async fn is_connected_once<C: Kind, L: Kind>() {
    let directory = tempfile::tempdir().unwrap();
    let path = format!("ipc://{}", directory.path().join("once").display());
    for endpoint in ["tcp://127.0.0.1:*", &path, "inproc://once"] {
        let (listener, connector) = (Socket::<L>::new(), Socket::<C>::new());
        let endpoint = listener.bind(endpoint).await.unwrap();
        assert!(connector.connect(&endpoint).unwrap());
        assert!(!connector.connect(&endpoint).unwrap(), "{:?} to {endpoint}", C::TYPE);
        peers(1, || connector.statistics()).await;
        connector.disconnect(&endpoint).unwrap();
        assert!(connector.disconnect(&endpoint).unwrap_err().is_endpoint());
        assert!(connector.connect(&endpoint).unwrap());
        drop((listener, connector));
        no_tasks().await;
    }
}

/// Shows: M3
#[tokio::test]
async fn a_socket_of_any_type_has_one_connection_to_an_endpoint() {
    is_connected_once::<Sub, Pub>().await;
    is_connected_once::<Pub, Sub>().await;
    is_connected_once::<Req, Rep>().await;
    is_connected_once::<Rep, Req>().await;
    is_connected_once::<Dealer, Router>().await;
    is_connected_once::<Router, Dealer>().await;
    is_connected_once::<Push, Pull>().await;
    is_connected_once::<Pull, Push>().await;
    is_connected_once::<Xsub, Xpub>().await;
    is_connected_once::<Xpub, Xsub>().await;
    is_connected_once::<Pair, Pair>().await;
}

/// Shows: M3
#[tokio::test]
async fn a_subscriber_that_connects_twice_gets_each_message_once() {
    let mut publisher = PubSocket::new();
    let mut sub = SubSocket::new();
    let endpoint = publisher.bind("tcp://127.0.0.1:*").await.unwrap();
    sub.subscribe("").unwrap();
    sub.connect(&endpoint).unwrap();
    sub.connect(&endpoint).unwrap();
    within(async {
        while sub.statistics().incoming.messages == 0 {
            publisher.send("first").await.unwrap();
            tokio::task::yield_now().await;
        }
    })
    .await;
    publisher.send("last").await.unwrap();
    while within(sub.recv()).await.unwrap().frames() != ["last"] {}
    assert!(sub.try_recv().is_none());
    assert_eq!(publisher.statistics().peers, 1);
}

/// Shows: M3
#[tokio::test]
async fn a_file_that_another_has_put_in_the_place_of_ours_is_not_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("taken-over");
    let pull = PullSocket::new();
    let endpoint = pull.bind(format!("ipc://{}", path.display()).as_str()).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    pull.unbind(&endpoint).unwrap();
    assert!(path.exists());
    UnixStream::connect(&path).unwrap();
    other.accept().unwrap();
}

/// Shows: M3
#[tokio::test]
async fn a_file_of_another_kind_in_the_place_of_ours_is_not_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("replaced");
    let pull = PullSocket::new();
    pull.bind(format!("ipc://{}", path.display()).as_str()).await.unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "precious").unwrap();
    drop(pull);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

async fn is_free_at_once(endpoint: &str) {
    let first = PullSocket::new();
    let endpoint = first.bind(endpoint).await.unwrap();
    let push = PushSocket::with_options(quick());
    push.connect(endpoint.to_string().replace('*', "127.0.0.1").as_str()).unwrap();
    peers(1, || first.statistics()).await;
    first.unbind(&endpoint).unwrap();
    let second = PullSocket::new();
    second.bind(&endpoint).await.unwrap();
    assert_eq!(first.statistics().peers, 1, "what was connected goes on");
    drop(second);
    let third = PullSocket::new();
    third.bind(&endpoint).await.unwrap();
    let (sender, receiver) = DealerSocket::new().split();
    third.unbind(&endpoint).unwrap();
    drop((sender, receiver));
    first.bind(&endpoint).await.unwrap();
    first.close().await;
    third.bind(&endpoint).await.unwrap();
}

/// Shows: M3
#[tokio::test]
async fn an_address_is_free_as_soon_as_its_socket_is_unbound_or_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let path = format!("ipc://{}", directory.path().join("free").display());
    for endpoint in ["tcp://127.0.0.1:*", "tcp://*:*", &path, "ipc://@onward-zmtp-free", "inproc://free"] {
        is_free_at_once(endpoint).await;
    }
}

/// Shows: M3
#[tokio::test]
async fn an_address_is_free_as_soon_as_the_second_half_of_its_socket_is_dropped() {
    let router = RouterSocket::new();
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    let (sender, receiver) = router.split();
    drop(sender);
    assert!(RouterSocket::new().bind(&endpoint).await.is_err());
    drop(receiver);
    RouterSocket::new().bind(&endpoint).await.unwrap();
}

/// Shows: M3
#[test]
fn an_address_is_free_when_the_runtime_of_its_socket_has_ended() {
    let (first, second) = (tokio::runtime::Runtime::new().unwrap(), tokio::runtime::Runtime::new().unwrap());
    let pull = PullSocket::new();
    let endpoint = first.block_on(pull.bind("tcp://127.0.0.1:*")).unwrap();
    drop(first);
    second.block_on(PullSocket::new().bind(&endpoint)).unwrap();
}

/// Shows: M3
#[tokio::test]
async fn an_end_of_listening_is_reported_for_every_transport() {
    for endpoint in ["tcp://127.0.0.1:*", "ipc://@onward-zmtp-told", "inproc://told"] {
        let pull = PullSocket::new();
        let mut monitor = pull.monitor();
        let endpoint = pull.bind(endpoint).await.unwrap();
        drop(pull);
        event(&mut monitor, |event| match event {
            MonitorEvent::ListeningEnded { endpoint: ended } => (*ended == endpoint).then_some(()),
            _ => None,
        })
        .await;
    }
}

/// Shows: M3
#[tokio::test]
async fn a_high_water_mark_of_zero_is_no_bound() {
    let high_water_mark = HighWaterMark::messages(0);
    let mut pull = PullSocket::with_options(SocketOptions::new().receive_high_water_mark(high_water_mark));
    let mut push = PushSocket::with_options(SocketOptions::new().send_high_water_mark(high_water_mark));
    push.connect(pull.bind("inproc://unlimited").await.unwrap()).unwrap();
    for number in 0..20_000_u32 {
        push.try_send(number.to_be_bytes().to_vec()).unwrap();
    }
    for number in 0..20_000_u32 {
        assert_eq!(within(pull.recv()).await.unwrap().frames(), [number.to_be_bytes().to_vec()]);
    }
}

/// Shows: M3
#[tokio::test]
async fn a_high_water_mark_of_zero_messages_has_the_default_of_bytes_and_one_of_zero_bytes_has_none() {
    let count = |high_water_mark| {
        let mut push = PushSocket::with_options(SocketOptions::new().send_high_water_mark(high_water_mark));
        push.connect("inproc://nobody-reads").unwrap();
        let large = bytes::Bytes::from(vec![0; 1024 * 1024]);
        (0..100).take_while(|_| push.try_send(large.clone()).is_ok()).count()
    };
    assert_eq!(count(HighWaterMark::messages(0)), 16);
    assert_eq!(count(HighWaterMark::UNLIMITED), 100);
}

/// Several peers share a high-water mark, even one without a bound.
///
/// Shows: M3
#[tokio::test]
async fn a_high_water_mark_without_a_bound_is_shared_by_several_peers() {
    let mut pull = PullSocket::with_options(SocketOptions::new().receive_high_water_mark(HighWaterMark::UNLIMITED));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut pushes = [PushSocket::new(), PushSocket::new(), PushSocket::new()];
    for push in &mut pushes {
        push.connect(&endpoint).unwrap();
        for _ in 0..1000 {
            within(push.send("work")).await.unwrap();
        }
    }
    for _ in 0..3000 {
        within(pull.recv()).await.unwrap();
    }
}

/// Shows: M3
#[tokio::test]
async fn a_path_that_is_generated_can_be_connected_to_and_goes_with_its_socket() {
    let (mut first, second) = (PullSocket::new(), PullSocket::new());
    let endpoint = first.bind("ipc://*").await.unwrap();
    assert_ne!(endpoint, second.bind("ipc://*").await.unwrap());
    let Endpoint::Ipc(path) = &endpoint else { panic!("{endpoint} is a path") };
    assert!(path.is_absolute() && path.exists() && !std::path::Path::new("*").exists());
    let mut push = PushSocket::new();
    push.connect(endpoint.to_string().as_str()).unwrap();
    push.send("by a generated path").await.unwrap();
    assert_eq!(within(first.recv()).await.unwrap().frames(), ["by a generated path"]);
    drop(first);
    assert!(!path.exists());
    assert!(push.connect("ipc://*").unwrap_err().is_endpoint());
}

/// Shows: M3
#[tokio::test]
async fn a_file_of_a_socket_has_the_permissions_that_were_set() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("private");
    // A stale socket file without a listener is in the way.
    drop(UnixListener::bind(&path).unwrap());
    for mode in [0o600, 0o666] {
        let mut pull = PullSocket::with_options(SocketOptions::new().ipc_permissions(mode));
        let endpoint = pull.bind(format!("ipc://{}", path.display()).as_str()).await.unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        let mut push = PushSocket::new();
        push.connect(&endpoint).unwrap();
        push.send("hello").await.unwrap();
        assert_eq!(within(pull.recv()).await.unwrap().frames(), ["hello"]);
        drop(pull);
        assert!(!path.exists());
    }
}

/// Shows: M3
#[tokio::test]
async fn every_interface_is_those_of_ipv4_and_of_ipv6() {
    let pull = PullSocket::new();
    let mut monitor = pull.monitor();
    let Endpoint::Tcp { host, port } = pull.bind("tcp://*:*").await.unwrap() else { panic!("it is TCP") };
    assert_eq!(host, "*");
    for host in ["127.0.0.1", "[::1]"] {
        let _push = Raw::introduced(&format!("tcp://{host}:{port}").parse().unwrap(), "PUSH").await;
        connected(&mut monitor).await;
    }
}

#[test]
fn an_endpoint_with_a_source_and_a_generated_path_are_written_as_they_are_read() {
    for text in ["tcp://127.0.0.1:0;host.name:1", "tcp://[::1]:7;[::1]:8", "tcp://[fe80::1%eth0]:9", "ipc://*"] {
        assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
    }
    let Endpoint::TcpFrom { source, .. } = "tcp://127.0.0.1:*;[::1]:8".parse().unwrap() else {
        panic!("it has a source")
    };
    assert_eq!(source, Source::Address(SocketAddr::from(([127, 0, 0, 1], 0))));
}

fn refused(text: &str) -> String {
    let error = text.parse::<Endpoint>().unwrap_err();
    assert!(error.is_endpoint(), "{error}");
    error.to_string()
}

#[test]
fn an_ipv6_address_needs_brackets_and_the_error_says_so() {
    for text in ["tcp://::1:5555", "tcp://fe80::1:1", "tcp://::1:*", "tcp://127.0.0.1:0;::1:5"] {
        assert!(refused(text).contains("needs brackets"), "{text}");
    }
    assert!(refused("tcp://::1:5555").contains("write `tcp://[::1]:5555`"));
    for text in ["tcp://[127.0.0.1]:1", "tcp://[name]:1", "tcp://[]:1", "tcp://[::1:1"] {
        refused(text);
    }
}

#[test]
fn a_source_that_is_no_address_and_no_interface_is_refused() {
    for text in [
        "tcp://longer-than-any-interface:1;127.0.0.1:1",
        "tcp://eth0;127.0.0.1:1",
        "tcp://;127.0.0.1:1",
        "tcp://127.0.0.1:1;",
        "tcp://*:0;127.0.0.1:1",
    ] {
        refused(text);
    }
}

#[tokio::test]
async fn an_endpoint_with_a_source_cannot_be_bound_to() {
    let error = PullSocket::new().bind("tcp://127.0.0.1:0;127.0.0.1:1").await.unwrap_err();
    assert!(error.is_endpoint(), "{error}");
}

/// libzmq lets a program choose such an identity.
///
/// Shows: M3
#[tokio::test]
async fn a_peer_whose_identity_begins_with_a_zero_octet_is_accepted() {
    let mut router = RouterSocket::new();
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut raw = Raw::connect(&endpoint).await;
    raw.introduce_as("DEALER", "\0name").await;
    raw.write(b"\0\x05hello").await;
    assert_eq!(within(router.recv()).await.unwrap().frames(), ["\0name", "hello"]);
    assert!(Identity::new("\0name").unwrap_err().is_misuse());
}

/// Shows: M3
#[tokio::test]
async fn an_identity_that_a_router_makes_up_is_not_one_that_a_peer_has() {
    let mut router = RouterSocket::new();
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut anonymous = DealerSocket::new();
    anonymous.connect(&endpoint).unwrap();
    anonymous.send("hello").await.unwrap();
    let made_up = within(router.recv()).await.unwrap().frames()[0].clone();
    let number = u32::from_be_bytes(made_up[1..].try_into().unwrap());
    // A peer that knows one generated identity can guess the next ones.
    let mut guessing = Vec::new();
    for step in 1..=20_u32 {
        let mut raw = Raw::connect(&endpoint).await;
        let guess = [&[0][..], &(number.wrapping_add(step)).to_be_bytes()].concat();
        raw.introduce_as_octets("DEALER", &guess).await;
        guessing.push(raw);
    }
    let mut another = DealerSocket::new();
    another.connect(&endpoint).unwrap();
    another.send("me, too").await.unwrap();
    let message = within(router.recv()).await.unwrap();
    assert_eq!(message.frames()[1], "me, too");
    router.send(message).await.unwrap();
    assert_eq!(within(another.recv()).await.unwrap().frames(), ["me, too"]);
}

/// Shows: M3
#[tokio::test]
async fn probes_of_the_operating_system_are_set_for_connections_of_both_sides() {
    let keepalive = TcpKeepalive::after(Duration::from_secs(30)).interval(Duration::from_secs(10)).probes(3);
    let pull = PullSocket::with_options(SocketOptions::new().tcp_keepalive(keepalive));
    let push = PushSocket::with_options(SocketOptions::new().tcp_keepalive(keepalive));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    push.connect(&endpoint).unwrap();
    peers(1, || pull.statistics()).await;
    let Endpoint::Tcp { port, .. } = endpoint else { panic!("it is TCP") };
    let port = format!(":{port:04X} ");
    // The second kind of timer is the one for probes.
    let is_probed = |line: &&str| line.split_whitespace().nth(5).is_some_and(|timer| timer.starts_with("02:"));
    until(|| {
        let connections = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let ours = connections.lines().filter(|line| line.contains(&port) && line.contains(" 01 "));
        ours.filter(is_probed).count() == 2
    })
    .await;
}

/// Shows: M3
#[tokio::test]
async fn probes_without_time_are_refused() {
    let second = Duration::from_secs(1);
    for keepalive in [
        TcpKeepalive::after(Duration::ZERO),
        TcpKeepalive::after(second).interval(Duration::from_millis(10)),
        TcpKeepalive::after(second).probes(0),
    ] {
        let push = PushSocket::with_options(SocketOptions::new().tcp_keepalive(keepalive));
        assert!(push.connect("tcp://127.0.0.1:1").unwrap_err().is_misuse());
    }
}

/// Shows: M3
#[tokio::test]
async fn a_path_that_has_a_file_of_another_kind_is_an_error_that_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("notes.txt");
    std::fs::write(&file, "text").unwrap();
    for path in [file.as_path(), directory.path()] {
        let error = PullSocket::new().bind(format!("ipc://{}", path.display()).as_str()).await.unwrap_err();
        assert!(error.is_io() && error.to_string().contains("no socket"), "{error}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "text");
}

/// Shows: M3
#[tokio::test]
async fn the_error_of_an_endpoint_that_is_not_bound_lists_those_that_are() {
    let pull = PullSocket::new();
    let error = pull.unbind("tcp://127.0.0.1:*").unwrap_err().to_string();
    assert!(error.ends_with("it is bound to no endpoint"), "{error}");
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let error = pull.unbind("tcp://127.0.0.1:*").unwrap_err().to_string();
    assert!(error.ends_with(&format!("it is bound to `{endpoint}`")), "{error}");
}

/// Shows: M3
#[tokio::test]
async fn the_error_of_a_peer_that_is_not_connected_names_it() {
    let error = RouterSocket::new().send(Message::from_iter(["nobody", "hello"])).await.unwrap_err();
    assert!(error.is_unroutable() && error.to_string().contains("nobody"), "{error}");
}

/// Shows: M3
#[tokio::test]
async fn an_endpoint_of_every_interface_is_not_connected_to_and_the_error_names_one_that_is() {
    let (pull, push) = (PullSocket::new(), PushSocket::new());
    let mut monitor = push.monitor();
    let bound = pull.bind("tcp://*:*").await.unwrap();
    let error = push.connect(&bound).unwrap_err();
    assert!(error.is_endpoint(), "{error}");
    let reachable = bound.to_string().replace('*', "127.0.0.1");
    assert!(error.to_string().ends_with(&format!("such as `{reachable}`")), "{error}");
    // A text that `format!` made is an endpoint, too.
    push.connect(reachable).unwrap();
    connected(&mut monitor).await;
}

/// Asserts that binding to an endpoint fails with an error that names both.
async fn assert_refused(endpoint: &str, remedy: &str) {
    let error = PullSocket::new().bind(endpoint).await.unwrap_err();
    assert!(error.is_io() && error.to_string().contains(endpoint) && error.to_string().contains(remedy), "{error}");
}

/// Shows: M3
#[tokio::test]
async fn an_address_that_the_system_refuses_is_named_with_the_remedy() {
    let other = PullSocket::new();
    let taken = other.bind("tcp://127.0.0.1:*").await.unwrap();
    assert_refused(&taken.to_string(), "bind to port `*` for a free one").await;
    // An address that RFC 5737 reserves for documents.
    assert_refused("tcp://192.0.2.1:5555", "no interface here has this address").await;
    assert_refused("ipc:///no-such-folder/socket", "create it first").await;
}
