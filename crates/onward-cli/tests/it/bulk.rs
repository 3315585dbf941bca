//! Verbs applied to all tasks that a filter selects, on the command line.

use serde_json::json;

use crate::harness::Sandbox;
use crate::stores::on_every_store;

on_every_store! {
    a_filter_selects_the_tasks_to_cancel_retry_and_delete,
    a_dry_run_counts_the_tasks_and_changes_nothing,
    a_retry_by_kind_repeats_no_completed_task_and_prints_the_same_as_its_dry_run,
    more_than_a_hundred_tasks_are_changed_only_with_a_consent,
    every_task_must_be_spelled_out,
    a_filter_selects_the_tasks_to_move_to_another_queue,
    one_task_is_run_now_killed_and_deleted_by_its_number,
    many_tasks_are_run_now_and_killed_by_a_filter,
}

fn with_tasks(sandbox: Sandbox) -> Sandbox {
    for (kind, customer) in [("mail", "customer=42"), ("mail", "customer=43"), ("image", "customer=42")] {
        sandbox.onward(&["submit", "--kind", kind, "--tag", customer]);
    }
    sandbox
}

fn states(sandbox: &Sandbox) -> Vec<String> {
    let mut tasks = sandbox.json(&["task", "list"]);
    tasks.reverse();
    tasks.iter().map(|task| task["state"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Shows: T13
fn a_filter_selects_the_tasks_to_cancel_retry_and_delete(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let filter = ["--kind", "mail", "--tag", "customer=42"];
    let ran = sandbox.onward(&[&["task", "cancel"], &filter[..]].concat());
    assert_eq!(
        (ran.stdout.as_str(), states(&sandbox)),
        ("cancelled 1 task: 1 waiting\n", vec!["cancelled".into(), "waiting".into(), "waiting".into()])
    );
    let ran = sandbox.onward(&["task", "retry", "--state", "cancelled"]);
    assert_eq!(
        (ran.stdout.as_str(), states(&sandbox)),
        ("retried 1 task: 1 cancelled\n", vec!["waiting".to_owned(); 3])
    );
    let deleted = sandbox.json(&["task", "delete", "--tag-key-prefix", "cust"]);
    assert_eq!(deleted, [json!({ "deleted": 3, "states": { "waiting": 3 }, "cancel_requested": 0, "skipped": 0 })]);
    assert!(states(&sandbox).is_empty());
}

/// Shows: T13
fn a_dry_run_counts_the_tasks_and_changes_nothing(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    sandbox.onward(&["task", "cancel", "1"]);
    assert_eq!(sandbox.onward(&["task", "cancel", "--all", "--dry-run"]).stdout, "would cancel 2 tasks: 2 waiting\n");
    assert_eq!(
        sandbox.onward(&["task", "delete", "--kind", "mail", "--dry-run"]).stdout,
        "would delete 2 tasks: 1 waiting, 1 cancelled\n"
    );
    let preview = sandbox.json(&["task", "retry", "--all", "--dry-run"]);
    assert_eq!(
        preview,
        [json!({ "would_retry": 1, "states": { "cancelled": 1 }, "cancel_requested": 0, "skipped": 0 })]
    );
    assert_eq!(states(&sandbox), ["cancelled", "waiting", "waiting"]);
}

/// Shows: T13
fn a_retry_by_kind_repeats_no_completed_task_and_prints_the_same_as_its_dry_run(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    sandbox.onward(&["task", "cancel", "1"]);
    sandbox.onward(&["work", "--kind", "mail", "--until-idle", "--", "true"]);
    assert_eq!(states(&sandbox), ["cancelled", "completed", "waiting"]);
    let retry = ["task", "retry", "--kind", "mail"];
    let rehearsal = sandbox.onward(&[&retry[..], &["--dry-run"]].concat()).stdout;
    assert_eq!(
        (rehearsal.as_str(), sandbox.onward(&retry).stdout.as_str()),
        ("would retry 1 task: 1 cancelled\n", "retried 1 task: 1 cancelled\n")
    );
    assert_eq!(states(&sandbox), ["waiting", "completed", "waiting"]);
    assert_eq!(
        sandbox.onward(&[&retry[..], &["--state", "completed"]].concat()).stdout,
        "retried 1 task: 1 completed\n"
    );
    assert_eq!(states(&sandbox), ["waiting"; 3]);
}

/// Shows: T13
fn more_than_a_hundred_tasks_are_changed_only_with_a_consent(sandbox: Sandbox) {
    sandbox.onward_with(&["submit", "--kind", "mail", "--lines"], &"line\n".repeat(101));
    let cancel = ["task", "cancel", "--kind", "mail"];
    let refused = sandbox.onward(&cancel);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("would cancel 101 tasks: 101 waiting; that is more than 100"),
        "{}",
        refused.stderr
    );
    assert_eq!(sandbox.onward(&[&cancel[..], &["--yes"]].concat()).stdout, "cancelled 101 tasks: 101 waiting\n");
}

/// Shows: T13
fn every_task_must_be_spelled_out(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    for verb in ["cancel", "retry", "delete", "run", "kill", "move --to slow"] {
        let verb: Vec<_> = verb.split(' ').collect();
        assert_eq!(sandbox.onward(&[&["task"], &verb[..]].concat()).code, Some(2), "{verb:?}");
        let both = [&["task"], &verb[..], &["--all", "--kind", "mail"]].concat();
        assert_eq!(sandbox.onward(&both).code, Some(2), "{verb:?}");
    }
    assert_eq!(sandbox.onward(&["task", "cancel", "1", "--kind", "mail"]).code, Some(2));
    assert_eq!(states(&sandbox), ["waiting"; 3]);
    assert_eq!(sandbox.onward(&["task", "cancel", "--all"]).stdout, "cancelled 3 tasks: 3 waiting\n");
}

/// Shows: T13, Q8
fn a_filter_selects_the_tasks_to_move_to_another_queue(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    sandbox.onward(&["task", "cancel", "3"]);
    let queues = || -> Vec<_> { sandbox.json(&["task", "list"]).iter().map(|task| task["queue"].clone()).collect() };
    assert_eq!(
        sandbox.onward(&["task", "move", "--to", "slow", "--all", "--dry-run"]).stdout,
        "would move 2 tasks: 2 waiting\n"
    );
    assert_eq!(queues(), ["default"; 3]);
    let ran = sandbox.onward(&["task", "move", "--queue", "default", "--tag", "customer=42", "--to", "slow"]);
    assert_eq!(
        (ran.stdout.as_str(), queues()),
        ("moved 1 task: 1 waiting\n", vec![json!("default"), json!("default"), json!("slow")])
    );
    let moved = sandbox.json(&["task", "move", "--queue", "slow", "--to", "slower"]);
    assert_eq!(moved, [json!({ "moved": 1, "states": { "waiting": 1 }, "cancel_requested": 0, "skipped": 0 })]);
    assert_eq!(queues()[2], "slower");
}

/// Shows: Q10
fn one_task_is_run_now_killed_and_deleted_by_its_number(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "mail", "--after", "1h"]);
    assert_eq!(states(&sandbox), ["scheduled"]);
    assert_eq!(sandbox.onward(&["task", "run", "1"]).stdout, "task 1 is due now\n");
    assert_eq!(states(&sandbox), ["waiting"]);
    assert_eq!(sandbox.onward(&["task", "kill", "1"]).stdout, "task 1 is dead now\n");
    assert_eq!(states(&sandbox), ["dead"]);
    assert_eq!(sandbox.json(&["task", "delete", "1"]), [json!({ "id": 1, "outcome": "deleted" })]);
    assert!(states(&sandbox).is_empty());
}

/// Shows: Q10
fn many_tasks_are_run_now_and_killed_by_a_filter(sandbox: Sandbox) {
    for kind in ["mail", "mail", "image"] {
        sandbox.onward(&["submit", "--kind", kind, "--after", "1h"]);
    }
    assert_eq!(
        sandbox.onward(&["task", "run", "--kind", "mail", "--dry-run"]).stdout,
        "would make due 2 tasks: 2 scheduled\n"
    );
    assert_eq!(sandbox.onward(&["task", "run", "--kind", "mail"]).stdout, "made due 2 tasks: 2 scheduled\n");
    assert_eq!(states(&sandbox), ["waiting", "waiting", "scheduled"]);
    assert_eq!(sandbox.onward(&["task", "kill", "--all"]).stdout, "killed 3 tasks: 1 scheduled, 2 waiting\n");
    assert_eq!(states(&sandbox), ["dead"; 3]);
}
