//! The disk: its free space, old build folders, and what the tests left behind.

pub(crate) mod clean_stale;
mod free_space;
mod in_use;
pub(crate) mod temporary_files;

pub(crate) use free_space::{ensure_room, explain};
