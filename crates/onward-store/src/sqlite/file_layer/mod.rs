//! The layer between SQLite and the file system: a SQLite VFS, [`vfs`], that handles two kinds of
//! files itself.
//!
//! - The [database file](database_file) gets **checksums**, if the store was created with them.
//!   SQLite has none there, so a flipped bit within a value would be read as another value. SQLite
//!   can leave room at the end of each page, if this is set before the first page is written. The
//!   layer fills in the checksum when it writes a page, and verifies it when it reads one; [`page`]
//!   defines it.
//! - Writes to the [log](log_file) are **gathered**, because SQLite makes two for each page of a
//!   commit. The log has checksums of its own, and its content stays as SQLite made it.
//!
//! [`store_files`] checks that the files at the store's paths are the ones that it opened, by the
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
