//! How far a running task says it is.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use onward_store::rules::attempt::cut;

const UNKNOWN: u32 = u32::MAX;

/// The latest progress of one attempt. Setting it costs a few nanoseconds and never waits for the store: whoever reads it gets
/// the newest value, and those between are gone.
#[derive(Debug)]
pub(crate) struct LiveProgress {
    fraction: AtomicU32,
    message: Mutex<Option<String>>,
    unsaved: AtomicBool,
}

impl Default for LiveProgress {
    fn default() -> Self {
        Self { fraction: AtomicU32::new(UNKNOWN), message: Mutex::default(), unsaved: AtomicBool::new(false) }
    }
}

impl LiveProgress {
    pub(crate) fn set_fraction(&self, fraction: f32) {
        let bits = if fraction.is_nan() { UNKNOWN } else { fraction.clamp(0.0, 1.0).to_bits() };
        self.fraction.store(bits, Ordering::Relaxed);
        self.unsaved.store(true, Ordering::Release);
    }

    pub(crate) fn set_message(&self, message: String) {
        let message = cut(message, onward_store::limits::PROGRESS_BYTES);
        *self.message.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
        self.unsaved.store(true, Ordering::Release);
    }

    pub(crate) fn fraction(&self) -> Option<f32> {
        let bits = self.fraction.load(Ordering::Relaxed);
        (bits != UNKNOWN).then(|| f32::from_bits(bits))
    }

    pub(crate) fn message(&self) -> Option<String> {
        self.message.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it changed since the last call.
    pub(crate) fn take_unsaved(&self) -> bool {
        self.unsaved.load(Ordering::Relaxed) && self.unsaved.swap(false, Ordering::Acquire)
    }

    /// Says that what was taken could not be saved.
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
