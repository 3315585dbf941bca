//! A store whose file is moved, removed, replaced or overwritten while processes have it open, and
//! log files that belong to another file.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::harness::{Place, Ran, Running};

/// Starts a worker that has run a task and waits for the next one.
fn worker(place: &Place) -> Running {
    place.pipe("up");
    let worker = place.start(&["work", "--kind", "up", "--", "sh", "-c", "echo > up"], "");
    submit(place, "up");
    place.await_writer("up");
    worker
}

fn submit(place: &Place, kind: &str) {
    let ran = place.onward(&["submit", "--kind", kind]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Asserts that it ended with code 3 and one error that contains this text, without warnings.
fn assert_says(ran: &Ran, text: &str) {
    let errors: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!((ran.code, errors.len()), (Some(3), 1), "{ran:?}");
    assert!(errors[0].contains(text) && ran.stdout.is_empty() && !ran.stderr.contains("WARN"), "{ran:?}");
}

/// Returns the number of tasks.
fn tasks(place: &Place) -> usize {
    place.json(&["task", "list"]).len()
}

/// Starts a worker, and lets `lose` take its file away. Returns the outcome. Asserts that no submit
/// is accepted from then on.
fn lost(place: &Place, lose: impl FnOnce()) -> Ran {
    let worker = worker(place);
    lose();
    for _ in 0..2 {
        let refused = place.onward(&["submit", "--kind", "later"]);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(3), ""), "{refused:?}");
    }
    let ran = worker.wait();
    let refused = place.onward(&["submit", "--kind", "later"]);
    assert_says(&refused, "belongs to");
    ran
}

fn moved(place: &Place) -> PathBuf {
    place.path("moved.db")
}

fn store(place: &Place) -> PathBuf {
    place.path("onward.db")
}

/// Copies the store in its present state, while no process has it open.
fn copy(place: &Place) -> PathBuf {
    submit(place, "before");
    let copy = place.path("copy.db");
    fs::copy(store(place), &copy).unwrap();
    submit(place, "after");
    copy
}

#[test]
fn a_worker_whose_file_is_moved_ends_and_nothing_is_acknowledged_until_it_is_back() {
    let place = Place::new();
    submit(&place, "kept");
    let ran = lost(&place, || fs::rename(store(&place), moved(&place)).unwrap());
    assert_says(&ran, "moved or removed while it was open");
    fs::rename(moved(&place), store(&place)).unwrap();
    submit(&place, "next");
    assert_eq!(tasks(&place), 3);
}

#[test]
fn a_worker_whose_file_is_removed_ends() {
    let place = Place::new();
    let ran = lost(&place, || fs::remove_file(store(&place)).unwrap());
    assert_says(&ran, "moved or removed while it was open");
}

#[test]
fn a_worker_whose_file_is_replaced_by_a_copy_ends() {
    let place = Place::new();
    let copy = copy(&place);
    let ran = lost(&place, || fs::rename(&copy, store(&place)).unwrap());
    assert_says(&ran, "another file took its place");
}

#[test]
fn a_worker_whose_file_is_overwritten_with_an_older_copy_ends() {
    let place = Place::new();
    let copy = copy(&place);
    let ran = lost(&place, || _ = fs::copy(&copy, store(&place)).unwrap());
    assert_says(&ran, "was overwritten while it was open");
}

#[test]
fn a_worker_whose_file_is_overwritten_with_another_store_ends() {
    let (place, other) = (Place::new(), Place::new());
    (0..3).for_each(|_| submit(&other, "other"));
    let ran = lost(&place, || _ = fs::copy(store(&other), store(&place)).unwrap());
    assert_says(&ran, "was overwritten while it was open");
}

#[test]
fn a_worker_whose_log_is_removed_ends() {
    let place = Place::new();
    let worker = worker(&place);
    fs::remove_file(place.path("onward.db-wal")).unwrap();
    let _ = place.onward(&["submit", "--kind", "up"]);
    assert_says(&worker.wait(), "-wal or -shm file was moved, removed or replaced");
}

/// A second process watches for the end of the first.
#[test]
fn a_submit_that_waits_ends_when_the_file_is_moved() {
    let place = Place::new();
    place.pipe("up");
    let worker = place.start(&["work", "--kind", "up", "--", "sh", "-c", "echo > up; exec sleep 60"], "");
    let waiting = place.start(&["submit", "--kind", "up", "--wait"], "");
    place.await_writer("up");
    fs::rename(store(&place), moved(&place)).unwrap();
    assert_eq!(waiting.wait().code, Some(3));
    assert_eq!(worker.wait().code, Some(3));
}

#[test]
fn a_submit_that_waits_alone_ends_when_the_file_is_removed() {
    let place = Place::new();
    let waiting = place.start(&["submit", "--kind", "up", "--wait"], "");
    while fs::read_dir(place.path("onward.db-sessions")).map_or(0, Iterator::count) < 2 || tasks(&place) == 0 {
        std::thread::yield_now();
    }
    fs::remove_file(store(&place)).unwrap();
    assert_says(&waiting.wait(), "moved or removed while it was open");
}

