//! `onward each`: lines, results, and a second run.

use crate::harness::{Place, Ran, numbers, settings, sorted};
use crate::stores::on_every_store;

on_every_store! {
    output_comes_in_input_order_whatever_finishes_first,
    results_come_as_they_finish_where_that_is_asked_for,
    the_same_run_again_shows_its_results_without_running_anything,
    again_starts_anew,
    another_input_or_command_is_another_run,
    the_same_command_and_input_in_another_directory_is_another_run,
    another_name_is_another_run,
    a_named_run_refuses_another_command_before_anything_has_changed,
    a_named_run_keeps_no_argument_of_its_command_where_tasks_are_shown,
    a_named_run_goes_on_with_another_command_where_that_is_meant,
    a_named_run_takes_only_the_lines_that_are_new,
    a_line_that_fails_is_shown_and_the_others_go_on,
    a_line_that_failed_is_tried_again_only_when_asked,
    a_failed_attempt_is_followed_by_another,
    a_command_that_takes_too_long_is_stopped_with_all_that_it_started,
    a_worker_of_every_kind_takes_no_line_of_a_run,
}

/// Shows: B9
fn output_comes_in_input_order_whatever_finishes_first(place: Place) {
    place.pipe("gate");
    // The first line ends only after the last one has begun.
    let script = "case $0 in 1) cat gate;; 4) echo open > gate;; esac; echo $0";
    let ran = place.onward_with(&["each", "--jobs", "2", "--", "sh", "-c", script], &numbers(4));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "open\n1\n2\n3\n4\n"));
}

/// Shows: B9
fn results_come_as_they_finish_where_that_is_asked_for(place: Place) {
    place.pipe("gate");
    let script = "case $0 in 1) cat gate > /dev/null;; 3) echo open > gate;; esac; echo $0";
    let ran = place.onward_with(&["each", "--jobs", "2", "--order", "finish", "--", "sh", "-c", script], &numbers(3));
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.starts_with("2\n"), "{}", ran.stdout);
}

/// Shows: B9
fn the_same_run_again_shows_its_results_without_running_anything(place: Place) {
    let each = ["each", "--", "sh", "-c", "echo $0 >> ran; echo result $0"];
    let first = place.onward_with(&each, &numbers(5));
    let second = place.onward_with(&each, &numbers(5));
    assert_eq!(first.stdout, second.stdout);
    assert_eq!(place.read("ran").lines().count(), 5);
    settings().bind(|| insta::assert_snapshot!(second.stderr, @"5 lines: 5 done, 0 failed; all of them finished earlier; [duration]"));
}

/// Shows: B9
fn again_starts_anew(place: Place) {
    let command = ["--", "sh", "-c", "echo $0 >> ran"];
    place.onward_with(&[&["each"], &command[..]].concat(), &numbers(3));
    let again = place.onward_with(&[&["each", "--again"], &command[..]].concat(), &numbers(3));
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(place.read("ran").lines().count(), 6);
}

/// Shows: B9
fn another_input_or_command_is_another_run(place: Place) {
    let command = ["each", "--", "sh", "-c", "echo $0 >> ran"];
    place.onward_with(&command, &numbers(2));
    place.onward_with(&command, &numbers(3));
    place.onward_with(&["each", "--", "sh", "-c", "echo $0 >> ran #"], &numbers(2));
    assert_eq!(place.read("ran").lines().count(), 7);
}

/// Shows: B9
fn the_same_command_and_input_in_another_directory_is_another_run(place: Place) {
    let store = place.store();
    for directory in ["one", "two", "one"] {
        std::fs::create_dir_all(place.path(directory)).unwrap();
        place.onward_in(
            directory,
            &["--store", &store, "each", "--jobs", "1", "--", "sh", "-c", "echo $0 >> ran"],
            &numbers(2),
        );
    }
    assert_eq!(["one/ran", "two/ran"].map(|ran| place.read(ran)), [numbers(2), numbers(2)]);
}

/// Shows: B9
fn another_name_is_another_run(place: Place) {
    for name in ["day", "night", "day"] {
        place.onward_with(&["each", "--name", name, "--jobs", "1", "--", "sh", "-c", "echo $0 >> ran"], &numbers(2));
    }
    assert_eq!(place.read("ran"), numbers(2).repeat(2));
}

fn each_named(place: &Place, flags: &[&str], script: &str, lines: u32) -> Ran {
    let command = ["--", "sh", "-c", script];
    place.onward_with(&[&["each", "--name", "night", "--results", "r"], flags, &command].concat(), &numbers(lines))
}

