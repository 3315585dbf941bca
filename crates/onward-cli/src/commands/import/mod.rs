//! `onward import …`

mod command;
mod crontab;

pub(crate) use command::{Command, run};
