//! A store whose file is moved, removed, replaced or overwritten while processes have it open, and
//! log files that belong to another file.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::harness::{CommandResult, Running, Sandbox};

/// Starts a worker that has run a task and waits for the next one.
fn worker(sandbox: &Sandbox) -> Running {
    sandbox.pipe("up");
    let worker = sandbox.start(&["work", "--kind", "up", "--", "sh", "-c", "echo > up"], "");
    submit(sandbox, "up");
    sandbox.await_writer("up");
    worker
}

fn submit(sandbox: &Sandbox, kind: &str) {
    let ran = sandbox.onward(&["submit", "--kind", kind]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Asserts that it ended with code 3 and one error that contains this text, without warnings.
fn assert_says(ran: &CommandResult, text: &str) {
    let errors: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!((ran.code, errors.len()), (Some(3), 1), "{ran:?}");
    assert!(errors[0].contains(text) && ran.stdout.is_empty() && !ran.stderr.contains("WARN"), "{ran:?}");
}

/// Returns the number of tasks.
fn tasks(sandbox: &Sandbox) -> usize {
    sandbox.json(&["task", "list"]).len()
}

/// Starts a worker, and lets `lose` take its file away. Returns the outcome. Asserts that no submit
/// is accepted from then on.
fn lost(sandbox: &Sandbox, lose: impl FnOnce()) -> CommandResult {
    let worker = worker(sandbox);
    lose();
    for _ in 0..2 {
        let refused = sandbox.onward(&["submit", "--kind", "later"]);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(3), ""), "{refused:?}");
    }
    let ran = worker.wait();
    let refused = sandbox.onward(&["submit", "--kind", "later"]);
    assert_says(&refused, "belongs to");
    ran
}

fn moved(sandbox: &Sandbox) -> PathBuf {
    sandbox.path("moved.db")
}

fn store(sandbox: &Sandbox) -> PathBuf {
    sandbox.path("onward.db")
}

/// Copies the store in its present state, while no process has it open.
fn copy(sandbox: &Sandbox) -> PathBuf {
    submit(sandbox, "before");
    let copy = sandbox.path("copy.db");
    fs::copy(store(sandbox), &copy).unwrap();
    submit(sandbox, "after");
    copy
}

#[test]
fn a_worker_whose_file_is_moved_ends_and_nothing_is_acknowledged_until_it_is_back() {
    let sandbox = Sandbox::new();
    submit(&sandbox, "kept");
    let ran = lost(&sandbox, || fs::rename(store(&sandbox), moved(&sandbox)).unwrap());
    assert_says(&ran, "moved or removed while it was open");
    fs::rename(moved(&sandbox), store(&sandbox)).unwrap();
    submit(&sandbox, "next");
    assert_eq!(tasks(&sandbox), 3);
}

#[test]
fn a_worker_whose_file_is_removed_ends() {
    let sandbox = Sandbox::new();
    let ran = lost(&sandbox, || fs::remove_file(store(&sandbox)).unwrap());
    assert_says(&ran, "moved or removed while it was open");
}

#[test]
fn a_worker_whose_file_is_replaced_by_a_copy_ends() {
    let sandbox = Sandbox::new();
    let copy = copy(&sandbox);
    let ran = lost(&sandbox, || fs::rename(&copy, store(&sandbox)).unwrap());
    assert_says(&ran, "another file took its place");
}

#[test]
fn a_worker_whose_file_is_overwritten_with_an_older_copy_ends() {
    let sandbox = Sandbox::new();
    let copy = copy(&sandbox);
    let ran = lost(&sandbox, || _ = fs::copy(&copy, store(&sandbox)).unwrap());
    assert_says(&ran, "was overwritten while it was open");
}

#[test]
fn a_worker_whose_file_is_overwritten_with_another_store_ends() {
    let (sandbox, other) = (Sandbox::new(), Sandbox::new());
    (0..3).for_each(|_| submit(&other, "other"));
    let ran = lost(&sandbox, || _ = fs::copy(store(&other), store(&sandbox)).unwrap());
    assert_says(&ran, "was overwritten while it was open");
}

#[test]
fn a_worker_whose_log_is_removed_ends() {
    let sandbox = Sandbox::new();
    let worker = worker(&sandbox);
    fs::remove_file(sandbox.path("onward.db-wal")).unwrap();
    let _ = sandbox.onward(&["submit", "--kind", "up"]);
    assert_says(&worker.wait(), "-wal or -shm file was moved, removed or replaced");
}

/// A second process watches for the end of the first.
#[test]
fn a_submit_that_waits_ends_when_the_file_is_moved() {
    let sandbox = Sandbox::new();
    sandbox.pipe("up");
    let worker = sandbox.start(&["work", "--kind", "up", "--", "sh", "-c", "echo > up; exec sleep 60"], "");
    let waiting = sandbox.start(&["submit", "--kind", "up", "--wait"], "");
    sandbox.await_writer("up");
    fs::rename(store(&sandbox), moved(&sandbox)).unwrap();
    assert_eq!(waiting.wait().code, Some(3));
    assert_eq!(worker.wait().code, Some(3));
}

#[test]
fn a_submit_that_waits_alone_ends_when_the_file_is_removed() {
    let sandbox = Sandbox::new();
    let waiting = sandbox.start(&["submit", "--kind", "up", "--wait"], "");
    while fs::read_dir(sandbox.path("onward.db-sessions")).map_or(0, Iterator::count) < 2 || tasks(&sandbox) == 0 {
        std::thread::yield_now();
    }
    fs::remove_file(store(&sandbox)).unwrap();
    assert_says(&waiting.wait(), "moved or removed while it was open");
}

