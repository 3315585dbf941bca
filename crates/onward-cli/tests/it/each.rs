//! `onward each`: lines, results, and a second run.

use onward_store::rusqlite::Connection;

use crate::harness::{CommandResult, Sandbox, numbers, settings, sorted};
use crate::stores::on_every_store;

on_every_store! {
    output_comes_in_input_order_whatever_finishes_first,
    results_come_as_they_finish_on_request,
    the_same_run_again_shows_its_results_without_running_anything,
    the_option_again_starts_the_run_again,
    another_input_or_command_is_another_run,
    the_same_command_and_input_in_another_directory_is_another_run,
    another_name_is_another_run,
    a_named_run_refuses_another_command_before_anything_has_changed,
    a_named_run_keeps_no_argument_of_its_command_where_tasks_are_shown,
    a_named_run_continues_with_another_command_on_request,
    a_changed_command_is_remembered_without_a_new_line,
    a_forgotten_run_forgets_its_changed_command,
    a_named_run_takes_only_the_lines_that_are_new,
    a_failed_line_is_shown_and_the_others_continue,
    a_failed_line_is_retried_only_on_request,
    a_failed_attempt_is_followed_by_another,
    a_command_that_takes_too_long_is_stopped_with_all_that_it_started,
    a_worker_of_every_kind_takes_no_line_of_a_run,
}

/// A start that copies the memory of the worker takes the longer, the more the worker holds.
#[cfg(target_os = "linux")]
#[test]
fn every_command_is_started_by_one_process_that_holds_less_memory_than_the_worker() {
    let sandbox = Sandbox::new();
    sandbox.script("memory", "sed -n 's/^RssAnon:[^0-9]*\\([0-9]*\\) kB$/\\1/p' /proc/$1/status");
    let script = "echo $PPID $(./memory $PPID) $(./memory $(sed -n 's/^PPid:[^0-9]*//p' /proc/$PPID/status))";
    let running = sandbox.start(&["each", "--jobs", "4", "--", "sh", "-c", script], &numbers(100));
    let worker = running.id();
    let ran = running.wait();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let numbers = |line: &str| line.split(' ').map(|number| number.parse().unwrap()).collect::<Vec<u32>>();
    let seen: Vec<Vec<u32>> = ran.stdout.lines().map(numbers).collect();
    let is_of_starter = |seen: &Vec<u32>| seen[0] != worker && seen[1] < seen[2];
    assert!(seen.len() == 100 && seen.iter().all(is_of_starter), "{worker}: {}", ran.stdout);
    assert!(seen.iter().all(|one| one[0] == seen[0][0]), "{}", ran.stdout);
}

/// The end of a line and the start of the next one are one commit.
#[test]
fn a_line_costs_at_most_one_commit() {
    let sandbox = Sandbox::new();
    let ran = sandbox.onward_with(&["each", "--jobs", "4", "--", "true"], &numbers(400));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let connection = Connection::open(sandbox.path("onward.db")).unwrap();
    // The log has a row for each commit in which a task started or ended.
    let commits = connection.query_row("SELECT count(*) FROM log", [], |row| row.get::<_, u32>(0)).unwrap();
    assert!(commits <= 420, "{commits} commits");
}

/// Shows: B9
fn output_comes_in_input_order_whatever_finishes_first(sandbox: Sandbox) {
    sandbox.pipe("gate");
    // The first line ends only after the last one has begun.
    let script = "case $0 in 1) cat gate;; 4) echo open > gate;; esac; echo $0";
    let ran = sandbox.onward_with(&["each", "--jobs", "2", "--", "sh", "-c", script], &numbers(4));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "open\n1\n2\n3\n4\n"));
}

/// Shows: B9
fn results_come_as_they_finish_on_request(sandbox: Sandbox) {
    sandbox.pipe("gate");
    let script = "case $0 in 1) cat gate > /dev/null;; 3) echo open > gate;; esac; echo $0";
    let ran = sandbox.onward_with(&["each", "--jobs", "2", "--order", "finish", "--", "sh", "-c", script], &numbers(3));
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.starts_with("2\n"), "{}", ran.stdout);
}

/// Shows: B9
fn the_same_run_again_shows_its_results_without_running_anything(sandbox: Sandbox) {
    let each = ["each", "--", "sh", "-c", "echo $0 >> ran; echo result $0"];
    let first = sandbox.onward_with(&each, &numbers(5));
    let second = sandbox.onward_with(&each, &numbers(5));
    assert_eq!(first.stdout, second.stdout);
    assert_eq!(sandbox.read("ran").lines().count(), 5);
    settings().bind(|| insta::assert_snapshot!(second.stderr, @"5 lines: 5 done, 0 failed; all of them finished earlier; [duration]"));
}

