//! `onward queue …`

mod command;
mod delete;
mod history;
mod list;
mod mode;
mod pause;
mod pending_batches;
mod purge;
mod resume;
mod scope;
mod set;
mod show;
mod wait;

pub(crate) use command::{Command, run};
pub(crate) use list::table;
pub(crate) use purge::purge;
pub(crate) use scope::scope_text;
pub(crate) use set::parse_concurrency;
