//! A disk that keeps only what was synced.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;

use super::recording::{Inode, Operation, Part};

/// The bytes that a disk writes as a whole.
const SECTOR: u64 = 512;

/// The disk at one moment of a recording.
#[derive(Debug, Default)]
pub(super) struct Disk {
    files: Vec<File>,
    /// The directory on the disk.
    entries: BTreeMap<Part, Inode>,
    /// The changes of the directory since the last sync: a file under a name, or none.
    entry_changes: Vec<(Part, Option<Inode>)>,
}

#[derive(Debug, Default)]
struct File {
    synced: Vec<u8>,
    /// The changes since the last sync.
    changes: Vec<Change>,
    /// True if the file was ever synced.
    known: bool,
}

#[derive(Debug)]
enum Change {
    Write { offset: u64, bytes: Arc<[u8]> },
    Truncate { size: u64 },
}

impl Disk {
    /// Performs the next operation.
    pub(super) fn perform(&mut self, operation: &Operation) {
        match operation {
            Operation::Create { part, inode } => {
                self.files.push(File::default());
                self.entry_changes.push((*part, Some(*inode)));
            }
            Operation::Write { inode, offset, bytes } => {
                self.files[*inode].changes.push(Change::Write { offset: *offset, bytes: Arc::clone(bytes) });
            }
            Operation::Truncate { inode, size } => self.files[*inode].changes.push(Change::Truncate { size: *size }),
            Operation::Sync { inode } => self.sync(*inode),
            Operation::Delete { part } => self.entry_changes.push((*part, None)),
        }
    }

    /// Syncs a file. The first sync also syncs the directory: SQLite does that for a new log or
    /// journal, and a file system does it for any new file.
    fn sync(&mut self, inode: Inode) {
        let File { synced, changes, known } = &mut self.files[inode];
        changes.drain(..).for_each(|change| change.apply(synced));
        if !std::mem::replace(known, true) {
            self.entries = self.link(self.entry_changes.len());
            self.entry_changes.clear();
        }
    }

    /// Returns the directory with the first `changes` of its changes.
    fn link(&self, changes: usize) -> BTreeMap<Part, Inode> {
        let mut entries = self.entries.clone();
        for (part, inode) in &self.entry_changes[..changes] {
            match inode {
                Some(inode) => entries.insert(*part, *inode),
                None => entries.remove(part),
            };
        }
        entries
    }

    /// Returns the files as they may be after a power cut now. Of the unsynced changes, a directory
    /// keeps the first ones, as journaling file systems do. A file keeps any, applied in any order,
    /// and some of them torn.
    pub(super) fn after_power_cut(&self, random: &mut Rng) -> BTreeMap<Part, Vec<u8>> {
        let entries = self.link(random.usize(..=self.entry_changes.len()));
        entries.into_iter().map(|(part, inode)| (part, self.files[inode].after_power_cut(random))).collect()
    }
}

impl File {
    fn after_power_cut(&self, random: &mut Rng) -> Vec<u8> {
        // This makes nothing, everything, and all in between likely enough to occur in a few
        // hundred cuts.
        let kept = [0.0, 1.0, 0.5, random.f64()][random.usize(..4)];
        let mut survivors: Vec<&Change> = self.changes.iter().filter(|_| random.f64() < kept).collect();
        random.shuffle(&mut survivors);
        let mut content = self.synced.clone();
        for change in survivors {
            if random.u8(..4) == 0 {
                change.torn(random).apply(&mut content);
            } else {
                change.apply(&mut content);
            }
        }
        content
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => {
                let start = length(*offset);
                let end = start + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[start..end].copy_from_slice(bytes);
            }
            Self::Truncate { size } => content.truncate(length(*size)),
        }
    }

    /// Returns a part of the change, up to a sector boundary.
    fn torn(&self, random: &mut Rng) -> Self {
        match self {
            Self::Write { offset, bytes } => {
                let end = offset + bytes.len() as u64;
                let sector = random.u64(offset / SECTOR..=end / SECTOR);
                let kept = length((sector * SECTOR).clamp(*offset, end) - offset);
                Self::Write { offset: *offset, bytes: bytes[..kept].into() }
            }
            Self::Truncate { size } => Self::Truncate { size: *size },
        }
    }
}

fn length(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a file of this test fits into memory")
}

mod tests {
    use super::*;

    /// Returns the contents that a file may have after these operations, as found by 1000 cuts.
    fn seen(operations: &[Operation]) -> std::collections::BTreeSet<Option<Vec<u8>>> {
        let mut disk = Disk::default();
        operations.iter().for_each(|operation| disk.perform(operation));
        let mut random = Rng::with_seed(1);
        (0..1000).map(|_| disk.after_power_cut(&mut random).remove(&Part::Log)).collect()
    }

    fn made() -> Operation {
        Operation::Create { part: Part::Log, inode: 0 }
    }

    fn written(offset: u64, byte: u8, count: usize) -> Operation {
        Operation::Write { inode: 0, offset, bytes: vec![byte; count].into() }
    }

    const SYNCED: Operation = Operation::Sync { inode: 0 };

    #[test]
    fn a_synced_write_is_kept() {
        assert_eq!(seen(&[made(), written(0, 1, 3), SYNCED]), [Some(vec![1; 3])].into());
    }

    #[test]
    fn a_file_that_was_never_synced_may_not_be_there() {
        assert!(seen(&[made(), written(0, 1, 3)]).contains(&None));
    }

    #[test]
    fn an_unsynced_write_is_kept_or_forgotten() {
        let seen = seen(&[made(), written(0, 1, 3), SYNCED, written(1, 2, 1)]);
        assert_eq!(seen, [Some(vec![1, 1, 1]), Some(vec![1, 2, 1])].into());
    }

    #[test]
    fn unsynced_writes_are_applied_in_any_order() {
        let seen = seen(&[made(), SYNCED, written(0, 1, 1), written(0, 2, 1)]);
        assert_eq!(seen, [Some(vec![]), Some(vec![1]), Some(vec![2])].into());
    }

    #[test]
    fn an_unsynced_write_tears_where_a_sector_ends() {
        let torn = [vec![1; 2], vec![2; 510], vec![1; 12]].concat();
        let whole = [vec![1; 2], vec![2; 522]].concat();
        let seen = seen(&[made(), written(0, 1, 524), SYNCED, written(2, 2, 522)]);
        assert_eq!(seen, [Some(vec![1; 524]), Some(torn), Some(whole)].into());
    }

    #[test]
    fn a_deleted_file_may_come_back() {
        let seen = seen(&[made(), written(0, 1, 1), SYNCED, Operation::Delete { part: Part::Log }]);
        assert_eq!(seen, [None, Some(vec![1])].into());
    }

    #[test]
    fn a_deleted_file_stays_away_once_a_new_one_is_synced() {
        let made_again = Operation::Create { part: Part::Log, inode: 1 };
        let deleted = Operation::Delete { part: Part::Log };
        let seen = seen(&[made(), written(0, 1, 1), SYNCED, deleted, made_again, Operation::Sync { inode: 1 }]);
        assert_eq!(seen, [Some(vec![])].into());
    }
}
