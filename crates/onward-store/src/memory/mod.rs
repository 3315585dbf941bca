//! The memory store.
use std::sync::Arc;
use crate::clock::{Clock, SystemClock};
/// The specification of a store.
#[derive(Debug)]
pub struct MemoryStore { clock: Arc<dyn Clock> }
impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self { Self { clock: Arc::new(SystemClock) } }
}
