//! `onward each`: durable xargs.
//!
//! Each line of the input is a task in the queue `each:<run>`. Its key consists of the run, the
//! line's number and a digest of the line. Keys stay reserved after their tasks have ended, so a
//! second or later process with the same run finds the existing tasks instead of creating new ones.
//! This alone makes it possible to continue after an interruption, and to share a run among
//! processes.
//!
//! A process that is killed leaves the lines that it was running as running tasks of its session. A
//! file shows at once that the process is gone; elsewhere the session ends with its lease. Either
//! way the tasks then wait again, and the next process that serves the queue runs them. The command
//! of such a line may have run in part, so it runs at least once and not exactly once.
//!
//! In reading order: [`arguments`]; [`identity`] (the identity of a run);
//! [`changed_command`] (the command of `--changed-command`); [`template`] (the command
//! for a line); [`handler`] (running the command, as a handler of the engine); [`record`] (the
//! stored result); [`feed`] (from lines to tasks); [`report`] (from ended tasks to output);
//! [`job_log`] (the rows of `--job-log`); [`halt`] (early end); [`run`] (the whole); [`dry_run`]
//! (showing the commands only); [`runs`] (the runs in a store).

mod arguments;
mod changed_command;
mod dry_run;
mod end_order;
mod ended_lines;
mod feed;
mod halt;
mod handler;
mod identity;
mod job_log;
mod open_run;
mod pacer;
mod record;
mod report;
mod run;
mod runs;
mod sinks;
mod summary;
mod template;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
pub(crate) use runs::{RunRecord, runs};
