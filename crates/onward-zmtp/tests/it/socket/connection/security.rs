//! PLAIN and CURVE: the check of peers that connect.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use onward_zmtp::protocol::{Credentials, KeyPair, Password, Security};
use onward_zmtp::socket::{Candidate, Decision, Endpoint, MonitorEvent, Reconnect, SocketOptions};
use onward_zmtp::{PullSocket, PushSocket};

use crate::socket::support::events::{event, failed, within};

fn plain(password: &str) -> SocketOptions {
    SocketOptions::new()
        .security(Security::PlainClient { username: "ali".into(), password: Password::new(password).unwrap() })
        .reconnect(Reconnect { first: Duration::from_millis(1), longest: Duration::from_millis(1) })
}

fn knows_ali(candidate: &Candidate) -> bool {
    matches!(candidate.credentials(), Credentials::Plain { username, password } if username == "ali" && password.is(b"open sesame"))
}

async fn server(options: SocketOptions) -> (PullSocket, Endpoint) {
    let pull = PullSocket::with_options(options);
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    (pull, endpoint)
}

fn plain_server() -> SocketOptions {
    SocketOptions::new().security(Security::PlainServer).authenticate_with(|candidate| async move {
        // The function may wait.
        tokio::task::yield_now().await;
        if knows_ali(&candidate) { Decision::Accept } else { Decision::refuse() }
    })
}

async fn passes(client: SocketOptions, server: &mut PullSocket, endpoint: &Endpoint) {
    let mut push = PushSocket::with_options(client);
    push.connect(endpoint).unwrap();
    within(push.send("secret")).await.unwrap();
    assert_eq!(within(server.recv()).await.unwrap().frames(), ["secret"]);
}

/// Shows: M3
#[tokio::test]
async fn a_client_that_knows_the_password_may_connect() {
    let (mut pull, endpoint) = server(plain_server()).await;
    passes(plain("open sesame"), &mut pull, &endpoint).await;
}

/// Shows: M3
#[tokio::test]
async fn a_client_that_may_not_connect_gets_the_reason_and_does_not_return() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let options = SocketOptions::new().security(Security::PlainServer).authenticate_with(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Decision::refuse() }
    });
    let (_pull, endpoint) = server(options).await;
    let push = PushSocket::with_options(plain("wrong"));
    let mut monitor = push.monitor();
    push.connect(&endpoint).unwrap();
    let reason = failed(&mut monitor).await;
    assert!(reason.protocol().is_some_and(onward_zmtp::protocol::Error::is_peer_error), "{reason:?}");
    event(&mut monitor, |event| matches!(event, MonitorEvent::ConnectingEnded { .. }).then_some(())).await;
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

/// Shows: M3
#[tokio::test]
async fn only_the_keys_that_are_welcome_may_connect() {
    let (ours, friend, stranger) =
        (KeyPair::generate().unwrap(), KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let (key, welcome) = (ours.public(), friend.public());
    let options = SocketOptions::new().security(Security::CurveServer { keys: ours }).authenticate_with(
        move |candidate| async move {
            match candidate.credentials() {
                Credentials::Curve { key } if *key == welcome => Decision::Accept,
                _ => Decision::refuse(),
            }
        },
    );
    let (mut pull, endpoint) = server(options).await;
    let client = |keys| SocketOptions::new().security(Security::CurveClient { server: key, keys });
    let refused = PushSocket::with_options(client(stranger));
    let mut monitor = refused.monitor();
    refused.connect(&endpoint).unwrap();
    failed(&mut monitor).await;
    passes(client(friend), &mut pull, &endpoint).await;
    assert_eq!(pull.statistics().peers, 1);
}

/// Shows: M3
#[tokio::test]
async fn a_server_without_an_authorizer_accepts_no_client() {
    for security in [Security::PlainServer, Security::CurveServer { keys: KeyPair::generate().unwrap() }] {
        let client = match &security {
            Security::CurveServer { keys } => {
                Security::CurveClient { server: keys.public(), keys: KeyPair::generate().unwrap() }
            }
            _ => Security::PlainClient { username: "ali".into(), password: Password::new("open sesame").unwrap() },
        };
        let (pull, endpoint) = server(SocketOptions::new().security(security)).await;
        let mut monitor = pull.monitor();
        let push = PushSocket::with_options(SocketOptions::new().security(client));
        push.connect(&endpoint).unwrap();
        assert!(failed(&mut monitor).await.is_refused());
    }
}

#[tokio::test]
async fn a_client_without_encryption_is_not_served_by_a_server_with_it() {
    let (pull, endpoint) =
        server(SocketOptions::new().security(Security::CurveServer { keys: KeyPair::generate().unwrap() })).await;
    let mut monitor = pull.monitor();
    let push = PushSocket::new();
    push.connect(&endpoint).unwrap();
    let reason = failed(&mut monitor).await;
    assert!(reason.protocol().is_some_and(onward_zmtp::protocol::Error::is_mechanism), "{reason:?}");
}

#[tokio::test]
async fn a_decision_that_takes_too_long_is_a_refusal() {
    let options = SocketOptions::new()
        .security(Security::PlainServer)
        .handshake_timeout(Duration::from_millis(20))
        .authenticate_with(|_| std::future::pending());
    let (pull, endpoint) = server(options).await;
    let mut monitor = pull.monitor();
    let push = PushSocket::with_options(plain("open sesame"));
    push.connect(&endpoint).unwrap();
    let reason = failed(&mut monitor).await;
    assert!(reason.protocol().is_some_and(onward_zmtp::protocol::Error::is_timeout), "{reason:?}");
}

#[tokio::test]
async fn a_candidate_says_where_it_came_from() {
    let seen = Arc::new(std::sync::Mutex::new(String::new()));
    let noted = seen.clone();
    let options = SocketOptions::new().security(Security::PlainServer).authenticate_with(move |candidate| {
        *noted.lock().unwrap() = format!("{} {}", candidate.endpoint(), candidate.address().unwrap());
        async { Decision::Accept }
    });
    let (mut pull, endpoint) = server(options).await;
    passes(plain("any"), &mut pull, &endpoint).await;
    assert!(seen.lock().unwrap().starts_with(&format!("{endpoint} 127.0.0.1:")), "{}", seen.lock().unwrap());
}
