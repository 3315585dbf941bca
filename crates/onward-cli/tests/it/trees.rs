//! Processes that a command started end with it, including those outside its group and session.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::time::Duration;

use onward_store::{Clock as _, SystemClock};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::harness::{Running, Sandbox, numbers};

/// Process trees. Each starts a process that holds the pipe `alive` open for a minute, and waits.
const TREES: [(&str, &str); 4] = [
    ("a child in the group", "sleep 60 & wait"),
    ("a child in a session of its own", "setsid sleep 60 & wait"),
    ("an orphan in a session of its own", "(setsid sleep 60 &); sleep 60 & wait"),
    ("an orphan that has started another", "(setsid sh -c 'sleep 60; :' &); sleep 60 & wait"),
];

/// A time far shorter than the minute for which the processes run.
const SOON: Duration = Duration::from_secs(30);

/// A command that starts a tree of processes, all of which hold a pipe open.
struct Tree {
    sandbox: Sandbox,
    name: &'static str,
    script: String,
}

impl Tree {
    fn all() -> impl Iterator<Item = Self> {
        TREES.iter().map(|(name, script)| {
            let sandbox = Sandbox::new();
            sandbox.pipe("alive");
            Self { sandbox, name, script: format!("exec 9> alive; echo $PPID >&9; {script}") }
        })
    }

    /// Starts `onward`. Returns the run, the pipe that the processes of its command hold open, and
    /// the process that started the command.
    fn start(&self, arguments: &[&str]) -> (Running, BufReader<File>, Pid) {
        let running = self.sandbox.start(&[arguments, &["--", "sh", "-c", &self.script]].concat(), "a\n");
        let mut alive = BufReader::new(File::open(self.sandbox.path("alive")).unwrap());
        let mut parent = String::new();
        alive.read_line(&mut parent).unwrap();
        (running, alive, Pid::from_raw(parent.trim().parse().unwrap()).unwrap())
    }

    fn assert_ends(&self, mut alive: BufReader<File>) {
        let before = SystemClock.steady();
        alive.read_to_end(&mut Vec::new()).unwrap();
        assert!(SystemClock.steady() - before < SOON, "{} went on", self.name);
    }
}

/// Shows: T21
#[test]
fn a_task_that_is_cancelled_ends_with_all_that_its_command_started() {
    for tree in Tree::all() {
        tree.sandbox.onward(&["submit", "--kind", "k"]);
        let (worker, alive, _) = tree.start(&["work", "--kind", "k", "--until-idle", "--grace", "1h"]);
        tree.sandbox.onward(&["task", "cancel", "1"]);
        tree.assert_ends(alive);
        assert_eq!(worker.wait().code, Some(0));
        assert_eq!(tree.sandbox.json(&["task", "show", "1"])[0]["state"], "cancelled");
    }
}

/// Shows: B9
#[test]
fn a_command_that_takes_too_long_ends_with_all_that_it_started_though_nothing_heeds_the_request() {
    for mut tree in Tree::all() {
        tree.script = format!("trap '' TERM; {}", tree.script);
        let (each, alive, _) = tree.start(&["each", "--timeout", "200ms", "--grace", "100ms"]);
        tree.assert_ends(alive);
        assert_eq!(each.wait().code, Some(1));
    }
}

/// Shows: B9
#[test]
fn no_command_of_a_run_continues_after_kill_9() {
    for tree in Tree::all() {
        let (each, alive, _) = tree.start(&["each"]);
        each.signal(Signal::KILL);
        tree.assert_ends(alive);
        each.wait();
    }
}

/// Shows: B9
#[test]
fn a_run_continues_after_kill_9_of_the_process_that_starts_its_commands() {
    for mut tree in Tree::all() {
        tree.script = format!("mkdir taken || exit 0; {}", tree.script);
        let (each, alive, supervisor) = tree.start(&["each"]);
        kill_process(supervisor, Signal::KILL).unwrap();
        tree.assert_ends(alive);
        let ran = each.wait();
        assert_eq!(ran.code, Some(0), "{}: {}", tree.name, ran.stderr);
    }
}

/// Shows: B9
#[test]
fn a_signal_for_all_processes_of_a_service_is_for_the_worker_to_act_on() {
    let signals = "kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID";
    let ran = Sandbox::new().onward_with(&["each", "--", "sh", "-c", signals], &numbers(3));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// Shows: B9
#[test]
fn what_a_finished_command_left_in_the_background_is_left_alone() {
    let sandbox = Sandbox::new();
    let script = "setsid sleep 60 > /dev/null 2>&1 & echo $!";
    let ran = sandbox.onward_with(&["each", "--jobs", "1", "--", "sh", "-c", script], &numbers(1));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let left = Pid::from_raw(ran.stdout.trim().parse().unwrap()).unwrap();
    assert_eq!(test_kill_process(left), Ok(()));
    kill_process(left, Signal::KILL).unwrap();
}
