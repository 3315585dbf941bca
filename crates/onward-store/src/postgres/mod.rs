//! The PostgreSQL store: several machines, one database.
//!
//! One batch of calls is one transaction of three or four round trips: the store's lock and what
//! the calls will look for; whatever else they turn out to look for; what they changed, and the
//! commit. What happens in between is decided by the code of the memory store over the rows that
//! were loaded (`memory/known.rs`, `memory/partial/`), so that this module holds no rule.
//!
//! [`sql`] has the names of the tables, [`fetch`] loads, [`save`] and [`tasks`] write, [`writer`]
//! makes batches of calls and transactions of batches, [`append`] is the short way of steps,
//! [`next`] has the calls of the next transaction, [`ahead`] what is decided of them meanwhile,
//! [`own`] and [`unchanged`] say what a writer need not read again, [`reads`] answers what is
//! asked, [`wake`] listens to other processes. See `docs/design/0005-postgresql.md`.

mod ahead;
mod alike;
mod append;
mod begin;
mod beside;
mod caller;
mod check;
mod clock;
mod completions;
mod connection;
#[cfg(feature = "sqlite")]
mod copy;
mod early;
mod encryption;
mod environment;
mod error;
mod fetch;
mod flusher;
mod inbox;
mod migrate;
mod next;
mod numbers;
mod options;
mod own;
mod patience;
mod reads;
mod rights;
mod row;
mod save;
mod sql;
mod store;
mod tasks;
mod transaction;
mod unchanged;
mod wake;
mod writer;

pub use caller::AppliedOnServer;
pub use check::PostgresReport;
pub use completions::CompletionStatement;
#[cfg(feature = "sqlite")]
pub(crate) use copy::{PostgresSource, PostgresTarget};
pub use options::PostgresOptions;
pub use store::PostgresStore;
