//! A store on a disk that is full, or may not be written.

use onward_store::rusqlite::Connection;
use onward_testkit::mount::Mount;
use serde_json::Value;

use crate::harness::{Place, Ran, numbers};

fn onward(mount: &Mount, arguments: &[&str], stdin: &str) -> Ran {
    let store = mount.path().join("onward.db");
    Place::new().onward_with(&[&["--store", store.to_str().unwrap()], arguments].concat(), stdin)
}

fn submit_lines(mount: &Mount, count: u32) -> Ran {
    onward(mount, &["submit", "--kind", "k", "--lines"], &numbers(count))
}

/// How many tasks the store has.
fn tasks(mount: &Mount) -> usize {
    let queues = onward(mount, &["--json", "queue", "list"], "").stdout;
    queues.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["waiting"].as_u64().unwrap() as usize).sum()
}

/// Shows: B11, T21
#[test]
fn a_full_disk_exits_with_3_and_the_remedy_and_work_goes_on_when_there_is_room() {
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
fn a_worker_that_runs_into_a_full_disk_goes_on_by_itself_when_there_is_room_and_loses_nothing() {
    let Some(mount) = Mount::new("32m") else { return };
    assert_eq!(submit_lines(&mount, 300).code, Some(0));
    let place = Place::new();
    place.pipe("begun");
    place.pipe("go-on");
    let store = mount.path().join("onward.db");
    let script = "read number; test $number != 1 || { echo > begun; cat go-on; }; echo done $number";
    let work = ["work", "--kind", "k", "--jobs", "1", "--until-idle", "--", "sh", "-c", script];
    let mut worker = place.start(&[&["--store", store.to_str().unwrap()], &work[..]].concat(), "");
    place.await_writer("begun");
    mount.fill_but(0);
    place.write("go-on", "");
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
