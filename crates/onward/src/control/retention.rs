//! Forgets tasks that ended long ago.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use onward_store::{Outcome, Prune, Timestamp, Write};
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::{bounds, timer};

/// The ended tasks that an engine forgets while it runs: those for which either condition holds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Retention {
    /// They ended longer ago than this.
    pub(crate) age: Option<Duration>,
    /// This many tasks have ended since.
    pub(crate) count: Option<u64>,
}

/// The end of the longest retention among the tasks that an engine has run and that set their own
/// retention. An engine without such tasks does not need to look for expired ones.
#[derive(Debug)]
pub(crate) struct OwnRetentions(AtomicI64);

impl Default for OwnRetentions {
    fn default() -> Self {
        Self(AtomicI64::new(i64::MIN))
    }
}

impl OwnRetentions {
    /// Records a task that ends about now.
    pub(crate) fn note(&self, now: Timestamp, retention: Option<Duration>) {
        if let Some(retention) = retention {
            self.0.fetch_max(now.plus(retention).as_microseconds(), Ordering::Relaxed);
        }
    }

    /// Returns true if the retention of a task may have ended since a moment.
    fn any_since(&self, moment: Timestamp) -> bool {
        self.0.load(Ordering::Relaxed) >= moment.as_microseconds()
    }
}

impl Retention {
    /// Forgets expired tasks, now and every [`bounds::RETENTION_INTERVAL`], until the run is over.
    /// After an error of the store it tries again at the next interval.
    pub(crate) async fn run(self, engine: &Engine, over: &CancellationToken) {
        let clock = &*engine.inner.clock;
        let keep = async {
            let mut last = None;
            loop {
                let now = clock.now();
                if self.has_work(engine, last) {
                    match self.forget(engine).await {
                        Ok(()) => last = Some(now),
                        // The dispatcher ends the run with this error and reports it.
                        Err(error) if error.is_replaced() => return,
                        Err(error) => {
                            tracing::warn!(%error, "ended tasks could not be pruned; retrying later");
                            engine.inner.telemetry.store_errors.increment(1);
                        }
                    }
                }
                timer::reached(clock, clock.steady().saturating_add(bounds::RETENTION_INTERVAL)).await;
            }
        };
        over.run_until_cancelled(keep).await;
    }

    /// Returns true if anything may have expired since the last look. Tasks of other processes are
    /// looked for once.
    fn has_work(self, engine: &Engine, last: Option<Timestamp>) -> bool {
        let is_configured = self.age.is_some() || self.count.is_some();
        is_configured || last.is_none_or(|last| engine.inner.own_retentions.any_since(last))
    }

    /// Forgets expired tasks in small writes, so that other writers wait only briefly.
    async fn forget(self, engine: &Engine) -> Result<()> {
        loop {
            let prune = Prune { older_than: self.age, keep: self.count, limit: bounds::PRUNE_BATCH };
            match engine.apply(Write::Prune(prune)).await? {
                Outcome::Removed { more: true, .. } => {}
                Outcome::Removed { .. } => return Ok(()),
                _ => return Err(Error::unexpected("a prune")),
            }
        }
    }
}
