//! Deciding over a part of a store: the same code as that of the memory store, over the rows that
//! another one has loaded.

mod alike;
mod changes;
mod decision;
mod difference;
mod interference;
mod items;
mod kept;
mod row;
mod run;
#[cfg(test)]
mod tests;
mod wanted;

pub(crate) use alike::Alike;
pub(crate) use changes::{decode, encode, read_changes};
pub(crate) use decision::{Decision, Written};
pub(crate) use difference::{DayCounts, Difference, KeyRow, MessageRow, TurnRow, tag};
pub(crate) use items::{CollectionBody, ItemRow, Items, Settings, SharesBody};
pub(crate) use kept::Kept;
pub(crate) use row::{AdvancedRow, ChangedRow, Links, LoadedTask, TaskRow};
pub(crate) use run::{Answered, Counters, LaneHead, LaneRows, Now, Partial, Ran, claimed_by, state_of};
pub(crate) use wanted::wanted_by;
