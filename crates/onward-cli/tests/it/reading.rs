//! Commands that read while another program holds the write lock or the disk is full.

use onward_store::rusqlite::Connection;
use onward_testkit::mount::Mount;

use crate::harness::{Sandbox, numbers};

/// Commands that read, each with a word of its output.
const READS: &[(&[&str], &str)] = &[
    (&["task", "list"], "mail"),
    (&["task", "list", "--tag", "customer=7"], "mail"),
    (&["task", "count"], "1"),
    (&["task", "show", "1"], "mail"),
    (&["task", "why", "1"], "waiting"),
    (&["task", "tree", "1"], "mail"),
    (&["queue", "list"], "default"),
    (&["queue", "show", "default"], "default"),
    (&["queue", "history"], "no task ended"),
    (&["queue", "mode"], "strict"),
    (&["stats"], "default"),
    (&["limit", "list"], ""),
    (&["tag", "keys"], "customer"),
    (&["tag", "values", "customer"], "7"),
    (&["schedule", "list"], ""),
    (&["workflow", "list"], ""),
    (&["orchestration", "list"], ""),
    (&["events"], "submitted"),
    (&["each", "--list"], ""),
];

fn assert_all_read(sandbox: &Sandbox, store: &str) {
    for (command, part) in READS {
        let ran = sandbox.onward(&[&["--store", store], *command].concat());
        assert_eq!(ran.code, Some(0), "{command:?}: {}", ran.stderr);
        let output = ran.stdout.to_lowercase() + &ran.stderr.to_lowercase();
        assert!(output.contains(&part.to_lowercase()), "{command:?}: {output}");
    }
}

fn submit(sandbox: &Sandbox, store: &str) {
    let submit = ["--store", store, "submit", "--kind", "mail", "--tag", "customer=7", "x"];
    assert_eq!(sandbox.onward(&submit).code, Some(0));
}

/// Shows: T17, T21, B11
#[cfg(target_os = "linux")]
#[test]
fn reads_continue_while_another_program_holds_the_write_lock_and_doctor_names_it() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    submit(&sandbox, &store);
    let other = Connection::open(sandbox.path("onward.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_all_read(&sandbox, &store);
    let ran = sandbox.onward(&["doctor"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let holder = format!("warn  lock           process {}", std::process::id());
    assert!(ran.stdout.contains(&holder) && ran.stdout.contains("keeps the write lock"), "{}", ran.stdout);
    // A write waits, and completes as soon as the lock is free.
    let waiting = sandbox.start(&["submit", "--kind", "mail"], "");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(waiting.wait().code, Some(0));
    assert!(sandbox.onward(&["doctor"]).stdout.contains("ok    lock"));
}

/// Shows: T17, T21, B11
#[test]
fn a_store_that_no_process_has_open_is_read_on_a_full_disk() {
    let Some(mount) = Mount::new("4m") else { return };
    let (sandbox, store) = (Sandbox::new(), mount.path().join("onward.db").display().to_string());
    submit(&sandbox, &store);
    mount.fill_but(0);
    assert_all_read(&sandbox, &store);
    let ran = sandbox.onward(&["--store", &store, "doctor"]);
    assert!(ran.code == Some(1) && ran.stdout.contains("bad   space"), "{}{}", ran.stdout, ran.stderr);
}

/// Shows: T17, T21
#[test]
fn a_store_that_a_killed_process_left_is_read_on_a_full_disk() {
    let Some(mount) = Mount::new("4m") else { return };
    let (sandbox, store) = (Sandbox::new(), mount.path().join("onward.db").display().to_string());
    submit(&sandbox, &store);
    sandbox.pipe("begun");
    let script = "echo > begun; exec sleep 1000";
    let worker = sandbox.start(&["--store", &store, "work", "--kind", "other", "--", "sh", "-c", script], "");
    let submitted = sandbox.onward(&["--store", &store, "submit", "--kind", "other"]);
    assert_eq!(submitted.code, Some(0));
    sandbox.await_writer("begun");
    worker.signal(rustix::process::Signal::KILL);
    worker.wait();
    mount.fill_but(0);
    let ran = sandbox.onward(&["--store", &store, "task", "list"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("other"), "{}{}", ran.stdout, ran.stderr);
}

/// Shows: T17
#[test]
fn a_store_is_read_on_a_file_system_that_is_read_only() {
    let Some(mount) = Mount::new("4m") else { return };
    let (sandbox, store) = (Sandbox::new(), mount.path().join("onward.db").display().to_string());
    submit(&sandbox, &store);
    mount.make_read_only();
    assert_all_read(&sandbox, &store);
}

/// Shows: T21
#[test]
fn a_read_changes_no_byte_of_a_store_and_leaves_no_file() {
    let sandbox = Sandbox::new();
    let store = sandbox.store();
    sandbox.onward_with(&["submit", "--kind", "mail", "--tag", "customer=7", "--lines"], &numbers(1));
    let before = std::fs::read(sandbox.path("onward.db")).unwrap();
    assert_all_read(&sandbox, &store);
    assert!(std::fs::read(sandbox.path("onward.db")).unwrap() == before, "the file was changed");
    assert_eq!(std::fs::read_dir(sandbox.path("onward.db-sessions")).unwrap().count(), 1, "a mark was left");
}
