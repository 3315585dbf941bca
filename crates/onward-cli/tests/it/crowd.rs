//! Many processes of the program at once, and processes without inotify.

use std::fs;
use std::process::{Child, Command, Stdio};

use onward_store::rusqlite::Connection;

use crate::harness::Place;

/// The processes that are started at once.
const CROWD: usize = 200;

/// Starts processes that submit one task each.
fn submit_at_once(place: &Place, count: usize) -> Vec<Child> {
    (0..count).map(|number| place.spawn(&["submit", "--kind", "k", &number.to_string()])).collect()
}

fn assert_all_succeed(children: Vec<Child>) {
    for child in children {
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    }
}

fn tasks(place: &Place) -> u64 {
    place.onward(&["task", "count"]).stdout.trim().parse().unwrap()
}

/// Shows: T21
#[test]
fn each_of_two_hundred_processes_that_submit_at_once_succeeds() {
    let place = Place::new();
    assert_eq!(place.onward(&["store", "create"]).code, Some(0));
    assert_all_succeed(submit_at_once(&place, CROWD));
    assert_eq!(tasks(&place), CROWD as u64);
}

/// Shows: T21
#[test]
fn processes_that_make_one_store_at_once_all_succeed() {
    let place = Place::new();
    assert_all_succeed(submit_at_once(&place, 50));
    assert_eq!(tasks(&place), 50);
}

/// Shows: T21
#[test]
fn a_worker_hears_of_what_processes_submit_that_end_at_once() {
    let place = Place::new();
    let worker = place.start(&["work", "--kind", "k", "--", "sh", "-c", "cat >> ran; echo >> ran"], "");
    place.pipe("last");
    let last = place.start(&["work", "--kind", "last", "--", "sh", "-c", "echo done > last"], "");
    assert_all_succeed(submit_at_once(&place, 20));
    place.onward(&["task", "wait", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"]);
    place.onward(&["task", "wait", "16", "17", "18", "19", "20"]);
    assert_eq!(place.read("ran").lines().count(), 20);
    place.onward(&["submit", "--kind", "last"]);
    assert_eq!(place.await_writer("last"), "done\n");
    for worker in [worker, last] {
        worker.signal(rustix::process::Signal::INT);
        assert_eq!(worker.wait().code, Some(130));
    }
}

/// Shows: T21
#[test]
fn a_process_that_is_killed_while_it_waits_for_the_writer_keeps_no_other_from_it() {
    let place = Place::new();
    assert_eq!(place.onward(&["submit", "--kind", "k"]).code, Some(0));
    let other = Connection::open(place.path("onward.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting = submit_at_once(&place, 3);
    await_queue(&place, 3);
    waiting.iter_mut().for_each(|child| child.kill().unwrap());
    for mut child in waiting {
        child.wait().unwrap();
    }
    let behind = submit_at_once(&place, 3);
    other.execute_batch("ROLLBACK").unwrap();
    assert_all_succeed(behind);
    assert_eq!(tasks(&place), 4);
}

/// Shows: T21
#[test]
fn processes_write_in_the_order_in_which_they_came() {
    let place = Place::new();
    assert_eq!(place.onward(&["store", "create"]).code, Some(0));
    let other = Connection::open(place.path("onward.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting = Vec::new();
    for number in 0..20 {
        waiting.push(place.spawn(&["submit", "--kind", "k", &number.to_string()]));
        await_queue(&place, number + 1);
    }
    other.execute_batch("ROLLBACK").unwrap();
    assert_all_succeed(waiting);
    let tasks = place.json(&["task", "list", "--payload"]);
    let order: Vec<_> = tasks.iter().rev().map(|task| task["payload"].as_str().unwrap().to_owned()).collect();
    assert_eq!(order, (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
}

/// Waits until `count` processes wait to write, the first of them for the write lock and the others
/// for their turn.
fn await_queue(place: &Place, count: usize) {
    use std::os::unix::fs::MetadataExt as _;
    let inode = format!(":{} ", fs::metadata(place.path("onward.db-sessions")).unwrap().ino());
    let waits = |line: &&str| line.contains("FLOCK") && line.contains(&inode);
    while fs::read_to_string("/proc/locks").unwrap().lines().filter(waits).count() < count {
        std::thread::yield_now();
    }
}

/// Runs the program as a user without inotify instances.
fn without_inotify(place: &Place, arguments: &[&str]) -> Child {
    let onward = place.command(arguments);
    let mut command = Command::new("unshare");
    let script = "echo 0 > /proc/sys/user/max_inotify_instances; exec \"$@\"";
    command.args(["--user", "--map-root-user", "sh", "-c", script, "sh"]);
    command.arg(onward.get_program()).args(onward.get_args()).current_dir(place.path(""));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn ran_without_inotify(place: &Place, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut child = without_inotify(place, arguments);
    drop(child.stdin.take());
    let ended = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ended.status.code(), text(ended.stdout), text(ended.stderr))
}

/// Shows: T21
#[test]
fn no_command_that_ends_at_once_needs_a_watch() {
    let place = Place::new();
    for command in [
        &["submit", "--kind", "k", "x"][..],
        &["task", "list"],
        &["task", "cancel", "1"],
        &["task", "why", "1"],
        &["queue", "pause", "--all"],
        &["queue", "list"],
        &["stats"],
        &["events"],
        &["store", "compact"],
    ] {
        let (code, _, stderr) = ran_without_inotify(&place, command);
        assert_eq!((code, stderr.contains("watch")), (Some(0), false), "{command:?}: {stderr}");
    }
}

/// Shows: T21, B4
#[test]
fn a_worker_without_a_watch_says_so_once_and_does_what_others_submit() {
    let place = Place::new();
    place.pipe("done");
    let worker = without_inotify(&place, &["work", "--kind", "k", "--", "sh", "-c", "cat > done"]);
    for text in ["one", "two"] {
        assert_eq!(place.onward(&["submit", "--kind", "k", text]).code, Some(0));
        assert_eq!(place.await_writer("done"), text);
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(worker.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = worker.wait_with_output().unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{stderr}");
    assert_eq!(stderr.matches("fs.inotify.max_user_instances").count(), 1, "{stderr}");
}

/// Shows: B11
#[test]
fn doctor_names_the_limit_that_keeps_a_worker_from_watching() {
    let place = Place::new();
    place.onward(&["submit", "--kind", "k"]);
    let (code, stdout, stderr) = ran_without_inotify(&place, &["doctor"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("warn  watch") && stdout.contains("fs.inotify.max_user_instances"), "{stdout}");
}
