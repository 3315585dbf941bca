//! Kinds whose turns are planned less often, because plans failed or saved nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use onward_store::Name;
use rustc_hash::FxHashMap;

/// The number of plans that are skipped after the first one that failed.
const FIRST_PAUSE: u32 = 8;

/// The largest number of plans that are skipped after one that failed.
const LONGEST_PAUSE: u32 = 1024;

/// The back-offs of plans. A kind that starts tasks together may also run one after the other, so
/// the plans in which it waits for several tasks have a back-off of their own.
#[derive(Debug, Default)]
pub(crate) struct PlanBackoffs {
    /// For orchestrations that wait for one task.
    single: PlanBackoff,
    /// For orchestrations that wait for several tasks.
    several: PlanBackoff,
}

impl PlanBackoffs {
    /// Returns the back-off of plans by the number of tasks for which an orchestration waits.
    pub(crate) fn waiting_for(&self, tasks: usize) -> &PlanBackoff {
        if tasks > 1 { &self.several } else { &self.single }
    }
}

/// The kinds whose plans failed: the code ran steps, or the store wrote ends alone because of a
/// limit, a pause or other messages. A plan also counts as failed if another task of the
/// orchestration ended before it was settled.
#[derive(Debug, Default)]
pub(crate) struct PlanBackoff(Mutex<FxHashMap<Name, Pause>>);

/// The plans of a kind that are skipped.
#[derive(Debug, Clone, Copy, Default)]
struct Pause {
    left: u32,
    length: u32,
}

impl PlanBackoff {
    fn pauses(&self) -> MutexGuard<'_, FxHashMap<Name, Pause>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a turn of a kind may be planned, and counts one that may not.
    pub(crate) fn allows(&self, kind: &Name) -> bool {
        let mut pauses = self.pauses();
        let Some(pause) = pauses.get_mut(kind).filter(|pause| pause.left > 0) else { return true };
        pause.left -= 1;
        false
    }

    /// Skips the next plans of a kind: each failed plan costs a replay.
    pub(crate) fn failed(&self, kind: &Name) {
        let mut pauses = self.pauses();
        let pause = pauses.entry(kind.clone()).or_default();
        pause.length = pause.length.saturating_mul(2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        pause.left = pause.length;
    }

    /// Forgets the failed plans of a kind.
    pub(super) fn succeeded(&self, kind: &Name) {
        let mut pauses = self.pauses();
        if !pauses.is_empty() {
            pauses.remove(kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_that_fail_become_rarer() {
        let (plans, kind) = (PlanBackoff::default(), Name::new("order").unwrap());
        let left_out = |plans: &PlanBackoff| (0..).take_while(|_| !plans.allows(&kind)).count();
        assert_eq!(left_out(&plans), 0);
        plans.failed(&kind);
        assert_eq!(left_out(&plans), 8);
        plans.failed(&kind);
        assert_eq!(left_out(&plans), 16);
        plans.succeeded(&kind);
        plans.failed(&kind);
        assert_eq!(left_out(&plans), 8);
    }
}