/// Leaves a log with work in it, like a worker that is killed.
fn killed(place: &Place) {
    let worker = worker(place);
    worker.signal(Signal::KILL);
    worker.wait();
    assert!(fs::metadata(place.path("onward.db-wal")).unwrap().len() > 32);
}

/// Commands of every kind, each of which opens the store in its own way.
const COMMANDS: &[&[&str]] = &[
    &["submit", "--kind", "later"],
    &["task", "list"],
    &["queue", "pause", "a"],
    &["each", "--", "true"],
    &["work", "--kind", "up", "--until-idle", "--", "true"],
    &["store", "backup", "backup.db"],
    &["store", "migrate"],
    &["store", "compact"],
    &["store", "restore", "copy.db"],
    &["stats"],
];

/// Asserts that no command uses the log there as the file's own, and that every command leaves it
/// unchanged.
fn assert_refused(place: &Place) {
    let log = fs::read(place.path("onward.db-wal")).unwrap();
    let file = fs::read(store(place)).ok();
    for command in COMMANDS {
        let ran = place.onward(command);
        assert!(ran.code.is_some_and(|code| code != 0) && ran.stdout.is_empty(), "{command:?}: {ran:?}");
        assert!(fs::read(place.path("onward.db-wal")).unwrap() == log, "{command:?} changed the log");
        assert!(fs::read(store(place)).ok() == file, "{command:?} changed the file");
    }
    let doctor = place.onward(&["doctor"]);
    assert_ne!(doctor.code, Some(0), "{doctor:?}");
}

#[test]
fn no_command_makes_a_file_beside_the_log_of_one_that_was_moved_away() {
    let place = Place::new();
    copy(&place);
    killed(&place);
    fs::rename(store(&place), moved(&place)).unwrap();
    assert_refused(&place);
    fs::rename(moved(&place), store(&place)).unwrap();
    assert_eq!(tasks(&place), 3);
}

#[test]
fn no_command_opens_an_older_copy_beside_the_log_of_a_later_state() {
    let place = Place::new();
    let copy = copy(&place);
    killed(&place);
    fs::rename(store(&place), moved(&place)).unwrap();
    fs::copy(copy, store(&place)).unwrap();
    assert_refused(&place);
    fs::rename(moved(&place), store(&place)).unwrap();
    assert_eq!(tasks(&place), 3);
}

#[test]
fn no_command_opens_another_store_beside_a_log() {
    let (place, other) = (Place::new(), Place::new());
    copy(&place);
    killed(&place);
    submit(&other, "other");
    fs::copy(store(&other), store(&place)).unwrap();
    assert_refused(&place);
}

#[test]
fn a_log_without_a_record_is_refused_if_it_holds_the_identity_of_another_store() {
    let (place, other) = (Place::new(), Place::new());
    killed(&place);
    submit(&other, "other");
    fs::copy(place.path("onward.db-wal"), other.path("onward.db-wal")).unwrap();
    assert_says(&other.onward(&["submit", "--kind", "later"]), "another store's file");
    fs::remove_file(other.path("onward.db-wal")).unwrap();
    assert_eq!(tasks(&other), 1);
}

#[test]
fn a_store_that_nobody_has_open_can_be_moved_and_copied() {
    let place = Place::new();
    submit(&place, "kept");
    fs::copy(store(&place), place.path("copied.db")).unwrap();
    fs::rename(store(&place), moved(&place)).unwrap();
    for name in ["copied.db", "moved.db"] {
        let ran = place.onward(&["--store", name, "submit", "--kind", "next"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{name}");
    }
    submit(&place, "new");
    assert_eq!(tasks(&place), 1);
}

#[test]
fn a_store_of_killed_processes_can_be_copied_and_moved_with_its_log() {
    let place = Place::new();
    submit(&place, "kept");
    killed(&place);
    for suffix in ["", "-wal"] {
        fs::copy(place.path(&format!("onward.db{suffix}")), place.path(&format!("copied.db{suffix}"))).unwrap();
        fs::rename(place.path(&format!("onward.db{suffix}")), place.path(&format!("moved.db{suffix}"))).unwrap();
    }
    for name in ["copied.db", "moved.db"] {
        let listed = place.json(&["--store", name, "task", "list"]);
        assert_eq!(listed.len(), 2, "{name}");
    }
}

#[test]
fn a_file_with_two_names_is_refused_by_both() {
    let place = Place::new();
    submit(&place, "kept");
    fs::hard_link(store(&place), place.path("other.db")).unwrap();
    for name in ["onward.db", "other.db"] {
        assert_says(&place.onward(&["--store", name, "submit", "--kind", "k"]), "2 names (hard links)");
    }
    fs::remove_file(place.path("other.db")).unwrap();
    submit(&place, "next");
}

#[test]
fn a_symbolic_link_is_the_store_that_it_leads_to() {
    let place = Place::new();
    let worker = worker(&place);
    std::os::unix::fs::symlink("onward.db", place.path("link.db")).unwrap();
    let ran = place.onward(&["--store", "link.db", "submit", "--kind", "next"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(tasks(&place), 2);
    fs::rename(store(&place), moved(&place)).unwrap();
    let ran = place.onward(&["--store", "link.db", "submit", "--kind", "next"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
    assert_eq!(worker.wait().code, Some(3));
}
