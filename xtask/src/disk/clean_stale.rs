//! `cargo xtask clean-stale`: removes old build folders, and what tests and benchmarks left behind.
//!
//! It keeps everything that a running process holds. Three things show that: the process number in
//! the entry's name, a lock of cargo, or an open file in the entry.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};

use super::in_use::{self, InUse, entries};
use super::temporary_files;
use crate::project::Project;
use crate::test::INTEROP_TARGET;

/// The arguments of `cargo xtask clean-stale`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Print what would be removed, and remove nothing.
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Remove builds and stores to which nothing was written for this many days.
    #[arg(long, value_name = "DAYS", default_value_t = 7)]
    days: u64,
}

/// Folders below the target folder that only rarely used commands make.
const OCCASIONAL: [&str; 6] = [INTEROP_TARGET, "loom", "miri", "mutants", "package", "xtask"];

/// Folders of the project whose programs have target folders of their own.
const WORKSPACES: [&str; 4] = ["bench", "crates/onward/fuzz", "crates/onward-zmtp/fuzz", "xtask/interop"];

/// Prefixes of names in the temporary folder. The number of the process that made the entry
/// follows.
const NAMED_AFTER_PROCESS: [&str; 4] = ["onward-postgres-", temporary_files::FOLDER, "onward-zmtp-", "bench-sockets-"];

/// Prefixes of names in the temporary folder that do not contain the number of a process.
const NAMED_WITHOUT_PROCESS: [&str; 1] = ["onward-server-"];

/// The condition under which an entry may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Nothing was written to the entry for the number of days in the options.
    Old,
    /// The process of this number has ended.
    Ended(u32),
    /// No program is built into the folder any more.
    Unused,
}

/// An entry that may be stale.
#[derive(Debug, PartialEq, Eq)]
struct Candidate {
    path: PathBuf,
    rule: Rule,
}

/// The folders that are searched for stale entries.
#[derive(Debug)]
struct Folders {
    root: PathBuf,
    target: PathBuf,
    temporary: PathBuf,
}

/// The number of bytes on the disk, and the time of the last write.
#[derive(Debug)]
struct Measured {
    bytes: u64,
    newest: SystemTime,
}

/// Removes stale entries, or prints them.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    let folders =
        Folders { root: project.root().to_owned(), target: project.target(), temporary: std::env::temp_dir() };
    let age = Duration::from_secs(options.days * 24 * 3600);
    let held = InUse::look();
    let (mut freed, mut failed) = (0, 0);
    for candidate in folders.candidates() {
        let Some(measured) = stale(&candidate, age) else { continue };
        let shown = format!("{:>9}  {}", room(measured.bytes), candidate.path.display());
        match remove(&candidate.path, &held, options.dry_run) {
            Removal::Done => {
                freed += measured.bytes;
                println!("{} {shown}", if options.dry_run { "would remove" } else { "removed" });
            }
            Removal::Held => println!("kept    {shown}: a process holds it"),
            Removal::Failed(error) => {
                failed += 1;
                println!("kept    {shown}: {error}");
            }
        }
    }
    println!("{} {}", room(freed), if options.dry_run { "would be freed" } else { "freed" });
    ensure!(failed == 0, "{failed} could not be removed");
    Ok(())
}

impl Folders {
    fn candidates(&self) -> Vec<Candidate> {
        let mut found = self.builds();
        found.extend(self.data());
        found.extend(entries(&self.temporary).into_iter().filter_map(temporary));
        found.sort_by(|one, other| one.path.cmp(&other.path));
        found
    }

    /// Returns the build folders of rare commands and of programs that no longer exist, and the
    /// caches of incremental builds.
    fn builds(&self) -> Vec<Candidate> {
        let occasional = OCCASIONAL.iter().map(|name| self.target.join(name)).filter(|path| path.exists());
        let mut found: Vec<Candidate> = occasional.map(|path| Candidate { path, rule: Rule::Old }).collect();
        let mut targets = Vec::new();
        WORKSPACES.iter().for_each(|name| target_folders(&self.root.join(name), &mut targets));
        let shared = self.root.join("bench/target");
        let is_used = |target: &PathBuf| *target == shared || target.with_file_name("Cargo.lock").exists();
        let (mut used, unused): (Vec<_>, Vec<_>) = targets.into_iter().partition(is_used);
        found.extend(unused.into_iter().map(|path| Candidate { path, rule: Rule::Unused }));
        used.push(self.target.clone());
        let profiles = used.iter().flat_map(|target| entries(target));
        let incremental = profiles.flat_map(|profile| entries(&profile.join("incremental")));
        found.extend(incremental.map(|path| Candidate { path, rule: Rule::Old }));
        found
    }

