//! The locks of the hand-over. The models in `models/` put those of loom in their place.

pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
