//! A store on a disk that is full or not writable.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Output};

use onward_store::rusqlite::Connection;
use onward_testkit::mount::Mount;
use serde_json::Value;

use crate::harness::{CommandResult, Sandbox, numbers, sorted};

fn onward(mount: &Mount, arguments: &[&str], stdin: &str) -> CommandResult {
    let store = mount.path().join("onward.db");
    Sandbox::new().onward_with(&[&["--store", store.to_str().unwrap()], arguments].concat(), stdin)
}

fn submit_lines(mount: &Mount, count: u32) -> CommandResult {
    onward(mount, &["submit", "--kind", "k", "--lines"], &numbers(count))
}

/// Returns the number of tasks in the store.
fn tasks(mount: &Mount) -> usize {
    let queues = onward(mount, &["--json", "queue", "list"], "").stdout;
    queues.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["waiting"].as_u64().unwrap() as usize).sum()
}

/// Shows: B11, T21
#[test]
fn a_full_disk_exits_with_3_and_the_remedy_and_work_continues_with_free_space() {
    let Some(mount) = Mount::new("4m") else { return };
    assert_eq!(submit_lines(&mount, 10).code, Some(0));
    mount.fill_but(64 * 1024);
    let ran = submit_lines(&mount, 200_000);
    assert!(ran.code == Some(3) && ran.stderr.contains("make room"), "{:?} {}", ran.code, ran.stderr);
    mount.make_room();
    let acknowledged = 10 + ran.stdout.lines().count();
    assert_eq!(tasks(&mount), acknowledged);
    assert_eq!(submit_lines(&mount, 1).code, Some(0));
    assert_eq!(tasks(&mount), acknowledged + 1);
    let check = Connection::open(mount.path().join("onward.db")).unwrap();
    let sound: String = check.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}

/// Shows: T21
#[test]
fn a_worker_with_a_full_disk_continues_with_free_space_and_loses_nothing() {
    let Some(mount) = Mount::new("32m") else { return };
    assert_eq!(submit_lines(&mount, 300).code, Some(0));
    let sandbox = Sandbox::new();
    sandbox.pipe("begun");
    sandbox.pipe("go-on");
    let store = mount.path().join("onward.db");
    let script = "read number; test $number != 1 || { echo > begun; cat go-on; }; echo done $number";
    let work = ["work", "--kind", "k", "--jobs", "1", "--until-idle", "--", "sh", "-c", script];
    let mut worker = sandbox.start(&[&["--store", store.to_str().unwrap()], &work[..]].concat(), "");
    sandbox.await_writer("begun");
    mount.fill_but(0);
    sandbox.write("go-on", "");
    worker.await_said("make room");
    mount.make_room();
    assert_eq!(worker.wait().code, Some(0));
    let tasks = onward(&mount, &["--json", "task", "list", "--payload", "--limit", "300"], "").stdout;
    let is_done = |line: &str| {
        let task: Value = serde_json::from_str(line).unwrap();
        task["state"] == "completed" && task["result"] == format!("done {}\n", task["payload"].as_str().unwrap())
    };
    assert_eq!(tasks.lines().filter(|line| is_done(line)).count(), 300, "{tasks}");
}

/// Shows: T21
#[test]
fn a_worker_whose_log_would_fill_a_small_disk_checkpoints_in_time() {
    let Some(mount) = Mount::new("4m") else { return };
    assert_eq!(submit_lines(&mount, 500).code, Some(0));
    let store = mount.path().join("onward.db");
    let work = ["work", "--kind", "k", "--jobs", "1", "--until-idle", "--", "cat"];
    let sandbox = Sandbox::new();
    let mut worker = sandbox.spawn(&[&["--store", store.to_str().unwrap()], &work[..]].concat());
    let mut stderr = BufReader::new(worker.stderr.take().unwrap()).lines().map_while(Result::ok);
    let full = stderr.find(|line| line.contains("make room"));
    if full.is_some() {
        // It would wait for space for ever.
        worker.kill().unwrap();
    }
    assert_eq!((full, worker.wait().unwrap().code()), (None, Some(0)));
    let queues = onward(&mount, &["--json", "queue", "list"], "").stdout;
    let queue: Value = serde_json::from_str(&queues).unwrap();
    assert_eq!(queue["ended"]["completed"], 500, "{queue}");
}

/// The number of lines of `onward each` that come while there is space.
const WITH_ROOM: u32 = 20;

/// Returns the lines that come when there is no space. Together they are longer than the free part
/// of the file's log.
fn lines_without_room() -> String {
    (WITH_ROOM + 1..=200).map(|number| format!("{number} {}\n", "x".repeat(50_000))).collect()
}

