//! The atomics, locks and wakers of the queue, or loom's stand-ins for them when the queue is being model-checked.
//!
//! The configuration is our own, not the usual `loom`, because tokio leaves out its sockets under that one.

#[cfg(not(onward_loom))]
pub(super) use atomic_waker::AtomicWaker;
#[cfg(onward_loom)]
pub(super) use checked::AtomicWaker;
#[cfg(onward_loom)]
pub(super) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(onward_loom))]
pub(super) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

#[cfg(onward_loom)]
mod checked {
    use std::task::Waker;

    use loom::sync::{Mutex, MutexGuard};

    /// What `atomic_waker::AtomicWaker` promises, in terms that loom can follow.
    pub(in crate::fair_queue) struct AtomicWaker(Mutex<Option<Waker>>);

    impl AtomicWaker {
        pub(in crate::fair_queue) fn new() -> Self {
            Self(Mutex::new(None))
        }

        pub(in crate::fair_queue) fn register(&self, waker: &Waker) {
            *self.slot() = Some(waker.clone());
        }

        pub(in crate::fair_queue) fn wake(&self) {
            let waker = self.slot().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }

        fn slot(&self) -> MutexGuard<'_, Option<Waker>> {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        }
    }
}
