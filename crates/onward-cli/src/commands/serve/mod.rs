//! `onward serve`

mod announce;
mod arguments;
mod check;
mod demo;
mod issuer;
mod prepare;
mod reload;
mod run;

pub(crate) use arguments::{Arguments, Settings};
pub(crate) use run::run;
