//! `onward workflow …`

mod carriers;
mod check;
mod command;
mod diff;
mod files;
mod generate;
mod graph;
mod import_tasker;
mod list;
mod prune;
mod put;
mod reference;
mod runs;
mod show;
mod test;

pub(crate) use carriers::{REMEDY as CARRIER_REMEDY, carriers};
pub(crate) use command::{Command, run};
pub(crate) use files::read_valid;
pub(crate) use runs::reply_command;
