//! `onward serve`

mod arguments;
mod demo;
mod run;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
