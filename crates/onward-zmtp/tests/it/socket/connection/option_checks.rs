//! Options that a socket would ignore are rejected before anything has begun.

use std::time::Duration;

use onward_zmtp::protocol::bounds::PLAIN_FIELD_BYTES;
use onward_zmtp::protocol::{Heartbeat, Identity, KeyPair, Limits, Password, Security};
use onward_zmtp::socket::kind::{Dealer, Kind, Pair, Pub, Pull, Push, Rep, Req, Router, Sub, Xpub, Xsub};
use onward_zmtp::socket::{Decision, DuplicateIdentity, Error, Overflow, SocketOptions};
use onward_zmtp::{PullSocket, PushSocket, Socket};

/// Returns the errors of a bound and of a connected socket of a type with these options.
async fn refusals<T: Kind>(options: &SocketOptions) -> [Option<Error>; 2] {
    let socket = Socket::<T>::with_options(options.clone());
    let connected = socket.connect("tcp://127.0.0.1:9").err();
    [socket.bind("tcp://127.0.0.1:*").await.err(), connected]
}

/// Returns the types that reject these options.
async fn refused_by(options: &SocketOptions) -> Vec<&'static str> {
    let said = [
        ("REQ", refusals::<Req>(options).await),
        ("REP", refusals::<Rep>(options).await),
        ("DEALER", refusals::<Dealer>(options).await),
        ("ROUTER", refusals::<Router>(options).await),
        ("PUB", refusals::<Pub>(options).await),
        ("XPUB", refusals::<Xpub>(options).await),
        ("SUB", refusals::<Sub>(options).await),
        ("XSUB", refusals::<Xsub>(options).await),
        ("PUSH", refusals::<Push>(options).await),
        ("PULL", refusals::<Pull>(options).await),
        ("PAIR", refusals::<Pair>(options).await),
    ];
    let mut refused = Vec::new();
    for (name, [bound, connected]) in said {
        assert_eq!(bound.is_some(), connected.is_some(), "{name}");
        if let (Some(bound), Some(connected)) = (bound, connected) {
            assert!(bound.is_misuse() && connected.is_misuse(), "{bound}, {connected}");
            refused.push(name);
        }
    }
    refused
}

/// Shows: M3
#[tokio::test]
async fn an_option_of_other_types_is_refused() {
    let options = SocketOptions::new;
    let identity = options().identity(Identity::new("name").unwrap());
    let all_but = |taking: &[&str]| {
        ["REQ", "REP", "DEALER", "ROUTER", "PUB", "XPUB", "SUB", "XSUB", "PUSH", "PULL", "PAIR"]
            .into_iter()
            .filter(|name| !taking.contains(name))
            .collect::<Vec<_>>()
    };
    assert_eq!(refused_by(&identity).await, all_but(&["REQ", "DEALER", "ROUTER"]));
    let takes_over = options().duplicate_identity(DuplicateIdentity::TakeOver);
    assert_eq!(refused_by(&takes_over).await, all_but(&["ROUTER"]));
    assert_eq!(refused_by(&options().overflow(Overflow::Wait)).await, all_but(&["PUB", "XPUB", "XSUB"]));
    assert_eq!(refused_by(&options().verbose()).await, all_but(&["XPUB"]));
    assert_eq!(refused_by(&options().manual()).await, all_but(&["XPUB"]));
    assert_eq!(refused_by(&options().correlate()).await, all_but(&["REQ"]));
    let (hello, conflates) = (options().hello("hello"), options().conflate());
    assert_eq!(refused_by(&hello).await, all_but(&["DEALER", "ROUTER", "PUB", "XPUB", "XSUB", "PUSH", "PAIR"]));
    assert_eq!(refused_by(&conflates).await, all_but(&["DEALER", "PUB", "SUB", "PUSH", "PULL"]));
    assert_eq!(refused_by(&options().wait_for_peer()).await, all_but(&["PUSH", "DEALER", "PAIR"]));
    assert_eq!(refused_by(&options()).await, [""; 0]);
}

/// Shows: M3
#[tokio::test]
async fn the_refusal_names_the_option_and_who_has_a_use_for_it() {
    let push = PushSocket::with_options(SocketOptions::new().verbose());
    let error = push.connect("inproc://refused").unwrap_err();
    assert_eq!(error.to_string(), "`verbose` is for XPUB; leave it out of a PUSH's options");
}

