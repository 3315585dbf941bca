//! Maintenance of a store by operators: copy it, restore it, make it smaller, check it.

use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::api::error::{Error, Result};
use crate::rules::share;
use crate::sqlite::commit::names::FIRST_WITH_AFFINITY;
use crate::sqlite::file_layer::log_owner::{check_log, log_bytes};
use crate::sqlite::file_layer::{self, CHECKSUM_BYTES, NAME, TRUSTING_NAME};
use crate::sqlite::migrations::migrate::{self, MIGRATIONS};
use crate::sqlite::processes::peers::check_watch;
use crate::sqlite::processes::write_lock::{LockHolder, WriteLock};
use crate::sqlite::store::connect::{
    check_before_open, connect, connect_first, has_page_checksums, open_through, real_path,
};
use crate::sqlite::store::sqlite_errors::in_file;
use crate::sqlite::store::sqlite_store::SqliteStore;

/// The number of pages that a backup copies between two reports of progress.
const STEP: i32 = 1024;

/// The findings of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// SQLite's findings about the file's structure; empty if it is whole. At most 100 findings.
    pub integrity: Vec<String>,
    /// Contradictions between Onward's own tables; empty if there are none.
    pub consistency: Vec<String>,
    /// True if the file's pages have checksums.
    pub page_checksums: bool,
    /// The number of the file's schema.
    pub schema: u32,
    /// The size of the database file in bytes.
    pub database_bytes: u64,
    /// The size of the write-ahead log in bytes.
    pub log_bytes: u64,
    /// Unused bytes within the database file.
    pub free_bytes: u64,
}

/// The result of compacting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// The size of the database file before, in bytes.
    pub before: u64,
    /// The size afterwards, in bytes.
    pub after: u64,
}

impl SqliteStore {
    /// Copies the store as it is at one moment into a new file, while work continues, and checks
    /// the copy. `progress` receives the number of copied pages and of all pages. Cost: the store
    /// is read once, and the copy once more.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if `to` exists; [`is_corrupt`](Error::is_corrupt) if the
    /// store is damaged, because a backup of it would be damaged too; otherwise as for opening. A
    /// copy that fails half-way, or is damaged, is removed.
    #[expect(clippy::unused_async, reason = "a copy over a network will wait, and callers should not care")]
    pub async fn backup(&self, to: impl AsRef<Path>, progress: impl FnMut(u64, u64)) -> Result<()> {
        let path = self.location_for_maintenance()?;
        let source = connect(&path, None)?;
        write_new(to.as_ref(), |partial| {
            copy_pages(&source, partial, progress)?;
            check_copy(partial).map_err(|error| error.about(&path.display().to_string()))
        })
    }

    /// Copies a backup to the path of a store that no process has open. The backup is checked
    /// first.
    ///
    /// # Errors
    /// [`is_corrupt`](Error::is_corrupt) if `from` is damaged or no store;
    /// [`is_invalid`](Error::is_invalid) if `to` exists. A copy that fails half-way is removed.
    #[expect(clippy::unused_async, reason = "a copy over a network will wait, and callers should not care")]
    pub async fn restore(from: impl AsRef<Path>, to: impl AsRef<Path>, progress: impl FnMut(u64, u64)) -> Result<()> {
        let from = from.as_ref();
        let name = from.display().to_string();
        let source = open_to_read(from, NAME).map_err(|error| error.about(&name))?;
        check_backup(&source).map_err(|error| error.about(&name))?;
        write_new(to.as_ref(), |partial| copy_pages(&source, partial, progress))
    }

