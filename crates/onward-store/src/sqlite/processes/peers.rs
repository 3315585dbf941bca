//! Who has the file open: each process holds a lock that ends with it, and can be woken.
//!
//! Beside the store lies the directory `<file>-sessions`. Each open store has a file in it, its
//! *mark*, that it keeps locked; the operating system drops the lock when the process ends, however
//! it ends. A process watches its own mark, and whoever has committed something writes a byte to
//! the marks of the others. Alone, a process writes to none.
//!
//! The name of a mark has the number of the process, a random number, and the inode of the file
//! that the process has open. A process that makes a few calls and ends has a mark that only
//! protects the file: it watches nothing, and no one wakes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use notify::event::{EventKind, ModifyKind};
use notify::{RecursiveMode, Watcher};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};

use crate::api::error::{Error, Result};
use crate::sqlite::file_layer::log_owner::{RECORD, with_suffix};
use crate::sqlite::processes::ticket_lock::Turnstile;
use crate::sqlite::processes::write_lock::WriteLock;

/// Ends the name of a mark of a process that makes a few calls and ends.
const BRIEF: &str = ".brief";

/// How long a process has a store open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum Stay {
    /// It works on the store, and is woken when others write.
    Lasting,
    /// It makes a few calls and ends. It wakes others, and is not woken.
    Brief,
}

/// This process's mark beside the store, and those of its neighbours.
pub(in crate::sqlite) struct Presence {
    directory: PathBuf,
    name: String,
    stay: Stay,
    /// Held locked; the lock is the mark.
    _lock: File,
    neighbours: Neighbours,
    /// Whether marks of brief processes were there at the last look.
    has_brief: bool,
    turnstile: Turnstile,
    /// `None` for a brief process, and where the system has no watch left.
    watcher: Option<notify::RecommendedWatcher>,
}

/// The marks of the other lasting processes. They can be woken from any thread: the lock is never
/// held while something waits for SQLite.
#[derive(Debug, Clone, Default)]
pub(in crate::sqlite) struct Neighbours {
    marks: Arc<Mutex<BTreeMap<String, File>>>,
    /// Where a brief process looks for them before it wakes them; it does so at no other time.
    directory: Option<PathBuf>,
}

impl Neighbours {
    fn marks(&self) -> MutexGuard<'_, BTreeMap<String, File>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all of them. A failure costs them time, not work.
    pub(in crate::sqlite) fn wake(&self) {
        if let Some(directory) = &self.directory {
            *self.marks() = lasting_marks(directory);
        }
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
    /// Marks this process as present with the file of this inode open; `woken` is called, on a
    /// thread of the watcher, whenever a neighbour has written. Without a watch the store is looked
    /// at once a second.
    pub(in crate::sqlite) fn enter(store: &Path, inode: u64, woken: impl Fn(Woken) + Send + 'static) -> Result<Self> {
        let mut presence = Self::mark(store, inode, Stay::Lasting)?;
        match watch(&presence.directory, &presence.name, store, woken) {
            Ok(watcher) => presence.watcher = Some(watcher),
            Err(failure) => tracing::warn!("{}", without_watch(&failure)),
        }
        Ok(presence)
    }

    /// Marks a process that makes a few calls and ends: it watches nothing, and the others are told
    /// to look until it is gone.
    pub(in crate::sqlite) fn enter_briefly(store: &Path, inode: u64) -> Result<Self> {
        let presence = Self::mark(store, inode, Stay::Brief)?;
        announce(&presence.directory);
        Ok(presence)
    }

    fn mark(store: &Path, inode: u64, stay: Stay) -> Result<Self> {
        let directory = marks_of(store);
        fs::create_dir_all(&directory).map_err(|error| failed(&directory, error))?;
        let (name, lock) = lock_a_name(&directory, inode, stay)?;
        let place = File::open(&directory).map_err(|error| failed(&directory, error))?;
        let looks_in = (stay == Stay::Brief).then(|| directory.clone());
        Ok(Self {
            directory,
            name,
            stay,
            _lock: lock,
            neighbours: Neighbours { directory: looks_in, ..Neighbours::default() },
            has_brief: false,
            turnstile: Turnstile::new(place, WriteLock::of(store)),
            watcher: None,
        })
    }

    pub(in crate::sqlite) fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::sqlite) fn is_brief(&self) -> bool {
        self.stay == Stay::Brief
    }

