//! `onward queue …`

mod command;
mod delete;
mod list;
mod pause;
mod purge;
mod resume;
mod scope;
mod show;

pub(crate) use command::{Command, run};
pub(crate) use list::table;
pub(crate) use purge::purge;
pub(crate) use scope::scope_text;
