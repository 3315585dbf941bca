//! Who has the file open: each process holds a lock that ends with it, and can be woken.
//!
//! Beside the store lies the directory `<file>-sessions`. Each open store has a file in it, its *mark*, that it keeps locked;
//! the operating system drops the lock when the process ends, however it ends. A process watches its own mark, and whoever has
//! committed something writes a byte to the marks of the others. Alone, a process writes to none.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use notify::event::{EventKind, ModifyKind};
use notify::{RecursiveMode, Watcher};

use crate::error::{Error, Result};
use crate::sqlite::log_owner::{RECORD, with_suffix};
use crate::sqlite::turnstile::{Turn, Turnstile};

/// This process's mark beside the store, and those of its neighbours.
pub(super) struct Presence {
    directory: PathBuf,
    name: String,
    /// Held locked; the lock is the mark.
    _lock: File,
    neighbours: Neighbours,
    turnstile: Turnstile,
    _watcher: notify::RecommendedWatcher,
}

/// The marks of the other processes. They can be woken from any thread: the lock is never held while something waits for SQLite.
#[derive(Debug, Clone, Default)]
pub(super) struct Neighbours(Arc<Mutex<BTreeMap<String, File>>>);

impl Neighbours {
    fn marks(&self) -> MutexGuard<'_, BTreeMap<String, File>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all of them. A failure costs them time, not work.
    pub(super) fn wake(&self) {
        for (name, mark) in &mut *self.marks() {
            if let Err(error) = mark.rewind().and_then(|()| mark.write_all(b"!")) {
                tracing::warn!(%error, process = name, "another process on this store could not be woken");
            }
        }
    }
}

impl std::fmt::Debug for Presence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Presence").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Presence {
    /// Marks this process as present with the file of this inode open; `woken` is called, on a thread of the watcher, whenever a neighbour
    /// has written.
    pub(super) fn enter(store: &Path, inode: u64, woken: impl Fn(Woken) + Send + 'static) -> Result<Self> {
        let directory = marks_of(store);
        fs::create_dir_all(&directory).map_err(|error| failed(&directory, error))?;
        let (name, lock) = lock_a_name(&directory)?;
        // Behind the byte that wakes.
        lock.write_all_at(inode.to_string().as_bytes(), 1).map_err(|error| failed(&directory.join(&name), error))?;
        let watcher = watch(&directory, &name, store, woken)?;
        let turnstile = Turnstile::new(File::open(&directory).map_err(|error| failed(&directory, error))?);
        Ok(Self { directory, name, _lock: lock, neighbours: Neighbours::default(), turnstile, _watcher: watcher })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_alone(&self) -> bool {
        self.neighbours.marks().is_empty()
    }

    /// Waits for this process's turn to write, where it has neighbours.
    pub(super) fn turn(&self) -> Option<Turn<'_>> {
        if self.is_alone() { None } else { self.turnstile.enter() }
    }

    pub(super) fn is_neighbour(&self, name: &str) -> bool {
        self.neighbours.marks().contains_key(name)
    }

    /// Looks who else is here; answers whether that has changed. Marks of processes that have ended are removed.
    pub(super) fn look(&mut self) -> Result<bool> {
        let mut found = BTreeMap::new();
        let entries = fs::read_dir(&self.directory).map_err(|error| failed(&self.directory, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| failed(&self.directory, error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == self.name || name == RECORD {
                continue;
            }
            if let Some(mark) = held_mark(&entry.path()) {
                found.insert(name, mark);
            }
        }
        let mut known = self.neighbours.marks();
        let changed = !found.keys().eq(known.keys());
        *known = found;
        Ok(changed)
    }

    pub(super) fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.directory.join(&self.name));
    }
}

/// Refuses to work on a file of this inode, or to make one, while another process has another file open under the same name. Changes
/// nothing.
pub(super) fn check_peers(store: &Path, inode: Option<u64>) -> Result<()> {
    let Ok(entries) = fs::read_dir(marks_of(store)) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let held = if name == RECORD { None } else { inode_held(&entry.path()) };
        if held.is_some() && held != inode {
            let process = name.split('-').next().unwrap_or_default();
            return Err(Error::replaced(format!(
                "process {process} has the file open that was here before; it was moved, removed or replaced while that process worked, \
                 whose changes would mix with those to this file; end that process first"
            )));
        }
    }
    Ok(())
}

/// The inode that the holder of a mark has open, if the mark is held and says so.
fn inode_held(mark: &Path) -> Option<u64> {
    let file = File::open(mark).ok()?;
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    let mut text = [0; 32];
    let length = file.read_at(&mut text, 1).ok()?;
    std::str::from_utf8(text.get(..length)?).ok()?.parse().ok()
}

fn marks_of(store: &Path) -> PathBuf {
    with_suffix(store, "-sessions")
}

/// Makes a file under a name that nobody has had, and locks it.
fn lock_a_name(directory: &Path) -> Result<(String, File)> {
    loop {
        let random = RandomState::new().build_hasher().finish();
        let name = format!("{}-{random:016x}", std::process::id());
        let path = directory.join(&name);
        let file = File::create_new(&path).map_err(|error| failed(&path, error))?;
        match file.try_lock() {
            // A neighbour that looked between the two steps took it for a dead one's and removed it.
            Ok(()) if path.exists() => return Ok((name, file)),
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(failed(&path, error)),
        }
    }
}

