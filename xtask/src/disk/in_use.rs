//! Finds the files that running processes hold, so that they are not removed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The greatest depth below a build folder at which cargo keeps its locks:
/// `miri/x86_64-unknown-linux-gnu/debug/.cargo-lock`.
const LOCK_DEPTH: usize = 3;

/// The paths that processes had open at one moment. Empty on a system without `/proc`.
#[derive(Debug)]
pub(crate) struct InUse {
    pub(crate) open: Vec<PathBuf>,
}

impl InUse {
    /// Reads the open files, the programs and the working directories of all processes.
    pub(crate) fn look() -> Self {
        let processes = entries(Path::new("/proc"));
        let links = processes.iter().flat_map(|process| {
            let mut links = entries(&process.join("fd"));
            links.extend([process.join("cwd"), process.join("exe")]);
            links
        });
        Self { open: links.filter_map(|link| fs::read_link(link).ok()).collect() }
    }

    /// Returns true if a process has `path`, or a file in it, open.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        self.open.iter().any(|open| open.starts_with(&path))
    }
}

/// Returns true if there is a process with this number.
pub(crate) fn is_running(process: u32) -> bool {
    if Path::new("/proc/self").exists() {
        return Path::new("/proc").join(process.to_string()).exists();
    }
    let mut ps = Command::new("ps");
    let status = ps.args(["-p", &process.to_string()]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    // If neither way works, the process counts as running, so that nothing of it is removed.
    status.map_or(true, |status| status.success())
}

/// Takes cargo's locks in a build folder, so that no build starts while they are held. Returns
/// `None` if a build runs.
pub(crate) fn lock_builds(folder: &Path) -> Option<Vec<File>> {
    let mut locks = Vec::new();
    let mut level = vec![folder.to_owned()];
    for _ in 0..LOCK_DEPTH {
        level = level.iter().flat_map(|directory| entries(directory)).collect();
        for path in level.iter().filter(|path| is_cargo_lock(path)) {
            let file = File::open(path).ok()?;
            file.try_lock().ok()?;
            locks.push(file);
        }
    }
    Some(locks)
}

fn is_cargo_lock(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(".cargo") && name.ends_with("lock")
}

/// Returns the entries of a directory, or nothing if it cannot be read.
pub(crate) fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_this_process_has_open_is_held_and_so_is_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = File::create(&path).unwrap();
        let held = InUse::look();
        assert!(held.holds(&path) && held.holds(directory.path()));
        drop(file);
        assert!(!InUse::look().holds(directory.path()));
    }

    #[test]
    fn this_process_runs_and_one_that_was_waited_for_does_not() {
        let mut child = Command::new("true").spawn().unwrap();
        let number = child.id();
        child.wait().unwrap();
        assert!(is_running(std::process::id()));
        assert!(!is_running(number));
    }

    #[test]
    fn a_build_that_runs_keeps_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("debug")).unwrap();
        let lock = File::create(folder.path().join("debug/.cargo-lock")).unwrap();
        lock.lock().unwrap();
        assert!(lock_builds(folder.path()).is_none());
        lock.unlock().unwrap();
        assert_eq!(lock_builds(folder.path()).unwrap().len(), 1);
    }
}
