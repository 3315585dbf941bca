//! `onward work`: a command per task.
//!
//! In reading order: [`arguments`], which documents the convention between worker and command;
//! [`report`] (the command's reports while it runs); [`report_pipe`] (their pipe); [`outcome`] (the
//! outcome of the task); [`batch_input`] (the input for a batch); [`handler`]; [`console`] and
//! [`output_directory`] (output for people); [`pressure`] (when only urgent tasks start); `metrics`
//! (for Prometheus); [`run`]. [`app`] runs worker programs, which run many tasks, instead of
//! commands.

mod app;
mod arguments;
mod batch_input;
mod console;
mod handler;
#[cfg(feature = "metrics")]
mod metrics;
mod outcome;
mod output_directory;
mod pressure;
mod report;
mod report_pipe;
mod run;

pub(crate) use arguments::Arguments;
pub(crate) use outcome::{Reported, outcome, stopped};
pub(crate) use run::run;