    /// Returns the stores and servers of benchmarks.
    fn data(&self) -> Vec<Candidate> {
        let folders = [self.target.join("data"), self.root.join("bench/target/data")];
        let of_a_server = |path: &Path| process(path, "postgres-");
        let rule = |path: &Path| of_a_server(path).map_or(Rule::Old, Rule::Ended);
        folders.iter().flat_map(|folder| entries(folder)).map(|path| Candidate { rule: rule(&path), path }).collect()
    }
}

/// Collects the folders named `target` that cargo has made below `directory`.
fn target_folders(directory: &Path, found: &mut Vec<PathBuf>) {
    for path in entries(directory).into_iter().filter(|path| path.is_dir() && !path.is_symlink()) {
        if path.ends_with("target") && path.join("CACHEDIR.TAG").exists() {
            found.push(path);
        } else if !path.ends_with("node_modules") {
            target_folders(&path, found);
        }
    }
}

/// Returns an entry of the temporary folder if our tests and benchmarks use such a name.
fn temporary(path: PathBuf) -> Option<Candidate> {
    let name = path.file_name()?.to_str()?;
    let rule = match NAMED_AFTER_PROCESS.iter().find_map(|prefix| process(&path, prefix)) {
        Some(process) => Rule::Ended(process),
        None => NAMED_WITHOUT_PROCESS.iter().any(|prefix| name.starts_with(prefix)).then_some(Rule::Old)?,
    };
    Some(Candidate { path, rule })
}

/// Returns the number after the prefix of a name. Another part may follow it: `onward-zmtp-4711-1`.
fn process(path: &Path, prefix: &str) -> Option<u32> {
    let rest = path.file_name()?.to_str()?.strip_prefix(prefix)?;
    rest.split('-').next()?.parse().ok()
}

/// Measures an entry if its rule allows its removal.
fn stale(candidate: &Candidate, age: Duration) -> Option<Measured> {
    if let Rule::Ended(process) = candidate.rule
        && in_use::is_running(process)
    {
        return None;
    }
    let measured = measure(&candidate.path)?;
    let is_old = measured.newest.elapsed().unwrap_or_default() >= age;
    (candidate.rule != Rule::Old || is_old).then_some(measured)
}

fn measure(path: &Path) -> Option<Measured> {
    let mut measured = Measured { bytes: 0, newest: SystemTime::UNIX_EPOCH };
    let mut linked = BTreeSet::new();
    let mut waiting = vec![path.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(metadata) = path.symlink_metadata() else { continue };
        // Cargo hard-links a program under two paths, which take the space of one.
        if metadata.is_dir() || metadata.nlink() == 1 || linked.insert(metadata.ino()) {
            measured.bytes += metadata.blocks() * 512;
        }
        measured.newest = measured.newest.max(metadata.modified().ok()?);
        if metadata.is_dir() {
            waiting.extend(entries(&path));
        }
    }
    Some(measured)
}

/// The result of removing an entry.
#[derive(Debug)]
enum Removal {
    Done,
    Held,
    Failed(std::io::Error),
}

fn remove(path: &Path, held: &InUse, dry_run: bool) -> Removal {
    // The cache of an incremental build is below a profile, whose lock is two levels up.
    let build = path.parent().filter(|parent| parent.ends_with("incremental")).and_then(Path::parent);
    let Some(_locks) = in_use::lock_builds(build.unwrap_or(path)).filter(|_| !held.holds(path)) else {
        return Removal::Held;
    };
    if dry_run {
        return Removal::Done;
    }
    let is_directory = path.is_dir() && !path.is_symlink();
    match if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) } {
        Ok(()) => Removal::Done,
        Err(error) => Removal::Failed(error),
    }
}

