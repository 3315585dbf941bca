//! Heartbeats while the program does something else.

use std::time::Duration;

use onward_zmtp::protocol::Heartbeat;
use onward_zmtp::socket::{HighWaterMark, MonitorEvent, SocketOptions};
use onward_zmtp::{PullSocket, PushSocket};
use tokio::time::Instant;

use crate::socket::support::events::{connected, disconnected, event, peers, until, within};
use crate::socket::support::raw::Raw;
use crate::zmtp::link::{command, frame, introduction};

fn beating(milliseconds: u64) -> SocketOptions {
    SocketOptions::new().heartbeat(Heartbeat::every(Duration::from_millis(milliseconds)))
}

/// Shows: M3
#[tokio::test]
async fn a_silent_peer_is_pinged_and_leaves_the_round_robin_without_a_receiver() {
    let push = PushSocket::with_options(beating(20));
    let endpoint = push.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = push.monitor();
    let mut dead = Raw::introduced(&endpoint, "PULL").await;
    connected(&mut monitor).await;
    let ping = command("PING", b"\0\0");
    assert_eq!(dead.read(ping.len()).await, ping);
    let reason = disconnected(&mut monitor).await;
    assert!(reason.protocol().is_some_and(onward_zmtp::protocol::Error::is_timeout), "{reason:?}");
    assert_eq!(push.statistics().peers, 0);
}

/// Version 3.0 of the protocol has no heartbeats.
///
/// Shows: M3
#[tokio::test]
async fn a_peer_that_cannot_be_asked_for_signs_of_life_is_reported() {
    for (options, minor, is_reported) in [
        (beating(20_000), 0, true),
        (beating(20_000), 1, false),
        (SocketOptions::new(), 0, false),
        (SocketOptions::new().heartbeat(Heartbeat::every(Duration::from_secs(20)).ping_version_3_0()), 0, false),
    ] {
        let push = PushSocket::with_options(options);
        let mut monitor = push.monitor();
        let endpoint = push.bind("tcp://127.0.0.1:*").await.unwrap();
        let mut raw = Raw::connect(&endpoint).await;
        raw.write(&introduction(minor, "PULL")).await;
        connected(&mut monitor).await;
        drop(raw);
        let is_next = event(&mut monitor, |event| match event {
            MonitorEvent::HeartbeatUnavailable { peer, .. } => Some(peer.version() == (3, 0)),
            MonitorEvent::Disconnected { .. } => Some(false),
            _ => None,
        })
        .await;
        assert_eq!(is_next, is_reported);
    }
}

/// Shows: M3
#[tokio::test]
async fn a_ping_is_answered_without_a_receiver() {
    let pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut raw = Raw::introduced(&endpoint, "PUSH").await;
    for _ in 0..3 {
        raw.write(&command("PING", b"\0\x0acontext")).await;
        let pong = command("PONG", b"context");
        assert_eq!(raw.read(pong.len()).await, pong);
    }
    peers(1, || pull.statistics()).await;
}

/// The driver reads the clock only once a deadline depends on it.
#[tokio::test]
async fn a_peer_that_says_late_for_how_long_it_may_be_silent_is_not_taken_to_have_been_silent_before() {
    let mut pull = PullSocket::new();
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut raw = Raw::introduced(&endpoint, "PUSH").await;
    let since = Instant::now();
    until(|| since.elapsed() > Duration::from_millis(300)).await;
    // The time to live is two tenths of a second.
    raw.write(&command("PING", b"\0\x02context")).await;
    let pong = command("PONG", b"context");
    assert_eq!(raw.read(pong.len()).await, pong);
    raw.write(&frame(0, b"alive")).await;
    assert_eq!(within(pull.recv()).await.unwrap().frames(), ["alive"]);
    assert!(raw.read_to_end().await.is_empty());
    assert!(since.elapsed() > Duration::from_millis(500), "it may be silent for as long as it said");
}

/// libzmq had this fault (its issues 2709, 3937, 4767): it took a peer for dead while it did not
/// read itself.
#[tokio::test]
async fn a_peer_is_not_taken_for_dead_while_we_do_not_read() {
    let mut pull = PullSocket::with_options(beating(10).receive_high_water_mark(HighWaterMark::messages(1)));
    let endpoint = pull.bind("tcp://127.0.0.1:*").await.unwrap();
    let mut monitor = pull.monitor();
    let mut raw = Raw::introduced(&endpoint, "PUSH").await;
    raw.write(&[frame(0, b"one"), frame(0, b"two"), frame(0, b"three")].concat()).await;
    until(|| pull.statistics().incoming.messages == 1).await;
    // Each ping is sent only when the time for the previous reply is over.
    let ping = command("PING", b"\0\0");
    for _ in 0..5 {
        assert_eq!(raw.read(ping.len()).await, ping);
    }
    connected(&mut monitor).await;
    assert!(monitor.try_next().is_none());
    for expected in ["one", "two", "three"] {
        assert_eq!(within(pull.recv()).await.unwrap().frames(), [expected]);
    }
}
