//! Pausing and resuming claims.

use onward_store::{Scope, Timestamp, Write};

use crate::engine::Engine;
use crate::error::Result;

/// Pausing.
impl Engine {
    /// Stops claims of what `scope` names, in every process, until it is resumed. What runs goes
    /// on; what was claimed and has not started is given back.
    ///
    /// # Errors
    /// What the store reports if it could not keep it.
    pub async fn pause(&self, scope: Scope) -> Result<()> {
        self.done(Write::Pause { scope, until: None }).await
    }

    /// Stops claims of what `scope` names until a moment, or until it is resumed.
    ///
    /// # Errors
    /// What the store reports if it could not keep it.
    pub async fn pause_until(&self, scope: Scope, until: Timestamp) -> Result<()> {
        self.done(Write::Pause { scope, until: Some(until) }).await
    }

    /// Ends a pause; also fine where there is none.
    ///
    /// # Errors
    /// What the store reports if it could not keep it.
    pub async fn resume(&self, scope: Scope) -> Result<()> {
        self.done(Write::Resume { scope }).await
    }
}
