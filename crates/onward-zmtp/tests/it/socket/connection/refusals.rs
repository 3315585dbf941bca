//! Sockets that are refused return an error instead of waiting for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use onward_zmtp::protocol::{KeyPair, Password, Security};
use onward_zmtp::socket::kind::{Dealer, Kind, Pair, Pull, Push, Receives, Rep, Req, Sends, Sub, Xsub};
use onward_zmtp::socket::{Decision, Endpoint, Error, Reconnect, RefusalPolicy, SocketOptions};
use onward_zmtp::{PubSocket, PullSocket, PushSocket, RepSocket, ReqSocket, RouterSocket, Socket, SubSocket};
use tokio::io::AsyncReadExt as _;

use crate::socket::support::events::{connected, disconnected, failed, peers, within};
use crate::socket::support::raw::{Raw, listen};
use crate::zmtp::link::{greeting, introduction};

fn quick() -> SocketOptions {
    SocketOptions::new().reconnect(Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(1) })
}

fn wrong_password() -> SocketOptions {
    let password = Password::new("wrong").unwrap();
    quick().security(Security::PlainClient { username: "ali".into(), password })
}

async fn strict<L: Kind>() -> (Socket<L>, Endpoint) {
    let options = SocketOptions::new()
        .security(Security::PlainServer)
        .authenticate_with(|_| async { Decision::Refuse("400 go away".into()) });
    let server = Socket::<L>::with_options(options);
    let endpoint = server.bind("tcp://127.0.0.1:*").await.unwrap();
    (server, endpoint)
}

fn is_refused(error: &Error, reason: &str) {
    assert!(error.is_refused() && error.to_string().contains(reason), "{error}");
    assert!(error.to_string().matches("refused the connection").count() <= 1, "{error}");
}

/// Sends until the socket is refused. The first messages still wait for a peer.
async fn send_until_refused<S: Sends>(socket: &mut Socket<S>) -> Error {
    within(async {
        loop {
            if let Err(error) = socket.send("hello").await {
                return error;
            }
        }
    })
    .await
}

async fn a_send_fails<S: Sends, L: Kind>() {
    let (_server, endpoint) = strict::<L>().await;
    let mut socket = Socket::<S>::with_options(wrong_password());
    socket.connect(&endpoint).unwrap();
    is_refused(&send_until_refused(&mut socket).await, "400 go away");
    is_refused(socket.try_send("hello").unwrap_err().error(), "400 go away");
}

async fn a_recv_fails<R: Receives, L: Kind>() {
    let (_server, endpoint) = strict::<L>().await;
    let mut socket = Socket::<R>::with_options(wrong_password());
    socket.connect(&endpoint).unwrap();
    is_refused(&within(socket.recv()).await.unwrap_err(), "400 go away");
    is_refused(&within(socket.recv_many(&mut Vec::new(), 10)).await.unwrap_err(), "400 go away");
}

/// Shows: M3
#[tokio::test]
async fn a_send_to_a_server_that_refuses_the_socket_fails_with_its_reason() {
    a_send_fails::<Push, Pull>().await;
    a_send_fails::<Dealer, Rep>().await;
    a_send_fails::<Pair, Pair>().await;
}

/// Shows: M3
#[tokio::test]
async fn a_recv_from_a_server_that_refuses_the_socket_fails_with_its_reason() {
    a_recv_fails::<Pull, Push>().await;
    a_recv_fails::<Dealer, Rep>().await;
    a_recv_fails::<Pair, Pair>().await;
    a_recv_fails::<Sub, onward_zmtp::socket::kind::Pub>().await;
    a_recv_fails::<Xsub, onward_zmtp::socket::kind::Xpub>().await;
}

/// Shows: M3
#[tokio::test]
async fn a_request_and_a_reply_of_a_socket_that_is_refused_fail_with_the_reason() {
    let (_server, endpoint) = strict::<Rep>().await;
    let mut req = Socket::<Req>::with_options(wrong_password());
    req.connect(&endpoint).unwrap();
    is_refused(&within(req.send("hello")).await.unwrap_err(), "400 go away");
    let (_server, endpoint) = strict::<Req>().await;
    let mut rep = Socket::<Rep>::with_options(wrong_password());
    rep.connect(&endpoint).unwrap();
    is_refused(&within(rep.recv()).await.unwrap_err(), "400 go away");
}

