//! Waits for events.

use std::time::Duration;

use onward_zmtp::socket::{Monitor, MonitorEvent, Statistics};
use tokio::time::{interval, timeout};

/// The longest wait before a test fails. Other programs may use the processors too.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the output of the future, which must come in time.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(TIMEOUT, future).await.expect("it happens in time")
}

/// Waits until `is_so`.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    let mut ticks = interval(Duration::from_millis(1));
    within(async {
        while !is_so() {
            ticks.tick().await;
        }
    })
    .await;
}

/// Returns the first result of `find` on the events to come.
pub(crate) async fn event<T>(monitor: &mut Monitor, mut find: impl FnMut(&MonitorEvent) -> Option<T>) -> T {
    within(async {
        loop {
            let event = monitor.next().await.expect("the socket is open");
            if let Some(found) = find(&event) {
                return found;
            }
        }
    })
    .await
}

pub(crate) async fn connected(monitor: &mut Monitor) {
    event(monitor, |event| matches!(event, MonitorEvent::Connected { .. }).then_some(())).await;
}

pub(crate) async fn disconnected(monitor: &mut Monitor) -> onward_zmtp::socket::Error {
    event(monitor, |event| match event {
        MonitorEvent::Disconnected { reason, .. } => Some(reason.clone()),
        _ => None,
    })
    .await
}

pub(crate) async fn failed(monitor: &mut Monitor) -> onward_zmtp::socket::Error {
    event(monitor, |event| match event {
        MonitorEvent::ConnectionFailed { reason, .. } => Some(reason.clone()),
        _ => None,
    })
    .await
}

/// Waits until the socket has `count` peers.
pub(crate) async fn peers(count: usize, statistics: impl Fn() -> Statistics) {
    until(|| statistics().peers == count).await;
}

/// Waits until no task is left on this test's runtime.
pub(crate) async fn no_tasks() {
    let metrics = tokio::runtime::Handle::current().metrics();
    until(|| metrics.num_alive_tasks() == 0).await;
}

/// Returns a number from the environment, which `cargo xtask soak` sets.
pub(crate) fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok().map(|number| number.parse().expect("a number"))
}