/// A function that is never called would look like a guard.
///
/// Shows: M3
#[tokio::test]
async fn an_authorizer_is_refused_where_it_would_never_be_called() {
    let client =
        Security::CurveClient { server: KeyPair::generate().unwrap().public(), keys: KeyPair::generate().unwrap() };
    for security in [Security::Null, client] {
        let options = SocketOptions::new().security(security).authenticate_with(|_| async { Decision::Accept });
        let pull = PullSocket::with_options(options);
        let error = pull.bind("tcp://127.0.0.1:*").await.unwrap_err();
        assert!(error.is_misuse() && error.to_string().contains("`authenticate_with`"), "{error}");
    }
}

/// Within a process there are no mechanisms: a server of CURVE would accept every socket in it.
///
/// Shows: M3
#[tokio::test]
async fn a_socket_with_a_mechanism_is_neither_bound_nor_connected_within_a_process() {
    let server = Security::CurveServer { keys: KeyPair::generate().unwrap() };
    let pull = PullSocket::with_options(SocketOptions::new().security(server));
    let error = pull.bind("inproc://guarded").await.unwrap_err();
    assert!(error.is_misuse() && error.to_string().contains("inproc://guarded"), "{error}");
    let client =
        Security::CurveClient { server: KeyPair::generate().unwrap().public(), keys: KeyPair::generate().unwrap() };
    let push = PushSocket::with_options(SocketOptions::new().security(client));
    let error = push.connect("inproc://guarded").unwrap_err();
    assert!(error.is_misuse() && error.to_string().contains("inproc://guarded"), "{error}");
}

/// With libzmq, zero disables heartbeats. Here it would mean to wait no time for a reply.
///
/// Shows: M3
#[tokio::test]
async fn a_heartbeat_without_time_is_refused() {
    let (second, none) = (Duration::from_secs(1), Duration::ZERO);
    for heartbeat in [Heartbeat::every(none), Heartbeat::every(second).timeout(none)] {
        let [bound, connected] = refusals::<Pull>(&SocketOptions::new().heartbeat(heartbeat)).await;
        assert!(bound.is_some_and(|error| error.is_misuse() && error.to_string().contains("`heartbeat`")));
        assert!(connected.is_some_and(|error| error.is_misuse()));
    }
}

/// Without the error, every handshake would fail, and each would be tried again.
///
/// Shows: M3
#[tokio::test]
async fn a_user_name_that_is_too_long_is_refused() {
    let client = |length| {
        let (username, password) = ("x".repeat(length), Password::new("open sesame").unwrap());
        SocketOptions::new().security(Security::PlainClient { username, password })
    };
    assert!(matches!(refusals::<Push>(&client(PLAIN_FIELD_BYTES)).await, [None, None]));
    let [bound, connected] = refusals::<Push>(&client(PLAIN_FIELD_BYTES + 1)).await;
    assert!(bound.is_some_and(|error| error.is_misuse()) && connected.is_some_and(|error| error.is_misuse()));
}

/// Such a socket would wait for ever, and only its peers would learn why.
///
/// Shows: M3
#[tokio::test]
async fn options_that_admit_no_peer_are_refused() {
    let limits = |zero: fn(&mut Limits)| {
        let mut limits = Limits::default();
        zero(&mut limits);
        SocketOptions::new().limits(limits)
    };
    let options = [
        ("`peers`", SocketOptions::new().peers(0)),
        ("`message_parts`", limits(|limits| limits.message_parts = 0)),
        ("`metadata_bytes`", limits(|limits| limits.metadata_bytes = 0)),
        ("`metadata_properties`", limits(|limits| limits.metadata_properties = 0)),
    ];
    for (name, options) in options {
        for error in refusals::<Pull>(&options).await {
            let error = error.expect(name);
            assert!(error.is_misuse() && error.to_string().contains(name), "{error}");
        }
    }
}

/// The decimal 660 is `0o1224`, which lets the group write and not read.
///
/// Shows: M3
#[tokio::test]
async fn permissions_beyond_those_of_a_file_are_refused() {
    for error in refusals::<Pull>(&SocketOptions::new().ipc_permissions(660)).await {
        let error = error.expect("they are refused");
        assert!(error.is_misuse() && error.to_string().contains("0o1224"), "{error}");
    }
}
