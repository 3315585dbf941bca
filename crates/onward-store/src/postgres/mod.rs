//! The PostgreSQL store: one database, used by nodes on several machines.
//!
//! A batch of calls becomes one transaction of three or four round trips. The first takes the
//! store's lock and loads the rows that the calls are known to read. Further ones load rows that
//! the decision turns out to need. The last writes the changed rows and commits. The
//! [model](crate::model) decides over the loaded rows, so this module has no rules of its own.
//!
//! No transaction reads the whole store. The model records each row that it needs and lacks as a
//! `LoadRequest`, and the decision is void until that row is loaded. Waiting tasks are loaded by
//! *sub-queue*: the tasks of one queue, kind, group and affinity key. Within a sub-queue a claim
//! loads tasks by *sort key*, the position made of priority and due time, and no more than it can
//! take. If groups share queues by weight, a *fair-share tag* in the small state says which group
//! has the next turn. The *small state* has all settings and counters that are few: queues, limits,
//! sessions, pauses.
//!
//! * [`connect`]: connections, options, encryption, the checks of `doctor`.
//! * [`load`]: loads the rows that the model requests.
//! * [`working_set`]: the loaded part of the store, its decisions, and its changes as rows.
//! * [`commit`]: makes batches of calls, and transactions of batches.
//! * [`speculation`]: the row cache, and work that overlaps with the server's.
//! * [`reads`]: reads that need no model.
//! * [`wake`]: notifications from other processes.
//! * [`migrations`]: the schema.
//!
//! See `docs/design/0005-postgresql.md`.

mod commit;
mod connect;
#[cfg(feature = "sqlite")]
mod copy;
mod load;
mod migrations;
mod reads;
mod shared;
mod speculation;
mod sql;
mod store;
mod wake;
mod working_set;

pub use commit::caller::AppliedOnServer;
pub use commit::completions::CompletionStatement;
pub use connect::check::PostgresReport;
pub use connect::options::PostgresOptions;
#[cfg(feature = "sqlite")]
pub(crate) use copy::{PostgresSource, PostgresTarget};
pub use store::PostgresStore;
#[cfg(feature = "sqlite")]
pub(crate) use working_set::{
    change_set::{ChangeSet, DayCounts, DocumentRow, KeyRow, MessageRow, OutputRow, TurnRow, tag},
    counters::Counters,
    log_entry::{decode, encode, read_changes},
    small_state::{PendingBatchBody, SharesBody, SmallStateRow, StoreSettings},
    task_row::TaskRow,
};