    /// Rewrites a store into another file, row by row, and ignores page checksums. It is for a file
    /// to which another program has written, or that is to get checksums. The new file has them
    /// with `page_checksums` ([`page_checksums`](crate::SqliteOptions::page_checksums)), or if
    /// `from` has them. SQLite's own checks run first.
    ///
    /// # Errors
    /// [`is_corrupt`](Error::is_corrupt) if `from` is no store, or damaged so that SQLite detects
    /// it; [`is_invalid`](Error::is_invalid) if `to` exists. A file that fails half-way is removed,
    /// and `from` stays as it is.
    #[expect(clippy::unused_async, reason = "a copy over a network will wait, and callers should not care")]
    pub async fn rebuild(from: impl AsRef<Path>, to: impl AsRef<Path>, page_checksums: bool) -> Result<()> {
        let from = from.as_ref();
        let name = from.display().to_string();
        let source = open_to_read(from, TRUSTING_NAME).map_err(|error| error.about(&name))?;
        check_backup(&source).map_err(|error| error.about(&name))?;
        if page_checksums {
            file_layer::reserve(&source, CHECKSUM_BYTES)?;
        }
        write_new(to.as_ref(), |partial| {
            let partial_name =
                partial.to_str().ok_or_else(|| Error::invalid("the name of the new file is not UTF-8"))?;
            source.execute("VACUUM INTO ?", [partial_name])?;
            sync(partial)
        })
    }

    /// Returns the space of removed tasks to the file system. Writers wait during that time, about
    /// a second per 100 MB.
    ///
    /// # Errors
    /// [`is_full`](Error::is_full) if the disk has no room for a second copy. The store is then
    /// unchanged.
    #[expect(clippy::unused_async, reason = "compacting in steps will wait, and callers should not care")]
    pub async fn compact(&self) -> Result<Compacted> {
        let path = self.location_for_maintenance()?;
        let before = file_bytes(&path);
        let committer = self.committer();
        let vacuumed = committer.connection.execute_batch("VACUUM");
        vacuumed
            .and_then(|()| committer.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
            .map_err(|failure| in_file(&committer.connection, failure.into()))?;
        drop(committer);
        Ok(Compacted { before, after: file_bytes(&path) })
    }

    /// Checks the whole store, and returns its faults. Cost: all of it is read, about a second per
    /// 500 MB.
    ///
    /// # Errors
    /// If the store could not be read at all.
    #[expect(clippy::unused_async, reason = "reading elsewhere will wait, and callers should not care")]
    pub async fn check(&self) -> Result<CheckReport> {
        let path = self.location_for_maintenance()?;
        self.read(|connection| check_file(connection, &path))
    }

    /// Returns the process that holds the write lock of a store at this moment, of Onward or of
    /// another program. Returns `None` if no process does, or if the system does not report it;
    /// only Linux does. Opens no file.
    #[must_use]
    pub fn lock_holder(path: impl AsRef<Path>) -> Option<LockHolder> {
        WriteLock::of(&real_path(path.as_ref())).holder()
    }

    /// Checks that the system can wake a process when other processes write to a store. Without
    /// that a store works, and checks once a second.
    ///
    /// # Errors
    /// Names the system setting to raise.
    pub fn check_watch(path: impl AsRef<Path>) -> Result<()> {
        check_watch(path.as_ref())
    }

    /// Migrates a file's schema without opening it for work. Returns the old and the new schema
    /// number.
    ///
    /// # Errors
    /// As [`SqliteOptions::open`](crate::SqliteOptions::open).
    #[expect(clippy::unused_async, reason = "a migration in steps will wait, and callers should not care")]
    pub async fn migrate(path: impl AsRef<Path>) -> Result<(u32, u32)> {
        let path = path.as_ref();
        let migrate = || {
            if !path.exists() {
                return Err(Error::not_found("there is no store"));
            }
            migrate::migrate(&mut connect_first(path, None)?, MIGRATIONS)
        };
        migrate().map_err(|error| error.about(&path.display().to_string()))
    }

    /// Returns the schema number of a file, and does not change the file; zero for an empty file.
    /// The number may be lower or higher than that of this version.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found) without a file; [`is_version`](Error::is_version) if a
    /// development version from before 0.1 created it; another error if it cannot be read or is no
    /// store.
    pub fn schema_of(path: impl AsRef<Path>) -> Result<u32> {
        let path = path.as_ref();
        let read = || {
            if !path.exists() {
                return Err(Error::not_found("there is no store"));
            }
            migrate::schema_of(&connect_first(path, None)?)
        };
        read().map_err(|error| error.about(&path.display().to_string()))
    }

    /// Returns the schema number that this version writes.
    #[must_use]
    pub fn schema() -> u32 {
        MIGRATIONS.newest()
    }

    /// Returns the path of the store's file, after a check that the file is still there.
    fn location_for_maintenance(&self) -> Result<PathBuf> {
        let mut committer = self.committer();
        committer.check_file()?;
        match committer.connection.path() {
            Some(path) if !path.is_empty() => Ok(PathBuf::from(path)),
            _ => Err(Error::invalid("a store in memory has no file; open one in a file for that")),
        }
    }
}

/// Checks a file: first SQLite's own integrity, then the store's rules.
pub(in crate::sqlite) fn check_file(connection: &Connection, path: &Path) -> Result<CheckReport> {
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, u64>(0));
    let integrity = integrity(connection)?;
    let consistency = match consistency(connection) {
        // The integrity check has already reported the unreadable parts.
        Err(error) if error.is_corrupt() && !integrity.is_empty() => Vec::new(),
        consistency => consistency?,
    };
    Ok(CheckReport {
        integrity,
        consistency,
        page_checksums: has_page_checksums(connection)?,
        schema: migrate::schema_of(connection)?,
        database_bytes: file_bytes(path),
        log_bytes: log_bytes(path),
        free_bytes: number("PRAGMA freelist_count")? * number("PRAGMA page_size")?,
    })
}

