//! Many processes of the program at once, and processes without inotify.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Stdio};

use onward_store::rusqlite::Connection;

use crate::harness::Sandbox;

/// The processes that are started at once.
const CROWD: usize = 200;

/// Starts processes that submit one task each.
fn submit_at_once(sandbox: &Sandbox, count: usize) -> Vec<Child> {
    (0..count).map(|number| sandbox.spawn(&["submit", "--kind", "k", &number.to_string()])).collect()
}

fn assert_all_succeed(children: Vec<Child>) {
    for child in children {
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    }
}

fn tasks(sandbox: &Sandbox) -> u64 {
    sandbox.onward(&["task", "count"]).stdout.trim().parse().unwrap()
}

/// Shows: T21
#[test]
fn each_of_two_hundred_processes_that_submit_at_once_succeeds() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.onward(&["store", "create"]).code, Some(0));
    assert_all_succeed(submit_at_once(&sandbox, CROWD));
    assert_eq!(tasks(&sandbox), CROWD as u64);
}

/// Shows: T21
#[test]
fn processes_that_make_one_store_at_once_all_succeed() {
    let sandbox = Sandbox::new();
    assert_all_succeed(submit_at_once(&sandbox, 50));
    assert_eq!(tasks(&sandbox), 50);
}

/// Shows: T21
#[test]
fn a_worker_is_notified_of_tasks_from_processes_that_end_at_once() {
    let sandbox = Sandbox::new();
    let worker = sandbox.start(&["work", "--kind", "k", "--", "sh", "-c", "cat >> ran; echo >> ran"], "");
    sandbox.pipe("last");
    let last = sandbox.start(&["work", "--kind", "last", "--", "sh", "-c", "echo done > last"], "");
    assert_all_succeed(submit_at_once(&sandbox, 20));
    sandbox.onward(&["task", "wait", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"]);
    sandbox.onward(&["task", "wait", "16", "17", "18", "19", "20"]);
    assert_eq!(sandbox.read("ran").lines().count(), 20);
    sandbox.onward(&["submit", "--kind", "last"]);
    assert_eq!(sandbox.await_writer("last"), "done\n");
    for worker in [worker, last] {
        worker.signal(rustix::process::Signal::INT);
        assert_eq!(worker.wait().code, Some(130));
    }
}

/// Shows: T21
#[test]
fn a_process_that_is_killed_while_it_waits_for_the_writer_keeps_no_other_from_it() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.onward(&["submit", "--kind", "k"]).code, Some(0));
    let other = Connection::open(sandbox.path("onward.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting = submit_at_once(&sandbox, 3);
    await_queue(&sandbox, 3);
    waiting.iter_mut().for_each(|child| child.kill().unwrap());
    for mut child in waiting {
        child.wait().unwrap();
    }
    let behind = submit_at_once(&sandbox, 3);
    other.execute_batch("ROLLBACK").unwrap();
    assert_all_succeed(behind);
    assert_eq!(tasks(&sandbox), 4);
}

/// Shows: T21
#[test]
fn processes_write_in_the_order_in_which_they_came() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.onward(&["store", "create"]).code, Some(0));
    let other = Connection::open(sandbox.path("onward.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting = Vec::new();
    for number in 0..20 {
        waiting.push(sandbox.spawn(&["submit", "--kind", "k", &number.to_string()]));
        await_queue(&sandbox, number + 1);
    }
    other.execute_batch("ROLLBACK").unwrap();
    assert_all_succeed(waiting);
    let tasks = sandbox.json(&["task", "list", "--payload"]);
    let order: Vec<_> = tasks.iter().rev().map(|task| task["payload"].as_str().unwrap().to_owned()).collect();
    assert_eq!(order, (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
}

/// Waits until `count` processes wait to write, the first of them for the write lock and the others
/// for their turn.
fn await_queue(sandbox: &Sandbox, count: usize) {
    use std::os::unix::fs::MetadataExt as _;
    let inode = format!(":{} ", fs::metadata(sandbox.path("onward.db-sessions")).unwrap().ino());
    let waits = |line: &&str| line.contains("FLOCK") && line.contains(&inode);
    // The file is read in pieces, and shows a line twice if other locks change in between. The
    // process stands before the inode.
    let process =
        |line: &str| line.split(&inode).next().and_then(|head| head.split(' ').rev().nth(1)).map(str::to_owned);
    loop {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        if locks.lines().filter(waits).filter_map(process).collect::<BTreeSet<_>>().len() >= count {
            return;
        }
        std::thread::yield_now();
    }
}

/// Runs the program as a user without inotify instances.
fn without_inotify(sandbox: &Sandbox, arguments: &[&str]) -> Child {
    let onward = sandbox.command(arguments);
    let mut command = Command::new("unshare");
    let script = "echo 0 > /proc/sys/user/max_inotify_instances; exec \"$@\"";
    command.args(["--user", "--map-root-user", "sh", "-c", script, "sh"]);
    command.arg(onward.get_program()).args(onward.get_args()).current_dir(sandbox.path(""));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn ran_without_inotify(sandbox: &Sandbox, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut child = without_inotify(sandbox, arguments);
    drop(child.stdin.take());
    let ended = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ended.status.code(), text(ended.stdout), text(ended.stderr))
}

/// Shows: T21
#[test]
fn no_command_that_ends_at_once_needs_a_watch() {
    let sandbox = Sandbox::new();
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
        let (code, _, stderr) = ran_without_inotify(&sandbox, command);
        assert_eq!((code, stderr.contains("watch")), (Some(0), false), "{command:?}: {stderr}");
    }
}

/// Shows: T21, B4
#[test]
fn a_worker_without_a_watch_reports_it_once_and_runs_tasks_of_other_processes() {
    let sandbox = Sandbox::new();
    sandbox.pipe("done");
    let worker = without_inotify(&sandbox, &["work", "--kind", "k", "--", "sh", "-c", "cat > done"]);
    for text in ["one", "two"] {
        assert_eq!(sandbox.onward(&["submit", "--kind", "k", text]).code, Some(0));
        assert_eq!(sandbox.await_writer("done"), text);
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
    let sandbox = Sandbox::new();
    sandbox.onward(&["submit", "--kind", "k"]);
    let (code, stdout, stderr) = ran_without_inotify(&sandbox, &["doctor"]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("warn  watch") && stdout.contains("fs.inotify.max_user_instances"), "{stdout}");
}
