//! Settings: defaults, then `onward.toml`, then `ONWARD_*` variables, then flags.
//!
//! The flags of the command line are the only definition of a setting: its name, variable, default
//! and syntax. The values of the file become the defaults of the flags.

mod file;
mod parse;
mod table;

#[cfg(feature = "serve")]
pub(crate) use parse::parse_again;
pub(crate) use parse::{Parsed, parse};
pub(crate) use table::{SETTINGS, Setting};