/// Opens a file for maintenance, without the checks and repairs of an ordinary open.
fn open_to_read(path: &Path, layer: &str) -> Result<Connection> {
    if !path.exists() {
        return Err(Error::not_found("there is no such file"));
    }
    let path = real_path(path);
    check_before_open(&path)?;
    let connection = open_through(&path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX, layer)?;
    check_log(&connection, &path)?;
    Ok(connection)
}

/// Checks that a file is an undamaged store.
fn check_backup(source: &Connection) -> Result<()> {
    if migrate::schema_of(source)? == 0 {
        return Err(Error::corrupt("the file is empty, not a backup of a store; choose another"));
    }
    match integrity(source)?.first() {
        Some(finding) => Err(Error::corrupt(format!("the backup is damaged ({finding}); choose another"))),
        None => Ok(()),
    }
}

/// Returns an error if a copy is damaged. The damage then comes from the store.
fn check_copy(copy: &Path) -> Result<()> {
    match integrity(&open_to_read(copy, NAME)?)?.first() {
        Some(finding) => Err(Error::corrupt(format!(
            "the store is damaged ({finding}), so no backup was made of it; restore an older one with `onward store restore`, or see what \
             can be read with `onward doctor`"
        ))),
        None => Ok(()),
    }
}

/// Writes a new file under a temporary name, and renames it when it is complete and on disk.
fn write_new(to: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let name = to.display().to_string();
    if to.exists() {
        return Err(Error::invalid("the file exists; name one that does not, or move it away").about(&name));
    }
    // Checked first, because SQLite would apply a log that lies there to the new file.
    check_before_open(&real_path(to)).map_err(|error| error.about(&name))?;
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let outcome = write(&partial)
        .and_then(|()| std::fs::rename(&partial, to).map_err(|error| Error::io(error.to_string()).caused_by(error)));
    if outcome.is_err() {
        // The error of the copy matters more than a failure to remove the partial file.
        let _ = std::fs::remove_file(&partial);
    }
    outcome.map_err(|error| error.about(&name))
}

/// Copies a database page by page, while other processes may write to it.
fn copy_pages(source: &Connection, to: &Path, mut progress: impl FnMut(u64, u64)) -> Result<()> {
    let mut target = connect(to, None)?;
    {
        let backup = Backup::new(source, &mut target)?;
        while backup.step(STEP)? != StepResult::Done {
            let state = backup.progress();
            progress(pages(state.pagecount - state.remaining), pages(state.pagecount));
        }
        let state = backup.progress();
        progress(pages(state.pagecount), pages(state.pagecount));
    }
    // No process owns a backup: its running tasks wait again when it is opened.
    target.pragma_update(None, "journal_mode", "DELETE")?;
    target.close().map_err(|(_, failure)| failure)?;
    sync(to)
}

/// Syncs a file.
fn sync(path: &Path) -> Result<()> {
    let file = std::fs::File::open(path).and_then(|file| file.sync_all());
    file.map_err(|error| Error::io(format!("the copy could not be synced: {error}")).caused_by(error))
}

