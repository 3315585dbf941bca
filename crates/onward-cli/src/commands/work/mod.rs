//! `onward work`: a command per task.
//!
//! In reading order: [`arguments`], which documents the convention between worker and command;
//! [`report`] (what a command says while it runs); [`mailbox`] (how it says it); [`verdict`] (what
//! its end means); [`members`] (what it reads of a bundle); [`handler`]; [`console`] and
//! [`output_directory`] (what people see of it); [`pressure`] (when only what is urgent starts);
//! [`run`].

mod arguments;
mod console;
mod handler;
mod mailbox;
mod members;
mod output_directory;
mod pressure;
mod report;
mod run;
mod verdict;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