/// Leaves a log with work in it, like a worker that is killed.
fn killed(sandbox: &Sandbox) {
    let worker = worker(sandbox);
    worker.signal(Signal::KILL);
    worker.wait();
    assert!(fs::metadata(sandbox.path("onward.db-wal")).unwrap().len() > 32);
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
fn assert_refused(sandbox: &Sandbox) {
    let log = fs::read(sandbox.path("onward.db-wal")).unwrap();
    let file = fs::read(store(sandbox)).ok();
    for command in COMMANDS {
        let ran = sandbox.onward(command);
        assert!(ran.code.is_some_and(|code| code != 0) && ran.stdout.is_empty(), "{command:?}: {ran:?}");
        assert!(fs::read(sandbox.path("onward.db-wal")).unwrap() == log, "{command:?} changed the log");
        assert!(fs::read(store(sandbox)).ok() == file, "{command:?} changed the file");
    }
    let doctor = sandbox.onward(&["doctor"]);
    assert_ne!(doctor.code, Some(0), "{doctor:?}");
}

#[test]
fn no_command_makes_a_file_beside_the_log_of_one_that_was_moved_away() {
    let sandbox = Sandbox::new();
    copy(&sandbox);
    killed(&sandbox);
    fs::rename(store(&sandbox), moved(&sandbox)).unwrap();
    assert_refused(&sandbox);
    fs::rename(moved(&sandbox), store(&sandbox)).unwrap();
    assert_eq!(tasks(&sandbox), 3);
}

#[test]
fn no_command_opens_an_older_copy_beside_the_log_of_a_later_state() {
    let sandbox = Sandbox::new();
    let copy = copy(&sandbox);
    killed(&sandbox);
    fs::rename(store(&sandbox), moved(&sandbox)).unwrap();
    fs::copy(copy, store(&sandbox)).unwrap();
    assert_refused(&sandbox);
    fs::rename(moved(&sandbox), store(&sandbox)).unwrap();
    assert_eq!(tasks(&sandbox), 3);
}

#[test]
fn no_command_opens_another_store_beside_a_log() {
    let (sandbox, other) = (Sandbox::new(), Sandbox::new());
    copy(&sandbox);
    killed(&sandbox);
    submit(&other, "other");
    fs::copy(store(&other), store(&sandbox)).unwrap();
    assert_refused(&sandbox);
}

#[test]
fn a_log_without_a_record_is_refused_if_it_holds_the_identity_of_another_store() {
    let (sandbox, other) = (Sandbox::new(), Sandbox::new());
    killed(&sandbox);
    submit(&other, "other");
    fs::copy(sandbox.path("onward.db-wal"), other.path("onward.db-wal")).unwrap();
    assert_says(&other.onward(&["submit", "--kind", "later"]), "another store's file");
    fs::remove_file(other.path("onward.db-wal")).unwrap();
    assert_eq!(tasks(&other), 1);
}

#[test]
fn a_closed_store_can_be_moved_and_copied() {
    let sandbox = Sandbox::new();
    submit(&sandbox, "kept");
    fs::copy(store(&sandbox), sandbox.path("copied.db")).unwrap();
    fs::rename(store(&sandbox), moved(&sandbox)).unwrap();
    for name in ["copied.db", "moved.db"] {
        let ran = sandbox.onward(&["--store", name, "submit", "--kind", "next"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{name}");
    }
    submit(&sandbox, "new");
    assert_eq!(tasks(&sandbox), 1);
}

#[test]
fn a_store_of_killed_processes_can_be_copied_and_moved_with_its_log() {
    let sandbox = Sandbox::new();
    submit(&sandbox, "kept");
    killed(&sandbox);
    for suffix in ["", "-wal"] {
        fs::copy(sandbox.path(&format!("onward.db{suffix}")), sandbox.path(&format!("copied.db{suffix}"))).unwrap();
        fs::rename(sandbox.path(&format!("onward.db{suffix}")), sandbox.path(&format!("moved.db{suffix}"))).unwrap();
    }
    for name in ["copied.db", "moved.db"] {
        let listed = sandbox.json(&["--store", name, "task", "list"]);
        assert_eq!(listed.len(), 2, "{name}");
    }
}

#[test]
fn a_file_with_two_names_is_refused_by_both() {
    let sandbox = Sandbox::new();
    submit(&sandbox, "kept");
    fs::hard_link(store(&sandbox), sandbox.path("other.db")).unwrap();
    for name in ["onward.db", "other.db"] {
        assert_says(&sandbox.onward(&["--store", name, "submit", "--kind", "k"]), "2 names (hard links)");
    }
    fs::remove_file(sandbox.path("other.db")).unwrap();
    submit(&sandbox, "next");
}

#[test]
fn a_symbolic_link_is_the_store_that_it_leads_to() {
    let sandbox = Sandbox::new();
    let worker = worker(&sandbox);
    std::os::unix::fs::symlink("onward.db", sandbox.path("link.db")).unwrap();
    let ran = sandbox.onward(&["--store", "link.db", "submit", "--kind", "next"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(tasks(&sandbox), 2);
    fs::rename(store(&sandbox), moved(&sandbox)).unwrap();
    let ran = sandbox.onward(&["--store", "link.db", "submit", "--kind", "next"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
    assert_eq!(worker.wait().code, Some(3));
}