/// Shows: B9
fn a_named_run_refuses_another_command_before_anything_has_changed(place: Place) {
    each_named(&place, &[], "echo $0 >> ran", 2);
    let results = place.read("r");
    let refused = each_named(&place, &[], "echo $0 >> ran; true", 3);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    for part in ["--name night", "of `sh`", "another --name", "--again", "--changed-command"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert_eq!((sorted(&place.read("ran")), place.read("r")), (vec![1, 2], results));
    assert_eq!(place.json(&["task", "list"]).len(), 2);
}

/// Shows: B9
fn a_named_run_keeps_no_argument_of_its_command_where_tasks_are_shown(place: Place) {
    each_named(&place, &[], "SECRET=swordfish; echo $0 >> ran", 2);
    let shown = serde_json::to_string(&place.json(&["task", "list"])).unwrap();
    assert!(shown.contains(" sh") && !shown.contains("swordfish"), "{shown}");
}

/// Shows: B9
fn a_named_run_goes_on_with_another_command_where_that_is_meant(place: Place) {
    each_named(&place, &[], "echo $0 >> ran", 2);
    let changed = each_named(&place, &["--changed-command"], "echo $0$0 >> ran", 3);
    assert_eq!((changed.code, sorted(&place.read("ran"))), (Some(0), vec![1, 2, 33]));
    assert_eq!(each_named(&place, &["--again"], "echo $0 >> again", 2).code, Some(0));
    assert_eq!(sorted(&place.read("again")), [1, 2]);
}

/// Shows: B9
fn a_named_run_takes_only_the_lines_that_are_new(place: Place) {
    let each = ["each", "--name", "night", "--", "sh", "-c", "echo $0 >> ran"];
    place.onward_with(&each, &numbers(2));
    place.onward_with(&each, &numbers(4));
    assert_eq!(place.read("ran").lines().count(), 4);
}

/// Shows: B9
fn a_line_that_fails_is_shown_and_the_others_go_on(place: Place) {
    let script = "test $0 != 2 || { echo half; echo no such file >&2; exit 7; }; echo done $0";
    let ran = place.onward_with(&["each", "--failures", "bad", "--", "sh", "-c", script], &numbers(3));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "done 1\nhalf\ndone 3\n"));
    assert_eq!(place.read("bad"), "2\n");
    settings().bind(|| {
        insta::assert_snapshot!(ran.stderr, @r"
        line 2 (2) is dead after 1 attempt: exit status 7
            no such file
        3 lines: 2 done, 1 failed; 0 of them finished earlier; [duration], [rate]
        ");
    });
}

/// Shows: B9
fn a_line_that_failed_is_tried_again_only_when_asked(place: Place) {
    let each = |flags: &[&str]| {
        let command = ["--", "sh", "-c", "echo $0 >> ran; test -e repaired"];
        place.onward_with(&[&["each"], flags, &command].concat(), "a\n")
    };
    each(&[]);
    place.write("repaired", "");
    assert_eq!(each(&[]).code, Some(1));
    assert_eq!(each(&["--retry-failed"]).code, Some(0));
    assert_eq!(place.read("ran").lines().count(), 2);
}

/// Shows: T7, B9
fn a_failed_attempt_is_followed_by_another(place: Place) {
    let script = "echo $ONWARD_ATTEMPT >> ran; test $ONWARD_ATTEMPT = 3";
    let ran = place.onward_with(&["each", "--retries", "5", "--backoff", "1ms", "--", "sh", "-c", script], "a\n");
    assert_eq!((ran.code, place.read("ran").as_str()), (Some(0), "1\n2\n3\n"));
}

/// Shows: T6, B9
fn a_command_that_takes_too_long_is_stopped_with_all_that_it_started(place: Place) {
    let each = ["each", "--timeout", "50ms", "--", "sh", "-c", "sleep 600; echo never"];
    let ran = place.onward_with(&each, "a\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("longer than --timeout allows"), "{}", ran.stderr);
}

/// Shows: B9
fn a_worker_of_every_kind_takes_no_line_of_a_run(place: Place) {
    place.pipe("begun");
    place.pipe("go-on");
    let script = "test $0 != 1 || { echo > begun; cat go-on; }; echo right $0";
    let run = place.start(&["each", "--jobs", "1", "--", "sh", "-c", script], &numbers(3));
    place.await_writer("begun");
    place.onward(&["submit", "--kind", "k"]);
    let worker = place.onward(&["work", "--kind", "*", "--until-idle", "--", "echo", "wrong"]);
    assert!(worker.stderr.contains("1 completed, 0 failed"), "{}", worker.stderr);
    place.write("go-on", "");
    assert_eq!(run.wait().stdout, "right 1\nright 2\nright 3\n");
}
