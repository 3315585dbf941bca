//! `onward store`.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use onward_store::rusqlite::Connection;

use crate::harness::{Sandbox, numbers};

fn sandbox_with_task() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.onward(&["submit", "--kind", "k", "precious"]);
    sandbox
}

/// Shows: T21
#[test]
fn a_backup_becomes_a_store_again() {
    let sandbox = sandbox_with_task();
    assert_eq!(sandbox.onward(&["store", "backup", "copy.db"]).code, Some(0));
    let restored = sandbox.onward(&["--store", "new.db", "store", "restore", "copy.db"]);
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    assert_eq!(sandbox.json(&["--store", "new.db", "task", "show", "1"])[0]["payload"], "precious");
}

/// Shows: T21
#[test]
fn neither_backup_nor_restore_writes_over_anything() {
    let sandbox = sandbox_with_task();
    sandbox.write("copy.db", "mine");
    assert_eq!(sandbox.onward(&["store", "backup", "copy.db"]).code, Some(2));
    assert_eq!(sandbox.onward(&["store", "restore", "copy.db"]).code, Some(2));
    assert_eq!(sandbox.read("copy.db"), "mine");
}

/// Shows: T21
#[test]
fn what_is_no_backup_is_not_restored() {
    let sandbox = Sandbox::new();
    sandbox.write("copy.db", &"not a database ".repeat(1000));
    assert_eq!(sandbox.onward(&["store", "restore", "copy.db"]).code, Some(3));
    assert!(!sandbox.path("onward.db").exists());
}

/// The process that submits keeps the store open, so that much of what it has committed is only in
/// the log.
///
/// Shows: T21
#[test]
fn a_backup_under_load_is_a_whole_store_with_all_that_was_acknowledged_before_it_began() {
    let sandbox = sandbox_with_task();
    let acknowledged = AtomicU64::new(1);
    let mut submitting = sandbox.spawn(&["--json", "submit", "--kind", "k", "--lines"]);
    let (mut stdin, stdout) = (submitting.stdin.take().unwrap(), submitting.stdout.take().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(numbers(100_000).as_bytes()).unwrap());
        let hearing = scope.spawn(|| count_lines(stdout, &acknowledged));
        for number in 0.. {
            let (copy, before) = (format!("copy{number}.db"), acknowledged.load(Ordering::SeqCst));
            assert_eq!(sandbox.onward(&["store", "backup", &copy]).code, Some(0));
            assert_is_sound(&sandbox, &copy);
            let tasks = sandbox.json(&["--store", &copy, "task", "count"])[0]["tasks"].as_u64().unwrap();
            assert!(tasks >= before, "{tasks} of at least {before} tasks");
            if hearing.is_finished() {
                break;
            }
        }
    });
    assert!(submitting.wait().unwrap().success());
}

fn count_lines(output: impl Read, count: &AtomicU64) {
    for line in BufReader::new(output).lines() {
        assert!(line.is_ok(), "{line:?}");
        count.fetch_add(1, Ordering::SeqCst);
    }
}

fn assert_is_sound(sandbox: &Sandbox, file: &str) {
    let findings = sandbox.json(&["--store", file, "doctor"]);
    let integrity = findings.iter().find(|finding| finding["check"] == "integrity").unwrap();
    assert_eq!(integrity["level"], "ok", "{integrity}");
}

/// Shows: B8
#[test]
fn compact_and_migrate_leave_the_tasks_as_they_are() {
    let sandbox = sandbox_with_task();
    assert_eq!(sandbox.onward(&["store", "compact"]).code, Some(0));
    assert_eq!(sandbox.onward(&["store", "migrate"]).code, Some(0));
    assert_eq!(sandbox.json(&["task", "show", "1"])[0]["payload"], "precious");
}

fn bytes(sandbox: &Sandbox) -> u64 {
    std::fs::metadata(sandbox.path("onward.db")).unwrap().len()
}

/// Shows: B8
#[test]
fn compact_gives_back_what_prune_has_freed() {
    let sandbox = Sandbox::new();
    let lines: String = (0..1000).map(|_| format!("{}\n", "x".repeat(1000))).collect();
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], &lines);
    sandbox.onward(&["task", "cancel", "--kind", "k", "--yes"]);
    assert_eq!(sandbox.onward(&["store", "prune", "--keep", "0"]).stdout, "removed 1000 ended tasks\n");
    let pruned = bytes(&sandbox);
    assert_eq!(sandbox.onward(&["store", "compact"]).code, Some(0));
    assert!(bytes(&sandbox) < pruned / 2, "{} of {pruned} bytes", bytes(&sandbox));
}

/// Shows: B8, T21
#[test]
fn a_store_of_a_development_version_is_refused_by_every_command_and_stays_as_it_is() {
    let sandbox = Sandbox::with_development_store();
    let before = std::fs::read(sandbox.path("onward.db")).unwrap();
    let commands: [&[&str]; 4] =
        [&["store", "migrate"], &["task", "list"], &["submit", "--kind", "k"], &["store", "backup", "copy.db"]];
    for arguments in commands {
        let ran = sandbox.onward(arguments);
        assert_eq!(ran.code, Some(3), "{arguments:?}: {}", ran.stderr);
        for part in ["onward.db: the store has schema 21 of a development version", "start a new store"] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
    }
    assert!(std::fs::read(sandbox.path("onward.db")).unwrap() == before, "the file was changed");
}

/// Changes a store like another program: adds a table, and closes the file as the last process.
fn write_by_hand(sandbox: &Sandbox) {
    let connection = Connection::open(sandbox.path("onward.db")).unwrap();
    connection.execute_batch("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('by hand')").unwrap();
}

/// Shows: T21
#[test]
fn a_store_with_checksums_names_the_remedy_where_another_program_has_written_to_it() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.onward(&["store", "create", "--page-checksums"]).code, Some(0));
    write_by_hand(&sandbox);
    let refused = sandbox.onward(&["submit", "--kind", "k", "precious"]);
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("onward store rebuild"), "{}", refused.stderr);
}

/// Shows: T21
#[test]
fn a_rebuilt_store_has_the_tasks_and_the_checksums_that_were_asked_for() {
    let sandbox = sandbox_with_task();
    let rebuilt = sandbox.onward(&["--store", "new.db", "store", "rebuild", "onward.db", "--page-checksums"]);
    assert_eq!(rebuilt.code, Some(0), "{}", rebuilt.stderr);
    assert_eq!(sandbox.json(&["--store", "new.db", "task", "show", "1"])[0]["payload"], "precious");
    let findings = sandbox.json(&["--store", "new.db", "doctor"]);
    let finding = findings.iter().find(|finding| finding["check"] == "page-checksums").unwrap();
    assert!(finding["found"].as_str().unwrap().starts_with("each page has one"), "{finding}");
}
