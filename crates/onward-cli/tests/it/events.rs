//! `onward events`.

use crate::harness::Sandbox;
use crate::stores::on_every_store;

on_every_store! {
    a_reader_after_a_prune_is_notified_of_missing_events,
}

/// Shows: T16
fn a_reader_after_a_prune_is_notified_of_missing_events(sandbox: Sandbox) {
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], "a\nb\nc\n");
    sandbox.onward(&["work", "--kind", "k", "--jobs", "1", "--until-idle", "--", "cat"]);
    let cursor = sandbox.json(&["events"])[0]["cursor"].as_str().unwrap().to_owned();
    let read = |arguments: &[&str]| sandbox.onward(&[&["events", "--after", &cursor], arguments].concat());
    assert!(!read(&[]).stderr.contains("pruned"));
    sandbox.onward(&["store", "prune", "--keep", "0"]);
    let ran = read(&[]);
    assert!(ran.stderr.contains(&format!("the events from {cursor} up to ")), "{}", ran.stderr);
    assert!(ran.stdout.contains("task 3 (k, queue default) completed"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("task 2 "), "{}", ran.stdout);
}
