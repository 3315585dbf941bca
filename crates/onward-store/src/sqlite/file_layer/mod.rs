//! The layer between SQLite and the file system: a SQLite VFS, [`vfs`], that takes part in reads
//! and writes of two sorts of files.
//!
//! Pages get **checksums** in the [database file](database_file), where the store was created with
//! them. SQLite has none there: a bit that flips within a value is read as another value. SQLite
//! does leave room for them at the end of each page if this is set before the file's first page is
//! written. They are filled in when a page is written to the file and verified when a page is read;
//! [`page`] defines them.
//!
//! Writes to the [log](log_file) are **gathered**: SQLite makes two for each page of a commit. The
//! log has checksums of its own, and what is in it stays as SQLite made it.
//!
//! [`store_files`] checks that the files at the store's paths are those that it opened, by the
//! [`identity`] in the database file and the [owner](log_owner) of the log.

mod database_file;
mod identity;
mod log_file;
pub(super) mod log_owner;
mod page;
mod raw;
pub(super) mod store_files;
mod vfs;

pub(super) use page::CHECKSUM_BYTES;
pub(super) use raw::{RawRead, has_moved, read_file};
pub(super) use vfs::{NAME, TRUSTING_NAME, goes_through_layer, over, register, reserve, reserved};
