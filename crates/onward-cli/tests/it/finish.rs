//! Tasks that are completed externally, moved, and found by their keys, on the command line.

use crate::harness::Sandbox;
use crate::stores::on_every_store;

on_every_store! {
    a_task_awaiting_completion_is_completed_with_a_result,
    a_task_awaiting_completion_is_failed_with_an_error,
    more_time_is_given_by_its_token,
    a_script_moves_its_task_to_another_queue,
    tasks_are_moved_by_their_numbers,
    a_task_is_shown_and_waited_for_by_its_key,
}

/// Creates a task that a script has left for external completion. Its token is in a file.
fn with_open_task(sandbox: Sandbox) -> Sandbox {
    sandbox.onward(&["submit", "--kind", "approve", "--key", "order-7", "42"]);
    let script = "echo complete-later >> \"$ONWARD_REPORT\"; echo \"$ONWARD_TOKEN\" > token";
    let ran = sandbox.onward(&["work", "--kind", "approve", "--until-idle", "--", "sh", "-c", script]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    sandbox
}

/// Shows: Q8
fn a_task_awaiting_completion_is_completed_with_a_result(sandbox: Sandbox) {
    let sandbox = with_open_task(sandbox);
    let why = sandbox.onward(&["task", "why", "1"]).stdout;
    assert!(why.contains("onward task complete 1.1"), "{why}");
    let token = sandbox.read("token");
    sandbox.write("answer", "approved");
    let ran = sandbox.onward(&["task", "complete", token.trim(), "--result", "answer"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "task 1 is completed\n"), "{}", ran.stderr);
    let result = sandbox.json(&["task", "show", "1"])[0]["result"].clone();
    assert_eq!(result, sandbox.json(&["task", "list", "--payload"])[0]["result"]);
    assert!(!result.is_null());
    let again = sandbox.onward(&["task", "complete", "1.1"]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("task 1 has ended already: completed"), "{}", again.stderr);
}

/// Shows: Q8
fn a_task_awaiting_completion_is_failed_with_an_error(sandbox: Sandbox) {
    let sandbox = with_open_task(sandbox);
    let ran = sandbox.onward(&["task", "fail", "1", "--error", "declined", "--permanent"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "task 1 is failed\n"), "{}", ran.stderr);
    assert_eq!(sandbox.json(&["task", "show", "1"])[0]["errors"][0]["message"], "declined");
}

/// Shows: Q8
fn more_time_is_given_by_its_token(sandbox: Sandbox) {
    let sandbox = with_open_task(sandbox);
    let ran = sandbox.onward(&["task", "extend", "1.1", "--within", "1h"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "task 1 is blocked\n"), "{}", ran.stderr);
    let why = sandbox.onward(&["task", "why", "1"]).stdout;
    assert!(why.contains("it waits until "), "{why}");
}

/// Shows: Q8
fn a_script_moves_its_task_to_another_queue(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "convert", "cat.png"]);
    let script = "test \"$ONWARD_QUEUE\" = slow || echo move slow >> \"$ONWARD_REPORT\"";
    sandbox.onward(&["work", "--kind", "convert", "--until-idle", "--", "sh", "-c", script]);
    let task = &sandbox.json(&["task", "show", "1"])[0];
    assert_eq!((&task["queue"], &task["state"], &task["attempts"]), (&"slow".into(), &"completed".into(), &1.into()));
}

/// Shows: Q8
fn tasks_are_moved_by_their_numbers(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "convert", "cat.png"]);
    let ran = sandbox.onward(&["task", "move", "1", "--to", "slow"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "task 1 is in the queue `slow`\n"), "{}", ran.stderr);
    assert_eq!(sandbox.json(&["task", "list", "--queue", "slow"])[0]["id"], 1);
}

/// Shows: Q6
fn a_task_is_shown_and_waited_for_by_its_key(sandbox: Sandbox) {
    let sandbox = with_open_task(sandbox);
    assert_eq!(sandbox.json(&["task", "show", "--key", "order-7"])[0]["id"], 1);
    assert_eq!(sandbox.json(&["task", "show", "--key", "order-7", "--kind", "approve"])[0]["id"], 1);
    let unknown = sandbox.onward(&["task", "show", "--key", "order-8"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("no task has the key `order-8`"), "{}", unknown.stderr);
    sandbox.onward(&["task", "cancel", "--key", "order-7"]);
    let waited = sandbox.onward(&["task", "wait", "--key", "order-7"]);
    assert_eq!((waited.code, &*waited.stdout), (Some(1), "task 1 cancelled\n"), "{}", waited.stderr);
}
