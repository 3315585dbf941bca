//! Checksums of the pages of a store's file, where the store was made with them.
//!
//! SQLite has none in the database file: a bit that flips within a value is read as another value. SQLite does leave room for them at
//! the end of each page if it is told to before the file's first page is written. A layer between SQLite and the file system fills it
//! when a page is written to the file and looks at it when a page is read: [`page`] says how, [`layer`] is the layer.
//!
//! The write-ahead log has its own checksums, and nothing is done to it.

mod layer;
mod page;

pub(super) use layer::{NAME, TRUSTING_NAME, goes_through_layer, register, reserve, reserved};
pub(super) use page::CHECKSUM_BYTES;
