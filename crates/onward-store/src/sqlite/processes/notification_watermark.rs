//! The task or log entry up to which this process has notified its waiting callers. A higher one
//! was written by a process that did not notify them.

use std::sync::atomic::{AtomicI64, Ordering};

/// The number of the first task or log entry without a notification; zero before the first call.
/// Both kinds of numbers are committed in ascending order.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct NotificationWatermark(AtomicI64);

impl NotificationWatermark {
    /// Records the notification of a commit that added the numbers from `first` to before `next`.
    /// If earlier commits of other processes were not notified, the watermark stays before them.
    pub(in crate::sqlite) fn advance(&self, first: i64, next: i64) {
        // The first call only sets the beginning. No caller waited during an earlier commit.
        let begin = self.0.compare_exchange(0, next, Ordering::AcqRel, Ordering::Acquire);
        if begin.is_err() {
            let _ = self.0.compare_exchange(first, next, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// Returns true if there are numbers before `next` without a notification. They count as
    /// notified from now on.
    pub(in crate::sqlite) fn missed(&self, next: i64) -> bool {
        self.0.fetch_max(next, Ordering::AcqRel) < next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_notified_without_a_gap_is_not_missed() {
        let watermark = NotificationWatermark::default();
        watermark.advance(1, 5);
        watermark.advance(5, 7);
        assert!(!watermark.missed(7));
    }

    #[test]
    fn what_lies_between_is_missed_once() {
        let watermark = NotificationWatermark::default();
        watermark.advance(1, 5);
        watermark.advance(6, 7);
        assert!(watermark.missed(7));
        assert!(!watermark.missed(7));
    }
}
