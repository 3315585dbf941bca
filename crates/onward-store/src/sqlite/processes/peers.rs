//! The processes that have the file open. Each holds a lock that ends with it, and can be woken.
//!
//! The directory `<file>-sessions` lies beside the store. Each open store has a *lock file* in it,
//! which it keeps locked. The operating system releases the lock when the process ends, even if it
//! is killed. A process watches its own lock file. After a commit it writes a byte to the lock
//! files of its peers, if it has any.
//!
//! The name of a lock file has the number of the process, a random number, and the inode of the
//! file that the process has open. A *brief* process, which makes a few calls and ends, has a lock
//! file that only protects the file. It watches nothing and is never woken.

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
use crate::sqlite::processes::ticket_lock::TicketLock;
use crate::sqlite::processes::write_lock::WriteLock;

/// The end of the name of a brief process's lock file.
const BRIEF: &str = ".brief";

/// The kind of a process, by the time for which it has a store open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessKind {
    /// It works on the store, and is woken when its peers write.
    Lasting,
    /// It makes a few calls and ends. It wakes its peers, and is not woken.
    Brief,
}

/// This process's lock file beside the store, and those of its peers.
pub(in crate::sqlite) struct PeerProcesses {
    /// The directory of lock files.
    directory: PathBuf,
    /// The name of this process's lock file.
    name: String,
    /// The kind of this process, lasting or brief.
    process_kind: ProcessKind,
    /// The lock file, which stays locked until this is dropped.
    _lock: File,
    /// The lock files of peers.
    wakers: PeerWakers,
    /// True if brief processes had lock files at the last refresh.
    has_brief: bool,
    /// The lock by which processes take turns to write.
    ticket_lock: TicketLock,
    /// The watch of this process's lock file and of the database file. `None` for a brief process,
    /// and if the system has no watch left.
    watcher: Option<notify::RecommendedWatcher>,
    /// The path of the database file.
    store: PathBuf,
}

/// The lock files of the other lasting processes, through which any thread can wake them. The mutex
/// is never held during a wait for SQLite.
#[derive(Debug, Clone, Default)]
pub(in crate::sqlite) struct PeerWakers {
    /// The open lock files by name.
    lock_files: Arc<Mutex<BTreeMap<String, File>>>,
    /// The directory in which a brief process lists its peers before it wakes them.
    directory: Option<PathBuf>,
}

impl PeerWakers {
    /// Locks the list.
    fn lock_files(&self) -> MutexGuard<'_, BTreeMap<String, File>> {
        self.lock_files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes all peers. A failure delays them but loses nothing.
    pub(in crate::sqlite) fn wake(&self) {
        if let Some(directory) = &self.directory {
            *self.lock_files() = lasting_lock_files(directory);
        }
        for (name, lock_file) in &mut *self.lock_files() {
            if let Err(error) = lock_file.rewind().and_then(|()| lock_file.write_all(b"!")) {
                tracing::warn!(%error, process = name, "another process on this store could not be woken");
            }
        }
    }
}