/// Returns a number of pages for `progress`.
fn pages(count: i32) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// Renames a complete file to its final name, so that a power failure leaves the whole file or
/// none.
#[cfg(feature = "postgres")]
pub(in crate::sqlite) fn put_in_place(partial: &Path, to: &Path) -> Result<()> {
    let place = || {
        std::fs::File::open(partial)?.sync_all()?;
        std::fs::rename(partial, to)?;
        let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::File::open(directory)?.sync_all()
    };
    place().map_err(|error| Error::io(format!("the copy could not be put in its place: {error}")).caused_by(error))
}

/// Returns the size of a file; 0 if there is none.
fn file_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Runs SQLite's integrity check, and returns at most a hundred findings.
fn integrity(connection: &Connection) -> Result<Vec<String>> {
    let mut statement = connection.prepare("PRAGMA integrity_check(100)")?;
    let mut findings = Vec::new();
    for finding in statement.query_map([], |row| row.get::<_, String>(0))? {
        match finding.map_err(Error::from) {
            Ok(finding) => findings.push(finding),
            // SQLite stops reading beyond some kinds of damage.
            Err(error) if error.is_corrupt() => {
                findings.push(error.to_string());
                break;
            }
            Err(error) => return Err(error),
        }
    }
    findings.retain(|finding| finding != "ok");
    Ok(findings)
}

