//! `onward run`: the workflow of a file, here and now.
//!
//! The run is a task in the store, and its key is that of the template or a digest of template and
//! input. So the same command line finds the same run: it resumes the run where it stopped, or
//! prints its result.
//!
//! In reading order: [`arguments`]; [`input`] (from the command line to the input); [`start`]
//! (the run that is started or continued) and [`check`]; [`script`] (the handler of `run` steps);
//! [`execute`] (the whole); [`view`] (what is shown on the way).

mod arguments;
mod check;
mod execute;
mod input;
mod output_lines;
mod script;
mod start;
mod view;

pub(crate) use arguments::Arguments;
pub(crate) use execute::run;
pub(crate) use input::{read_input, read_value};
pub(crate) use script::ScriptWork;
pub(crate) use view::colored;
