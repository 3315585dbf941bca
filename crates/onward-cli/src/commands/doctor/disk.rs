//! Checks of the file and its disk.

use std::cmp::Ordering;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use onward_store::{Clock, SqliteStore};

use super::finding::Finding;
use crate::output::duration_text;

/// The number of syncs that are measured. The median is reported.
const SYNCS: usize = 20;

/// The bytes that are written before each sync: a page.
const SYNC_BYTES: usize = 4096;

/// The time below which a sync cannot have reached a device that keeps data without power.
const SYNC_SUSPICIOUS: Duration = Duration::from_micros(20);

/// The time from which a sync is slow.
const SYNC_SLOW: Duration = Duration::from_millis(20);

/// The size from which a write-ahead log is long.
const WAL_LONG: u64 = 256 * 1024 * 1024;

/// The free space below which the check warns.
const SPACE_LITTLE: u64 = 1024 * 1024 * 1024;

/// The free space below which the check reports a failure.
const SPACE_TOO_LITTLE: u64 = 64 * 1024 * 1024;

/// Checks the facts that do not require opening the store.
pub(super) fn file(path: &Path) -> Vec<Finding> {
    let location = path.display();
    let size = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        Ok(_) => return vec![Finding::bad("file", format!("{location} is not a file"), "name the file with --store")],
        Err(error) => {
            let remedy = "name the store with --store or ONWARD_STORE; onward submit makes a new one";
            return vec![Finding::bad("file", format!("{location}: {error}"), remedy)];
        }
    };
    vec![Finding::ok("file", format!("{location}, {size} bytes")), wal(path)]
}

/// Compares the schema of a store with `ours`, which this program writes, before anything migrates
/// it. Returns `None` if the schema cannot be read or is that of a development version. In both
/// cases the store does not open.
pub(super) fn schema(path: &Path, ours: u32) -> Option<Finding> {
    let has = SqliteStore::schema_of(path).ok()?;
    let found = format!("{has}; this program writes {ours}");
    Some(match has.cmp(&ours) {
        Ordering::Equal => Finding::ok("schema", found),
        Ordering::Less => Finding::warn("schema", found, OLDER),
        Ordering::Greater => Finding::bad("schema", found, "use the newer program that made it"),
    })
}

/// The remedy for an older schema.
const OLDER: &str = "the first command or program that opens the store brings it up to date, and older ones cannot use it from then on; copy the file \
    while nothing has it open, then onward store migrate; the rest is checked when that is done";

fn wal(path: &Path) -> Finding {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    let size = std::fs::metadata(PathBuf::from(wal)).map_or(0, |metadata| metadata.len());
    let found = format!("the write-ahead log has {size} bytes");
    if size <= WAL_LONG {
        return Finding::ok("wal", found);
    }
    let remedy =
        "a process that has read for long keeps it from being emptied; end that process, then run onward store compact";
    Finding::warn("wal", found, remedy)
}

/// Checks the disk of the store.
pub(super) fn device(path: &Path, clock: &dyn Clock) -> Vec<Finding> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    vec![sync(directory, clock), space(directory)]
}

fn sync(directory: &Path, clock: &dyn Clock) -> Finding {
    match measure_sync(directory, clock) {
        Ok(median) => sync_finding(median),
        Err(error) => {
            let found = format!("cannot write beside the store: {error}");
            Finding::bad("sync", found, format!("make {} writable and see that there is space", directory.display()))
        }
    }
}

fn measure_sync(directory: &Path, clock: &dyn Clock) -> io::Result<Duration> {
    let mut file = tempfile::tempfile_in(directory)?;
    let mut costs = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let before = clock.steady();
        file.write_all(&[0x5a; SYNC_BYTES])?;
        file.sync_data()?;
        costs.push(clock.steady().saturating_sub(before));
    }
    costs.sort_unstable();
    Ok(costs.get(SYNCS / 2).copied().unwrap_or_default())
}

fn sync_finding(median: Duration) -> Finding {
    let found = format!("a disk sync takes {} (median of {SYNCS})", duration_text(median));
    if median < SYNC_SUSPICIOUS {
        let remedy = "that is faster than any disk: a file system in memory, or a disk that confirms writes before they are durable; power loss may cost work";
        Finding::warn("sync", found, remedy)
    } else if median > SYNC_SLOW {
        Finding::warn(
            "sync",
            found,
            "a lone submit waits for one; submit in batches, use a faster disk, or --durability normal",
        )
    } else {
        Finding::ok("sync", found)
    }
}

fn space(directory: &Path) -> Finding {
    let free = match rustix::fs::statvfs(directory) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(error) => {
            return Finding::warn(
                "space",
                format!("cannot read the free space: {error}"),
                "check it with df; a full disk accepts nothing more",
            );
        }
    };
    let found = format!("{} MiB free", free / (1024 * 1024));
    match free {
        0..SPACE_TOO_LITTLE => {
            Finding::bad("space", found, "make room: when the disk is full, nothing more is accepted")
        }
        SPACE_TOO_LITTLE..SPACE_LITTLE => {
            Finding::warn("space", found, "make room soon; onward store prune, onward store compact")
        }
        _ => Finding::ok("space", found),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    /// The test checks the store as a program with the next schema would.
    #[tokio::test]
    async fn a_store_of_an_older_schema_is_reported_with_what_to_do_and_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onward.db");
        drop(SqliteStore::open(&path).await.unwrap());
        let before = std::fs::read(&path).unwrap();
        let finding = schema(&path, SqliteStore::schema() + 1).unwrap();
        assert_eq!((finding.level, finding.found.as_str()), (Level::Warn, "1; this program writes 2"));
        assert!(finding.has_older_schema());
        let remedy = finding.remedy.unwrap();
        assert!(remedy.contains("brings it up to date") && remedy.contains("onward store migrate"), "{remedy}");
        assert!(std::fs::read(&path).unwrap() == before, "the file was changed");
    }

    #[test]
    fn a_sync_that_costs_nothing_is_suspicious() {
        assert_eq!(sync_finding(Duration::from_micros(3)).level, Level::Warn);
    }

    #[test]
    fn a_sync_of_a_millisecond_is_fine() {
        assert_eq!(sync_finding(Duration::from_millis(1)).level, Level::Ok);
    }

    #[test]
    fn a_slow_sync_is_reported_with_the_remedy() {
        let finding = sync_finding(Duration::from_millis(30));
        assert_eq!(finding.level, Level::Warn);
        assert!(finding.remedy.unwrap().contains("submit in batches"));
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_bad() {
        let directory = tempfile::tempdir().unwrap();
        let finding = sync(&directory.path().join("missing"), &onward_store::SystemClock);
        assert_eq!(finding.level, Level::Bad);
    }

    #[test]
    fn a_long_log_is_reported_with_the_remedy() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onward.db");
        std::fs::write(&path, "").unwrap();
        let log = std::fs::File::create(directory.path().join("onward.db-wal")).unwrap();
        let level = |size| {
            log.set_len(size).unwrap();
            file(&path)[1].level
        };
        assert_eq!([level(WAL_LONG), level(WAL_LONG + 1)], [Level::Ok, Level::Warn]);
    }
}