/// Rules between our tables, each with the query that finds its violations.
const CONSISTENCY: &[(&str, &str)] = &[
    (
        "a lease is on no task that exists",
        "SELECT first FROM lease WHERE NOT EXISTS (SELECT 1 FROM task WHERE id BETWEEN first AND last)",
    ),
    (
        "two leases are on one task",
        "SELECT first FROM lease l WHERE last >= (SELECT min(first) FROM lease WHERE first > l.first)",
    ),
    (
        "a lease belongs to a session that does not exist",
        "SELECT first FROM lease WHERE session NOT IN (SELECT id FROM session)",
    ),
    ("a task is live and in history at once", "SELECT id FROM task WHERE id IN (SELECT id FROM history)"),
    ("a ready list holds a task that does not exist", "SELECT task FROM ready WHERE task NOT IN (SELECT id FROM task)"),
    (
        "`scheduled` holds a task that does not exist",
        "SELECT task FROM scheduled WHERE task NOT IN (SELECT id FROM task)",
    ),
    (
        "a key belongs to a task that does not exist",
        "SELECT task FROM active_key WHERE task NOT IN (SELECT id FROM task)",
    ),
    (
        "a blocked task waits for one that is not to end",
        "SELECT dependent FROM dependency d WHERE task NOT IN (SELECT id FROM task) \
         AND NOT EXISTS (SELECT 1 FROM unpropagated_end o WHERE o.task = d.task AND o.up_to >= d.dependent)",
    ),
    (
        "a task is blocked by nothing, or waits for others and is not blocked",
        "SELECT coalesce(t.id, d.dependent) FROM (SELECT id FROM task WHERE scheduled = 2 AND links & 8 = 0 \
         AND id NOT IN (SELECT task FROM pending_item) AND id NOT IN (SELECT task FROM batch_item) \
         AND (id NOT IN (SELECT task FROM instance) OR id IN (SELECT dependent FROM dependency))) AS t \
         FULL JOIN (SELECT DISTINCT dependent FROM dependency) AS d ON d.dependent = t.id \
         WHERE t.id IS NULL OR d.dependent IS NULL",
    ),
    (
        "a task waits to be finished and does not say so, or says so and does not",
        "SELECT coalesce(t.id, a.task) FROM (SELECT id FROM task WHERE scheduled = 2 AND links & 8 <> 0) AS t \
         FULL JOIN awaited_completion AS a ON a.task = t.id WHERE t.id IS NULL OR a.task IS NULL",
    ),
    (
        "a pending batch has other items than it counts",
        "SELECT coalesce(c.sub_queue, m.sub_queue) FROM pending_batch c \
         FULL JOIN (SELECT sub_queue, count(*) AS items, sum(bytes) AS bytes FROM pending_item GROUP BY sub_queue) AS m ON m.sub_queue = c.sub_queue \
         WHERE c.items IS NOT m.items OR c.bytes IS NOT m.bytes",
    ),
    (
        "an item of a pending batch is not blocked, or in another queue",
        "SELECT m.task FROM pending_item m LEFT JOIN task t ON t.id = m.task WHERE t.scheduled IS NOT 2 OR t.sub_queue IS NOT m.sub_queue",
    ),
    (
        "a batch item waits for a batch that is not to end",
        "SELECT m.task FROM batch_item m JOIN task t ON t.id = m.task WHERE m.batch NOT IN (SELECT id FROM task WHERE links & 32 <> 0) \
         AND NOT EXISTS (SELECT 1 FROM unpropagated_end o WHERE o.task = m.batch AND o.next_item <= m.task)",
    ),
    (
        "a task on which others depend does not say so",
        "SELECT id FROM task WHERE links & 1 = 0 AND id IN (SELECT task FROM dependency)",
    ),
    (
        "a waiting task is in no ready list",
        "SELECT id FROM task t WHERE id <= (SELECT value FROM meta WHERE name = 'index_watermark') AND scheduled = 0 \
         AND NOT EXISTS (SELECT 1 FROM lease WHERE first = (SELECT max(first) FROM lease WHERE first <= t.id) \
         AND last >= t.id) \
         AND id NOT IN (SELECT task FROM ready)",
    ),
    (
        "a queue counts another number of running tasks than there are",
        "SELECT q.id FROM queue q WHERE q.concurrency IS NOT NULL AND q.running <> (SELECT count(*) FROM lease l \
         CROSS JOIN task t ON t.id BETWEEN l.first AND l.last JOIN sub_queue n ON n.id = t.sub_queue WHERE n.queue = q.id)",
    ),
    (
        "a tag counts another number of tasks than have it",
        "SELECT number FROM tag WHERE tasks <> (SELECT count(*) FROM task_tag WHERE tag = number)",
    ),
    (
        "a tag is on a task that does not exist",
        "SELECT task FROM task_tag WHERE task NOT IN (SELECT id FROM task) AND task NOT IN (SELECT id FROM history)",
    ),
    (
        "a limit counts another number of running tasks than there are",
        "SELECT l.scope FROM task_limit l WHERE l.scope IN (0, 2) AND l.running <> \
         (SELECT count(*) FROM lease e CROSS JOIN task t ON t.id BETWEEN e.first AND e.last JOIN sub_queue n ON n.id = t.sub_queue \
         JOIN kind k ON k.id = n.kind WHERE l.scope = 0 OR k.name = l.name)",
    ),
    (
        "a group counts another number of running tasks than there are",
        "SELECT g.id FROM task_group g WHERE (SELECT value FROM meta WHERE name = 'deferred_counters_since') = 0 \
         AND EXISTS (SELECT 1 FROM task_limit l WHERE l.scope = 3 AND l.name = g.name) AND g.running <> \
         (SELECT count(*) FROM lease e CROSS JOIN task t ON t.id BETWEEN e.first AND e.last JOIN sub_queue n ON n.id = t.sub_queue \
         WHERE n.task_group = g.id)",
    ),
    (
        "the head of a group's ready list is not its first task",
        "SELECT h.task FROM claimable_head h WHERE EXISTS (SELECT 1 FROM ready r WHERE r.list = h.list AND (r.sort_key, r.task) < (h.sort_key, h.task)) \
         OR NOT EXISTS (SELECT 1 FROM ready r WHERE r.list = h.list AND r.sort_key = h.sort_key AND r.task = h.task)",
    ),
    (
        "the head of a group's ready list has another fair-share tag than the group",
        "SELECT h.task FROM claimable_head h JOIN sub_queue n ON n.id = h.list LEFT JOIN fair_share s ON s.queue = n.queue AND s.task_group = n.task_group \
         JOIN task_group g ON g.id = n.task_group WHERE h.share_tag <> CASE \
         WHEN NOT EXISTS (SELECT 1 FROM task_limit WHERE weight IS NOT NULL OR minimum IS NOT NULL) THEN 0 \
         WHEN g.below_minimum THEN coalesce(s.guaranteed, 0) - :guaranteed ELSE coalesce(s.shared, 0) END",
    ),
    (
        "an affinity key is kept of which nothing waits and that prefers no session",
        "SELECT a.id FROM affinity a WHERE a.session IS NULL AND NOT EXISTS (SELECT 1 FROM affinity_list l WHERE l.list >> 34 = a.id)",
    ),
    (
        "a ready list is reserved for a session that its affinity key does not prefer",
        "SELECT l.list FROM affinity_list l LEFT JOIN affinity a ON a.id = l.list >> 34 WHERE l.session IS NOT NULL AND l.session IS NOT a.session",
    ),
    (
        "a task waits in a ready list of an affinity key that is not known",
        "SELECT r.task FROM ready r WHERE r.list >= 17179869184 AND r.list NOT IN (SELECT list FROM affinity_list)",
    ),
    (
        "a group is further ahead of its queue than one start takes it",
        "SELECT s.task_group FROM fair_share s JOIN fair_share q ON q.queue = s.queue AND q.task_group = -1 \
         WHERE s.guaranteed > q.guaranteed + :cost OR s.shared > q.shared + :cost",
    ),
    (
        "a queue counts another number of waiting, scheduled or blocked tasks than there are",
        "SELECT q.id FROM queue q LEFT JOIN queue_size s ON s.queue = q.id LEFT JOIN ( \
         SELECT n.queue, sum(waiting) AS waiting, sum(scheduled) AS scheduled, sum(blocked) AS blocked FROM ( \
         SELECT list, count(*) AS waiting, 0 AS scheduled, 0 AS blocked FROM ready GROUP BY list \
         UNION ALL SELECT list, 0, count(*), 0 FROM scheduled GROUP BY list \
         UNION ALL SELECT sub_queue, 0, 0, count(*) FROM task WHERE scheduled = 2 GROUP BY sub_queue \
         ) AS t JOIN sub_queue n ON n.id = t.list & :sub_queue_bits GROUP BY n.queue) AS c ON c.queue = q.id \
         WHERE (coalesce(s.waiting, 0), coalesce(s.scheduled, 0), coalesce(s.blocked, 0)) \
         <> (coalesce(c.waiting, 0), coalesce(c.scheduled, 0), coalesce(c.blocked, 0))",
    ),
    (
        "a task said how long it is kept and that is not known, or is known of one that did not",
        "SELECT coalesce(h.id, r.task) FROM (SELECT id FROM history WHERE options IS NOT NULL AND json_extract(options, '$.retention') IS NOT NULL) AS h \
         FULL JOIN retention r ON r.task = h.id WHERE h.id IS NULL OR r.task IS NULL",
    ),
    (
        "a collection counts another number of documents than it has",
        "SELECT coalesce(c.id, d.collection) FROM document_collection c \
         FULL JOIN (SELECT collection, count(*) AS documents FROM document GROUP BY collection) AS d ON d.collection = c.id \
         WHERE c.documents IS NOT d.documents",
    ),
    (
        "the statistics count another number of ended tasks than there are",
        "SELECT (SELECT coalesce(sum(in_history), 0) FROM statistics) AS counted WHERE counted <> (SELECT count(*) FROM history)",
    ),
];

/// The named numbers in these queries.
const NUMBERS: [(&str, i64); 3] =
    [(":guaranteed", share::GUARANTEED), (":cost", share::COST), (":sub_queue_bits", FIRST_WITH_AFFINITY - 1)];

/// Checks each rule, and returns the broken ones with examples.
fn consistency(connection: &Connection) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    for (rule, sql) in CONSISTENCY {
        let mut statement = connection.prepare(&format!("{sql} LIMIT 3"))?;
        for (name, number) in NUMBERS {
            if let Some(index) = statement.parameter_index(name)? {
                statement.raw_bind_parameter(index, number)?;
            }
        }
        let broken: Vec<i64> = statement.raw_query().mapped(|row| row.get(0)).collect::<rusqlite::Result<_>>()?;
        if !broken.is_empty() {
            findings.push(format!("{rule} (such as {broken:?})"));
        }
    }
    Ok(findings)
}
