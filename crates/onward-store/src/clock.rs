//! Clocks: the only place that reads the time.
//!
//! Two kinds of time are needed. **Wall time** is what people use (`run_at`, retention); it may
//! jump. **Steady time** measures how long a lease has held; it never jumps, and it counts while
//! the machine sleeps. A store takes both from one [`Clock`], so that a test can set them.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use crate::api::timestamp::Timestamp;
use crate::watch;

/// A source of wall time and steady time.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns wall time. It jumps if a person or a time service sets the clock.
    fn now(&self) -> Timestamp;

    /// Returns the time since a fixed moment. All processes on this machine share it, and setting
    /// the clock does not change it.
    fn steady(&self) -> Duration;

    /// Returns a receiver that is notified each time the clock is moved by hand.
    ///
    /// The default returns `None`: the clock is the machine's, and an ordinary timer measures it. A
    /// manual clock returns a receiver; a caller that waits for a time checks the clock after each
    /// notification.
    fn moved(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}

/// The clock of the machine.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one reader of wall time")]
    fn now(&self) -> Timestamp {
        Timestamp::from_microseconds(jiff::Timestamp::now().as_microsecond())
    }

    fn steady(&self) -> Duration {
        let time = rustix::time::clock_gettime(STEADY);
        Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}

/// On Linux, the boot-time clock counts while the machine sleeps, and all processes share it.
#[cfg(target_os = "linux")]
const STEADY: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const STEADY: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

/// Returns the time since 1970 of the machine's clock, for comparison with the times of files,
/// which come from the same clock.
#[cfg(feature = "sqlite")]
pub(crate) fn file_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// A clock that moves only by hand, for tests.
///
/// ```
/// use std::time::Duration;
/// use onward_store::{Clock, ManualClock};
///
/// let clock = ManualClock::default();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(30 * 24 * 3600));
/// assert_eq!(clock.now() - before, Duration::from_secs(30 * 24 * 3600));
/// ```
#[derive(Debug)]
pub struct ManualClock {
    time: Mutex<ManualTime>,
    moved: watch::Sender<u64>,
}

/// The two times of a [`ManualClock`]. One lock guards both, so that a read never sees one moved
/// without the other.
#[derive(Debug, Clone, Copy)]
struct ManualTime {
    wall: Timestamp,
    steady: Duration,
}

impl Default for ManualClock {
    /// Creates a clock that starts at 2024-01-01T00:00:00Z.
    fn default() -> Self {
        Self::starting_at(Timestamp::from_microseconds(1_704_067_200_000_000))
    }
}

impl ManualClock {
    /// Creates a clock with the wall time `wall` and a steady time of one hour.
    #[must_use]
    pub fn starting_at(wall: Timestamp) -> Self {
        let time = ManualTime { wall, steady: Duration::from_secs(3600) };
        Self { time: Mutex::new(time), moved: watch::Sender::new(0) }
    }

    /// Moves wall and steady time forward together.
    pub fn advance(&self, by: Duration) {
        self.change(|time| {
            time.wall = time.wall.plus(by);
            time.steady = time.steady.saturating_add(by);
        });
    }

    /// Sets only wall time, forwards or backwards, as a person or a time service does.
    pub fn set_wall(&self, wall: Timestamp) {
        self.change(|time| time.wall = wall);
    }

    /// Changes the times, then wakes the waits that depend on the clock.
    fn change(&self, change: impl FnOnce(&mut ManualTime)) {
        change(&mut self.lock());
        self.moved.send_modify(|moves| *moves += 1);
    }

    /// Locks the times. A thread that panicked has left them valid.
    fn lock(&self) -> std::sync::MutexGuard<'_, ManualTime> {
        self.time.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().wall
    }

    fn steady(&self) -> Duration {
        self.lock().steady
    }

    fn moved(&self) -> Option<watch::Receiver<u64>> {
        Some(self.moved.subscribe())
    }
}
