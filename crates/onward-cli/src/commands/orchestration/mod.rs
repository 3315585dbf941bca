//! `onward orchestration …`

mod asked;
mod cancel;
mod check;
mod command;
mod delete;
mod export;
mod fork;
mod history;
mod list;
mod named;
mod pause;
mod program;
mod query;
mod record;
mod retry;
mod show;
mod signal;
mod start;
mod status;
mod terminate;
mod timeline;
mod tree;
mod update;
mod wait;
mod waiting;

pub(crate) use command::{Command, run};
pub(crate) use waiting::Waiting;
