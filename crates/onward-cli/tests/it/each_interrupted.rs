//! `onward each`: killed, interrupted, and shared among processes.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};

use onward_testkit::soak;
use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Running, Sandbox, numbers, sorted};
use crate::stores::on_every_store;

on_every_store! {
    after_kill_9_the_same_command_resumes_and_repeats_no_finished_line,
    ctrl_c_stops_the_commands_keeps_the_work_and_prints_how_to_continue,
    a_closed_terminal_stops_the_commands_and_keeps_the_work,
    a_continued_run_has_the_retries_of_its_own_command_line,
    a_second_ctrl_c_kills_a_command_that_does_not_stop,
    two_processes_with_the_same_run_share_its_lines_without_doubling,
    whenever_each_is_killed_the_results_are_complete_and_no_finished_line_ran_again,
    each_that_is_killed_during_its_input_resumes_with_the_whole_input,
    each_whose_output_is_closed_before_the_end_does_not_report_success,
    a_command_whose_output_has_no_room_names_standard_output,
}

/// Waits in the middle until it is killed or stopped, unless the file `second` exists.
const HELD_AT_10: &str =
    "if test $0 = 10 && ! test -e second; then echo > reached; exec cat hold; fi; echo $0 >> finished; echo result $0";

fn held(sandbox: Sandbox) -> (Sandbox, Running) {
    sandbox.pipe("reached");
    sandbox.pipe("hold");
    let running = sandbox.start(&["each", "--jobs", "1", "--", "sh", "-c", HELD_AT_10], &numbers(30));
    sandbox.await_writer("reached");
    (sandbox, running)
}

fn go_on(sandbox: &Sandbox) {
    sandbox.write("second", "");
    let ran = sandbox.onward_with(&["each", "--jobs", "1", "--", "sh", "-c", HELD_AT_10], &numbers(30));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let expected: String = (1..=30).map(|number| format!("result {number}\n")).collect();
    assert_eq!(ran.stdout, expected);
    assert_eq!(sorted(&sandbox.read("finished")), (1..=30).collect::<Vec<_>>());
    assert!(ran.stderr.contains("9 of them finished earlier"), "{}", ran.stderr);
}

/// Shows: B9, T21
fn after_kill_9_the_same_command_resumes_and_repeats_no_finished_line(sandbox: Sandbox) {
    let (sandbox, running) = held(sandbox);
    running.signal(Signal::KILL);
    assert_eq!(running.wait().code, None);
    go_on(&sandbox);
}

/// Shows: B9, T21
fn ctrl_c_stops_the_commands_keeps_the_work_and_prints_how_to_continue(sandbox: Sandbox) {
    let (sandbox, running) = held(sandbox);
    running.signal(Signal::INT);
    let ran = running.wait();
    assert_eq!(ran.code, Some(130));
    assert!(ran.stderr.contains("Run the same command on the same input to continue"), "{}", ran.stderr);
    go_on(&sandbox);
}

/// Shows: B9, T21
fn a_closed_terminal_stops_the_commands_and_keeps_the_work(sandbox: Sandbox) {
    let (sandbox, running) = held(sandbox);
    running.signal(Signal::HUP);
    let ran = running.wait();
    assert_eq!(ran.code, Some(130));
    assert!(ran.stderr.contains("Run the same command on the same input to continue"), "{}", ran.stderr);
    go_on(&sandbox);
}

/// Shows: B9, T7
fn a_continued_run_has_the_retries_of_its_own_command_line(sandbox: Sandbox) {
    sandbox.pipe("reached");
    sandbox.pipe("hold");
    let script = ["--", "sh", "-c", "test -e second && exit 1; echo > reached; cat hold"];
    let first = [&["each", "--retries", "1000000", "--backoff", "1h"][..], &script].concat();
    let running = sandbox.start(&first, "a\n");
    sandbox.await_writer("reached");
    running.signal(Signal::INT);
    assert_eq!(running.wait().code, Some(130));
    sandbox.write("second", "");
    let ran = sandbox.onward_with(&[&["each"][..], &script].concat(), "a\n");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("is dead after 1 attempt: exit status 1"), "{}", ran.stderr);
}