/// A mark whose lock somebody holds; one that nobody holds is removed.
fn held_mark(path: &Path) -> Option<File> {
    let mark = OpenOptions::new().write(true).open(path).ok()?;
    match mark.try_lock() {
        Err(TryLockError::WouldBlock) => Some(mark),
        // Removed while this lock is held: a process that is just making its mark cannot lock it, or finds it gone, and makes
        // another. Somebody else may have removed it first.
        Ok(()) => {
            let _ = fs::remove_file(path);
            None
        }
        Err(TryLockError::Error(_)) => None,
    }
}

fn watch(
    directory: &Path,
    name: &str,
    store: &Path,
    woken: impl Fn(Woken) + Send + 'static,
) -> Result<notify::RecommendedWatcher> {
    let path = directory.join(name);
    let failure = |error: notify::Error| {
        Error::io(format!("{} cannot be watched for other processes' work", path.display())).caused_by(error)
    };
    let (directory, mut seen) = (directory.to_owned(), None);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        let is_of_mark = event.paths.iter().any(|path| path.parent() == Some(&directory));
        match event.kind {
            EventKind::Modify(_) if is_of_mark => woken(Woken::since(&mut seen, &directory)),
            EventKind::Modify(ModifyKind::Data(_)) => woken(Woken::FileWritten),
            EventKind::Modify(_) | EventKind::Remove(_) if !is_of_mark => woken(Woken::FileRenamed),
            _ => {}
        }
    })
    .map_err(failure)?;
    watcher.watch(&path, RecursiveMode::NonRecursive).map_err(failure)?;
    watcher.watch(store, RecursiveMode::NonRecursive).map_err(failure)?;
    Ok(watcher)
}

/// The reason for which the store is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Woken {
    /// A peer has written, and the peers are those of the last time.
    Peer,
    /// A peer has written, and there may be other marks than the last time. It takes a look at the directory's time; to open and try every
    /// mark would be much for each commit of a peer. Marks that come within the same tick of that clock are found at the next look.
    Peers,
    /// The database file was written to, as each checkpoint does.
    FileWritten,
    /// The database file got another name, or none.
    FileRenamed,
}

impl Woken {
    fn since(seen: &mut Option<SystemTime>, directory: &Path) -> Self {
        let now = fs::metadata(directory).and_then(|metadata| metadata.modified()).ok();
        let before = std::mem::replace(seen, now);
        if now.is_some() && before == now { Self::Peer } else { Self::Peers }
    }
}

#[cold]
fn failed(path: &Path, error: std::io::Error) -> Error {
    let text = format!("{} cannot be used: {error}", path.display());
    match error.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            Error::read_only(format!("{text}; the store's directory must be writable"))
        }
        std::io::ErrorKind::NotFound => Error::not_found(format!("{text}; check that the store's directory exists")),
        std::io::ErrorKind::StorageFull => Error::full(format!("{text}; make room and try again")),
        _ => Error::io(text),
    }
    .caused_by(error)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn processes_that_enter_while_others_look_keep_their_marks() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("onward.db");
        fs::write(&store, "").unwrap();
        let mut onlookers = [Presence::enter(&store, 1, |_| {}).unwrap(), Presence::enter(&store, 1, |_| {}).unwrap()];
        let marks = onlookers[0].directory.clone();
        let done = AtomicBool::new(false);
        let removed = std::thread::scope(|scope| {
            for onlooker in &mut onlookers {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        onlooker.look().unwrap();
                    }
                });
            }
            let removed = (0..1000).filter(|_| !is_kept_a_while(&marks)).count();
            done.store(true, Ordering::Relaxed);
            removed
        });
        assert_eq!(removed, 0, "marks were removed under their owners");
    }

    /// What one who is woken by these is told of the marks each time.
    fn told<const N: usize>(wakers: [&Neighbours; N], told: &std::sync::mpsc::Receiver<Woken>) -> [Woken; N] {
        wakers.map(|neighbours| {
            neighbours.wake();
            let first = told.recv().unwrap();
            // One write may be told of more than once.
            std::iter::once(first).chain(told.try_iter()).find(|marks| *marks == Woken::Peers).unwrap_or(first)
        })
    }

    #[test]
    fn whoever_is_woken_again_by_the_same_neighbour_need_not_look_who_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("onward.db");
        fs::write(&store, "").unwrap();
        let (tell, told_of) = std::sync::mpsc::channel();
        let _sleeper = Presence::enter(&store, 1, move |marks| tell.send(marks).unwrap()).unwrap();
        let mut neighbour = Presence::enter(&store, 1, |_| {}).unwrap();
        neighbour.look().unwrap();
        let wakers = [neighbour.neighbours(), neighbour.neighbours()];
        assert_eq!(told(wakers, &told_of), [Woken::Peers, Woken::Peer]);
    }

    /// Makes a mark, lets others have their time, and looks whether it is still there.
    fn is_kept_a_while(marks: &Path) -> bool {
        let (name, _lock) = lock_a_name(marks).unwrap();
        (0..4).for_each(|_| std::thread::yield_now());
        fs::remove_file(marks.join(&name)).is_ok()
    }
}
