//! The bytes that handlers move, and how far they are ahead of their limits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onward_store::{Io, IoKind};

use crate::bounds;

/// The bytes that one attempt has moved. Adding costs a few nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct LiveIo {
    bytes: [AtomicU64; IoKind::ALL.len()],
}

impl LiveIo {
    /// Adds bytes and returns the sum before.
    pub(crate) fn add(&self, kind: IoKind, bytes: u64) -> u64 {
        self.bytes[kind as usize].fetch_add(bytes, Ordering::Relaxed)
    }

    /// Returns the bytes moved so far.
    pub(crate) fn now(&self) -> Io {
        let mut io = Io::default();
        for kind in IoKind::ALL {
            io.set(kind, self.bytes[kind as usize].load(Ordering::Relaxed));
        }
        io
    }
}

/// The limits in bytes a second, and the bytes moved.
#[derive(Debug, Default)]
pub(crate) struct Bandwidth {
    limits: Io,
    moved: LiveIo,
}

/// The bytes counted up to a look, and the part of them that exceeds the limits' rate.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Backlog {
    counted: Io,
    ahead: Io,
}

impl Bandwidth {
    pub(crate) fn new(limits: Io) -> Self {
        Self { limits, moved: LiveIo::default() }
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.limits != Io::default()
    }

    /// Counts the bytes that a task expects to move, at its start.
    pub(crate) fn expect(&self, expected: Io) {
        if self.is_limited() && expected != Io::default() {
            for kind in IoKind::ALL {
                self.moved.add(kind, expected.get(kind));
            }
        }
    }

    /// Counts the bytes that a task has moved beyond its expectation: `bytes` after the first
    /// `before`.
    pub(crate) fn moved(&self, kind: IoKind, expected: u64, before: u64, bytes: u64) {
        if self.is_limited() {
            let unexpected = |bytes: u64| bytes.saturating_sub(expected);
            self.moved.add(kind, unexpected(before.saturating_add(bytes)) - unexpected(before));
        }
    }

    /// Measures the bytes moved in the `elapsed` time since the last look. Returns the pressure of
    /// each kind that has a limit. It is 1.0 when the excess over the limit equals what the limit
    /// allows in [`bounds::BANDWIDTH_HORIZON`].
    pub(crate) fn sample(&self, backlog: &mut Backlog, elapsed: Duration) -> Vec<(&'static str, f32)> {
        let counted = self.moved.now();
        let mut pressures = Vec::new();
        for kind in IoKind::ALL.into_iter().filter(|kind| self.limits.get(*kind) > 0) {
            let limit = self.limits.get(kind);
            let new = counted.get(kind).wrapping_sub(backlog.counted.get(kind));
            let ahead = backlog.ahead.get(kind).saturating_add(new).saturating_sub(in_time(limit, elapsed));
            backlog.ahead.set(kind, ahead);
            pressures.push((kind.name(), share(ahead, in_time(limit, bounds::BANDWIDTH_HORIZON))));
        }
        backlog.counted = counted;
        pressures
    }
}

fn in_time(per_second: u64, time: Duration) -> u64 {
    let bytes = u128::from(per_second).saturating_mul(time.as_micros()) / 1_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a share of which two digits matter")]
fn share(part: u64, whole: u64) -> f32 {
    (part as f64 / whole.max(1) as f64).min(1.0) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn received(limit: u64) -> Bandwidth {
        let mut limits = Io::default();
        limits.set(IoKind::NetworkReceived, limit);
        Bandwidth::new(limits)
    }

    fn pressure(bandwidth: &Bandwidth, backlog: &mut Backlog, elapsed: Duration) -> f32 {
        bandwidth.sample(backlog, elapsed)[0].1
    }

    #[test]
    fn what_stays_within_the_limit_is_no_pressure() {
        let (bandwidth, mut backlog) = (received(1000), Backlog::default());
        for _ in 0..100 {
            bandwidth.moved(IoKind::NetworkReceived, 0, 0, 999);
            assert_eq!(pressure(&bandwidth, &mut backlog, SECOND), 0.0);
        }
    }

    #[test]
    fn what_is_moved_ahead_of_the_limit_is_worked_off_at_its_pace() {
        let (bandwidth, mut backlog) = (received(1000), Backlog::default());
        bandwidth.moved(IoKind::NetworkReceived, 0, 0, 3000);
        let pressures: Vec<f32> = (0..4).map(|_| pressure(&bandwidth, &mut backlog, SECOND)).collect();
        assert_eq!(pressures, [1.0, 0.5, 0.0, 0.0]);
    }

    #[test]
    fn what_was_expected_counts_once() {
        let (bandwidth, mut backlog) = (received(1000), Backlog::default());
        let mut expected = Io::default();
        expected.set(IoKind::NetworkReceived, 1500);
        bandwidth.expect(expected);
        assert_eq!(pressure(&bandwidth, &mut backlog, SECOND / 2), 0.5);
        bandwidth.moved(IoKind::NetworkReceived, 1500, 0, 1400);
        bandwidth.moved(IoKind::NetworkReceived, 1500, 1400, 600);
        assert_eq!(pressure(&bandwidth, &mut backlog, Duration::ZERO), 0.75);
    }

    #[test]
    fn other_kinds_have_no_limit() {
        let (bandwidth, mut backlog) = (received(1), Backlog::default());
        bandwidth.moved(IoKind::DiskRead, 0, 0, 1 << 40);
        assert_eq!(bandwidth.sample(&mut backlog, SECOND), [("network received", 0.0)]);
    }
}
