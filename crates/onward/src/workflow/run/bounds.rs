//! The bounds of runs.

/// The most bytes of a result that the history of a run keeps.
pub(crate) const RESULT_KEPT: usize = 4 * 1024;

/// The most bytes of all results that the history of a run keeps. Others are read with their task.
pub(crate) const RESULTS_KEPT: usize = 64 * 1024;

/// The most items of a step with `each`.
pub(crate) const EACH_ITEMS: usize = 100_000;

/// The most signals that a run keeps until a step waits for them.
pub(crate) const SIGNALS_KEPT: usize = 1000;

/// The most events that one turn publishes.
pub(crate) const PUBLISHED_PER_TURN: usize = 1000;

/// The most tasks that one turn submits for items: with those of all steps, as many as a store
/// takes. Another turn follows at once.
pub(crate) const SUBMITTED_PER_TURN: usize = 9_000;

/// The most bytes of a payload that a step submits.
pub(crate) const PAYLOAD_BYTES: usize = 1024 * 1024;

/// The most bytes of an error that a step keeps.
pub(crate) const ERROR_BYTES: usize = 8 * 1024;

/// The prefix of the kinds of runs.
pub(crate) const RUN_KIND_PREFIX: &str = "run:";
