//! Faults of a worker that keep it from starting commands do not count as attempts of its tasks.

use crate::harness::{CommandResult, Sandbox, numbers};
use crate::stores::on_every_store;

on_every_store! {
    fewer_commands_run_at_once_where_the_files_for_more_may_not_be_open_and_none_fails_for_it,
    the_limit_of_open_files_is_raised_for_the_worker_and_not_for_its_commands,
    where_too_few_files_may_be_open_for_one_command_the_limit_is_named,
    a_task_waits_uncharged_while_the_script_is_away,
    a_worker_whose_script_stays_away_stops_and_gives_its_tasks_back_uncharged,
    a_run_whose_script_is_missing_stops_and_resumes_when_it_is_back,
    the_time_of_a_task_that_could_not_be_started_is_not_up,
    a_worker_continues_without_its_temporary_directory,
    a_line_that_cannot_be_an_argument_fails_alone,
}

/// Shows: B9, T21
fn fewer_commands_run_at_once_where_the_files_for_more_may_not_be_open_and_none_fails_for_it(sandbox: Sandbox) {
    let each = ["each", "--jobs", "80", "--", "sh", "-c", "sleep 0.1; echo $0"];
    let ran = sandbox.start_after("ulimit -n 150", &each, &numbers(80)).wait();
    assert_eq!((ran.code, ran.stdout), (Some(0), numbers(80)), "{}", ran.stderr);
    assert!(ran.stderr.contains("--jobs 80: ") && ran.stderr.contains("at most 150 files"), "{}", ran.stderr);
}

/// Shows: B9, T21
fn the_limit_of_open_files_is_raised_for_the_worker_and_not_for_its_commands(sandbox: Sandbox) {
    let each = ["each", "--jobs", "60", "--", "sh", "-c", "sleep 0.1; ulimit -n; :"];
    let ran = sandbox.start_after("ulimit -S -n 80", &each, &numbers(60)).wait();
    assert_eq!((ran.code, ran.stdout), (Some(0), "80\n".repeat(60)), "{}", ran.stderr);
    assert!(!ran.stderr.contains("--jobs"), "{}", ran.stderr);
}

/// Shows: B9
fn where_too_few_files_may_be_open_for_one_command_the_limit_is_named(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k"]);
    let ran = sandbox.start_after("ulimit -n 60", &["work", "--kind", "k", "--", "true"], "").wait();
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("may have 60 files open (ulimit -n)"), "{}", ran.stderr);
}

const WORK: [&str; 7] = ["work", "--kind", "k", "--until-idle", "--jobs", "1", "--"];

fn work(sandbox: &Sandbox) -> CommandResult {
    sandbox.onward(&[&WORK[..], &["./script"]].concat())
}

/// Submits tasks without retries, and writes a script that removes itself when it has run.
fn tasks_and_a_script_that_goes_away(sandbox: &Sandbox, options: &[&str]) {
    let submit = ["submit", "--kind", "k", "--lines", "--retries", "0"];
    sandbox.onward_with(&[&submit[..], options].concat(), &numbers(3));
    sandbox.script("script", "rm script");
}

/// Returns the state of each task, the number of counted attempts, and the number of its errors.
fn charged(sandbox: &Sandbox) -> Vec<String> {
    let count = |task: &serde_json::Value| task["errors"].as_array().map_or(0, Vec::len);
    let tasks = sandbox.json(&["task", "list"]);
    tasks.iter().map(|task| format!("{} {} {}", task["state"], task["attempts"], count(task))).collect()
}

/// Shows: T7, T21
fn a_task_waits_uncharged_while_the_script_is_away(sandbox: Sandbox) {
    tasks_and_a_script_that_goes_away(&sandbox, &[]);
    let mut worker = sandbox.start(&[&WORK[..], &["./script"]].concat(), "");
    worker.await_said("cannot start `./script`: No such file or directory");
    sandbox.script("script", ":");
    assert_eq!(worker.wait().code, Some(0));
    assert_eq!(charged(&sandbox), [r#""completed" 1 0"#; 3]);
}

/// Shows: T7, T21
fn a_worker_whose_script_stays_away_stops_and_gives_its_tasks_back_uncharged(sandbox: Sandbox) {
    tasks_and_a_script_that_goes_away(&sandbox, &[]);
    let ran = work(&sandbox);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("error: cannot start `./script`") && ran.stderr.contains("stops"), "{}", ran.stderr);
    let all = charged(&sandbox);
    assert!(all[2].starts_with(r#""completed" 1"#) && all[..2].iter().all(|task| task.contains(" 0 ")), "{all:?}");
    sandbox.script("script", ":");
    assert_eq!(work(&sandbox).code, Some(0));
    assert!(charged(&sandbox).iter().all(|task| task.starts_with(r#""completed" 1"#)), "{:?}", charged(&sandbox));
}

/// Shows: B9, T21
fn a_run_whose_script_is_missing_stops_and_resumes_when_it_is_back(sandbox: Sandbox) {
    sandbox.script("script", "rm script");
    let each = ["each", "--jobs", "1", "--", "./script"];
    let ran = sandbox.onward_with(&each, &numbers(3));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("error: cannot start `./script`"), "{}", ran.stderr);
    sandbox.script("script", "echo $1");
    let ran = sandbox.onward_with(&each, &numbers(3));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "2\n3\n"), "{}", ran.stderr);
}

/// Shows: T6, T21
fn the_time_of_a_task_that_could_not_be_started_is_not_up(sandbox: Sandbox) {
    tasks_and_a_script_that_goes_away(&sandbox, &["--timeout", "200ms", "--heartbeat-timeout", "150ms"]);
    assert_eq!(work(&sandbox).code, Some(1));
    let all = charged(&sandbox);
    assert!(!all.iter().any(|task| task.contains("dead")), "{all:?}");
}

/// Shows: T21
fn a_worker_continues_without_its_temporary_directory(sandbox: Sandbox) {
    sandbox.onward_with(&["submit", "--kind", "k", "--lines", "--retries", "0"], &numbers(2));
    let clear = ["sh", "-c", "rm -r \"${ONWARD_REPORT%/*}\""];
    let ran = sandbox.onward(&[&WORK[..], &clear].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(charged(&sandbox), [r#""completed" 1 0"#; 2]);
}

/// Shows: B9
fn a_line_that_cannot_be_an_argument_fails_alone(sandbox: Sandbox) {
    let ran = sandbox.onward_with(&["each", "--jobs", "1", "--", "echo"], "a\nb\0c\nd\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "a\nd\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot start `echo` with this line"), "{}", ran.stderr);
}
