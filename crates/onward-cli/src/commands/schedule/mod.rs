//! `onward schedule …`

mod backfill;
mod command;
mod control;
mod json;
mod list;
mod next;
mod set;
mod show;
mod trigger;

pub(crate) use command::{Command, run};
