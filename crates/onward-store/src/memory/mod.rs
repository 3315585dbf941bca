//! The memory store: the specification of the seam.
//!
//! One file per family of writes, beside the prose of `write.rs`. Nothing here does I/O, waits or reads a clock; the moment of
//! the writes under way is a value in [`state`]. What all writes share: [`tasks`] keeps the tasks and finds them by what a write
//! looks for, [`keys`] says who has a key, [`ending`] is the one way in which a task ends.
//!
//! Where the prose leaves room, this is what every store does:
//!
//! * A refused [`Claim`](crate::Write::Claim) has swept all the same: that is time's doing, not the claim's.
//! * A lease is checked before what is written with it: session, then lease, then result.
//! * A queue or a kind is made when a task is kept in it (inserted, superseding, or to follow), when one in it is retried, and
//!   by a pause; a duplicate and a refused submit make none.
//! * A task that is to follow a running one (requeue) takes the key from it when that ends, kept or not. A submit that
//!   supersedes takes the place of what was to follow, too. So whoever has a follower has its key.
//! * A key that outlives its task's end outlives the task's pruning too; a purge frees it.
//! * Tasks with several entries for one queue in a [`QueueSelection`](crate::QueueSelection) may be claimed up to their sum.
//! * Every read shows what was last written: an elapsed pause and a task that has come due are seen as such after a sweep.
//!   Only [`peek`](crate::Store::peek) looks at the clock, and passes over what has expired.

mod apply;
mod attempts;
mod claim;
mod control;
mod ending;
mod events;
mod keys;
mod names;
mod reads;
mod removal;
mod sessions;
mod state;
mod store;
mod submit;
mod sweep;
mod task;
mod tasks;

pub use store::MemoryStore;