/// libzmq and `Decision::refuse` send the code alone.
///
/// Shows: M3
#[tokio::test]
async fn a_status_code_of_a_refusal_is_explained() {
    let options =
        SocketOptions::new().security(Security::PlainServer).authenticate_with(|_| async { Decision::refuse() });
    let pull = PullSocket::with_options(options);
    let mut push = PushSocket::with_options(wrong_password());
    push.connect(pull.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    is_refused(&send_until_refused(&mut push).await, "400 (it does not accept the user name, the password or the key)");
}

fn curve(server: &KeyPair) -> SocketOptions {
    quick().security(Security::CurveClient { server: server.public(), keys: KeyPair::generate().unwrap() })
}

/// Shows: M3
#[tokio::test]
async fn a_client_with_the_wrong_key_of_the_server_gets_an_error_that_names_it() {
    let (right, wrong) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let options = SocketOptions::new()
        .security(Security::CurveServer { keys: right })
        .authenticate_with(|_| async { Decision::Accept });
    let rep = RepSocket::with_options(options);
    let endpoint = rep.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut req = ReqSocket::with_options(curve(&wrong));
    req.connect(&endpoint).unwrap();
    is_refused(&within(req.send("hello")).await.unwrap_err(), "its key is not the configured one");
}

/// libzmq does it in the same way.
///
/// Shows: M3
#[tokio::test]
async fn a_server_of_curve_that_closes_without_a_word_again_and_again_is_taken_to_refuse() {
    let (listener, endpoint) = listen().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut raw = Raw(stream);
            raw.write(&greeting(0, "CURVE", true)).await;
            // The greeting and HELLO of the client.
            raw.read(64 + 202).await;
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut req = ReqSocket::with_options(curve(&KeyPair::generate().unwrap()));
    req.connect(endpoint.as_str()).unwrap();
    is_refused(&within(req.send("hello")).await.unwrap_err(), "its key is not the configured one");
    assert_eq!(asked.load(Ordering::Relaxed), onward_zmtp::socket::bounds::UNANSWERED_HANDSHAKES as usize);
}

/// Shows: M3
#[tokio::test]
async fn another_mechanism_is_a_refusal() {
    let (_server, endpoint) = strict::<Rep>().await;
    let mut req = ReqSocket::with_options(quick());
    req.connect(&endpoint).unwrap();
    is_refused(&within(req.send("hello")).await.unwrap_err(), "PLAIN");
}

/// libzmq closes the connection without a reply where the first octets that it reads name another
/// mechanism than its own, and names its own where they do not go so far.
///
/// Shows: M3
#[tokio::test]
async fn another_mechanism_of_a_server_that_closes_without_a_reply_is_a_refusal() {
    let (listener, endpoint) = listen().await;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut raw = Raw(stream);
            let mut octets = [0; 64];
            if raw.0.read(&mut octets).await.unwrap() < octets.len() {
                raw.write(&greeting(0, "PLAIN", true)).await;
                // Until the client, which knows the mechanism now, closes.
                while raw.0.read(&mut octets).await.is_ok_and(|read| read > 0) {}
            }
        }
    });
    let mut req = ReqSocket::with_options(quick());
    req.connect(endpoint.as_str()).unwrap();
    is_refused(&within(req.send("hello")).await.unwrap_err(), "PLAIN");
}

/// Shows: M3
#[tokio::test]
async fn a_server_that_waits_for_the_whole_greeting_is_connected_to_after_a_lost_connection() {
    let (listener, endpoint) = listen().await;
    let mut push = PushSocket::with_options(quick());
    push.connect(endpoint.as_str()).unwrap();
    push.send("hello").await.unwrap();
    within(async {
        drop(listener.accept().await.unwrap());
        let mut raw = Raw(listener.accept().await.unwrap().0);
        raw.read(64).await;
        raw.write(&introduction(1, "PULL")).await;
        let header = raw.read(2).await;
        raw.read(usize::from(header[1])).await;
    })
    .await;
    assert_eq!(push.close().await, 0);
}

/// Shows: M3
#[tokio::test]
async fn a_type_that_does_not_go_with_ours_is_a_refusal() {
    let publisher = PubSocket::new();
    for endpoint in ["tcp://127.0.0.1:*", "inproc://refuses-types"] {
        let endpoint = publisher.bind(endpoint).await.unwrap();
        let mut req = ReqSocket::with_options(quick());
        req.connect(&endpoint).unwrap();
        is_refused(&within(req.send("hello")).await.unwrap_err(), "PUB");
    }
}

/// Shows: M3
#[tokio::test]
async fn a_socket_that_is_to_try_again_waits_until_it_is_accepted() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let options = SocketOptions::new().security(Security::PlainServer).authenticate_with(move |_| {
        let is_welcome = count.fetch_add(1, Ordering::Relaxed) >= 3;
        async move { if is_welcome { Decision::Accept } else { Decision::refuse() } }
    });
    let mut pull = PullSocket::with_options(options);
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut push = PushSocket::with_options(wrong_password().on_refusal(RefusalPolicy::Retry));
    push.connect(&endpoint).unwrap();
    within(push.send("at last")).await.unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["at last"]);
    assert_eq!(asked.load(Ordering::Relaxed), 4);
}

/// Shows: M3
#[tokio::test]
async fn a_socket_that_is_refused_by_one_peer_goes_on_with_another() {
    let (_server, refusing) = strict::<Pull>().await;
    let options =
        SocketOptions::new().security(Security::PlainServer).authenticate_with(|_| async { Decision::Accept });
    let mut pull = PullSocket::with_options(options);
    let mut push = PushSocket::with_options(wrong_password());
    let mut monitor = push.monitor();
    push.connect(&refusing).unwrap();
    push.connect(pull.bind("tcp://127.0.0.1:*").await.unwrap()).unwrap();
    is_refused(&failed(&mut monitor).await, "400 go away");
    within(push.send("hello")).await.unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["hello"]);
}

