//! Probes of the operating system for TCP connections.

use std::io;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpStream;

/// The settings with which the operating system probes an idle TCP connection, and ends it.
///
/// ```
/// use std::time::Duration;
/// use onward_zmtp::socket::{SocketOptions, TcpKeepalive};
///
/// // A peer whose machine is gone is noticed after 30 + 3 × 10 seconds.
/// let keepalive =
///     TcpKeepalive::after(Duration::from_secs(30)).interval(Duration::from_secs(10)).probes(3);
/// let options = SocketOptions::new().tcp_keepalive(keepalive);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpKeepalive {
    idle: Duration,
    interval: Option<Duration>,
    probes: Option<u32>,
}

impl TcpKeepalive {
    /// Sets the idle time before the first probe, rounded down to seconds, at least one.
    #[must_use]
    pub fn after(idle: Duration) -> Self {
        Self { idle, interval: None, probes: None }
    }

    /// Sets the time between probes, rounded down to seconds, at least one. Default: that of the
    /// operating system (75 seconds with Linux).
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = Some(interval);
        self
    }

    /// Sets the number of probes without a reply that end the connection, at least one. Default:
    /// that of the operating system (9 with Linux).
    #[must_use]
    pub fn probes(mut self, probes: u32) -> Self {
        self.probes = Some(probes);
        self
    }

    pub(super) fn is_usable(&self) -> bool {
        let times = [Some(self.idle), self.interval];
        times.into_iter().flatten().all(|time| time.as_secs() > 0) && self.probes != Some(0)
    }

    /// Applies the settings to a stream.
    pub(in crate::socket) fn set(&self, stream: &TcpStream) -> io::Result<()> {
        let mut keepalive = socket2::TcpKeepalive::new().with_time(self.idle);
        if let Some(interval) = self.interval {
            keepalive = keepalive.with_interval(interval);
        }
        if let Some(probes) = self.probes {
            keepalive = keepalive.with_retries(probes);
        }
        SockRef::from(stream).set_tcp_keepalive(&keepalive)
    }
}
