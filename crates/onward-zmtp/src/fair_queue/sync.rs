//! The atomics, locks and wakers of the fair queue and of the queues between sockets and
//! connections. Model checks replace them with those of loom.
//!
//! The configuration flag is our own instead of the usual `loom`, because tokio omits its sockets
//! under that flag.

#[cfg(not(onward_loom))]
pub(crate) use atomic_waker::AtomicWaker;
#[cfg(onward_loom)]
pub(crate) use checked::AtomicWaker;
#[cfg(onward_loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(onward_loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

// The sockets' queues use this one, too.
#[cfg(all(feature = "tokio", onward_loom))]
pub(crate) use loom::sync::atomic::AtomicBool;
#[cfg(all(feature = "tokio", not(onward_loom)))]
pub(crate) use std::sync::atomic::AtomicBool;

#[cfg(onward_loom)]
mod checked {
    use std::task::Waker;

    use loom::sync::{Mutex, MutexGuard};

    /// An `atomic_waker::AtomicWaker` with the same guarantees, in terms that loom can follow.
    pub(crate) struct AtomicWaker(Mutex<Option<Waker>>);

    impl AtomicWaker {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(None))
        }

        pub(crate) fn register(&self, waker: &Waker) {
            *self.slot() = Some(waker.clone());
        }

        pub(crate) fn wake(&self) {
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
