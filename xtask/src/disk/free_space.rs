//! Checks the free space on the file systems that a build and its tests write to, so that a full
//! disk is reported as such.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Error, Result, bail};

use crate::command;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A step that fails with less space than this has most likely failed because the disk is full.
const FULL_BELOW: u64 = GIB;

/// The space that CI needs from an empty target folder.
///
/// The builds of all tests take 2.4 GiB (2026-11-27, without incremental builds). The rest is for
/// clippy, the documentation, the release builds of the benchmarks and the servers of the tests.
const CI_NEEDS: u64 = 6 * GIB;

/// The remedy for a full disk.
const REMEDY: &str = "`cargo xtask clean-stale` frees room (`--days 0` all that it can)";

/// Returns the bytes that an ordinary user can still write on the file system of `path`. The path
/// need not exist yet.
pub(crate) fn free_space(path: &Path) -> Result<u64> {
    let existing = path.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    let table = command::output(Command::new("df").arg("-Pk").arg(existing))?;
    let free = available(&table).with_context(|| format!("`df` printed no free room of {}", existing.display()))?;
    Ok(free * 1024)
}

/// Returns the column before the percentage in the last line. It searches from the end because
/// names of devices and mounts may contain spaces.
fn available(table: &str) -> Option<u64> {
    let words: Vec<&str> = table.lines().last()?.split_whitespace().collect();
    let percentage = words.iter().rposition(|word| word.ends_with('%'))?;
    words.get(percentage.checked_sub(1)?)?.parse().ok()
}

/// Adds the reason to a step's error if one of the file systems is full.
pub(crate) fn explain(error: Error, directories: &[PathBuf]) -> Error {
    match directories.iter().find_map(|directory| full(directory, free_space(directory).ok()?)) {
        Some(message) => error.context(message),
        None => error,
    }
}

fn full(directory: &Path, free: u64) -> Option<String> {
    let free_mib = free / MIB;
    (free < FULL_BELOW).then(|| format!("the disk is full: {free_mib} MiB free at {}; {REMEDY}", directory.display()))
}

/// Returns an error if there is less space at `directory` than all of CI needs. Accepts a file
/// system that `df` cannot measure.
pub(crate) fn ensure_room(directory: &Path) -> Result<()> {
    match free_space(directory).ok().and_then(|free| shortage(directory, free)) {
        Some(message) => bail!(message),
        None => Ok(()),
    }
}

fn shortage(directory: &Path, free: u64) -> Option<String> {
    let (free_mib, needed_mib) = (free / MIB, CI_NEEDS / MIB);
    (free < CI_NEEDS)
        .then(|| format!("{free_mib} MiB are free at {} and CI needs {needed_mib} MiB; {REMEDY}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_room_is_found_also_where_nothing_exists_yet() {
        let directory = tempfile::tempdir().unwrap();
        assert!(free_space(&directory.path().join("not/yet/there")).unwrap() > 0);
    }

    #[test]
    fn names_with_spaces_do_not_hide_the_free_room() {
        let table =
            "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/a disk 100 58 42 58% /my 5% disk\n";
        assert_eq!(available(&table.replace("5% ", "")), Some(42));
        assert_eq!(available("nothing\n"), None);
    }

    #[test]
    fn a_full_disk_is_named_with_the_remedy() {
        let message = full(Path::new("/target"), 5 * MIB + 1).unwrap();
        assert!(message.starts_with("the disk is full: 5 MiB free at /target; `cargo xtask clean-stale` frees room"));
        assert_eq!(full(Path::new("/target"), FULL_BELOW), None);
    }

    #[test]
    fn an_error_on_a_disk_with_room_stays_as_it_is() {
        let error = explain(anyhow::anyhow!("2 failed"), &["/proc/no/such".into()]);
        assert!(format!("{error:#}").ends_with("2 failed"), "{error:#}");
    }

    #[test]
    fn too_little_room_for_all_of_ci_is_an_error_that_says_how_much_is_needed() {
        let message = shortage(Path::new("/target"), CI_NEEDS - 1).unwrap();
        assert!(message.contains("MiB are free at /target and CI needs"), "{message}");
        assert_eq!(shortage(Path::new("/target"), CI_NEEDS), None);
    }

    #[test]
    fn a_file_system_that_cannot_be_measured_passes() {
        assert!(ensure_room(Path::new("/proc")).is_ok());
    }
}
