//! Files whose pages have checksums: how they are made, which programs may write to them, and the
//! state of a file after another program has written to it.

use std::path::{Path, PathBuf};

use onward_store::rusqlite::{Connection, OpenFlags};
use onward_store::{NewTask, Page, SqliteStore, Store, StoreReads, TaskFilter, Write};
use tempfile::TempDir;

/// Makes a closed store with a few tasks.
async fn made(page_checksums: bool) -> (TempDir, PathBuf) {
    made_with(20, page_checksums).await
}

async fn made_with(tasks: usize, page_checksums: bool) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    let store = SqliteStore::options().page_checksums(page_checksums).open(&path).await.unwrap();
    store.apply((0..tasks).map(|_| Write::Submit(Box::new(task()))).collect()).await.unwrap();
    drop(store);
    (directory, path)
}

/// More tasks than SQLite keeps in memory while it rewrites a file.
const MANY: usize = 3000;

async fn findings(path: &Path) -> Vec<String> {
    SqliteStore::open(path).await.unwrap().check().await.unwrap().integrity
}

fn task() -> NewTask {
    let mut task = NewTask::new("mail").unwrap();
    task.payload = vec![b'x'; 10_000].into();
    task
}

/// Writes a table as another program, which closes the file last.
fn write_as_another_program(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('by hand')").unwrap();
}

async fn count(path: &Path) -> onward_store::Result<usize> {
    let store = SqliteStore::open(path).await?;
    let filter = TaskFilter { with_payload: true, ..TaskFilter::default() };
    Ok(store.tasks(filter, Page { before: None, limit: 100 }).await?.tasks.len())
}

#[tokio::test]
async fn a_store_with_checksums_is_whole_when_it_is_opened_again() {
    let (_directory, path) = made(true).await;
    let store = SqliteStore::open(&path).await.unwrap();
    let report = store.check().await.unwrap();
    assert!(report.page_checksums && report.integrity.is_empty(), "{report:?}");
}

#[tokio::test]
async fn a_file_that_was_made_without_checksums_is_refused_where_they_are_asked_for() {
    let (_directory, path) = made(false).await;
    let error = SqliteStore::options().page_checksums(true).open(&path).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("onward store rebuild"), "{error}");
}

#[tokio::test]
async fn a_connection_that_writes_no_checksums_is_refused_before_it_writes() {
    let (_directory, path) = made(true).await;
    let store = SqliteStore::open(&path).await.unwrap();
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.submit_in(&connection, &[task()]).unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("SqliteStore::connect"), "{error}");
}

#[tokio::test]
async fn a_connection_of_the_store_writes_checksums() {
    let (_directory, path) = made(true).await;
    let store = SqliteStore::open(&path).await.unwrap();
    let connection = store.connect().unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let submitted = store.submit_in(&connection, &[task()]).unwrap();
    connection.execute_batch("COMMIT").unwrap();
    submitted.committed();
    drop((connection, store));
    assert_eq!(count(&path).await.unwrap(), 21);
}

#[tokio::test]
async fn what_another_program_wrote_is_refused_with_the_remedy() {
    let (_directory, path) = made(true).await;
    write_as_another_program(&path);
    let error = count(&path).await.unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("onward store rebuild"), "{error}");
}

/// The process that had the store open was killed, so its log was not copied back.
#[tokio::test]
async fn a_program_that_opens_a_killed_process_s_file_to_read_leaves_it_as_it_was() {
    let (directory, path) = made(true).await;
    let store = SqliteStore::open(&path).await.unwrap();
    store.apply(vec![Write::Submit(Box::new(task()))]).await.unwrap();
    let killed = directory.path().join("killed.db");
    for end in ["", "-wal"] {
        std::fs::copy(format!("{}{end}", path.display()), format!("{}{end}", killed.display())).unwrap();
    }
    let reader = Connection::open_with_flags(&killed, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let tasks: i64 = reader.query_row("SELECT count(*) FROM task", [], |row| row.get(0)).unwrap();
    drop(reader);
    assert_eq!((tasks, count(&killed).await.unwrap()), (21, 21));
}

#[tokio::test]
async fn a_store_to_which_another_program_wrote_goes_on_when_it_is_rebuilt() {
    let (directory, path) = made(true).await;
    write_as_another_program(&path);
    let rebuilt = directory.path().join("rebuilt.db");
    SqliteStore::rebuild(&path, &rebuilt, false).await.unwrap();
    assert_eq!(count(&rebuilt).await.unwrap(), 20);
}

#[tokio::test]
async fn a_store_gets_checksums_when_it_is_rebuilt_with_them() {
    let (directory, path) = made(false).await;
    let rebuilt = directory.path().join("rebuilt.db");
    SqliteStore::rebuild(&path, &rebuilt, true).await.unwrap();
    let store = SqliteStore::options().page_checksums(true).open(&rebuilt).await.unwrap();
    let report = store.check().await.unwrap();
    assert!(report.integrity.is_empty(), "{report:?}");
}

#[tokio::test]
async fn a_backup_of_a_store_with_checksums_has_them() {
    let (directory, path) = made(true).await;
    let backup = directory.path().join("backup.db");
    let store = SqliteStore::open(&path).await.unwrap();
    store.apply(vec![Write::Submit(Box::new(task()))]).await.unwrap();
    store.backup(&backup, |_, _| {}).await.unwrap();
    assert_eq!(count(&backup).await.unwrap(), 21);
}

#[tokio::test]
async fn a_store_with_checksums_is_whole_after_it_was_compacted() {
    let (_directory, path) = made(true).await;
    let store = SqliteStore::open(&path).await.unwrap();
    store.compact().await.unwrap();
    drop(store);
    assert_eq!(count(&path).await.unwrap(), 20);
}

#[tokio::test]
async fn a_large_store_is_whole_when_it_was_rebuilt_with_checksums() {
    let (directory, path) = made_with(MANY, false).await;
    let rebuilt = directory.path().join("rebuilt.db");
    SqliteStore::rebuild(&path, &rebuilt, true).await.unwrap();
    assert_eq!(findings(&rebuilt).await, [] as [String; 0]);
}

/// Pages in the log have no checksums yet, and are copied to the backup from there.
#[tokio::test]
async fn a_backup_of_a_large_store_with_checksums_is_whole() {
    let (directory, path) = made_with(MANY, true).await;
    let backup = directory.path().join("backup.db");
    let store = SqliteStore::open(&path).await.unwrap();
    store.apply((0..MANY).map(|_| Write::Submit(Box::new(task()))).collect()).await.unwrap();
    store.backup(&backup, |_, _| {}).await.unwrap();
    assert_eq!(findings(&backup).await, [] as [String; 0]);
}
