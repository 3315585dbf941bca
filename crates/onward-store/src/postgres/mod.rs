//! The PostgreSQL store: several machines, one database.
//!
//! A batch of calls is one transaction of three or four round trips. The first takes the store's
//! lock and loads what the calls are known to read. Further ones load what else they turn out to
//! read. The last writes what has changed, and commits. In between, the [model](crate::model)
//! decides over the rows that were loaded, so that this module has no rules of its own.
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
