//! Tasks that are completed externally, moved, and found by their keys, on the command line.

use crate::harness::Place;
use crate::stores::on_every_store;

on_every_store! {
    what_a_script_left_to_be_finished_is_completed_with_a_result,
    what_a_script_left_to_be_finished_is_failed_with_an_error,
    more_time_is_given_by_its_token,
    a_script_moves_its_task_to_another_queue,
    tasks_are_moved_by_their_numbers,
    a_task_is_shown_and_waited_for_by_its_key,
}

/// Creates a task that a script has left for external completion. Its token is in a file.
fn with_open_task(place: Place) -> Place {
    place.onward(&["submit", "--kind", "approve", "--key", "order-7", "42"]);
    let script = "echo finish-later >> \"$ONWARD_REPORT\"; echo \"$ONWARD_TOKEN\" > token";
    let ran = place.onward(&["work", "--kind", "approve", "--until-idle", "--", "sh", "-c", script]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    place
}

/// Shows: Q8
fn what_a_script_left_to_be_finished_is_completed_with_a_result(place: Place) {
    let place = with_open_task(place);
    let why = place.onward(&["task", "why", "1"]).stdout;
    assert!(why.contains("onward task complete 1.1"), "{why}");
    let token = place.read("token");
    place.write("answer", "approved");
    let ran = place.onward(&["task", "complete", token.trim(), "--result", "answer"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "task 1 is completed\n"), "{}", ran.stderr);
    let result = place.json(&["task", "show", "1"])[0]["result"].clone();
    assert_eq!(result, place.json(&["task", "list", "--payload"])[0]["result"]);
    assert!(!result.is_null());
    let again = place.onward(&["task", "complete", "1.1"]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("task 1 has ended already: completed"), "{}", again.stderr);
}

/// Shows: Q8
fn what_a_script_left_to_be_finished_is_failed_with_an_error(place: Place) {
    let place = with_open_task(place);
    let ran = place.onward(&["task", "fail", "1", "--error", "declined", "--permanent"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "task 1 is failed\n"), "{}", ran.stderr);
    assert_eq!(place.json(&["task", "show", "1"])[0]["errors"][0]["message"], "declined");
}

/// Shows: Q8
fn more_time_is_given_by_its_token(place: Place) {
    let place = with_open_task(place);
    let ran = place.onward(&["task", "extend", "1.1", "--within", "1h"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "task 1 is blocked\n"), "{}", ran.stderr);
    let why = place.onward(&["task", "why", "1"]).stdout;
    assert!(why.contains("it waits until "), "{why}");
}

/// Shows: Q8
fn a_script_moves_its_task_to_another_queue(place: Place) {
    place.onward(&["submit", "--kind", "convert", "cat.png"]);
    let script = "test \"$ONWARD_QUEUE\" = slow || echo move slow >> \"$ONWARD_REPORT\"";
    place.onward(&["work", "--kind", "convert", "--until-idle", "--", "sh", "-c", script]);
    let task = &place.json(&["task", "show", "1"])[0];
    assert_eq!((&task["queue"], &task["state"], &task["attempts"]), (&"slow".into(), &"completed".into(), &1.into()));
}

/// Shows: Q8
fn tasks_are_moved_by_their_numbers(place: Place) {
    place.onward(&["submit", "--kind", "convert", "cat.png"]);
    let ran = place.onward(&["task", "move", "1", "--to", "slow"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "task 1 is in the queue `slow`\n"), "{}", ran.stderr);
    assert_eq!(place.json(&["task", "list", "--queue", "slow"])[0]["id"], 1);
}

/// Shows: Q6
fn a_task_is_shown_and_waited_for_by_its_key(place: Place) {
    let place = with_open_task(place);
    assert_eq!(place.json(&["task", "show", "--key", "order-7"])[0]["id"], 1);
    assert_eq!(place.json(&["task", "show", "--key", "order-7", "--kind", "approve"])[0]["id"], 1);
    let unknown = place.onward(&["task", "show", "--key", "order-8"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("no task has the key `order-8`"), "{}", unknown.stderr);
    place.onward(&["task", "cancel", "--key", "order-7"]);
    let waited = place.onward(&["task", "wait", "--key", "order-7"]);
    assert_eq!((waited.code, &*waited.stdout), (Some(1), "task 1 cancelled\n"), "{}", waited.stderr);
}
