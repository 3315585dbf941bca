//! The state of a file, by which a change is seen without a read.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// The state of a file; of a link, that of the file behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileState {
    /// The time of the last change and the length; `None` if the file cannot be looked at.
    seen: Option<(Option<SystemTime>, u64)>,
    /// The number of the file, which is another one after a rename over it. 0 where there is none.
    number: u64,
}

impl FileState {
    pub(super) fn of(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(found) => Self { seen: Some((found.modified().ok(), found.len())), number: number(&found) },
            Err(_) => Self { seen: None, number: 0 },
        }
    }
}

#[cfg(unix)]
fn number(found: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(found)
}

#[cfg(not(unix))]
fn number(_: &fs::Metadata) -> u64 {
    0
}