impl std::fmt::Debug for PeerProcesses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Presence").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PeerProcesses {
    /// Registers this process with the inode of its open file. A thread of the watcher calls
    /// `woken` whenever a peer has written. Without a watch the store is checked once a second.
    pub(in crate::sqlite) fn register(
        store: &Path,
        inode: u64,
        woken: impl Fn(WakeReason) + Send + 'static,
    ) -> Result<Self> {
        let mut peers = Self::with_lock_file(store, inode, ProcessKind::Lasting)?;
        match watch(&peers.directory, &peers.name, store, woken) {
            Ok(watcher) => peers.watcher = Some(watcher),
            Err(failure) => tracing::warn!("{}", without_watch(&failure)),
        }
        Ok(peers)
    }

    /// Registers a brief process. It watches nothing, and its peers check the store once a second
    /// until it has ended.
    pub(in crate::sqlite) fn register_briefly(store: &Path, inode: u64) -> Result<Self> {
        let peers = Self::with_lock_file(store, inode, ProcessKind::Brief)?;
        announce(&peers.directory);
        Ok(peers)
    }

    /// Creates and locks a lock file for this process.
    fn with_lock_file(store: &Path, inode: u64, process_kind: ProcessKind) -> Result<Self> {
        let directory = lock_directory(store);
        fs::create_dir_all(&directory).map_err(|error| failed(&directory, error))?;
        let (name, lock) = lock_a_name(&directory, inode, process_kind)?;
        let directory_file = File::open(&directory).map_err(|error| failed(&directory, error))?;
        let wakes_in = (process_kind == ProcessKind::Brief).then(|| directory.clone());
        Ok(Self {
            directory,
            name,
            process_kind,
            _lock: lock,
            wakers: PeerWakers { directory: wakes_in, ..PeerWakers::default() },
            has_brief: false,
            ticket_lock: TicketLock::new(directory_file, WriteLock::of(store)),
            watcher: None,
            store: store.to_owned(),
        })
    }

    /// Stops the watch of the database file. That of the lock file goes on.
    pub(in crate::sqlite) fn stop_file_watch(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            // It fails if the file is gone, and its watch with it.
            let _ = watcher.unwatch(&self.store);
        }
    }

    /// Resumes the watch of the database file. If the system has no watch left, the store is
    /// checked once a second from now on.
    pub(in crate::sqlite) fn resume_file_watch(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        if let Err(failure) = watcher.watch(&self.store, RecursiveMode::NonRecursive) {
            // A missing file is what the caller's check reports.
            if self.store.exists() {
                tracing::warn!("{}", without_watch(&failure));
            }
            self.watcher = None;
        }
    }

    /// Returns the name of this process's lock file.
    pub(in crate::sqlite) fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if this process is brief.
    pub(in crate::sqlite) fn is_brief(&self) -> bool {
        self.process_kind == ProcessKind::Brief
    }

    /// Returns true if the last refresh found no lasting peer.
    pub(in crate::sqlite) fn is_alone(&self) -> bool {
        self.wakers.lock_files().is_empty()
    }

    /// Returns true if every write of other processes wakes this one, so that it need not poll.
    pub(in crate::sqlite) fn is_woken_by_all_writes(&self) -> bool {
        self.is_alone() && !self.has_brief && self.is_watching()
    }

    /// Returns true if the system wakes this process when other processes write.
    pub(in crate::sqlite) fn is_watching(&self) -> bool {
        self.watcher.is_some()
    }

    /// Returns the ticket lock, through which processes get the write lock in the order of their
    /// arrival.
    pub(in crate::sqlite) fn ticket_lock(&self) -> &TicketLock {
        &self.ticket_lock
    }

    /// Returns true if a process has the store open.
    pub(in crate::sqlite) fn is_running(&self, name: &str) -> bool {
        name == self.name || self.wakers.lock_files().contains_key(name) || is_process_here(&self.directory, name)
    }

    /// Lists the lasting processes, and returns true if the list has changed. Removes the lock
    /// files of ended lasting processes, and with `sweep` also those of ended brief ones.
    pub(in crate::sqlite) fn refresh(&mut self, sweep: bool) -> Result<bool> {
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
                self.has_brief |= !sweep || held_lock_file(&entry.path()).is_some();
            } else if let Some(lock_file) = held_lock_file(&entry.path()) {
                found.insert(name, lock_file);
            }
        }
        let mut known = self.wakers.lock_files();
        let changed = !found.keys().eq(known.keys());
        *known = found;
        Ok(changed)
    }

    /// Returns the wakers, which another thread can use.
    pub(in crate::sqlite) fn wakers(&self) -> &PeerWakers {
        &self.wakers
    }
}

impl Drop for PeerProcesses {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.directory.join(&self.name));
    }
}

