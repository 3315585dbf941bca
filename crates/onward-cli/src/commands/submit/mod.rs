//! `onward submit`

mod arguments;
mod command;
mod io_options;
mod lines;
mod payload;
mod task_options;

pub(crate) use arguments::Arguments;
pub(crate) use command::{run, wait};
pub(crate) use payload::read_payload;
pub(crate) use task_options::{DuplicateAction, TaskOptions};
