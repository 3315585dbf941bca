//! Sockets whose runtime ends before they do.

use onward_zmtp::socket::{Endpoint, Monitor, MonitorEvent};
use onward_zmtp::{PullSocket, PushSocket};
use tokio::runtime::{Builder, Runtime};

use crate::socket::support::events::{event, within};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Returns a bound and a connected socket. They have exchanged a message on a runtime that has
/// ended.
fn left_behind() -> (PullSocket, PushSocket, Endpoint) {
    let (mut pull, mut push) = (PullSocket::new(), PushSocket::new());
    let endpoint = runtime().block_on(async {
        let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
        push.connect(&endpoint).unwrap();
        push.send("before").await.unwrap();
        within(pull.recv()).await.unwrap();
        endpoint
    });
    (pull, push, endpoint)
}

async fn reason_of_disconnect(monitor: &mut Monitor) -> String {
    event(monitor, |event| match event {
        MonitorEvent::Disconnected { reason, .. } => Some(reason.to_string()),
        _ => None,
    })
    .await
}

/// Shows: M3
#[test]
fn a_socket_can_be_bound_and_connected_again_after_its_runtime_has_ended() {
    let (mut pull, mut push, endpoint) = left_behind();
    runtime().block_on(async {
        pull.bind(endpoint.clone()).await.unwrap();
        assert!(push.connect(&endpoint).unwrap());
        push.send("after").await.unwrap();
        assert_eq!(within(pull.recv()).await.unwrap().frames(), ["after"]);
    });
}

/// Shows: M3
#[test]
fn a_socket_whose_runtime_has_ended_returns_an_error_instead_of_waiting() {
    let (mut pull, mut push, _) = left_behind();
    runtime().block_on(async {
        for error in [within(pull.recv()).await.unwrap_err(), within(push.send("lost")).await.unwrap_err()] {
            assert!(error.is_gone(), "{error}");
            assert!(error.to_string().contains("runtime"), "{error}");
        }
    });
}

/// Shows: M3
#[test]
fn the_monitor_reports_the_endpoints_that_ended_with_their_runtime() {
    let (pull, push) = (PullSocket::new(), PushSocket::new());
    let (mut bound, mut connected) = (pull.monitor(), push.monitor());
    runtime().block_on(async {
        let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
        push.connect(&endpoint).unwrap();
        event(&mut bound, |event| matches!(event, MonitorEvent::Connected { .. }).then_some(())).await;
        event(&mut connected, |event| matches!(event, MonitorEvent::Connected { .. }).then_some(())).await;
    });
    runtime().block_on(async {
        assert!(reason_of_disconnect(&mut connected).await.contains("runtime"));
        event(&mut bound, |event| matches!(event, MonitorEvent::ListeningEnded { .. }).then_some(())).await;
        event(&mut connected, |event| matches!(event, MonitorEvent::ConnectingEnded { .. }).then_some(())).await;
    });
}
