//! `onward each`: killed, interrupted, and shared among processes.

use rustix::process::Signal;

use crate::harness::{Place, Running, numbers, sorted};

/// Waits in the middle until it is killed or told to stop, unless the file `second` is there.
const HELD_AT_10: &str =
    "if test $0 = 10 && ! test -e second; then echo > reached; exec cat hold; fi; echo $0 >> finished; echo result $0";

fn held() -> (Place, Running) {
    let place = Place::new();
    place.pipe("reached");
    place.pipe("hold");
    let running = place.start(&["each", "--jobs", "1", "--", "sh", "-c", HELD_AT_10], &numbers(30));
    place.await_writer("reached");
    (place, running)
}

fn go_on(place: &Place) {
    place.write("second", "");
    let ran = place.onward_with(&["each", "--jobs", "1", "--", "sh", "-c", HELD_AT_10], &numbers(30));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let expected: String = (1..=30).map(|number| format!("result {number}\n")).collect();
    assert_eq!(ran.stdout, expected);
    assert_eq!(sorted(&place.read("finished")), (1..=30).collect::<Vec<_>>());
    assert!(ran.stderr.contains("9 of them finished earlier"), "{}", ran.stderr);
}

/// Shows: B9, T21
#[test]
fn after_kill_9_the_same_command_goes_on_and_repeats_nothing_that_finished() {
    let (place, running) = held();
    running.signal(Signal::KILL);
    assert_eq!(running.wait().code, None);
    go_on(&place);
}

/// Shows: B9, T21
#[test]
fn ctrl_c_stops_the_commands_keeps_the_work_and_says_how_to_go_on() {
    let (place, running) = held();
    running.signal(Signal::INT);
    let ran = running.wait();
    assert_eq!(ran.code, Some(130));
    assert!(ran.stderr.contains("Run the same command on the same input to go on"), "{}", ran.stderr);
    go_on(&place);
}

/// Shows: B9
#[test]
fn a_second_ctrl_c_kills_a_command_that_does_not_stop() {
    let place = Place::new();
    for name in ["reached", "told", "hold"] {
        place.pipe(name);
    }
    // A shell that is about to start a program may keep a signal from it; what says `reached` has been started.
    let script = "trap 'echo > told' TERM; while :; do sh -c 'echo > reached; cat hold'; done";
    let running = place.start(&["each", "--grace", "1h", "--", "sh", "-c", script], "a\n");
    place.await_writer("reached");
    running.signal(Signal::INT);
    place.await_writer("told");
    running.signal(Signal::INT);
    assert_eq!(running.wait().code, Some(130));
}

/// Shows: B9, T21
#[test]
fn two_processes_with_the_same_run_share_its_lines_without_doubling() {
    let place = Place::new();
    for name in ["reached", "gate", "last"] {
        place.pipe(name);
    }
    let script = "echo $0 >> ran
        if test $0 = 1; then echo > reached; cat gate; fi
        if test $0 = 20; then echo > last; fi";
    let each = ["each", "--name", "shared", "--jobs", "1", "--", "sh", "-c", script];
    let first = place.start(&each, &numbers(20));
    place.await_writer("reached");
    // The first process is held at line 1, so the second has all the others.
    let second = place.start(&each, &numbers(20));
    place.await_writer("last");
    place.write("gate", "");
    assert_eq!((first.wait().code, second.wait().code), (Some(0), Some(0)));
    assert_eq!(sorted(&place.read("ran")), (1..=20).collect::<Vec<_>>());
}
