//! The model: the specification of the storage interface.
//!
//! Each file has one family of writes, and follows the prose of `write.rs`. No code here does I/O,
//! waits or reads a clock; the time of the current writes is a value in [`state`]. All writes share
//! three parts. [`tasks::table`] has the tasks, and the orders in which writes search them.
//! [`tasks::keys`] records which task has a key. [`tasks::end`] is the only way in which a task
//! ends.
//!
//! The prose leaves some cases open. Every store decides them as follows:
//!
//! * A [`Claim`](crate::Write::Claim) by a session that is not open is rejected before anything is
//!   swept.
//! * A write under a lease checks the session first, then the lease, then the result.
//! * A queue or a kind is created when a task is stored in it (inserted, superseding, or as a
//!   follower), when a task in it is retried, and by a pause or a setting. A duplicate and a
//!   rejected submit create none.
//! * A follower is a task that was submitted with `requeue` while a task with its key ran. It takes
//!   the key when that task ends, even if the key would be retained. A submit that supersedes also
//!   replaces the follower. So a task that has a follower has its key.
//! * A prune takes ended tasks from the oldest end on and stops at the first that it keeps,
//!   regardless of changes of the clock. It removes the events up to the end of the last removed
//!   task, in whole calls. The events of a call stay while a task that ended in it still exists,
//!   and those of the newest call always stay.
//! * A key that is retained beyond its task's end is also retained beyond the task's pruning; a
//!   purge frees it. A prune deletes the keys whose retention is over, so that they do not return
//!   if the clock is set back.
//! * A claim scans each candidate forward from its first task. A candidate is a queue, or in strict
//!   mode all queues of one weight. A task that appears before the scan's position is left to the
//!   next claim. An expired task that the scan finds takes no turn.
//! * A schedule holds at most one firing. A firing that is cancelled or replaced counts as skipped.
//! * The dependencies of a task are looked up when the task is inserted. A follower is inserted
//!   when the task that it follows ends. A dependency that no longer exists then did not complete.
//! * A write updates the dependents of the tasks that it ended after all its other effects. The
//!   dependents of one task are updated in the order of their numbers.
//! * Batches that are ready by time are submitted after all other effects of a sweep, the longest
//!   overdue first, until one sweep has moved [`SWEEP`](crate::bounds::SWEEP) items.
//! * An ended batch first updates its dependents, then ends its items in the order of their
//!   numbers, then cancels its children.
//! * A claim decides when it begins which affinity keys are reserved for other sessions. It skips
//!   their sub-queues even if the claim itself changes which session is preferred.
//! * Several limits for one queue in a [`QueueSelection`](crate::QueueSelection) add up.
//! * Every read shows the state after the last write: an elapsed pause and a task that has come due
//!   become visible with a sweep. Only [`peek`](crate::StoreReads::peek) reads the clock, and it
//!   skips expired tasks.

mod apply;
mod attempts;
mod batches;
mod claims;
#[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "only a store that loads a part of itself makes one"))]
mod coverage;
mod dependencies;
mod documents;
mod event_log;
mod limits;
mod orchestrations;
mod queues;
mod reads;
mod schedules;
mod state;
mod sweep;
mod tasks;

pub(crate) use event_log::EventLog;
pub(crate) use state::{Now, State};
#[cfg(feature = "postgres")]
pub(crate) use {
    attempts::external_completion::AwaitedCompletion,
    attempts::output::{Output, up_to},
    batches::index::Batches,
    coverage::check::Coverage,
    coverage::load_request::LoadRequest,
    coverage::loaded::{Loaded, LoadedUpTo, RunningCountRows, RunningSessions},
    coverage::partial_sub_queues::PartialSubQueues,
    dependencies::dependents::DependencyIndex,
    documents::{Document, DocumentId, DocumentTable, Documents},
    event_log::LoggedChange,
    limits::fair_share::FairShares,
    limits::running::{RunningCounts, RunningKey},
    reads::daily_counts::DailyCounts,
    tasks::keys::{TakenKey, UniqueKeys},
    tasks::sub_queue::SubQueue,
    tasks::table::TaskTable,
    tasks::task::{End, Task},
};
#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub(crate) use {batches::index::BatchKey, dependencies::dependents::UnpropagatedEnd};
