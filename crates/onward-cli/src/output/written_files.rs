//! The files that a command uses, and the check that it writes to none of them by mistake.
//!
//! A command truncates the files that it writes. If such a file is its own store or its own input,
//! work is lost; if two of its outputs are one file, they overwrite each other.

use std::fs::Metadata;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::exit_code::wrong_usage;
use crate::location::Location;

/// The ends of the names of the files that SQLite keeps beside a store.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// The files that a command uses, each with the words for it in an error.
#[derive(Debug, Default)]
pub(crate) struct UsedFiles(Vec<(FileKey, String)>);

/// The identity of a regular file, independent of the name by which it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FileKey {
    /// The device and the number of a file that exists.
    Existing { device: u64, inode: u64 },
    /// The path of a file that does not exist yet, with the links in its directory resolved.
    Missing(PathBuf),
}

impl UsedFiles {
    /// Records the files of a store. A store on a server has none.
    pub(crate) fn of_store(store: &Location) -> Self {
        let mut files = Self::default();
        if let Location::File(path) = store {
            files.add(path, &format!("the store {}", path.display()));
            for end in BESIDE {
                let mut beside = path.clone().into_os_string();
                beside.push(end);
                files.add(Path::new(&beside), &format!("a part of the store {}", path.display()));
            }
        }
        files
    }

    /// Records a file that the command reads. `words` describes it in an error.
    pub(crate) fn add(&mut self, path: &Path, words: &str) {
        self.0.extend(FileKey::of(path).map(|key| (key, words.to_owned())));
    }

    /// Records the file behind a standard stream, if it is one.
    pub(crate) fn add_stream(&mut self, stream: impl AsFd, words: &str) {
        let Ok(found) = rustix::fs::fstat(stream) else { return };
        if FileType::from_raw_mode(found.st_mode).is_file() {
            self.0.push((FileKey::Existing { device: found.st_dev, inode: found.st_ino }, words.to_owned()));
        }
    }

    /// Records a file that the command is about to write.
    ///
    /// # Errors
    /// Wrong usage if the command uses the file otherwise.
    pub(crate) fn add_output(&mut self, flag: &str, path: &Path) -> anyhow::Result<()> {
        let Some(key) = FileKey::of(path) else { return Ok(()) };
        if let Some((_, words)) = self.0.iter().find(|(used, _)| *used == key) {
            return Err(wrong_usage(format!(
                "{flag} {}: this file is {words}, and writing would destroy it; name another file",
                path.display()
            )));
        }
        self.0.push((key, format!("also the file of {flag}")));
        Ok(())
    }
}

impl FileKey {
    /// Returns the key of a path; `None` for a device, a pipe or a directory, and for a path that
    /// cannot be examined. Several outputs may share a device or a pipe.
    fn of(path: &Path) -> Option<Self> {
        match std::fs::metadata(path) {
            Ok(found) => Self::of_existing(&found),
            Err(_) => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let directory = parent.unwrap_or(Path::new(".")).canonicalize().ok()?;
                Some(Self::Missing(directory.join(path.file_name()?)))
            }
        }
    }

    fn of_existing(found: &Metadata) -> Option<Self> {
        found.is_file().then(|| Self::Existing { device: found.dev(), inode: found.ino() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(used: &mut UsedFiles, path: &Path) -> Option<String> {
        used.add_output("--results", path).err().map(|error| error.to_string())
    }

    #[test]
    fn a_file_is_recognised_by_every_name_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link] = ["input", "link"].map(|name| directory.path().join(name));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut used = UsedFiles::default();
        used.add(&file, "the input");
        assert!(refusal(&mut used, &link).unwrap().contains("this file is the input"));
        assert!(refusal(&mut used, &directory.path().join("./input")).is_some());
    }

    #[test]
    fn two_outputs_that_do_not_exist_yet_are_compared_by_their_paths() {
        let directory = tempfile::tempdir().unwrap();
        let mut used = UsedFiles::default();
        assert_eq!(refusal(&mut used, &directory.path().join("one")), None);
        assert_eq!(refusal(&mut used, &directory.path().join("other")), None);
        assert!(refusal(&mut used, &directory.path().join("./one")).unwrap().contains("also the file of --results"));
    }

    #[test]
    fn a_device_may_be_named_several_times() {
        let mut used = UsedFiles::default();
        used.add(Path::new("/dev/null"), "the input");
        assert_eq!(refusal(&mut used, Path::new("/dev/null")), None);
    }
}
