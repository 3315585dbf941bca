//! The task, or the entry of the log, up to which this process was notified of changes. Anything
//! beyond was written by a process that did not notify.

use std::sync::atomic::{AtomicI64, Ordering};

/// The number of the first task, or entry of the log, that was not notified; zero while none is
/// known. Both are committed in the order of their numbers.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct NotificationWatermark(AtomicI64);

impl NotificationWatermark {
    /// Records that a commit which added the tasks from `first` to before `next` was notified.
    /// Earlier commits of other processes that were not notified stay so.
    pub(in crate::sqlite) fn advance(&self, first: i64, next: i64) {
        // Before the first value is known, the process has no listener.
        let begin = self.0.compare_exchange(0, next, Ordering::AcqRel, Ordering::Acquire);
        if begin.is_err() {
            let _ = self.0.compare_exchange(first, next, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// Returns true if there are tasks before `next` that were not notified. They count as notified
    /// from now on.
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
