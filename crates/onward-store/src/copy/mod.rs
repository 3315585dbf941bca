//! Copies a stopped store to another place, of any backend.
//!
//! Both ends represent a store as the [rows](crate::postgres::ChangeSet) of the PostgreSQL store:
//! tasks, keys, links, other records, the log, and sums. [`run`] transfers them in pieces of
//! bounded size; `sqlite/copy` and `postgres/copy` read and write them.

mod end;
mod run;

pub use end::CopyEnd;
pub(crate) use run::{Begun, DOCUMENT_PIECE, PIECE, Source, Target};
pub use run::{Copied, copy};
