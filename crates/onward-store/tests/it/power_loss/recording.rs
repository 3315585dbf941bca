//! Records the operations on a store's files, in order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rusqlite::ffi::SQLITE_OK;

/// A file of a store. The shared memory beside the log is not recorded, because it does not survive
/// a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Database,
    Log,
    /// The rollback journal, which exists until the write-ahead log is switched on.
    Journal,
}

impl Part {
    const ALL: [Self; 3] = [Self::Database, Self::Log, Self::Journal];

    /// Returns the path of the part, for a store at `path`.
    pub(super) fn beside(self, path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(match self {
            Self::Database => "",
            Self::Log => "-wal",
            Self::Journal => "-journal",
        });
        name.into()
    }
}

/// The number of a file within the recording. A file that is deleted and created again gets another
/// number.
pub(super) type Inode = usize;

/// A change, or a sync.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    /// A new file was created.
    Create {
        part: Part,
        inode: Inode,
    },
    Write {
        inode: Inode,
        offset: u64,
        bytes: Arc<[u8]>,
    },
    Truncate {
        inode: Inode,
        size: u64,
    },
    Sync {
        inode: Inode,
    },
    Delete {
        part: Part,
    },
}

/// The recording of one store.
#[derive(Debug, Default)]
pub(super) struct Recording {
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    operations: Vec<Operation>,
    /// The existing files.
    linked: BTreeMap<Part, Inode>,
    /// The number of files so far.
    inodes: usize,
}

/// The active recordings, by the store's path.
static RECORDINGS: Mutex<Vec<(PathBuf, Weak<Recording>)>> = Mutex::new(Vec::new());

/// Returns the recording to which a file belongs, if it is recorded.
pub(super) fn find(file: &Path) -> Option<(Arc<Recording>, Part)> {
    let recordings = RECORDINGS.lock().unwrap_or_else(PoisonError::into_inner);
    recordings.iter().find_map(|(store, recording)| {
        let part = Part::ALL.into_iter().find(|part| part.beside(store) == file)?;
        Some((recording.upgrade()?, part))
    })
}

impl Recording {
    /// Records the operations on the store that will be created at this absolute path, as long as
    /// the returned value lives.
    pub(super) fn of(store: &Path) -> Arc<Self> {
        let recording = Arc::new(Self::default());
        let mut recordings = RECORDINGS.lock().unwrap_or_else(PoisonError::into_inner);
        recordings.retain(|(_, recording)| recording.strong_count() > 0);
        recordings.push((store.to_owned(), Arc::downgrade(&recording)));
        recording
    }

    /// Returns the number of operations so far.
    pub(super) fn position(&self) -> usize {
        self.log().operations.len()
    }

    /// Takes the operations, which leaves the recording empty.
    pub(super) fn take(&self) -> Vec<Operation> {
        std::mem::take(&mut self.log().operations)
    }

    pub(super) fn open(self: &Arc<Self>, part: Part, open: impl FnOnce() -> i32) -> Result<RecordedFile, i32> {
        let mut log = self.log();
        let code = open();
        if code != SQLITE_OK {
            return Err(code);
        }
        let inode = log.inode_of(part);
        Ok(RecordedFile { recording: Arc::clone(self), inode })
    }

    pub(super) fn delete(&self, part: Part, delete: impl FnOnce() -> i32) -> i32 {
        let mut log = self.log();
        let code = delete();
        if code == SQLITE_OK && log.linked.remove(&part).is_some() {
            log.operations.push(Operation::Delete { part });
        }
        code
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn inode_of(&mut self, part: Part) -> Inode {
        if let Some(&inode) = self.linked.get(&part) {
            return inode;
        }
        let inode = self.inodes;
        self.inodes += 1;
        self.linked.insert(part, inode);
        self.operations.push(Operation::Create { part, inode });
        inode
    }
}

/// An open file. The order of the recording is the order of the operations, because each runs while
/// the recording is locked.
#[derive(Debug)]
pub(super) struct RecordedFile {
    recording: Arc<Recording>,
    inode: Inode,
}

impl RecordedFile {
    pub(super) fn write(&self, offset: u64, bytes: &[u8], write: impl FnOnce() -> i32) -> i32 {
        self.change(Operation::Write { inode: self.inode, offset, bytes: bytes.into() }, write)
    }

    pub(super) fn truncate(&self, size: u64, truncate: impl FnOnce() -> i32) -> i32 {
        self.change(Operation::Truncate { inode: self.inode, size }, truncate)
    }

    pub(super) fn sync(&self) {
        self.recording.log().operations.push(Operation::Sync { inode: self.inode });
    }

    fn change(&self, operation: Operation, change: impl FnOnce() -> i32) -> i32 {
        let mut log = self.recording.log();
        let code = change();
        if code == SQLITE_OK {
            log.operations.push(operation);
        }
        code
    }
}
