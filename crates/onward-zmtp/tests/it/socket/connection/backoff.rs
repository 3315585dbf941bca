//! The delay of a socket before it connects again.

use std::time::Duration;

use onward_zmtp::protocol::Identity;
use onward_zmtp::socket::{Monitor, MonitorEvent, Reconnect, SocketOptions};
use onward_zmtp::{DealerSocket, PullSocket, PushSocket, RouterSocket};

use crate::socket::support::events::{connected, event, within};

/// The default delay before the first new attempt in these tests.
const FIRST: Duration = Duration::from_millis(100);

fn reconnect() -> Reconnect {
    Reconnect { first: FIRST, longest: FIRST * 64 }
}

/// Returns the delay that the socket reports.
async fn wait(monitor: &mut Monitor) -> Duration {
    event(monitor, |event| match event {
        MonitorEvent::WillReconnect { after, .. } => Some(*after),
        _ => None,
    })
    .await
}

/// Lets a PUSH connect to a peer within the process, which closes after `stays`. Returns the delay
/// before the next attempt.
async fn visit(monitor: &mut Monitor, name: &str, stays: Duration) -> Duration {
    let pull = PullSocket::new();
    pull.bind(name).await.unwrap();
    connected(monitor).await;
    // The clock of these tests advances only here, and while all tasks wait.
    tokio::time::advance(stays).await;
    drop(pull);
    wait(monitor).await
}

fn is_spread_around(after: Duration, wait: Duration) -> bool {
    (wait / 2..=wait * 3 / 2).contains(&after)
}

/// Shows: M3
#[tokio::test(start_paused = true)]
async fn who_goes_away_at_once_is_visited_ever_more_rarely() {
    let push = PushSocket::with_options(SocketOptions::new().reconnect(reconnect()));
    let mut monitor = push.monitor();
    push.connect("inproc://short-stays").unwrap();
    for doublings in 0..8 {
        let after = visit(&mut monitor, "inproc://short-stays", Duration::ZERO).await;
        let expected = FIRST * 2_u32.pow(doublings.min(6));
        assert!(is_spread_around(after, expected), "{after:?} after {doublings} doublings");
    }
}

/// Shows: M3
#[tokio::test(start_paused = true)]
async fn after_a_connection_that_lasted_the_first_wait_is_the_shortest() {
    let push = PushSocket::with_options(SocketOptions::new().reconnect(reconnect()));
    let mut monitor = push.monitor();
    push.connect("inproc://long-stays").unwrap();
    for _ in 0..4 {
        visit(&mut monitor, "inproc://long-stays", Duration::ZERO).await;
    }
    let after = visit(&mut monitor, "inproc://long-stays", FIRST * 16).await;
    assert!(is_spread_around(after, FIRST), "{after:?}");
}

/// Shows: M3
#[tokio::test(start_paused = true)]
async fn sockets_that_lost_the_same_peer_do_not_come_back_together() {
    let pull = PullSocket::new();
    pull.bind("inproc://lost-by-many").await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..16 {
        let push = PushSocket::with_options(SocketOptions::new().reconnect(reconnect()));
        let mut monitor = push.monitor();
        push.connect("inproc://lost-by-many").unwrap();
        connected(&mut monitor).await;
        waiting.push((push, monitor));
    }
    drop(pull);
    let mut waits = Vec::new();
    for (_push, monitor) in &mut waiting {
        waits.push(wait(monitor).await);
    }
    assert!(waits.iter().all(|after| is_spread_around(*after, FIRST)), "{waits:?}");
    // Two of sixteen may be alike. The chance that all are within a fifth of the range is less than
    // one in a thousand million.
    waits.sort_unstable();
    assert!(waits[15] - waits[0] > FIRST / 5, "{waits:?}");
}

/// A ROUTER disconnects a peer with the identity of another once it knows the identity, which is
/// after the handshake.
///
/// Shows: M3
#[tokio::test]
async fn who_is_sent_away_right_after_the_handshake_comes_back_ever_more_rarely() {
    let router = RouterSocket::new();
    let endpoint = router.bind("tcp://127.0.0.1:*").await.unwrap();
    let first = Duration::from_millis(10);
    let options = || {
        let reconnect = Reconnect { first, longest: first * 100 };
        SocketOptions::new().reconnect(reconnect).identity(Identity::new("same").unwrap())
    };
    let known = DealerSocket::with_options(options());
    let mut monitor = known.monitor();
    known.connect(&endpoint).unwrap();
    connected(&mut monitor).await;
    let other = DealerSocket::with_options(options());
    let mut monitor = other.monitor();
    other.connect(&endpoint).unwrap();
    within(async { while wait(&mut monitor).await < first * 8 {} }).await;
}
