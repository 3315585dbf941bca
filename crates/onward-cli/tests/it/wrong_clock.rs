//! Nodes on one PostgreSQL server whose own clocks are wrong by an hour. The server's clock
//! applies.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use crate::harness::Sandbox;
use crate::stores;

const FAST: &str = "3600";
const SLOW: &str = "-3600";

/// Returns the environment that gives a program a wrong clock.
fn wrong_by(sandbox: &Sandbox, seconds: &str) -> Vec<(&'static str, String)> {
    let library = sandbox.path("wrong_clock.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/wrong_clock.c");
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status().unwrap();
    assert!(made.success());
    let environment = vec![("LD_PRELOAD", library.display().to_string()), ("WRONG_CLOCK_SECONDS", seconds.to_owned())];
    assert_is_wrong(&environment, seconds);
    environment
}

/// Asserts that the clock is wrong. Otherwise the tests would prove nothing.
#[expect(clippy::disallowed_methods, reason = "what the clock of this process says is what is compared")]
fn assert_is_wrong(environment: &[(&str, String)], seconds: &str) {
    let date = Command::new("date").arg("+%s").envs(environment.iter().map(|(name, value)| (name, value))).output();
    let shown: i64 = String::from_utf8(date.unwrap().stdout).unwrap().trim().parse().unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().cast_signed();
    assert!((shown - now - seconds.parse::<i64>().unwrap()).abs() < 60, "{shown} at {now}");
}

/// The arguments of a worker that runs what is due.
const WORK: [&str; 5] = ["work", "--kind", "k", "--until-idle", "--"];

/// Shows: B4
#[test]
fn a_node_whose_clock_is_fast_starts_nothing_early() {
    let Some(sandbox) = stores::postgres() else { return };
    sandbox.onward(&["submit", "--kind", "k", "--after", "30m"]);
    let worked = sandbox.onward_as(&wrong_by(&sandbox, FAST), &[&WORK[..], &["cat"]].concat());
    assert_eq!(worked.code, Some(0), "{}", worked.stderr);
    assert_eq!(sandbox.json(&["task", "list"])[0]["state"], "scheduled");
}

/// Shows: B4
#[test]
fn a_node_whose_clock_is_slow_starts_what_is_due() {
    let Some(sandbox) = stores::postgres() else { return };
    sandbox.onward(&["submit", "--kind", "k"]);
    let worked = sandbox.onward_as(&wrong_by(&sandbox, SLOW), &[&WORK[..], &["cat"]].concat());
    assert_eq!(worked.code, Some(0), "{}", worked.stderr);
    assert_eq!(sandbox.json(&["task", "list"])[0]["state"], "completed");
}

/// Shows: B4
#[test]
fn what_a_node_submits_whose_clock_is_wrong_is_due_by_the_clock_of_the_server() {
    for (seconds, after, expected) in [(FAST, "0s", "completed"), (SLOW, "30m", "scheduled")] {
        let Some(sandbox) = stores::postgres() else { return };
        let submit = ["submit", "--kind", "k", "--after", after];
        assert_eq!(sandbox.onward_as(&wrong_by(&sandbox, seconds), &submit).code, Some(0));
        sandbox.onward(&[&WORK[..], &["cat"]].concat());
        assert_eq!(sandbox.json(&["task", "list"])[0]["state"], expected, "{seconds}");
    }
}

/// By this node's clock, the last heartbeat of the node that runs the task is an hour old.
///
/// Shows: B4
#[test]
fn a_node_whose_clock_is_fast_takes_no_lease_away() {
    let Some(sandbox) = stores::postgres() else { return };
    ["begun", "go-on", "second"].into_iter().for_each(|pipe| sandbox.pipe(pipe));
    let script = "read number; if test $number = 1; then echo > begun; cat go-on; else echo > second; fi";
    let work = ["work", "--kind", "k", "--jobs", "1", "--", "sh", "-c", script];
    let submit = ["submit", "--kind", "k"];
    sandbox.onward(&[&submit[..], &["1"]].concat());
    let holder = sandbox.start(&work, "");
    sandbox.await_writer("begun");
    sandbox.onward(&[&submit[..], &["2"]].concat());
    // The node checks for expired leases before it claims.
    let other = sandbox.start_as(&wrong_by(&sandbox, FAST), &work);
    sandbox.await_writer("second");
    sandbox.write("go-on", "");
    // A worker that is stopped while its command ends may return the task.
    assert_eq!(sandbox.onward(&["task", "wait", "1", "2"]).code, Some(0));
    for worker in [other, holder] {
        worker.signal(Signal::INT);
        assert_eq!(worker.wait().code, Some(130));
    }
    for task in sandbox.json(&["task", "list"]) {
        assert_eq!((&task["state"], &task["attempts"]), (&"completed".into(), &1.into()), "{task}");
    }
}
