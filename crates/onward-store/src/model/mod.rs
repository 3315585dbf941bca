//! The model: the specification of the storage interface.
//!
//! One file per family of writes, beside the prose of `write.rs`. Nothing here does I/O, waits or
//! reads a clock; the moment of the writes under way is a value in [`state`]. What all writes
//! share: [`tasks`] keeps the tasks and finds them by what a write looks for, [`keys`] says who has
//! a key, [`ending`] is the one way in which a task ends.
//!
//! Where the prose leaves room, this is what every store does:
//!
//! * A [`Claim`](crate::Write::Claim) by a session that is not open is refused before anything is
//!   swept.
//! * A lease is checked before what is written with it: session, then lease, then result.
//! * A queue or a kind is made when a task is kept in it (inserted, superseding, or to follow),
//!   when one in it is retried, and by a pause or by setting it; a duplicate and a refused submit
//!   make none.
//! * A task that is to follow a running one (requeue) takes the key from it when that ends, kept or
//!   not. A submit that supersedes takes the place of what was to follow, too. So whoever has a
//!   follower has its key.
//! * A prune takes ended tasks from the oldest end on and stops at the first that it keeps,
//!   whatever the clock did meanwhile. With them go the events up to the end of the last one, in
//!   whole calls: a call's events stay while a task that ended in it is still there, and those of
//!   the newest call always stay.
//! * A key that outlives its task's end outlives the task's pruning too; a purge frees it. A prune
//!   forgets the keys whose time is over, so that setting the clock back does not bring them back.
//! * A claim looks at each line of tasks (of all queues of one weight in strict mode, else of one
//!   queue) from its first task on, and never back: what comes before that place while it looks is
//!   left to the next claim. A task that it finds expired takes no turn.
//! * A schedule holds at most one firing. One that is cancelled or left out in its place counts as
//!   skipped.
//! * What a task depends on is looked up when it is taken: for one that is to follow another, when
//!   that ends. A dependency that is gone by then did not complete.
//! * A write tells dependents what ended by it after it has done all else, the dependents of one
//!   task by their numbers.
//! * Bundles that time makes ripe are handed over after all else that a sweep does, the longest
//!   overdue first, until one sweep has moved [`SWEEP`](crate::bounds::SWEEP) members.
//! * A bundle that is over ends its members after it has told its dependents, by their numbers;
//!   then it cancels its children.
//! * A claim takes from a line of an affinity key if that is reserved for nobody else when the
//!   claim begins to look, and not if it is, whatever the claim itself changes of who is preferred.
//! * Several limits for one queue in a [`QueueSelection`](crate::QueueSelection) add up.
//! * Every read shows what was last written: an elapsed pause and a task that has come due are seen
//!   as such after a sweep. Only [`peek`](crate::StoreReads::peek) looks at the clock, and passes
//!   over what has expired.

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
pub(crate) use {batches::index::BatchKey, dependencies::dependents::UnsettledEnd};
