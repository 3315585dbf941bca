//! The lock, the notification and the flag of the hand-over. The models in `xtask/models` put those
//! of loom in their place.

pub(super) use std::sync::atomic::{AtomicBool, Ordering, fence};
pub(super) use std::sync::{Mutex, MutexGuard};

pub(super) use tokio::sync::Notify;
