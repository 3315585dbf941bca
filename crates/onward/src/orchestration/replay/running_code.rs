//! The orchestration whose code runs on this thread. A context that is used anywhere else, in a
//! task that the code has spawned or in a step, would change the orchestration at a moment that no
//! history records.

use std::cell::Cell;
use std::ptr;

use super::replay_context::ReplayContext;
use super::store_guard::without_store;

/// The error of an orchestration whose context was used outside of its code.
pub(in crate::orchestration) const USED_ELSEWHERE: &str = "its context was used outside of its code, in a task that it spawned or in a step; await its \
     activities, timers and events in the code itself, several of them with `join_all`";

thread_local! {
    /// The address of the replay context whose code runs on this thread; 0 if there is none.
    static RUNNING: Cell<usize> = const { Cell::new(0) };
}

/// Runs the code of an orchestration, which may use its own context and no store.
pub(super) fn run_code<R>(replay_context: &ReplayContext, code: impl FnOnce() -> R) -> R {
    /// A guard that restores the earlier value, even after a panic.
    struct Restored(usize);

    impl Drop for Restored {
        fn drop(&mut self) {
            RUNNING.set(self.0);
        }
    }

    let _restored = Restored(RUNNING.replace(ptr::from_ref(replay_context).addr()));
    without_store(code)
}

/// Returns true if the code of this orchestration runs on this thread.
pub(super) fn is_running(replay_context: &ReplayContext) -> bool {
    RUNNING.get() == ptr::from_ref(replay_context).addr()
}
