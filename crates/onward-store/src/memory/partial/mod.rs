//! Deciding over a part of a store: the same code as that of the memory store, over the rows that another one has loaded.

mod changes;
mod difference;
mod items;
mod row;
mod run;
mod wanted;

pub(crate) use changes::{decode, read_changes};
pub(crate) use difference::{Difference, KeyRow};
pub(crate) use items::{ItemRow, Items};
pub(crate) use row::{Links, TaskRow};
pub(crate) use run::{Answered, Counters, LaneRows, Now, Partial, Ran, claimed_by, state_of};
pub(crate) use wanted::wanted_by;
