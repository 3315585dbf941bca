//! Moving a stopped store to another place, of whatever backend.
//!
//! Both ends speak of a store as the [rows](crate::postgres::ChangeSet) that a partial state is
//! loaded from and written as: tasks, keys, links, what is no task, the log, sums. [`run`] carries
//! them over in pieces of bounded size; `sqlite/copy` and `postgres/copy` read and write them.

mod end;
mod run;

pub use end::CopyEnd;
pub(crate) use run::{Begun, PIECE, Source, Target};
pub use run::{Copied, copy};
