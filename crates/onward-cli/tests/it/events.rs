//! `onward events`.

use crate::harness::Place;
use crate::stores::on_every_store;

on_every_store! {
    whoever_comes_back_after_a_prune_is_told_that_events_are_missing,
}

/// Shows: T16
fn whoever_comes_back_after_a_prune_is_told_that_events_are_missing(place: Place) {
    place.onward_with(&["submit", "--kind", "k", "--lines"], "a\nb\nc\n");
    place.onward(&["work", "--kind", "k", "--jobs", "1", "--until-idle", "--", "cat"]);
    let cursor = place.json(&["events"])[0]["cursor"].as_str().unwrap().to_owned();
    let read = |arguments: &[&str]| place.onward(&[&["events", "--after", &cursor], arguments].concat());
    assert!(!read(&[]).stderr.contains("pruned"));
    place.onward(&["store", "prune", "--keep", "0"]);
    let ran = read(&[]);
    assert!(ran.stderr.contains(&format!("the events from {cursor} up to ")), "{}", ran.stderr);
    assert!(ran.stdout.contains("task 3 (k, queue default) completed"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("task 2 "), "{}", ran.stdout);
}
