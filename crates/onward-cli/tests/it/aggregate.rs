//! Tasks that are batched, submitted and run by commands.

use crate::harness::Sandbox;
use crate::stores::on_every_store;

on_every_store! {
    a_command_gets_a_line_for_each_item_of_a_batch,
    pending_and_delivered_batches_are_shown,
    pending_batches_are_listed,
    pending_batches_of_a_missing_queue_are_an_error_that_names_it,
    a_size_without_a_delay_is_wrong_usage,
}

/// Submits one task for a batch of two.
fn submit(sandbox: &Sandbox, payload: &str) {
    let aggregate = ["--aggregate-size", "2", "--aggregate-delay", "1h", "--aggregate-grace", "10m"];
    let ran = sandbox.onward(&[&["submit", "--kind", "k"], &aggregate[..], &[payload]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// Shows: Q9, T20
fn a_command_gets_a_line_for_each_item_of_a_batch(sandbox: Sandbox) {
    ["one", "two \"three\""].into_iter().for_each(|payload| submit(&sandbox, payload));
    let script = "printf '%s %s\\n' $ONWARD_TASK_ID $ONWARD_BATCH_ITEMS; cat";
    sandbox.onward(&["work", "--kind", "k", "--until-idle", "--", "sh", "-c", script]);
    let task = &sandbox.json(&["task", "show", "1"])[0];
    assert_eq!((&task["state"], &task["batch"]), (&"completed".into(), &3.into()));
    let expected = r#"3 2
{"payload":"one","task":1}
{"payload":"two \"three\"","task":2}
"#;
    assert_eq!(task["result"], expected);
}

/// Shows: Q9, B6
fn pending_and_delivered_batches_are_shown(sandbox: Sandbox) {
    submit(&sandbox, "one");
    let why = sandbox.onward(&["task", "why", "1"]).stdout;
    assert!(why.contains("1 of 2 items"), "{why}");
    let shown = sandbox.onward(&["task", "show", "1"]).stdout;
    assert!(shown.contains("batched      up to 2, for 1h00m and 10m00s after the newest"), "{shown}");
    submit(&sandbox, "two");
    assert!(sandbox.onward(&["task", "why", "1"]).stdout.contains("item of task 3"));
    let batch = sandbox.onward(&["task", "show", "3"]).stdout;
    assert!(batch.contains("items        2"), "{batch}");
    let items: Vec<_> = sandbox.json(&["task", "list", "--batch", "3"]).iter().map(|task| task["id"].clone()).collect();
    assert_eq!(items, [2, 1]);
    let events = sandbox.onward(&["events"]).stdout;
    assert!(events.contains("was delivered in batch 3"), "{events}");
}

/// Shows: Q9, Q10
fn pending_batches_are_listed(sandbox: Sandbox) {
    submit(&sandbox, "one");
    let listed = sandbox.json(&["queue", "batches", "default"]);
    let of = |field: &str| listed[0][field].clone();
    assert_eq!((listed.len(), of("kind"), of("items"), of("size")), (1, "k".into(), 1.into(), 2.into()));
    let shown = sandbox.onward(&["queue", "batches"]).stdout;
    assert!(shown.contains("READY AT") && shown.contains("default"), "{shown}");
    submit(&sandbox, "two");
    assert_eq!(sandbox.onward(&["queue", "batches"]).stdout, "");
}

/// Shows: Q10
fn pending_batches_of_a_missing_queue_are_an_error_that_names_it(sandbox: Sandbox) {
    submit(&sandbox, "one");
    let ran = sandbox.onward(&["queue", "batches", "nosuch"]);
    assert_eq!(ran.code, sandbox.onward(&["queue", "show", "nosuch"]).code);
    assert!(ran.stderr.contains("nosuch"), "{}", ran.stderr);
}

/// Shows: Q9
fn a_size_without_a_delay_is_wrong_usage(sandbox: Sandbox) {
    let ran = sandbox.onward(&["submit", "--kind", "k", "--aggregate-size", "2", "x"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--aggregate-delay"), "{}", ran.stderr);
}
