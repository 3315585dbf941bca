//! The web page: its files, which are in the program, and their responses.

mod files;
mod serve;

pub(super) use serve::page_router;