/// Returns a number of bytes in KiB or MiB.
fn room(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    if bytes < MIB { format!("{} KiB", bytes / 1024) } else { format!("{} MiB", bytes / MIB) }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
    /// A number that no process has: Linux gives none above 2^22.
    const NO_PROCESS: u32 = u32::MAX - 1;

    struct Fixture {
        folder: tempfile::TempDir,
        folders: Folders,
    }

    impl Fixture {
        fn new(paths: &[&str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().to_owned();
            let folders = Folders { target: root.join("target"), temporary: root.join("tmp"), root };
            for path in paths {
                let path = folder.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "x").unwrap();
            }
            Self { folder, folders }
        }

        /// Returns what a run removes, relative to the root.
        fn stale(&self, age: Duration) -> Vec<String> {
            let stale = self.folders.candidates().into_iter().filter(|candidate| stale(candidate, age).is_some());
            let relative = |path: &Path| path.strip_prefix(self.folder.path()).unwrap().to_str().unwrap().to_owned();
            stale.map(|candidate| relative(&candidate.path)).collect()
        }
    }

    #[test]
    fn builds_of_rare_commands_and_incremental_parts_go_when_they_are_old() {
        let fixture = Fixture::new(&["target/miri/debug/a", "target/debug/incremental/b-1/s/c", "target/debug/deps/d"]);
        assert_eq!(fixture.stale(WEEK), [""; 0]);
        assert_eq!(fixture.stale(Duration::ZERO), ["target/debug/incremental/b-1", "target/miri"]);
    }

    #[test]
    fn builds_of_the_tests_with_other_libraries_go_when_they_are_old() {
        let fixture = Fixture::new(&[&format!("target/{INTEROP_TARGET}/debug/a")]);
        assert_eq!(fixture.stale(WEEK), [""; 0]);
        assert_eq!(fixture.stale(Duration::ZERO), ["target/interop"]);
    }

    #[test]
    fn one_new_file_keeps_an_old_build() {
        let fixture = Fixture::new(&["target/miri/a", "target/miri/new"]);
        let set = |path: &str| {
            let path = fixture.folder.path().join(path);
            File::open(path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        };
        ["target/miri/a", "target/miri"].into_iter().for_each(set);
        assert_eq!(fixture.stale(WEEK), [""; 0]);
        set("target/miri/new");
        assert_eq!(fixture.stale(WEEK), ["target/miri"]);
    }

    #[test]
    fn the_target_folder_of_a_program_that_is_gone_goes_at_once() {
        let fixture = Fixture::new(&[
            "bench/peers/gone/target/CACHEDIR.TAG",
            "bench/peers/here/target/CACHEDIR.TAG",
            "bench/peers/here/Cargo.lock",
            "bench/target/CACHEDIR.TAG",
        ]);
        assert_eq!(fixture.stale(WEEK), ["bench/peers/gone/target"]);
    }

    #[test]
    fn a_directory_with_the_number_of_a_process_goes_when_that_has_ended() {
        let own = std::process::id();
        let paths = ["onward-postgres-", "onward-tests-", "bench-sockets-"].map(|name| format!("tmp/{name}{own}/x"));
        let fixture = Fixture::new(&paths.each_ref().map(String::as_str));
        assert_eq!(fixture.stale(Duration::ZERO), [""; 0]);
        let ended = format!("tmp/onward-postgres-{NO_PROCESS}");
        let socket = format!("tmp/onward-zmtp-{NO_PROCESS}-3");
        let server = format!("bench/target/data/postgres-{NO_PROCESS}");
        let fixture = Fixture::new(&[&format!("{ended}/x"), &socket, &format!("{server}/x")]);
        assert_eq!(fixture.stale(WEEK), [server, ended, socket]);
    }

    #[test]
    fn other_programs_files_in_the_temporary_folder_stay() {
        let fixture = Fixture::new(&["tmp/.tmpAbCdEf/onward.db", "tmp/onward-postgres-x/y", "tmp/onward-server-a/y"]);
        assert_eq!(fixture.stale(Duration::ZERO), ["tmp/onward-server-a"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_a_process_has_open_is_kept() {
        let fixture = Fixture::new(&["target/data/onward.db"]);
        let path = fixture.folder.path().join("target/data/onward.db");
        let file = File::open(&path).unwrap();
        assert!(matches!(remove(&path, &InUse::look(), false), Removal::Held));
        drop(file);
        assert!(matches!(remove(&path, &InUse::look(), false), Removal::Done));
        assert!(!path.exists());
    }

    #[test]
    fn what_a_build_has_locked_is_kept() {
        let fixture = Fixture::new(&["target/debug/.cargo-lock", "target/debug/incremental/a-1/x"]);
        let path = fixture.folder.path().join("target/debug/incremental/a-1");
        let lock = File::open(fixture.folder.path().join("target/debug/.cargo-lock")).unwrap();
        lock.lock().unwrap();
        assert!(matches!(remove(&path, &InUse { open: Vec::new() }, false), Removal::Held));
        assert!(path.exists());
    }

    #[test]
    fn a_dry_run_removes_nothing() {
        let fixture = Fixture::new(&["target/miri/a"]);
        let path = fixture.folder.path().join("target/miri");
        assert!(matches!(remove(&path, &InUse { open: Vec::new() }, true), Removal::Done));
        assert!(path.exists());
    }
}