/// Shows: B9
fn a_second_ctrl_c_kills_a_command_that_does_not_stop(sandbox: Sandbox) {
    for name in ["reached", "told", "hold"] {
        sandbox.pipe(name);
    }
    // A shell that is about to start a program may withhold a signal from it. The program that
    // writes `reached` has started.
    let script = "trap 'echo > told' TERM; while :; do sh -c 'echo > reached; cat hold'; done";
    let running = sandbox.start(&["each", "--grace", "1h", "--", "sh", "-c", script], "a\n");
    sandbox.await_writer("reached");
    running.signal(Signal::INT);
    sandbox.await_writer("told");
    running.signal(Signal::INT);
    assert_eq!(running.wait().code, Some(130));
}

/// Shows: B9, T21
fn two_processes_with_the_same_run_share_its_lines_without_doubling(sandbox: Sandbox) {
    for name in ["reached", "gate", "last"] {
        sandbox.pipe(name);
    }
    let script = "echo $0 >> ran
        if test $0 = 1; then echo > reached; cat gate; fi
        if test $0 = 20; then echo > last; fi";
    let each = ["each", "--name", "shared", "--jobs", "1", "--", "sh", "-c", script];
    let first = sandbox.start(&each, &numbers(20));
    sandbox.await_writer("reached");
    // The first process is held at line 1, so the second runs all the others.
    let second = sandbox.start(&each, &numbers(20));
    sandbox.await_writer("last");
    sandbox.write("gate", "");
    assert_eq!((first.wait().code, second.wait().code), (Some(0), Some(0)));
    assert_eq!(sorted(&sandbox.read("ran")), (1..=20).collect::<Vec<_>>());
}

/// The lines of the runs that are killed at random, and the number of kills.
const LINES: u32 = 400;
const KILLS: usize = 10;

/// Records that it ran for its line, and writes to a pipe before or after its last output, so that
/// kills occur at either point.
const TICKING: &str = "echo $0 >> ran
    case $0 in *[02468]) echo told > ticks; echo result $0;; *) echo result $0; echo told > ticks;; esac";

/// A run that is killed repeatedly, and the conditions that hold after each kill.
struct Killed {
    sandbox: Sandbox,
    /// The pipe to which commands write. It is also open for writing, so that it does not end with
    /// them.
    ticks: File,
    /// Lines that were recorded at some kill, each with the number of its runs by then.
    recorded: Vec<(u32, usize)>,
}

impl Killed {
    fn new(sandbox: Sandbox) -> Self {
        sandbox.pipe("ticks");
        let ticks = OpenOptions::new().read(true).write(true).open(sandbox.path("ticks")).unwrap();
        Self { sandbox, ticks, recorded: Vec::new() }
    }

    /// Waits until commands have written for this many lines.
    fn await_ticks(&mut self, count: usize) {
        self.ticks.read_exact(&mut vec![0; "told\n".len() * count]).unwrap();
    }

    /// Returns the numbers of the completed lines in the file of results, in the order of the
    /// input. Skips an incomplete last line. A line during which the process was killed three times
    /// in a row is a dead letter until a later run retries it.
    fn results(&self) -> Vec<u32> {
        let results = self.sandbox.read("r");
        let whole = results.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let lines: Vec<Value> = whole.map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut completed = Vec::new();
        for (line, number) in lines.iter().zip(1u32..) {
            let shown = (&line["line"], line["state"].as_str().unwrap(), line["stdout"].as_str().unwrap());
            if shown != (&number.into(), "dead", "") {
                assert_eq!(shown, (&number.into(), "completed", format!("result {number}\n").as_str()), "{line}");
                completed.push(number);
            }
        }
        completed
    }

