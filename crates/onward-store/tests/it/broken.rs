//! Files that are not a store, are read-only or damaged, and full disks: the error is clear, and
//! the data is unchanged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use onward_store::{
    Durability, Error, NewTask, Outcome, Page, SqliteStore, Store, StoreReads, TaskFilter, TaskId, Write,
};
use onward_testkit::mount::Mount;
use onward_testkit::soak::{self, Tally};
use rusqlite::Connection;

/// Shows: B4
#[tokio::test]
async fn a_missing_directory_is_named_and_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let error = refused(&missing.join("onward.db")).await;
    assert!(error.is_not_found(), "{error:?}");
    assert_names(&error, &missing, "make it");
    assert!(!missing.exists());
}

#[tokio::test]
async fn a_directory_is_no_store() {
    let directory = tempfile::tempdir().unwrap();
    let error = refused(directory.path()).await;
    assert!(error.is_invalid(), "{error:?}");
    assert_names(&error, directory.path(), "name a file in it");
}

#[tokio::test]
async fn a_text_file_is_refused_and_left_alone() {
    for text in ["short\n".to_owned(), "A letter to somebody.\n".repeat(1000)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("letter.txt");
        std::fs::write(&path, text).unwrap();
        let error = refused_untouched(&path).await;
        assert!(error.is_corrupt(), "{error:?}");
        assert_names(&error, &path, "not a store; choose another path");
    }
}

#[tokio::test]
async fn another_programs_database_is_refused_and_left_alone() {
    for journal in ["DELETE", "WAL"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bookmarks.db");
        execute(&path, &format!("PRAGMA journal_mode = {journal}; CREATE TABLE bookmark (url TEXT)"));
        let error = refused_untouched(&path).await;
        assert!(error.is_corrupt(), "{error:?}");
        assert_names(&error, &path, "choose another path");
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    for journal in ["DELETE", "WAL"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onward.db");
        drop(filled(&path, 3).await);
        execute(&path, &format!("PRAGMA user_version = 999; PRAGMA journal_mode = {journal}"));
        let error = refused_untouched(&path).await;
        assert!(error.is_version(), "{error:?}");
        assert_names(&error, &path, "use the newer program");
    }
}

#[tokio::test]
async fn an_empty_file_is_made_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    std::fs::write(&path, "").unwrap();
    let store = filled(&path, 1).await;
    assert_eq!(numbers(&store).await, [1]);
}

#[tokio::test]
async fn a_store_on_a_read_only_file_system_is_refused_and_left_alone() {
    let Some(mount) = Mount::new("2m") else { return };
    let path = mount.path().join("onward.db");
    drop(filled(&path, 3).await);
    mount.make_read_only();
    let error = refused_untouched(&path).await;
    assert!(error.is_read_only(), "{error:?}");
    assert_names(&error, &path, "check the permissions");
}

#[tokio::test]
async fn a_new_store_on_a_read_only_file_system_is_refused() {
    let Some(mount) = Mount::new("2m") else { return };
    mount.make_read_only();
    let error = refused(&mount.path().join("onward.db")).await;
    assert!(error.is_read_only(), "{error:?}");
    assert_names(&error, mount.path(), "check the permissions");
}

/// `ONWARD_ROUNDS` sets the number of disks that are filled with each durability level (default:
/// 1). `ONWARD_SEED` determines the room left on each and the sizes of the tasks.
///
/// Shows: T21
#[tokio::test]
async fn a_full_disk_refuses_a_submit_whole_and_the_open_store_goes_on_when_there_is_room() {
    let mut tally = Tally { seed: soak::seed(), ..Tally::default() };
    let mut random = fastrand::Rng::with_seed(tally.seed);
    for _ in 0..soak::number("ONWARD_ROUNDS").unwrap_or(1) {
        for class in [Durability::Full, Durability::Normal] {
            let Some(mount) = Mount::new("2m") else { return };
            fill_and_go_on(&mount, class, &mut random, &mut tally).await;
        }
    }
    println!("{tally}");
    assert_eq!((tally.lost, tally.duplicated), (0, 0), "{tally}");
}

