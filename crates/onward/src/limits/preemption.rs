//! The preemption policy.

use onward_store::Priority;

/// The rule by which a running task gives way to a waiting one, for
/// [`EngineBuilder::preemption`](crate::EngineBuilder::preemption).
///
/// ```
/// use onward::Priority;
/// use onward::limits::Preemption;
///
/// let urgent = Preemption { from: Priority(200), levels: 32 };
/// assert!(urgent.gives_way(Priority::NORMAL, Priority(200)));
/// assert!(!urgent.gives_way(Priority(190), Priority(200)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preemption {
    /// The lowest priority of a task that preempts others. Default: [`Priority::URGENT`].
    pub from: Priority,
    /// The number of levels that a running task must be less urgent to give way, at least 1.
    /// Default: 64.
    pub levels: u8,
}

impl Default for Preemption {
    fn default() -> Self {
        Self { from: Priority::URGENT, levels: 64 }
    }
}

impl Preemption {
    /// Returns true if a running task of one priority gives way to a waiting one of another.
    #[must_use]
    pub fn gives_way(self, running: Priority, waiting: Priority) -> bool {
        waiting >= self.from && running.0.checked_add(self.levels.max(1)).is_some_and(|least| waiting.0 >= least)
    }
}
