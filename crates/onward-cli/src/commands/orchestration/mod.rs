//! `onward orchestration …`

mod command;
mod control;
mod messages;
mod reading;
mod replay;
mod selection;

pub(crate) use command::{Command, run};
pub(crate) use reading::waiting::Waiting;
