//! Input: items line by line, and passwords.

mod lines;
#[cfg(feature = "serve")]
mod password;
mod reader;
mod spool;

pub(crate) use lines::{Delimiter, ITEM_LINES, Line, Lines};
#[cfg(feature = "serve")]
pub(crate) use password::PasswordSource;
pub(crate) use reader::read_in_background;
pub(crate) use spool::{Source, open};
