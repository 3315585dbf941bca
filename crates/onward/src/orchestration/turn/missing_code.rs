//! Pauses of orchestrations that were claimed and whose code is not here. The pause grows with each
//! claim.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;
use onward_store::TaskId;

use crate::bounds;

/// The last pause of each orchestration.
pub(crate) struct MissingCode(Mutex<LruCache<TaskId, Duration>>);

impl Default for MissingCode {
    fn default() -> Self {
        let most = NonZeroUsize::new(bounds::UNKNOWN_CODE_REMEMBERED).unwrap_or(NonZeroUsize::MIN);
        // `LruCache::new` would reserve memory for the full capacity.
        let mut pauses = LruCache::unbounded();
        pauses.resize(most);
        Self(Mutex::new(pauses))
    }
}

impl MissingCode {
    /// Returns the pause of an orchestration: twice the last one, up to a limit.
    pub(crate) fn pause(&self, task: TaskId) -> Duration {
        let mut pauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = pauses.get(&task).copied();
        let pause = last.map_or(bounds::UNKNOWN_CODE_PAUSE, |last| last.saturating_mul(2));
        let pause = pause.min(bounds::UNKNOWN_CODE_LONGEST);
        pauses.put(task, pause);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: D9
    #[test]
    fn pauses_double_up_to_a_limit() {
        let missing_code = MissingCode::default();
        let pauses: Vec<u64> = (0..9).map(|_| missing_code.pause(TaskId(1)).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    /// Shows: D9
    #[test]
    fn each_orchestration_has_pauses_of_its_own() {
        let missing_code = MissingCode::default();
        assert_eq!(missing_code.pause(TaskId(1)), missing_code.pause(TaskId(2)));
    }
}
