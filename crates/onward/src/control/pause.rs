//! Pauses and resumes claims.

use onward_store::{Scope, Timestamp, Write};

use crate::engine::Engine;
use crate::error::Result;

/// Pauses.
impl Engine {
    /// Stops claims of everything in `scope`, in every process, until it is resumed. Running tasks
    /// continue; tasks that were claimed and have not started are released.
    ///
    /// # Errors
    /// The store's error if it could not keep the pause.
    pub async fn pause(&self, scope: Scope) -> Result<()> {
        self.done(Write::Pause { scope, until: None }).await
    }

    /// Stops claims of everything in `scope` until a moment, or until it is resumed.
    ///
    /// # Errors
    /// The store's error if it could not keep the pause.
    pub async fn pause_until(&self, scope: Scope, until: Timestamp) -> Result<()> {
        self.done(Write::Pause { scope, until: Some(until) }).await
    }

    /// Ends a pause. Without a pause it does nothing.
    ///
    /// # Errors
    /// The store's error if it could not keep the change.
    pub async fn resume(&self, scope: Scope) -> Result<()> {
        self.done(Write::Resume { scope }).await
    }
}