    pub(in crate::sqlite) fn is_alone(&self) -> bool {
        self.neighbours.marks().is_empty()
    }

    /// Whether this process hears of everything that others write, and need not look for it.
    pub(in crate::sqlite) fn hears_all(&self) -> bool {
        self.is_alone() && !self.has_brief && self.is_watching()
    }

    /// Whether the system wakes this process when others write.
    pub(in crate::sqlite) fn is_watching(&self) -> bool {
        self.watcher.is_some()
    }

    /// The way to the write lock, which all processes take in the order in which they come.
    pub(in crate::sqlite) fn turnstile(&self) -> &Turnstile {
        &self.turnstile
    }

    /// Whether a process works on the store.
    pub(in crate::sqlite) fn is_here(&self, name: &str) -> bool {
        name == self.name || self.neighbours.marks().contains_key(name) || is_process_here(&self.directory, name)
    }

    /// Looks which lasting processes are here; returns whether that has changed. Marks of those
    /// that have ended are removed, and with `sweep` also those of brief processes.
    pub(in crate::sqlite) fn look(&mut self, sweep: bool) -> Result<bool> {
        let mut found = BTreeMap::new();
        let entries = fs::read_dir(&self.directory).map_err(|error| failed(&self.directory, error))?;
        self.has_brief = false;
        for entry in entries {
            let entry = entry.map_err(|error| failed(&self.directory, error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == self.name || name == RECORD {
                continue;
            }
            if name.ends_with(BRIEF) {
                self.has_brief |= !sweep || held_mark(&entry.path()).is_some();
            } else if let Some(mark) = held_mark(&entry.path()) {
                found.insert(name, mark);
            }
        }
        let mut known = self.neighbours.marks();
        let changed = !found.keys().eq(known.keys());
        *known = found;
        Ok(changed)
    }

    pub(in crate::sqlite) fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.directory.join(&self.name));
    }
}

/// Refuses to work on a file of this inode, or to make one, while another process has another file
/// open under the same name. Changes nothing. Opens no mark of a process that has this file open,
/// so that many processes that come at once cost little.
pub(in crate::sqlite) fn check_peers(store: &Path, inode: Option<u64>) -> Result<()> {
    let Ok(entries) = fs::read_dir(marks_of(store)) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let of = inode_in(&name);
        if of.is_some() && of != inode && is_held(&entry.path()) {
            let process = name.split('-').next().unwrap_or_default();
            return Err(Error::replaced(format!(
                "process {process} has the file open that was here before; it was moved, removed or replaced while that process worked, \
                 whose changes would mix with those to this file; end that process first"
            )));
        }
    }
    Ok(())
}

/// Returns the processes of these whose mark beside a store is not held any more.
pub(in crate::sqlite) fn ended(store: &Path, processes: BTreeSet<String>) -> BTreeSet<String> {
    let marks = marks_of(store);
    processes.into_iter().filter(|process| !is_process_here(&marks, process)).collect()
}

/// The inode of the file that the owner of a mark has open.
fn inode_in(name: &str) -> Option<u64> {
    name.trim_end_matches(BRIEF).rsplit('-').next()?.parse().ok()
}

/// Whether the process with this name lives. One without a name has no mark, and its path would be
/// that of the directory.
fn is_process_here(marks: &Path, name: &str) -> bool {
    !name.is_empty() && is_held(&marks.join(name))
}

