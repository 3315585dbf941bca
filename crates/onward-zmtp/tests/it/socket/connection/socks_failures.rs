//! SOCKS 5 proxies that refuse, break off, send garbage, or never reply.

use std::error::Error as _;
use std::io::ErrorKind;
use std::time::Duration;

use onward_zmtp::PushSocket;
use onward_zmtp::socket::{Error, Monitor, MonitorEvent, RefusalPolicy, SocketOptions, SocksProxy};
use tokio::net::TcpListener;

use crate::socket::support::events::{event, failed, peers, within};
use crate::socket::support::socks::{
    CONNECTED, GREETING_BYTES, LOGIN, NO_AUTHENTICATION, REQUEST_BYTES, Socks, listen, script, through, with_login,
};

const ENDPOINT: &str = "tcp://127.0.0.1:9";

/// The number of octets of the greeting of a client with a user name.
const GREETING_WITH_LOGIN_BYTES: usize = 4;

/// The number of octets of the user name `ali` and the password `sesame`.
const LOGIN_BYTES: usize = 12;

fn connect(options: SocketOptions) -> (PushSocket, Monitor) {
    let push = PushSocket::with_options(options);
    let monitor = push.monitor();
    push.connect(ENDPOINT).unwrap();
    (push, monitor)
}

fn kind(error: &Error) -> ErrorKind {
    error.source().and_then(|source| source.downcast_ref::<std::io::Error>()).expect("it has an I/O error").kind()
}

/// Checks that the text names the endpoint, the proxy and the cause.
fn names(error: &Error, proxy: &SocksProxy, cause: &str) {
    let text = error.to_string();
    assert!(text.contains(ENDPOINT) && text.contains(&proxy.to_string()) && text.contains(cause), "{text}");
    assert!(!text.contains("sesame") && !format!("{error:?}").contains("sesame"));
}

/// Returns the failure of the first attempt, to which the proxy replies by a script.
async fn first_failure(steps: &[(usize, &[u8])]) -> (Error, SocksProxy) {
    let (listener, proxy) = listen().await;
    let (_push, mut monitor) = connect(through(proxy.clone()));
    let (error, _) = tokio::join!(failed(&mut monitor), script(&listener, steps));
    (error, proxy)
}

/// Shows: M3
#[tokio::test]
async fn each_code_of_a_reply_has_a_kind_and_a_text() {
    for (code, expected, cause) in [
        (1, ErrorKind::Other, "the proxy failed"),
        (2, ErrorKind::PermissionDenied, "rules do not allow"),
        (3, ErrorKind::NetworkUnreachable, "cannot reach the network"),
        (4, ErrorKind::HostUnreachable, "does not know its name"),
        (5, ErrorKind::ConnectionRefused, "the destination refused"),
        (6, ErrorKind::TimedOut, "time to live"),
        (7, ErrorKind::Unsupported, "does not support connections over TCP"),
        (8, ErrorKind::Unsupported, "this type of address"),
        (9, ErrorKind::Other, "code 9: an unknown failure"),
        (255, ErrorKind::Other, "code 255: an unknown failure"),
    ] {
        // Some proxies close after these two octets, without the rest of the reply.
        let (error, proxy) = first_failure(&[(GREETING_BYTES, NO_AUTHENTICATION), (REQUEST_BYTES, &[5, code])]).await;
        names(&error, &proxy, cause);
        assert_eq!(kind(&error), expected);
        assert_eq!(error.is_refused(), matches!(code, 2 | 7 | 8), "{error}");
        assert_eq!(error.is_io(), !error.is_refused());
    }
}

/// Shows: M3
#[tokio::test]
async fn a_reply_that_is_not_socks_5_is_an_error() {
    let method = (GREETING_BYTES, NO_AUTHENTICATION);
    for (steps, cause) in [
        (&[(GREETING_BYTES, &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..])][..], "no SOCKS 5 proxy"),
        (&[(GREETING_BYTES, &[4, 0])], "begins with 0x04"),
        (&[(GREETING_BYTES, &[5, 1])], "method 0x01, which was not offered"),
        (&[(GREETING_BYTES, LOGIN)], "method 0x02, which was not offered"),
        (&[method, (REQUEST_BYTES, &[0, 0])], "begins with 0x00"),
        (&[method, (REQUEST_BYTES, &[5, 0, 0, 2, 0])], "unknown type 0x02"),
    ] {
        let (error, proxy) = first_failure(steps).await;
        names(&error, &proxy, cause);
        assert!(error.is_io() && kind(&error) == ErrorKind::InvalidData, "{error}");
    }
}

/// Returns the failure of an attempt whose proxy closes after a script.
async fn failure_when_closed(listener: &TcpListener, monitor: &mut Monitor, steps: &[(usize, &[u8])]) -> Error {
    drop(script(listener, steps).await);
    failed(monitor).await
}