/// A PAIR that has a peer does not refuse the other for good: the other takes its place later.
///
/// Shows: M3
#[tokio::test]
async fn a_pair_with_two_endpoints_goes_on_with_the_second_when_the_first_is_gone() {
    for (one, other) in [("tcp://127.0.0.1:*", "tcp://127.0.0.1:*"), ("inproc://first-pair", "inproc://second-pair")] {
        let mut pair = Socket::<Pair>::with_options(quick());
        let mut monitor = pair.monitor();
        let (first, mut second) = (Socket::<Pair>::new(), Socket::<Pair>::new());
        pair.connect(first.bind(one).await.unwrap()).unwrap();
        peers(1, || pair.statistics()).await;
        pair.connect(second.bind(other).await.unwrap()).unwrap();
        failed(&mut monitor).await;
        drop(first);
        disconnected(&mut monitor).await;
        connected(&mut monitor).await;
        within(pair.send("hello")).await.unwrap();
        assert_eq!(within(second.recv()).await.unwrap().frames(), ["hello"]);
    }
}

/// Shows: M3
#[tokio::test]
async fn a_socket_that_was_refused_and_is_bound_or_connected_again_waits_again() {
    let (server, endpoint) = strict::<Pull>().await;
    let mut push = PushSocket::with_options(wrong_password());
    push.connect(&endpoint).unwrap();
    send_until_refused(&mut push).await;
    drop(server);
    push.connect(&endpoint).unwrap();
    within(push.send("it is connected again")).await.unwrap();
    let (_server, endpoint) = strict::<Push>().await;
    let mut pull = PullSocket::with_options(wrong_password());
    pull.connect(&endpoint).unwrap();
    within(pull.recv()).await.unwrap_err();
    let bound = RouterSocket::new();
    bound.bind("tcp://127.0.0.1:*").await.unwrap();
    pull.bind("tcp://127.0.0.1:*").await.unwrap();
    assert!(futures_util::FutureExt::now_or_never(pull.recv()).is_none());
}

/// Shows: M3
#[tokio::test]
async fn a_socket_that_connects_once_says_so_when_the_connection_is_gone() {
    let pull = PullSocket::new();
    for endpoint in ["tcp://127.0.0.1:*", "inproc://once-only"] {
        let endpoint = pull.bind(endpoint).await.unwrap();
        let mut push = PushSocket::with_options(quick().connect_once());
        push.connect(&endpoint).unwrap();
        peers(1, || push.statistics()).await;
        within(push.send("hello")).await.unwrap();
        pull.unbind(&endpoint).unwrap();
        push.disconnect(&endpoint).unwrap();
        peers(0, || push.statistics()).await;
    }
    let mut push = PushSocket::with_options(quick().connect_once());
    push.connect("tcp://127.0.0.1:1").unwrap();
    let error = send_until_refused(&mut push).await;
    assert!(error.is_gone() && error.to_string().contains("tcp://127.0.0.1:1"), "{error}");
}

/// Shows: M3
#[tokio::test]
async fn a_socket_that_connects_once_does_not_come_back_after_a_connection_that_ended() {
    let push = PushSocket::new();
    let endpoint = push.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut pull = PullSocket::with_options(quick().connect_once());
    pull.connect(&endpoint).unwrap();
    peers(1, || push.statistics()).await;
    drop(push);
    assert!(within(pull.recv()).await.unwrap_err().is_gone());
    assert!(pull.connect(&endpoint).unwrap());
}

/// Messages received before the peer began to refuse the socket are read first.
///
/// Shows: M3
#[tokio::test]
async fn a_socket_reads_what_it_has_before_it_says_that_it_is_refused() {
    let asked = Arc::new(AtomicUsize::new(0));
    let options = || {
        let count = asked.clone();
        SocketOptions::new().security(Security::PlainServer).authenticate_with(move |_| {
            let is_welcome = count.fetch_add(1, Ordering::Relaxed) == 0;
            async move { if is_welcome { Decision::Accept } else { Decision::refuse() } }
        })
    };
    let mut publisher = PubSocket::with_options(options());
    let endpoint = publisher.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut sub = SubSocket::with_options(wrong_password());
    sub.subscribe("").unwrap();
    let mut monitor = sub.monitor();
    sub.connect(&endpoint).unwrap();
    peers(1, || sub.statistics()).await;
    within(async {
        while sub.statistics().incoming.messages < 3 {
            publisher.send("news").await.unwrap();
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(publisher);
    let again = PubSocket::with_options(options());
    within(async {
        while again.bind(&endpoint).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    is_refused(&failed(&mut monitor).await, "400");
    for _ in 0..3 {
        assert_eq!(within(sub.recv()).await.unwrap().frames(), ["news"]);
    }
    within(async { while sub.recv().await.is_ok() {} }).await;
}
