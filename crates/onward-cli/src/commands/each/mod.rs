//! `onward each`: durable xargs.
//!
//! Each line of the input is a task in the queue `each:<run>`, under a key made of the run, the
//! line's number and a digest of the line. Keys stay taken after their tasks have ended, so a
//! second process with the same run, or a later one, finds the tasks that are there already instead
//! of making new ones. That is all there is to going on after an interruption, and to sharing a run
//! among processes.
//!
//! In reading order: [`arguments`]; [`identity`] (which run this is); [`template`] (what is run for
//! a line); [`handler`] (running it, as a handler of the engine); [`record`] (what is kept of it);
//! [`feed`] (from lines to tasks); [`report`] (from ended tasks to output); [`halt`] (when a run
//! ends early); [`run`] (all of it together); [`dry_run`] (what would be run); [`runs`] (which runs
//! a store has).

mod arguments;
mod dry_run;
mod feed;
mod halt;
mod handler;
mod identity;
mod opening;
mod order;
mod record;
mod report;
mod run;
mod runs;
mod sinks;
mod summary;
mod template;
mod token_bucket;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
pub(crate) use runs::{RunRecord, runs};