/// Shows: M3
#[tokio::test]
async fn a_proxy_that_closes_midway_is_tried_again() {
    let (listener, proxy) = listen().await;
    let proxy = with_login(&proxy.to_string(), "ali", "sesame");
    let (push, mut monitor) = connect(through(proxy.clone()));
    let (login, status) = ((GREETING_WITH_LOGIN_BYTES, LOGIN), (LOGIN_BYTES, &[1, 0][..]));
    for (steps, cause) in [
        (&[(GREETING_WITH_LOGIN_BYTES, &[][..])][..], "its choice of an authentication method"),
        (&[(GREETING_WITH_LOGIN_BYTES, &LOGIN[..1])], "its choice of an authentication method"),
        (&[login, (LOGIN_BYTES, &[])], "its reply to the user name and password"),
        (&[login, status, (REQUEST_BYTES, &[])], "the end of its reply to the request"),
        (&[login, status, (REQUEST_BYTES, &CONNECTED[..9])], "the end of its reply to the request"),
    ] {
        let error = failure_when_closed(&listener, &mut monitor, steps).await;
        names(&error, &proxy, cause);
        assert!(error.is_io() && kind(&error) == ErrorKind::UnexpectedEof, "{error}");
    }
    let mut raw = script(&listener, &[login, status, (REQUEST_BYTES, CONNECTED)]).await;
    raw.introduce("PULL").await;
    peers(1, || push.statistics()).await;
}

/// Shows: M3
#[tokio::test]
async fn a_proxy_that_is_not_there_is_distinguished_from_a_destination_that_is_not() {
    let (listener, proxy) = listen().await;
    drop(listener);
    let (_push, mut monitor) = connect(through(proxy.clone()));
    let error = failed(&mut monitor).await;
    names(&error, &proxy, "the proxy cannot be reached");
    assert_eq!(kind(&error), ErrorKind::ConnectionRefused);
}

/// The proxy never sends the second octet, whatever it sent before.
///
/// Shows: M3
#[tokio::test]
async fn the_time_to_connect_covers_every_step_of_the_handshake() {
    let limit = Duration::from_millis(30);
    let method = (GREETING_BYTES, NO_AUTHENTICATION);
    for steps in [
        &[][..],
        &[(GREETING_BYTES, &[][..])],
        &[(GREETING_BYTES, &[5])],
        &[method, (REQUEST_BYTES, &[])],
        &[method, (REQUEST_BYTES, &CONNECTED[..9])],
    ] {
        let (listener, proxy) = listen().await;
        let (_push, mut monitor) = connect(through(proxy.clone()).connect_timeout(limit));
        let held = script(&listener, steps).await;
        let error = failed(&mut monitor).await;
        names(&error, &proxy, "longer than 30ms");
        assert_eq!(kind(&error), ErrorKind::TimedOut);
        drop(held);
    }
}

async fn send_until_refused(push: &mut PushSocket) -> Error {
    within(async {
        loop {
            if let Err(error) = push.send("hello").await {
                return error;
            }
        }
    })
    .await
}

/// Shows: M3
#[tokio::test]
async fn a_wrong_password_ends_the_attempts_with_a_reason() {
    let server = Socks::start(Some(("ali", "sesam"))).await;
    let proxy = with_login(&server.address, "ali", "sesame");
    let (mut push, mut monitor) = connect(through(proxy.clone()));
    let error = send_until_refused(&mut push).await;
    assert!(error.is_refused(), "{error}");
    names(&error, &proxy, "because the SOCKS proxy refused the connection");
    names(&error, &proxy, "rejected the user name or the password (status 1)");
    event(&mut monitor, |event| matches!(event, MonitorEvent::ConnectingEnded { .. }).then_some(())).await;
}

/// Shows: M3
#[tokio::test]
async fn a_proxy_that_requires_a_password_says_so_to_a_socket_without_one() {
    let server = Socks::start(Some(("ali", "sesame"))).await;
    let (mut push, _monitor) = connect(through(server.proxy()));
    let error = send_until_refused(&mut push).await;
    assert!(error.is_refused(), "{error}");
    names(&error, &server.proxy(), "set a user name and a password");
}

/// Shows: M3
#[tokio::test]
async fn a_proxy_that_knows_no_passwords_refuses_a_socket_with_one() {
    let (listener, proxy) = listen().await;
    let (mut push, _monitor) = connect(through(with_login(&proxy.to_string(), "ali", "sesame")));
    let (error, _) =
        tokio::join!(send_until_refused(&mut push), script(&listener, &[(GREETING_WITH_LOGIN_BYTES, &[5, 0xff])]));
    assert!(error.is_refused(), "{error}");
    names(&error, &proxy, "another method of authentication");
}

/// Shows: M3
#[tokio::test]
async fn a_socket_that_retries_after_refusals_tries_the_proxy_again() {
    let (listener, proxy) = listen().await;
    let (push, _monitor) = connect(through(proxy).on_refusal(RefusalPolicy::Retry));
    for _ in 0..3 {
        script(&listener, &[(GREETING_BYTES, NO_AUTHENTICATION), (REQUEST_BYTES, &[5, 2])]).await;
    }
    let mut raw = script(&listener, &[(GREETING_BYTES, NO_AUTHENTICATION), (REQUEST_BYTES, CONNECTED)]).await;
    raw.introduce("PULL").await;
    peers(1, || push.statistics()).await;
}