/// Submits tasks until the disk is full, makes room, and submits more.
async fn fill_and_go_on(mount: &Mount, class: Durability, random: &mut fastrand::Rng, tally: &mut Tally) {
    let path = mount.path().join("onward.db");
    let store = SqliteStore::options().durability(class).open(&path).await.unwrap();
    let mut acknowledged = submit(&store, &[1]).await.unwrap();
    mount.fill_but(random.u64(..512 * 1024));
    let error = submit_until_refused(&store, random.usize(1..6000), &mut acknowledged).await;
    assert!(error.is_full(), "{class}: {error:?}");
    assert!(error.to_string().contains("make room"), "{error}");
    count(&store, &acknowledged, tally).await;
    mount.make_room();
    acknowledged.extend(submit(&store, &[1]).await.expect("work goes on"));
    count(&store, &acknowledged, tally).await;
    drop(store);
    let store = SqliteStore::open(&path).await.unwrap();
    count(&store, &acknowledged, tally).await;
    sound(&store).await;
    // The rejected call, which was of two tasks, counts as attempted too.
    tally.attempted += acknowledged.len() as u64 + 2;
    tally.acknowledged += acknowledged.len() as u64;
    tally.recovered += 1;
}

/// Counts acknowledged tasks that are missing, and tasks that exist without an acknowledgement,
/// which are parts of a rejected call.
async fn count(store: &SqliteStore, acknowledged: &[i64], tally: &mut Tally) {
    let there = numbers(store).await;
    tally.lost += acknowledged.iter().filter(|number| !there.contains(number)).count() as u64;
    tally.duplicated += there.iter().filter(|number| !acknowledged.contains(number)).count() as u64;
}

/// Shows: T21
#[tokio::test]
async fn a_store_opened_on_a_full_disk_opens_or_says_that_it_is_full_and_keeps_every_task() {
    let Some(mount) = Mount::new("2m") else { return };
    let path = mount.path().join("onward.db");
    drop(filled(&path, 20).await);
    mount.fill_but(0);
    match SqliteStore::open(&path).await {
        Ok(store) => assert_eq!(numbers(&store).await.len(), 20),
        Err(error) => {
            assert!(error.is_full(), "{error:?}");
            assert_names(&error, &path, "make room");
        }
    }
    mount.make_room();
    let store = SqliteStore::open(&path).await.expect("it opens when there is room");
    assert_eq!(numbers(&store).await.len(), 20);
    sound(&store).await;
}

/// Submits two tasks in a call until the disk is full. Returns the error.
async fn submit_until_refused(store: &SqliteStore, size: usize, acknowledged: &mut Vec<i64>) -> Error {
    for _ in 0..10_000 {
        match submit(store, &[size, size]).await {
            Ok(numbers) => acknowledged.extend(numbers),
            Err(error) => return error,
        }
    }
    panic!("the disk never filled");
}

async fn submit(store: &SqliteStore, payloads: &[usize]) -> Result<Vec<i64>, Error> {
    let write = |bytes: &usize| {
        let mut task = NewTask::new("work").unwrap();
        task.payload = vec![b'x'; *bytes].into();
        Write::Submit(Box::new(task))
    };
    let outcomes = store.apply(payloads.iter().map(write).collect()).await?;
    let number = |outcome: &Outcome| match outcome {
        Outcome::Submitted(submitted) => submitted.id().0,
        other => panic!("a submit answered {other:?}"),
    };
    Ok(outcomes.iter().map(number).collect())
}

/// Returns a store with `tasks` tasks.
async fn filled(path: &Path, tasks: usize) -> SqliteStore {
    let store = SqliteStore::open(path).await.unwrap();
    submit(&store, &vec![100; tasks]).await.unwrap();
    store
}

/// Returns the numbers of all tasks, oldest first.
async fn numbers(store: &SqliteStore) -> Vec<i64> {
    let (mut numbers, mut before) = (Vec::new(), None);
    loop {
        let page = store.tasks(TaskFilter::default(), Page { before, limit: 1000 }).await.unwrap();
        numbers.extend(page.tasks.iter().map(|task| task.id).map(|TaskId(number)| number));
        before = page.next;
        if before.is_none() {
            numbers.reverse();
            return numbers;
        }
    }
}

async fn sound(store: &SqliteStore) {
    let report = store.check().await.unwrap();
    assert_eq!((report.integrity, report.consistency), (Vec::new(), Vec::new()));
}

async fn refused(path: &Path) -> Error {
    SqliteStore::open(path).await.map(drop).expect_err("it must not open")
}

/// Checks that opening fails and leaves every file in the directory unchanged, to the byte.
async fn refused_untouched(path: &Path) -> Error {
    let before = contents(path);
    let error = refused(path).await;
    let after = contents(path);
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "files came or went");
    assert!(before == after, "a file was changed");
    error
}

/// Returns the files in the directory of a path, with their contents.
fn contents(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_file()).map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Checks that the error names the path and the remedy.
fn assert_names(error: &Error, path: &Path, remedy: &str) {
    let text = error.to_string();
    assert!(text.contains(&path.display().to_string()), "the path is not named: {text}");
    assert!(text.contains(remedy), "`{remedy}` is not in: {text}");
}

fn execute(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}
