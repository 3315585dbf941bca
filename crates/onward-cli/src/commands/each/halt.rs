//! Early end of a run after failures.

use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use onward::observe::Change;
use tokio_util::sync::CancellationToken;

/// The number of failures after which a run ends, and the way in which it ends: `soon,fail=1` or
/// `now,fail=3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Halt {
    /// True to stop running commands too.
    pub(super) now: bool,
    /// The number of lines that have to fail after all retries.
    pub(super) failures: u64,
}

impl FromStr for Halt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a halt condition; write it as soon,fail=1 or now,fail=3");
        let (when, failures) = text.split_once(",fail=").ok_or_else(wrong)?;
        let failures = failures.parse().ok().filter(|failures| *failures > 0).ok_or_else(wrong)?;
        match when {
            "soon" => Ok(Self { now: false, failures }),
            "now" => Ok(Self { now: true, failures }),
            _ => Err(wrong()),
        }
    }
}

/// A count of failures, up to the number at which a run ends.
#[derive(Debug)]
pub(super) struct FailureCount {
    limit: u64,
    failed: AtomicU64,
    reached: CancellationToken,
}

impl FailureCount {
    /// Creates the count. Without `halt` the number is never reached.
    pub(super) fn new(halt: Option<Halt>) -> Self {
        let limit = halt.map_or(u64::MAX, |halt| halt.failures);
        Self { limit, failed: AtomicU64::new(0), reached: CancellationToken::new() }
    }

    /// Counts an attempt if its line has failed after all retries.
    pub(super) fn note(&self, change: Change) {
        let is_final = matches!(change, Change::Failed | Change::Dead);
        if is_final && self.failed.fetch_add(1, Ordering::Relaxed) + 1 == self.limit {
            self.reached.cancel();
        }
    }

    /// Waits until the number is reached.
    pub(super) async fn reached(&self) {
        self.reached.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soon_and_now_and_a_number_are_read() {
        assert_eq!("soon,fail=1".parse(), Ok(Halt { now: false, failures: 1 }));
        assert_eq!("now,fail=20".parse(), Ok(Halt { now: true, failures: 20 }));
        for wrong in ["now", "now,fail=0", "later,fail=1", "fail=1", "soon,fail=many", "soon,success=1"] {
            assert!(wrong.parse::<Halt>().unwrap_err().contains("soon,fail=1"), "{wrong}");
        }
    }

    #[test]
    fn attempts_that_are_followed_by_another_do_not_count() {
        let count = FailureCount::new(Some(Halt { now: true, failures: 2 }));
        count.note(Change::Retrying { attempt: 1, after: std::time::Duration::ZERO });
        count.note(Change::Dead);
        assert!(!count.reached.is_cancelled());
        count.note(Change::Failed);
        assert!(count.reached.is_cancelled());
    }
}
