//! `/v1/orchestrations`: durable functions.

mod control;
mod fork;
mod history;
mod history_event;
mod query;
mod table;
mod target;
mod tree;
mod update;

pub(super) use table::table;