/// Whether the owner of a mark lives.
fn is_held(mark: &Path) -> bool {
    File::open(mark).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

fn marks_of(store: &Path) -> PathBuf {
    with_suffix(store, "-sessions")
}

/// The marks of the lasting processes that are here.
fn lasting_marks(directory: &Path) -> BTreeMap<String, File> {
    let Ok(entries) = fs::read_dir(directory) else { return BTreeMap::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let lasting = names.filter(|name| name != RECORD && !name.ends_with(BRIEF));
    lasting.filter_map(|name| held_mark(&directory.join(&name)).map(|mark| (name, mark))).collect()
}

/// Has the lasting processes look once a second for as long as the mark of a brief one is there: it
/// may be killed between its commit and the wake.
fn announce(directory: &Path) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    for mark in lasting_marks(directory).keys() {
        // A failure costs time, and only if this process is killed.
        let _ = utimensat(CWD, directory.join(mark), &times, AtFlags::empty());
    }
}

/// Makes a file under a name that nobody has had, and locks it.
fn lock_a_name(directory: &Path, inode: u64, stay: Stay) -> Result<(String, File)> {
    let kind = if stay == Stay::Brief { BRIEF } else { "" };
    loop {
        let random = RandomState::new().build_hasher().finish();
        let name = format!("{}-{random:016x}-{inode}{kind}", std::process::id());
        let path = directory.join(&name);
        let file = File::create_new(&path).map_err(|error| failed(&path, error))?;
        match file.try_lock() {
            // A neighbour that looked between the two steps took it for a dead one's and removed
            // it.
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
        // Removed while this lock is held: a process that is just making its mark cannot lock it,
        // or finds it gone, and makes another. Somebody else may have removed it first.
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
) -> notify::Result<notify::RecommendedWatcher> {
    let path = directory.join(name);
    let (directory, mut seen) = (directory.to_owned(), None);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        let is_of_mark = event.paths.iter().any(|path| path.parent() == Some(&directory));
        match event.kind {
            EventKind::Modify(ModifyKind::Metadata(_)) if is_of_mark => woken(Woken::Announced),
            EventKind::Modify(_) if is_of_mark => woken(Woken::since(&mut seen, &directory)),
            EventKind::Modify(ModifyKind::Data(_)) => woken(Woken::FileWritten),
            EventKind::Modify(_) | EventKind::Remove(_) if !is_of_mark => woken(Woken::FileRenamed),
            _ => {}
        }
    })?;
    watcher.watch(&path, RecursiveMode::NonRecursive)?;
    watcher.watch(store, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

/// Checks whether the system lets this process watch a file.
///
/// # Errors
/// If it does not, with the setting that says how many may be watched.
pub(in crate::sqlite) fn check_watch(store: &Path) -> Result<()> {
    let watch = || notify::recommended_watcher(|_| {})?.watch(store, RecursiveMode::NonRecursive);
    watch().map_err(|failure| Error::io(without_watch(&failure)).caused_by(failure))
}

/// Reports that there is no watch, and what to raise.
fn without_watch(failure: &notify::Error) -> String {
    let setting = match failure.kind {
        notify::ErrorKind::MaxFilesWatch => "fs.inotify.max_user_watches",
        _ => "fs.inotify.max_user_instances",
    };
    format!(
        "no file can be watched ({failure}), so work of other processes is noticed once a second; raise {setting} (sysctl)"
    )
}

/// The reason for which the store is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum Woken {
    /// A peer has written, and the peers are those of the last time.
    Peer,
    /// A peer has written, and there may be other marks than the last time. It takes a look at the
    /// directory's time; to open and try every mark would be much for each commit of a peer. Marks
    /// that come within the same tick of that clock are found at the next look.
    Peers,
    /// A brief process has come.
    Announced,
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
                        onlooker.look(true).unwrap();
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
        neighbour.look(true).unwrap();
        let wakers = [neighbour.neighbours(), neighbour.neighbours()];
        assert_eq!(told(wakers, &told_of), [Woken::Peers, Woken::Peer]);
    }

    /// Makes a mark, lets others have their time, and looks whether it is still there.
    fn is_kept_a_while(marks: &Path) -> bool {
        let (name, _lock) = lock_a_name(marks, 1, Stay::Lasting).unwrap();
        (0..4).for_each(|_| std::thread::yield_now());
        fs::remove_file(marks.join(&name)).is_ok()
    }
}
