//! `onward orchestration …`

mod cancel;
mod command;
mod delete;
mod history;
mod list;
mod named;
mod retry;
mod show;
mod signal;
mod start;
mod status;
mod timeline;
mod tree;
mod wait;
mod waiting;

pub(crate) use command::{Command, run};
pub(crate) use waiting::Waiting;