/// Shows: B9
fn the_option_again_starts_the_run_again(sandbox: Sandbox) {
    let command = ["--", "sh", "-c", "echo $0 >> ran"];
    sandbox.onward_with(&[&["each"], &command[..]].concat(), &numbers(3));
    let again = sandbox.onward_with(&[&["each", "--again"], &command[..]].concat(), &numbers(3));
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert_eq!(sandbox.read("ran").lines().count(), 6);
}

/// Shows: B9
fn another_input_or_command_is_another_run(sandbox: Sandbox) {
    let command = ["each", "--", "sh", "-c", "echo $0 >> ran"];
    sandbox.onward_with(&command, &numbers(2));
    sandbox.onward_with(&command, &numbers(3));
    sandbox.onward_with(&["each", "--", "sh", "-c", "echo $0 >> ran #"], &numbers(2));
    assert_eq!(sandbox.read("ran").lines().count(), 7);
}

/// Shows: B9
fn the_same_command_and_input_in_another_directory_is_another_run(sandbox: Sandbox) {
    let store = sandbox.store();
    for directory in ["one", "two", "one"] {
        std::fs::create_dir_all(sandbox.path(directory)).unwrap();
        sandbox.onward_in(
            directory,
            &["--store", &store, "each", "--jobs", "1", "--", "sh", "-c", "echo $0 >> ran"],
            &numbers(2),
        );
    }
    assert_eq!(["one/ran", "two/ran"].map(|ran| sandbox.read(ran)), [numbers(2), numbers(2)]);
}

/// Shows: B9
fn another_name_is_another_run(sandbox: Sandbox) {
    for name in ["day", "night", "day"] {
        sandbox.onward_with(&["each", "--name", name, "--jobs", "1", "--", "sh", "-c", "echo $0 >> ran"], &numbers(2));
    }
    assert_eq!(sandbox.read("ran"), numbers(2).repeat(2));
}

fn each_named(sandbox: &Sandbox, flags: &[&str], script: &str, lines: u32) -> CommandResult {
    let command = ["--", "sh", "-c", script];
    sandbox.onward_with(&[&["each", "--name", "night", "--results", "r"], flags, &command].concat(), &numbers(lines))
}