    fn times_run(&self, line: u32) -> usize {
        self.sandbox.read("ran").lines().filter(|ran| *ran == line.to_string()).count()
    }

    /// Records the finished lines, after the process is gone.
    fn note(&mut self) {
        let list = ["task", "list", "--state", "completed", "--payload", "--limit", "1000"];
        let tasks = self.sandbox.json(&list);
        let recorded: BTreeSet<u32> =
            tasks.iter().map(|task| task["payload"].as_str().unwrap().parse().unwrap()).collect();
        assert!(self.results().iter().all(|line| recorded.contains(line)), "a result was shown that is not recorded");
        let with_runs: Vec<_> = recorded.iter().map(|line| (*line, self.times_run(*line))).collect();
        self.recorded.extend(with_runs);
    }

    /// Asserts that every line is in the results once, in order, and that no line ran again that
    /// was finished when its process was killed.
    fn assert_is_whole(&self) {
        assert_eq!(self.results(), (1..=LINES).collect::<Vec<_>>());
        for (line, runs) in &self.recorded {
            assert_eq!(self.times_run(*line), *runs, "line {line} was finished, and ran again");
        }
    }
}

/// Shows: B9, T21
#[expect(clippy::print_stdout, reason = "the seed of a failure is needed to repeat it")]
fn whenever_each_is_killed_the_results_are_complete_and_no_finished_line_ran_again(sandbox: Sandbox) {
    let seed = soak::seed();
    println!("ONWARD_SEED={seed}");
    let (mut random, mut killed) = (fastrand::Rng::with_seed(seed), Killed::new(sandbox));
    let each = ["each", "--jobs", "4", "--retry-failed", "--results", "r", "--", "sh", "-c", TICKING];
    for _ in 0..KILLS {
        let running = killed.sandbox.start(&each, &numbers(LINES));
        killed.await_ticks(random.usize(..30));
        running.signal(if random.u8(..3) == 0 { Signal::TERM } else { Signal::KILL });
        running.wait();
        killed.note();
    }
    let ran = killed.sandbox.onward_with(&each, &numbers(LINES));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    killed.assert_is_whole();
}

/// Shows: B9, T21
fn each_that_is_killed_during_its_input_resumes_with_the_whole_input(sandbox: Sandbox) {
    let mut killed = Killed::new(sandbox);
    let each = ["each", "--name", "n", "--jobs", "4", "--results", "r", "--", "sh", "-c", TICKING];
    let mut child = killed.sandbox.spawn(&each);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(numbers(50).as_bytes()).unwrap();
    killed.await_ticks(20);
    child.kill().unwrap();
    child.wait().unwrap();
    killed.note();
    assert!(!killed.recorded.is_empty());
    let ran = killed.sandbox.onward_with(&each, &numbers(LINES));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    killed.assert_is_whole();
}

/// Shows: B9
fn each_whose_output_is_closed_before_the_end_does_not_report_success(sandbox: Sandbox) {
    sandbox.pipe("gate");
    let script = "test $0 != 2 || cat gate; echo $0";
    let mut child = sandbox.spawn(&["each", "--jobs", "1", "--", "sh", "-c", script]);
    child.stdin.take().unwrap().write_all(numbers(3).as_bytes()).unwrap();
    let mut first = [0; 2];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    // The reading end of its pipe is closed now, and the second line has not ended.
    sandbox.write("gate", "");
    let ended = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((&first, ended.status.code()), (b"1\n", Some(141)), "{stderr}");
    assert!(stderr.contains("Run the same command on the same input to continue"), "{stderr}");
}

/// Shows: B9
fn a_command_whose_output_has_no_room_names_standard_output(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k"]);
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = sandbox.command(&["task", "list"]).stdout(full).output().unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("standard output cannot be written: No space left on device"), "{stderr}");
}
