//! Copies a stopped store to another place, of any backend.
//!
//! Both ends represent a store as the [rows](crate::postgres::ChangeSet) of the PostgreSQL store:
//! tasks, keys, links, other records, the log, and sums. [`run`] transfers them in pieces of
//! bounded size; `sqlite/copy` and `postgres/copy` read and write them.

mod end;
mod run;

pub use end::CopyEnd;
pub use run::{Copied, copy};
pub(crate) use run::{DOCUMENT_PIECE, PIECE, Source, SourceFacts, Target};
