//! The bounds of runs.

/// The most bytes of a result that the history of a run keeps.
pub(crate) const RESULT_KEPT: usize = 4 * 1024;

/// The most bytes of all results that the history of a run keeps. Others are read with their task.
pub(crate) const RESULTS_KEPT: usize = 64 * 1024;

/// The most items of a step with `each`.
pub(crate) const EACH_ITEMS: usize = 100_000;

/// The most signals that a run keeps until a step waits for them.
pub(crate) const SIGNALS_KEPT: usize = 1000;

/// The most bytes of the signals that a run keeps.
pub(crate) const SIGNALS_KEPT_BYTES: usize = 16 * 1024 * 1024;

/// The most refused signals and actions that the history of a run records. Later ones are refused
/// without a record.
pub(crate) const REFUSALS_KEPT: u32 = 1000;

/// The most events that one turn publishes. Others are counted and left out.
pub(crate) const PUBLISHED_PER_TURN: usize = onward_store::bounds::TURN_PUBLISHED;

/// The size of the published payloads, in bytes, at which one turn publishes no more.
pub(crate) const PUBLISHED_BYTES_PER_TURN: usize = 64 * 1024 * 1024;

/// The most tasks that one turn submits for items. With a task for each of 1000 steps and for each
/// published event, they are as many as a store takes. Another turn follows at once.
pub(crate) const SUBMITTED_PER_TURN: usize = 8_000;

/// The most bytes of a payload that a step submits.
pub(crate) const PAYLOAD_BYTES: usize = 1024 * 1024;

/// The most bytes of an error that a step keeps.
pub(crate) const ERROR_BYTES: usize = 8 * 1024;

/// The prefix of the kinds of runs.
pub(crate) const RUN_KIND_PREFIX: &str = "run:";