/// Shows: B9
fn a_named_run_refuses_another_command_before_anything_has_changed(sandbox: Sandbox) {
    each_named(&sandbox, &[], "echo $0 >> ran", 2);
    let results = sandbox.read("r");
    let refused = each_named(&sandbox, &[], "echo $0 >> ran; true", 3);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    for part in ["--name night", "(`sh`)", "another --name", "--again", "--changed-command"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert_eq!((sorted(&sandbox.read("ran")), sandbox.read("r")), (vec![1, 2], results));
    assert_eq!(sandbox.json(&["task", "list"]).len(), 2);
}

/// Shows: B9
fn a_named_run_keeps_no_argument_of_its_command_where_tasks_are_shown(sandbox: Sandbox) {
    each_named(&sandbox, &[], "SECRET=swordfish; echo $0 >> ran", 2);
    let shown = serde_json::to_string(&sandbox.json(&["task", "list"])).unwrap();
    assert!(shown.contains(" sh") && !shown.contains("swordfish"), "{shown}");
}

/// Shows: B9
fn a_named_run_continues_with_another_command_on_request(sandbox: Sandbox) {
    each_named(&sandbox, &[], "echo $0 >> ran", 2);
    let changed = each_named(&sandbox, &["--changed-command"], "echo $0$0 >> ran", 3);
    assert_eq!((changed.code, sorted(&sandbox.read("ran"))), (Some(0), vec![1, 2, 33]));
    assert_eq!(each_named(&sandbox, &["--again"], "echo $0 >> again", 2).code, Some(0));
    assert_eq!(sorted(&sandbox.read("again")), [1, 2]);
}

/// Shows: B9
fn a_changed_command_is_remembered_without_a_new_line(sandbox: Sandbox) {
    each_named(&sandbox, &[], "echo $0 >> ran", 2);
    each_named(&sandbox, &["--changed-command"], "echo $0$0 >> ran", 2);
    let earlier = each_named(&sandbox, &[], "echo $0 >> ran", 3);
    assert_eq!((earlier.code, sorted(&sandbox.read("ran"))), (Some(2), vec![1, 2]));
    let changed = each_named(&sandbox, &[], "echo $0$0 >> ran", 3);
    assert_eq!((changed.code, sorted(&sandbox.read("ran"))), (Some(0), vec![1, 2, 33]), "{}", changed.stderr);
    let third = each_named(&sandbox, &["--changed-command"], "echo $0$0$0 >> ran", 4);
    assert_eq!((third.code, sorted(&sandbox.read("ran"))), (Some(0), vec![1, 2, 33, 444]));
    assert_eq!(each_named(&sandbox, &[], "echo $0$0 >> ran", 4).code, Some(2));
}

/// Shows: B9
fn a_forgotten_run_forgets_its_changed_command(sandbox: Sandbox) {
    each_named(&sandbox, &[], "echo $0 >> ran", 2);
    each_named(&sandbox, &["--changed-command"], "echo $0$0 >> ran", 2);
    assert_eq!(sandbox.onward(&["each", "--forget", "night"]).code, Some(0));
    assert_eq!(each_named(&sandbox, &[], "echo $0 >> again", 2).code, Some(0));
    assert_eq!(each_named(&sandbox, &[], "echo $0 >> again", 2).code, Some(0));
}

/// Shows: B9
fn a_named_run_takes_only_the_lines_that_are_new(sandbox: Sandbox) {
    let each = ["each", "--name", "night", "--", "sh", "-c", "echo $0 >> ran"];
    sandbox.onward_with(&each, &numbers(2));
    sandbox.onward_with(&each, &numbers(4));
    assert_eq!(sandbox.read("ran").lines().count(), 4);
}

/// Shows: B9
fn a_failed_line_is_shown_and_the_others_continue(sandbox: Sandbox) {
    let script = "test $0 != 2 || { echo half; echo no such file >&2; exit 7; }; echo done $0";
    let ran = sandbox.onward_with(&["each", "--failures", "bad", "--", "sh", "-c", script], &numbers(3));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "done 1\nhalf\ndone 3\n"));
    assert_eq!(sandbox.read("bad"), "2\n");
    settings().bind(|| {
        insta::assert_snapshot!(ran.stderr, @r"
        line 2 (2) is dead after 1 attempt: exit status 7
            no such file
        3 lines: 2 done, 1 failed; 0 of them finished earlier; [duration], [rate]
        ");
    });
}

/// Shows: B9
fn a_failed_line_is_retried_only_on_request(sandbox: Sandbox) {
    let each = |flags: &[&str]| {
        let command = ["--", "sh", "-c", "echo $0 >> ran; test -e repaired"];
        sandbox.onward_with(&[&["each"], flags, &command].concat(), "a\n")
    };
    each(&[]);
    sandbox.write("repaired", "");
    assert_eq!(each(&[]).code, Some(1));
    assert_eq!(each(&["--retry-failed"]).code, Some(0));
    assert_eq!(sandbox.read("ran").lines().count(), 2);
}

/// Shows: T7, B9
fn a_failed_attempt_is_followed_by_another(sandbox: Sandbox) {
    let script = "echo $ONWARD_ATTEMPT >> ran; test $ONWARD_ATTEMPT = 3";
    let ran = sandbox.onward_with(&["each", "--retries", "5", "--backoff", "1ms", "--", "sh", "-c", script], "a\n");
    assert_eq!((ran.code, sandbox.read("ran").as_str()), (Some(0), "1\n2\n3\n"));
}

/// Shows: T6, B9
fn a_command_that_takes_too_long_is_stopped_with_all_that_it_started(sandbox: Sandbox) {
    let each = ["each", "--timeout", "50ms", "--", "sh", "-c", "sleep 600; echo never"];
    let ran = sandbox.onward_with(&each, "a\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("longer than --timeout allows"), "{}", ran.stderr);
}

/// Shows: B9
fn a_worker_of_every_kind_takes_no_line_of_a_run(sandbox: Sandbox) {
    sandbox.pipe("begun");
    sandbox.pipe("go-on");
    let script = "test $0 != 1 || { echo > begun; cat go-on; }; echo right $0";
    let run = sandbox.start(&["each", "--jobs", "1", "--", "sh", "-c", script], &numbers(3));
    sandbox.await_writer("begun");
    sandbox.onward(&["submit", "--kind", "k"]);
    let worker = sandbox.onward(&["work", "--kind", "*", "--until-idle", "--", "echo", "wrong"]);
    assert!(worker.stderr.contains("1 completed, 0 failed"), "{}", worker.stderr);
    sandbox.write("go-on", "");
    assert_eq!(run.wait().stdout, "right 1\nright 2\nright 3\n");
}
