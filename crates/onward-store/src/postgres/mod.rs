//! The PostgreSQL store: several machines, one database.
//!
//! One batch of calls is one transaction of three or four round trips: the store's lock and what
//! the calls will look for; whatever else they turn out to look for; what they changed, and the
//! commit. What happens in between is decided by the code of the memory store over the rows that
//! were loaded (`memory/known.rs`, `memory/working_set/`), so that this module holds no rule.
//!
//! [`sql`] has the names of the tables, [`load`] loads, [`save`] and [`tasks`] write, [`writer`]
//! makes batches of calls and transactions of batches, [`append`] is the short way of steps,
//! [`next`] has the calls of the next transaction, [`ahead`] what is decided of them meanwhile,
//! [`own`] and [`unchanged`] say what a writer need not read again, [`reads`] answers what is
//! asked, [`wake`] listens to other processes. See `docs/design/0005-postgresql.md`.

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
    change_set::{ChangeSet, DayCounts, DocumentRow, KeyRow, MessageRow, TurnRow, tag},
    counters::Counters,
    log_entry::{decode, encode, read_changes},
    small_state::{CollectionBody, SharesBody, SmallStateRow, StoreSettings},
    task_row::TaskRow,
};
