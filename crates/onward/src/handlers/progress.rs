//! The progress of a running task.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use onward_store::ByteProgress;
use onward_store::rules::attempt::cut;

use crate::observe::{RateMeter, ReportedProgress};

const UNKNOWN: u32 = u32::MAX;
const NO_BYTES: u64 = u64::MAX;

/// The latest progress of one attempt. Setting it never waits for the store. A reader gets the
/// newest value, and earlier values are lost. Fraction and bytes are atomic: setting them is
/// lock-free and costs a few nanoseconds. The message has a lock, which is held while the handler
/// moves a text in or a reader copies it.
#[derive(Debug)]
pub(crate) struct LiveProgress {
    fraction: AtomicU32,
    message: Mutex<Option<String>>,
    unsaved: AtomicBool,
    bytes: LiveBytes,
}

/// The number of bytes done. A reader may see a new count with the total before it.
#[derive(Debug)]
struct LiveBytes {
    done: AtomicU64,
    total: AtomicU64,
    /// The number of bytes done when bytes were first counted.
    base: AtomicU64,
    /// Used by readers only, so that reporting bytes reads no clock and takes no lock.
    meter: Mutex<RateMeter>,
}

impl Default for LiveBytes {
    fn default() -> Self {
        let none = || AtomicU64::new(NO_BYTES);
        Self { done: none(), total: none(), base: none(), meter: Mutex::default() }
    }
}

impl LiveBytes {
    fn set(&self, done: u64, total: Option<u64>) {
        let done = done.min(NO_BYTES - 1);
        if self.base.load(Ordering::Relaxed) == NO_BYTES {
            self.base.store(done, Ordering::Relaxed);
        }
        self.total.store(total.map_or(NO_BYTES, |total| total.min(NO_BYTES - 1)), Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
    }

    fn get(&self) -> Option<ByteProgress> {
        let known = |count: &AtomicU64| Some(count.load(Ordering::Relaxed)).filter(|count| *count != NO_BYTES);
        Some(ByteProgress { done: known(&self.done)?, total: known(&self.total) })
    }

    fn per_second(&self, began: Duration, now: Duration) -> Option<f64> {
        let done = self.get()?.done;
        let base = self.base.load(Ordering::Relaxed).min(done);
        self.meter.lock().unwrap_or_else(PoisonError::into_inner).sample(began, base, now, done)
    }
}

impl Default for LiveProgress {
    fn default() -> Self {
        Self {
            fraction: AtomicU32::new(UNKNOWN),
            message: Mutex::default(),
            unsaved: AtomicBool::new(false),
            bytes: LiveBytes::default(),
        }
    }
}

impl LiveProgress {
    pub(crate) fn set_fraction(&self, fraction: f32) {
        let bits = if fraction.is_nan() { UNKNOWN } else { fraction.clamp(0.0, 1.0).to_bits() };
        self.fraction.store(bits, Ordering::Relaxed);
        self.unsaved.store(true, Ordering::Release);
    }

    pub(crate) fn set_message(&self, message: String) {
        let message = cut(message, onward_store::bounds::PROGRESS_BYTES);
        *self.message.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
        self.unsaved.store(true, Ordering::Release);
    }

    pub(crate) fn set_bytes(&self, done: u64, total: Option<u64>) {
        self.bytes.set(done, total);
        self.unsaved.store(true, Ordering::Release);
    }

    pub(crate) fn bytes(&self) -> Option<ByteProgress> {
        self.bytes.get()
    }

    /// Returns the progress of an attempt that began at `began`, as of `now` in steady time, with
    /// the rate of its bytes.
    pub(crate) fn reported(&self, began: Duration, now: Duration) -> ReportedProgress {
        let bytes_per_second = self.bytes.per_second(began, now);
        ReportedProgress { fraction: self.fraction(), bytes: self.bytes(), bytes_per_second }
    }

    pub(crate) fn fraction(&self) -> Option<f32> {
        let bits = self.fraction.load(Ordering::Relaxed);
        (bits != UNKNOWN).then(|| f32::from_bits(bits))
    }

    pub(crate) fn message(&self) -> Option<String> {
        self.message.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns true if the progress changed since the last call.
    pub(crate) fn take_unsaved(&self) -> bool {
        self.unsaved.load(Ordering::Relaxed) && self.unsaved.swap(false, Ordering::Acquire)
    }

    /// Returns true if the progress changed since it was last taken to be saved.
    pub(crate) fn is_unsaved(&self) -> bool {
        self.unsaved.load(Ordering::Relaxed)
    }

    /// Records that the progress could not be saved.
    pub(crate) fn mark_unsaved(&self) {
        self.unsaved.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_kept_between_nothing_and_all() {
        let progress = LiveProgress::default();
        progress.set_fraction(7.5);
        assert_eq!(progress.fraction(), Some(1.0));
        progress.set_fraction(f32::NAN);
        assert_eq!(progress.fraction(), None);
    }

    #[test]
    fn only_a_change_is_unsaved() {
        let progress = LiveProgress::default();
        assert!(!progress.take_unsaved());
        progress.set_message("half".into());
        assert!(progress.take_unsaved());
        assert!(!progress.take_unsaved());
    }
}