/// Rejects work on a file of this inode, or its creation, while another process has another file
/// open under the same name. Changes nothing. It opens no lock file of a process that has this file
/// open, so that many processes that start at once cost little.
pub(in crate::sqlite) fn check_peers(store: &Path, inode: Option<u64>) -> Result<()> {
    let Ok(entries) = fs::read_dir(lock_directory(store)) else { return Ok(()) };
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

/// Returns those of `processes` that have ended: their lock files are not locked.
pub(in crate::sqlite) fn ended(store: &Path, processes: BTreeSet<String>) -> BTreeSet<String> {
    let directory = lock_directory(store);
    processes.into_iter().filter(|process| !is_process_here(&directory, process)).collect()
}

/// Returns the inode of the file that the owner of a lock file has open.
fn inode_in(name: &str) -> Option<u64> {
    name.trim_end_matches(BRIEF).rsplit('-').next()?.parse().ok()
}

/// Returns true if the process with this name lives. The empty name belongs to no process, and its
/// path would be that of the directory.
fn is_process_here(directory: &Path, name: &str) -> bool {
    !name.is_empty() && is_held(&directory.join(name))
}

/// Returns true if the owner of a lock file lives.
fn is_held(lock_file: &Path) -> bool {
    File::open(lock_file).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Returns the directory of lock files beside a store.
fn lock_directory(store: &Path) -> PathBuf {
    with_suffix(store, "-sessions")
}

/// Returns the lock files of the lasting processes that are present.
fn lasting_lock_files(directory: &Path) -> BTreeMap<String, File> {
    let Ok(entries) = fs::read_dir(directory) else { return BTreeMap::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let lasting = names.filter(|name| name != RECORD && !name.ends_with(BRIEF));
    lasting.filter_map(|name| held_lock_file(&directory.join(&name)).map(|lock_file| (name, lock_file))).collect()
}

/// Makes the lasting processes check the store once a second while a brief process exists, because
/// it may be killed between its commit and the wake-up.
fn announce(directory: &Path) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    for lock_file in lasting_lock_files(directory).keys() {
        // A failure matters only if this process is killed, and then delays its peers.
        let _ = utimensat(CWD, directory.join(lock_file), &times, AtFlags::empty());
    }
}

/// Creates a lock file under a new name, and locks it.
fn lock_a_name(directory: &Path, inode: u64, process_kind: ProcessKind) -> Result<(String, File)> {
    let kind = if process_kind == ProcessKind::Brief { BRIEF } else { "" };
    loop {
        let random = RandomState::new().build_hasher().finish();
        let name = format!("{}-{random:016x}-{inode}{kind}", std::process::id());
        let path = directory.join(&name);
        let file = File::create_new(&path).map_err(|error| failed(&path, error))?;
        match file.try_lock() {
            // A peer may have removed the file between the two steps, taking it for that of an
            // ended process.
            Ok(()) if path.exists() => return Ok((name, file)),
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(failed(&path, error)),
        }
    }
}

/// Opens a lock file that a process has locked. Removes a file that none has.
fn held_lock_file(path: &Path) -> Option<File> {
    let lock_file = OpenOptions::new().write(true).open(path).ok()?;
    match lock_file.try_lock() {
        Err(TryLockError::WouldBlock) => Some(lock_file),
        // Removed while it is locked here: a process that is creating it cannot lock it, or finds
        // it gone, and creates another. Another process may have removed it first.
        Ok(()) => {
            let _ = fs::remove_file(path);
            None
        }
        Err(TryLockError::Error(_)) => None,
    }
}

/// Watches the lock file of this process and the directory, and calls `woken` on each change.
fn watch(
    directory: &Path,
    name: &str,
    store: &Path,
    woken: impl Fn(WakeReason) + Send + 'static,
) -> notify::Result<notify::RecommendedWatcher> {
    let path = directory.join(name);
    let (directory, mut seen) = (directory.to_owned(), None);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        let is_of_lock_file = event.paths.iter().any(|path| path.parent() == Some(&directory));
        match event.kind {
            EventKind::Modify(ModifyKind::Metadata(_)) if is_of_lock_file => woken(WakeReason::Announced),
            EventKind::Modify(_) if is_of_lock_file => woken(WakeReason::since(&mut seen, &directory)),
            EventKind::Modify(ModifyKind::Data(_)) => woken(WakeReason::FileWritten),
            EventKind::Modify(_) | EventKind::Remove(_) if !is_of_lock_file => woken(WakeReason::FileRenamed),
            _ => {}
        }
    })?;
    watcher.watch(&path, RecursiveMode::NonRecursive)?;
    watcher.watch(store, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

/// Checks that the system lets this process watch a file.
///
/// # Errors
/// If it does not; the error names the setting to raise.
pub(in crate::sqlite) fn check_watch(store: &Path) -> Result<()> {
    let watch = || notify::recommended_watcher(|_| {})?.watch(store, RecursiveMode::NonRecursive);
    watch().map_err(|failure| Error::io(without_watch(&failure)).caused_by(failure))
}

/// Returns the text for a missing watch, with the setting to raise.
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
pub(in crate::sqlite) enum WakeReason {
    /// A peer has written, and the set of peers is the same as last time.
    Peer,
    /// A peer has written, and there may be new lock files. This reads only the directory's time,
    /// because opening every lock file would cost too much for each commit of a peer. A change
    /// within the same tick of that clock is found at the next check.
    Peers,
    /// A brief process has started.
    Announced,
    /// The database file was written to, as each checkpoint does.
    FileWritten,
    /// The database file was renamed or removed.
    FileRenamed,
}

impl WakeReason {
    /// Distinguishes a write to the lock file from a change of the directory, in which case peers
    /// came or went.
    fn since(seen: &mut Option<SystemTime>, directory: &Path) -> Self {
        let now = fs::metadata(directory).and_then(|metadata| metadata.modified()).ok();
        let before = std::mem::replace(seen, now);
        if now.is_some() && before == now { Self::Peer } else { Self::Peers }
    }
}

/// The error for a directory or lock file that cannot be used.
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
    fn processes_that_enter_while_others_look_keep_their_lock_files() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("onward.db");
        fs::write(&store, "").unwrap();
        let mut onlookers =
            [PeerProcesses::register(&store, 1, |_| {}).unwrap(), PeerProcesses::register(&store, 1, |_| {}).unwrap()];
        let directory_of_locks = onlookers[0].directory.clone();
        let done = AtomicBool::new(false);
        let removed = std::thread::scope(|scope| {
            for onlooker in &mut onlookers {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        onlooker.refresh(true).unwrap();
                    }
                });
            }
            let removed = (0..1000).filter(|_| !is_kept_a_while(&directory_of_locks)).count();
            done.store(true, Ordering::Relaxed);
            removed
        });
        assert_eq!(removed, 0, "lock files were removed under their owners");
    }

    /// Wakes a process with each of these wakers, and returns what it receives each time.
    fn reported<const N: usize>(
        wakers: [&PeerWakers; N],
        reported: &std::sync::mpsc::Receiver<WakeReason>,
    ) -> [WakeReason; N] {
        wakers.map(|wakers| {
            wakers.wake();
            let first = reported.recv().unwrap();
            // One write may cause several events.
            std::iter::once(first).chain(reported.try_iter()).find(|woken| *woken == WakeReason::Peers).unwrap_or(first)
        })
    }

    #[test]
    fn a_process_woken_again_by_the_same_peer_need_not_list_the_peers() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("onward.db");
        fs::write(&store, "").unwrap();
        let (report, reports) = std::sync::mpsc::channel();
        let _sleeper = PeerProcesses::register(&store, 1, move |woken| report.send(woken).unwrap()).unwrap();
        let mut peer = PeerProcesses::register(&store, 1, |_| {}).unwrap();
        peer.refresh(true).unwrap();
        let wakers = [peer.wakers(), peer.wakers()];
        assert_eq!(reported(wakers, &reports), [WakeReason::Peers, WakeReason::Peer]);
    }

    #[test]
    fn a_change_of_the_file_is_reported_only_while_it_is_watched() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("onward.db");
        fs::write(&store, "").unwrap();
        let (report, reports) = std::sync::mpsc::channel();
        let mut process = PeerProcesses::register(&store, 1, move |woken| report.send(woken).unwrap()).unwrap();
        process.stop_file_watch();
        fs::write(&store, "unseen").unwrap();
        process.resume_file_watch();
        assert_eq!(reports.try_recv().ok(), None);
        fs::write(&store, "seen").unwrap();
        assert_eq!(reports.recv().unwrap(), WakeReason::FileWritten);
    }

    /// Creates a lock file, lets other threads run, and checks that it still exists.
    fn is_kept_a_while(directory: &Path) -> bool {
        let (name, _lock) = lock_a_name(directory, 1, ProcessKind::Lasting).unwrap();
        (0..4).for_each(|_| std::thread::yield_now());
        fs::remove_file(directory.join(&name)).is_ok()
    }
}
