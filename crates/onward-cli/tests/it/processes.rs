//! Several processes of the program on one store.

use std::collections::BTreeSet;
use std::time::Duration;

use onward_store::{Clock as _, SystemClock};
use rustix::process::Signal;

use crate::harness::{Sandbox, numbers, sorted};
use crate::stores::on_every_store;

on_every_store! {
    three_workers_on_one_store_run_each_of_two_thousand_tasks_once,
    the_task_of_a_killed_worker_is_taken_over_within_seconds_by_the_other not on postgres,
}

const TASKS: u32 = 2000;

/// Sets `worker` to the process id of the worker, which is the parent of the process that starts
/// the commands.
const FIND_WORKER: &str = "read _ _ _ worker _ < /proc/$PPID/stat";

/// Shows: T21, B4
fn three_workers_on_one_store_run_each_of_two_thousand_tasks_once(sandbox: Sandbox) {
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], &numbers(TASKS));
    let script = format!("{FIND_WORKER}; read number; echo $number >> ran; echo $worker >> workers; echo done $number");
    let work = ["work", "--kind", "k", "--jobs", "4", "--until-idle", "--", "sh", "-c", &script];
    let workers = [(); 3].map(|()| sandbox.start(&work, ""));
    for worker in workers {
        assert_eq!(worker.wait().code, Some(0));
    }
    assert_eq!(sorted(&sandbox.read("ran")), (1..=TASKS).collect::<Vec<_>>());
    assert_eq!(sandbox.read("workers").lines().collect::<BTreeSet<_>>().len(), 3, "one of the three did nothing");
    for task in sandbox.json(&["task", "list", "--payload", "--limit", "2000"]) {
        let result = format!("done {}\n", task["payload"].as_str().unwrap());
        let expected = (&"completed".into(), &1.into(), &result.into());
        assert_eq!((&task["state"], &task["attempts"], &task["result"]), expected, "{task}");
    }
}

/// A time far shorter than a lease, which is ten seconds here.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(5);

/// Kills one of two workers with these options while it runs a task. Returns the time until the
/// other starts that task again.
pub(crate) fn taken_over_after(sandbox: &Sandbox, options: &[&str]) -> Duration {
    for pipe in ["begun", "other", "go-on", "again", "hold"] {
        sandbox.pipe(pipe);
    }
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], &numbers(2));
    // Each worker has a task, so both are running one when one is killed.
    let script = format!(
        "{FIND_WORKER}; read number
        if test $number = 2; then echo > other; cat go-on
        elif mkdir taken; then echo $worker > begun; exec cat hold
        else echo $worker > again; fi"
    );
    let work = [&["work", "--kind", "k", "--jobs", "1"], options, &["--", "sh", "-c", &script]].concat();
    let workers = [(); 2].map(|()| sandbox.start(&work, ""));
    let pid = sandbox.await_writer("begun");
    sandbox.await_writer("other");
    let (killed, other): (Vec<_>, Vec<_>) =
        workers.into_iter().partition(|worker| worker.id().to_string() == pid.trim());
    killed[0].signal(Signal::KILL);
    let at = SystemClock.steady();
    sandbox.write("go-on", "");
    assert_eq!(sandbox.await_writer("again").trim(), other[0].id().to_string());
    let took = SystemClock.steady() - at;
    other[0].signal(Signal::INT);
    other.into_iter().for_each(|worker| assert_eq!(worker.wait().code, Some(130)));
    took
}

/// Shows: T21
fn the_task_of_a_killed_worker_is_taken_over_within_seconds_by_the_other(sandbox: Sandbox) {
    let took = taken_over_after(&sandbox, &[]);
    assert!(took < TAKEN_OVER_WITHIN, "it took {took:?}");
}