/// Starts `onward each` on a store of the file system. Its commands record their lines in a file
/// next to it.
fn each(mount: &Mount, sandbox: &Sandbox) -> Child {
    let store = mount.path().join("onward.db");
    let each = ["each", "--name", "n", "--jobs", "2", "--", "sh", "-c", "set -- $0; echo $1 >> ran; echo $1"];
    sandbox.spawn(&[&["--store", store.to_str().unwrap()], &each[..]].concat())
}

/// Fills the disk when some lines are done and more come. Returns the output, and the number of
/// lines that it has reported.
fn run_into_a_full_disk(mount: &Mount, sandbox: &Sandbox) -> (Output, usize) {
    let mut child = each(mount, sandbox);
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    stdin.write_all(numbers(WITH_ROOM).as_bytes()).unwrap();
    let mut reported = BufReader::new(stdout).lines();
    let first = reported.by_ref().take(WITH_ROOM as usize).count();
    mount.fill_but(0);
    // It may end, and close its stdin, before it has read all of it.
    let _ = stdin.write_all(lines_without_room().as_bytes());
    drop(stdin);
    let count = first + reported.count();
    (child.wait_with_output().unwrap(), count)
}

/// Shows: B9, T21
#[test]
fn lines_that_a_full_disk_does_not_take_end_each_with_3_and_the_remedy() {
    let Some(mount) = Mount::new("64m") else { return };
    let (ended, _) = run_into_a_full_disk(&mount, &Sandbox::new());
    let stderr = String::from_utf8(ended.stderr).unwrap();
    let store = mount.path().join("onward.db").display().to_string();
    assert_eq!(ended.status.code(), Some(3), "{stderr}");
    for part in [&*store, "make room", "the same command resumes where it stopped"] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

/// Shows: B9, T21
#[test]
fn after_a_full_disk_the_same_command_resumes_and_repeats_no_finished_line() {
    let Some(mount) = Mount::new("64m") else { return };
    let sandbox = Sandbox::new();
    let (_, finished) = run_into_a_full_disk(&mount, &sandbox);
    mount.make_room();
    let mut again = each(&mount, &sandbox);
    again.stdin.take().unwrap().write_all((numbers(WITH_ROOM) + &lines_without_room()).as_bytes()).unwrap();
    let again = again.wait_with_output().unwrap();
    assert_eq!((again.status.code(), String::from_utf8(again.stdout).unwrap()), (Some(0), numbers(200)));
    let ran = sorted(&sandbox.read("ran"));
    assert!(finished >= WITH_ROOM as usize);
    assert_eq!(ran[..finished], (1..=200).collect::<Vec<_>>()[..finished], "what had finished ran again");
}

/// Shows: B9, T21
#[test]
fn a_full_disk_pauses_each_at_a_result_until_there_is_free_space() {
    let Some(mount) = Mount::new("32m") else { return };
    let sandbox = Sandbox::new();
    sandbox.pipe("begun");
    sandbox.pipe("go-on");
    let script = "echo $0 >> ran; test $0 != 1 || { echo > begun; cat go-on > /dev/null; }; echo done $0";
    let store = mount.path().join("onward.db");
    let each = ["--store", store.to_str().unwrap(), "each", "--jobs", "1", "--", "sh", "-c", script];
    let mut running = sandbox.start(&each, &numbers(50));
    sandbox.await_writer("begun");
    mount.fill_but(0);
    sandbox.write("go-on", "");
    running.await_said("make room");
    mount.make_room();
    let ran = running.wait();
    let expected: String = (1..=50).map(|number| format!("done {number}\n")).collect();
    assert_eq!((ran.code, ran.stdout), (Some(0), expected));
    assert_eq!(sorted(&sandbox.read("ran")), (1..=50).collect::<Vec<_>>());
}

/// Shows: B9
#[test]
fn a_file_of_results_that_cannot_be_written_further_is_named_with_the_remedy() {
    let sandbox = Sandbox::new();
    let ran = sandbox.onward_with(&["each", "--results", "/dev/full", "--", "true"], &numbers(3));
    let named = ran.stderr.contains("--results /dev/full") && ran.stderr.contains("run the same command again");
    assert!(ran.code == Some(1) && named, "{:?} {}", ran.code, ran.stderr);
}

/// Shows: B11, T21
#[test]
fn a_file_system_that_is_read_only_exits_with_3_and_the_remedy_and_leaves_the_store_alone() {
    let Some(mount) = Mount::new("4m") else { return };
    assert_eq!(submit_lines(&mount, 10).code, Some(0));
    let before = std::fs::read(mount.path().join("onward.db")).unwrap();
    mount.make_read_only();
    let ran = submit_lines(&mount, 1);
    assert!(ran.code == Some(3) && ran.stderr.contains("check the permissions"), "{:?} {}", ran.code, ran.stderr);
    assert_eq!(std::fs::read(mount.path().join("onward.db")).unwrap(), before);
}
