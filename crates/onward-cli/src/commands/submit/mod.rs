//! `onward submit`

mod arguments;
mod command;
mod lines;

pub(crate) use arguments::Arguments;
pub(crate) use command::run;
