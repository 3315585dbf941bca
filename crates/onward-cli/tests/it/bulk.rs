//! Verbs applied to all tasks that a filter selects, on the command line.

use serde_json::json;

use crate::harness::Place;
use crate::stores::on_every_store;

on_every_store! {
    a_filter_says_which_tasks_are_cancelled_tried_again_and_deleted,
    a_dry_run_says_what_would_be_touched_and_touches_nothing,
    a_retry_by_kind_repeats_no_completed_task_and_says_the_same_as_its_dry_run,
    more_than_a_hundred_tasks_are_changed_only_with_a_consent,
    every_task_must_be_spelled_out,
    a_filter_says_which_tasks_are_moved_to_another_queue,
    one_task_is_run_now_killed_and_deleted_by_its_number,
    many_tasks_are_run_now_and_killed_by_a_filter,
}

fn with_tasks(place: Place) -> Place {
    for (kind, customer) in [("mail", "customer=42"), ("mail", "customer=43"), ("image", "customer=42")] {
        place.onward(&["submit", "--kind", kind, "--tag", customer]);
    }
    place
}

fn states(place: &Place) -> Vec<String> {
    let mut tasks = place.json(&["task", "list"]);
    tasks.reverse();
    tasks.iter().map(|task| task["state"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Shows: T13
fn a_filter_says_which_tasks_are_cancelled_tried_again_and_deleted(place: Place) {
    let place = with_tasks(place);
    let filter = ["--kind", "mail", "--tag", "customer=42"];
    let ran = place.onward(&[&["task", "cancel"], &filter[..]].concat());
    assert_eq!(
        (ran.stdout.as_str(), states(&place)),
        ("cancelled 1 task: 1 waiting\n", vec!["cancelled".into(), "waiting".into(), "waiting".into()])
    );
    let ran = place.onward(&["task", "retry", "--state", "cancelled"]);
    assert_eq!((ran.stdout.as_str(), states(&place)), ("retried 1 task: 1 cancelled\n", vec!["waiting".to_owned(); 3]));
    let deleted = place.json(&["task", "delete", "--tag-key-prefix", "cust"]);
    assert_eq!(deleted, [json!({ "deleted": 3, "states": { "waiting": 3 }, "asked": 0, "passed_over": 0 })]);
    assert!(states(&place).is_empty());
}

/// Shows: T13
fn a_dry_run_says_what_would_be_touched_and_touches_nothing(place: Place) {
    let place = with_tasks(place);
    place.onward(&["task", "cancel", "1"]);
    assert_eq!(place.onward(&["task", "cancel", "--all", "--dry-run"]).stdout, "would cancel 2 tasks: 2 waiting\n");
    assert_eq!(
        place.onward(&["task", "delete", "--kind", "mail", "--dry-run"]).stdout,
        "would delete 2 tasks: 1 waiting, 1 cancelled\n"
    );
    let preview = place.json(&["task", "retry", "--all", "--dry-run"]);
    assert_eq!(preview, [json!({ "would_retry": 1, "states": { "cancelled": 1 }, "asked": 0, "passed_over": 0 })]);
    assert_eq!(states(&place), ["cancelled", "waiting", "waiting"]);
}

/// Shows: T13
fn a_retry_by_kind_repeats_no_completed_task_and_says_the_same_as_its_dry_run(place: Place) {
    let place = with_tasks(place);
    place.onward(&["task", "cancel", "1"]);
    place.onward(&["work", "--kind", "mail", "--until-idle", "--", "true"]);
    assert_eq!(states(&place), ["cancelled", "completed", "waiting"]);
    let retry = ["task", "retry", "--kind", "mail"];
    let rehearsal = place.onward(&[&retry[..], &["--dry-run"]].concat()).stdout;
    assert_eq!(
        (rehearsal.as_str(), place.onward(&retry).stdout.as_str()),
        ("would retry 1 task: 1 cancelled\n", "retried 1 task: 1 cancelled\n")
    );
    assert_eq!(states(&place), ["waiting", "completed", "waiting"]);
    assert_eq!(place.onward(&[&retry[..], &["--state", "completed"]].concat()).stdout, "retried 1 task: 1 completed\n");
    assert_eq!(states(&place), ["waiting"; 3]);
}

/// Shows: T13
fn more_than_a_hundred_tasks_are_changed_only_with_a_consent(place: Place) {
    place.onward_with(&["submit", "--kind", "mail", "--lines"], &"line\n".repeat(101));
    let cancel = ["task", "cancel", "--kind", "mail"];
    let refused = place.onward(&cancel);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("would cancel 101 tasks: 101 waiting; that is more than 100"),
        "{}",
        refused.stderr
    );
    assert_eq!(place.onward(&[&cancel[..], &["--yes"]].concat()).stdout, "cancelled 101 tasks: 101 waiting\n");
}

/// Shows: T13
fn every_task_must_be_spelled_out(place: Place) {
    let place = with_tasks(place);
    for verb in ["cancel", "retry", "delete", "run", "kill", "move --to slow"] {
        let verb: Vec<_> = verb.split(' ').collect();
        assert_eq!(place.onward(&[&["task"], &verb[..]].concat()).code, Some(2), "{verb:?}");
        let both = [&["task"], &verb[..], &["--all", "--kind", "mail"]].concat();
        assert_eq!(place.onward(&both).code, Some(2), "{verb:?}");
    }
    assert_eq!(place.onward(&["task", "cancel", "1", "--kind", "mail"]).code, Some(2));
    assert_eq!(states(&place), ["waiting"; 3]);
    assert_eq!(place.onward(&["task", "cancel", "--all"]).stdout, "cancelled 3 tasks: 3 waiting\n");
}

/// Shows: T13, Q8
fn a_filter_says_which_tasks_are_moved_to_another_queue(place: Place) {
    let place = with_tasks(place);
    place.onward(&["task", "cancel", "3"]);
    let queues = || -> Vec<_> { place.json(&["task", "list"]).iter().map(|task| task["queue"].clone()).collect() };
    assert_eq!(
        place.onward(&["task", "move", "--to", "slow", "--all", "--dry-run"]).stdout,
        "would move 2 tasks: 2 waiting\n"
    );
    assert_eq!(queues(), ["default"; 3]);
    let ran = place.onward(&["task", "move", "--queue", "default", "--tag", "customer=42", "--to", "slow"]);
    assert_eq!(
        (ran.stdout.as_str(), queues()),
        ("moved 1 task: 1 waiting\n", vec![json!("default"), json!("default"), json!("slow")])
    );
    let moved = place.json(&["task", "move", "--queue", "slow", "--to", "slower"]);
    assert_eq!(moved, [json!({ "moved": 1, "states": { "waiting": 1 }, "asked": 0, "passed_over": 0 })]);
    assert_eq!(queues()[2], "slower");
}

/// Shows: Q10
fn one_task_is_run_now_killed_and_deleted_by_its_number(place: Place) {
    place.onward(&["submit", "--kind", "mail", "--after", "1h"]);
    assert_eq!(states(&place), ["scheduled"]);
    assert_eq!(place.onward(&["task", "run", "1"]).stdout, "task 1 is due now\n");
    assert_eq!(states(&place), ["waiting"]);
    assert_eq!(place.onward(&["task", "kill", "1"]).stdout, "task 1 is dead now\n");
    assert_eq!(states(&place), ["dead"]);
    assert_eq!(place.json(&["task", "delete", "1"]), [json!({ "id": 1, "outcome": "deleted" })]);
    assert!(states(&place).is_empty());
}

/// Shows: Q10
fn many_tasks_are_run_now_and_killed_by_a_filter(place: Place) {
    for kind in ["mail", "mail", "image"] {
        place.onward(&["submit", "--kind", kind, "--after", "1h"]);
    }
    assert_eq!(
        place.onward(&["task", "run", "--kind", "mail", "--dry-run"]).stdout,
        "would make due 2 tasks: 2 scheduled\n"
    );
    assert_eq!(place.onward(&["task", "run", "--kind", "mail"]).stdout, "made due 2 tasks: 2 scheduled\n");
    assert_eq!(states(&place), ["waiting", "waiting", "scheduled"]);
    assert_eq!(place.onward(&["task", "kill", "--all"]).stdout, "killed 3 tasks: 1 scheduled, 2 waiting\n");
    assert_eq!(states(&place), ["dead"; 3]);
}
