//! A SOCKS proxy of Debian, `microsocks`, on the way to the peer.

use std::net::TcpListener;
use std::process::Stdio;

use onward_zmtp::socket::{Endpoint, SocksProxy};
use onward_zmtp::{PullSocket, PushSocket};
use tokio::process::{Child, Command};

use crate::socket::support::events::{event, within};
use crate::socket::support::socks::{through, with_login};
use crate::zmtp::peer::socks_proxy;

/// Starts the proxy on an unused port. A socket tries again until it listens.
fn start(arguments: &[&str]) -> Option<(Child, String)> {
    let program = socks_proxy()?;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(program);
    command.args(["-i", "127.0.0.1", "-p", &port.to_string()]).args(arguments);
    let child = command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn().expect("the proxy runs");
    Some((child, format!("127.0.0.1:{port}")))
}

async fn push_through(proxy: SocksProxy, host: &str) {
    let mut pull = PullSocket::new();
    let Endpoint::Tcp { port, .. } = pull.bind("tcp://*:*").await.unwrap() else { panic!("it is TCP") };
    let mut push = PushSocket::with_options(through(proxy));
    push.connect(format!("tcp://{host}:{port}").as_str()).unwrap();
    push.send(vec![7; 300_000]).await.unwrap();
    assert_eq!(within(pull.recv()).await.unwrap().frames(), [vec![7; 300_000]]);
}

/// Shows: M3
#[tokio::test]
async fn a_socket_connects_through_a_real_proxy_to_names_and_addresses() {
    let Some((_proxy, address)) = start(&[]) else { return };
    for host in ["127.0.0.1", "[::1]", "localhost"] {
        push_through(SocksProxy::new(&address).unwrap(), host).await;
    }
}

/// Shows: M3
#[tokio::test]
async fn a_real_proxy_accepts_the_right_password_only() {
    let Some((_proxy, address)) = start(&["-u", "ali", "-P", "sesame"]) else { return };
    push_through(with_login(&address, "ali", "sesame"), "127.0.0.1").await;
    let mut push = PushSocket::with_options(through(with_login(&address, "ali", "sesam")));
    push.connect("tcp://127.0.0.1:9").unwrap();
    let refused = within(async {
        loop {
            if let Err(error) = push.send("hello").await {
                return error;
            }
        }
    });
    let error = refused.await;
    assert!(error.is_refused() && error.to_string().contains("rejected the user name or the password"), "{error}");
}

/// Shows: M3
#[tokio::test]
async fn a_real_proxy_reports_a_destination_that_refuses() {
    let Some((_proxy, address)) = start(&[]) else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let push = PushSocket::with_options(through(SocksProxy::new(&address).unwrap()));
    let mut monitor = push.monitor();
    push.connect(format!("tcp://127.0.0.1:{port}").as_str()).unwrap();
    event(&mut monitor, |event| match event {
        onward_zmtp::socket::MonitorEvent::ConnectionFailed { reason, .. } => {
            reason.to_string().contains("code 5: the destination refused").then_some(())
        }
        _ => None,
    })
    .await;
}
