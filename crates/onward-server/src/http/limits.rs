//! The limits of a server that can change while it runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use super::bounds;

/// The limits of a server. They hold for connections, streams and requests that begin after a
/// change; those that are open stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest number of connections in all. Default and largest: [`bounds::CONNECTIONS`].
    pub connections: usize,
    /// The largest number of connections from one client address. Connections of trusted proxies
    /// count in all only. Default and largest: [`bounds::CONNECTIONS_PER_ADDRESS`].
    pub connections_per_address: usize,
    /// The largest number of event streams and long polls at once. Default and largest:
    /// [`bounds::STREAMS`].
    pub streams: usize,
    /// The time within which the head of a request must arrive, then its body, and within which a
    /// request must end that neither waits nor streams. Default: [`bounds::REQUEST_TIME`].
    pub request_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: bounds::CONNECTIONS,
            connections_per_address: bounds::CONNECTIONS_PER_ADDRESS,
            streams: bounds::STREAMS,
            request_time: bounds::REQUEST_TIME,
        }
    }
}

/// The present limits, and the number of open streams.
#[derive(Debug)]
pub(crate) struct PresentLimits {
    limits: RwLock<Limits>,
    streams: Arc<AtomicUsize>,
}

/// An event stream or a long poll that is counted until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream(Arc<AtomicUsize>);

impl PresentLimits {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits: RwLock::new(bounded(limits)), streams: Arc::default() }
    }

    pub(crate) fn get(&self) -> Limits {
        *self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, limits: Limits) {
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = bounded(limits);
    }

    /// Counts a stream. Returns the limit if it is reached.
    pub(crate) fn open_stream(&self) -> Result<OpenStream, usize> {
        let limit = self.get().streams;
        let add = |open: usize| (open < limit).then_some(open + 1);
        match self.streams.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => Ok(OpenStream(Arc::clone(&self.streams))),
            Err(_) => Err(limit),
        }
    }

    /// Returns the number of open streams.
    pub(crate) fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn bounded(limits: Limits) -> Limits {
    Limits {
        connections: limits.connections.min(bounds::CONNECTIONS),
        connections_per_address: limits.connections_per_address.min(bounds::CONNECTIONS_PER_ADDRESS),
        streams: limits.streams.min(bounds::STREAMS),
        request_time: limits.request_time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_limit_holds_for_new_streams_and_closes_none() {
        let limits = PresentLimits::new(Limits { streams: 2, ..Limits::default() });
        let open = [limits.open_stream().expect("there is room"), limits.open_stream().expect("there is room")];
        assert_eq!(limits.open_stream().expect_err("there is no room"), 2);
        limits.set(Limits { streams: 1, ..Limits::default() });
        assert_eq!(limits.streams(), 2);
        drop(open);
        let _one = limits.open_stream().expect("there is room");
        assert_eq!(limits.open_stream().expect_err("there is no room"), 1);
    }
}
