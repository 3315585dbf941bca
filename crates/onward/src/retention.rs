//! Forgetting what ended long ago.

use std::time::Duration;

use onward_store::{Outcome, Prune, Write};
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::limits;
use crate::timer;

/// Which ended tasks an engine forgets while it runs: those for which either holds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Retention {
    /// They ended longer ago than this.
    pub(crate) age: Option<Duration>,
    /// So many have ended since.
    pub(crate) count: Option<u64>,
}

impl Retention {
    /// Forgets what is over, now and every [`limits::RETENTION_INTERVAL`], until the run is over. What the store cannot do now is tried again then.
    pub(crate) async fn run(self, engine: &Engine, over: &CancellationToken) {
        if self.age.is_none() && self.count.is_none() {
            return;
        }
        let clock = &*engine.inner.clock;
        let keep = async {
            loop {
                if let Err(error) = self.forget(engine).await {
                    tracing::warn!(%error, "ended tasks could not be forgotten; trying again later");
                    engine.inner.telemetry.store_errors.increment(1);
                }
                timer::reached(clock, clock.steady().saturating_add(limits::RETENTION_INTERVAL)).await;
            }
        };
        over.run_until_cancelled(keep).await;
    }

    /// In small writes, so that none holds others up for long.
    async fn forget(self, engine: &Engine) -> Result<()> {
        loop {
            let prune = Prune { older_than: self.age, keep: self.count, limit: limits::FORGOTTEN_AT_ONCE };
            match engine.apply(Write::Prune(prune)).await? {
                Outcome::Removed { more: true, .. } => {}
                Outcome::Removed { .. } => return Ok(()),
                _ => return Err(Error::unexpected("a prune")),
            }
        }
    }
}
