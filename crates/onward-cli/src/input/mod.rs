//! Input with one item per line.

mod lines;
mod reader;
mod spool;

pub(crate) use lines::{Delimiter, ITEM_LINES, Line, Lines};
pub(crate) use reader::read_in_background;
pub(crate) use spool::{Source, open};
