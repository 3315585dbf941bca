//! `onward serve`

mod arguments;
mod run;

pub(crate) use arguments::Arguments;
pub(crate) use run::run;
