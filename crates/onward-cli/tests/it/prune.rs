//! `onward store prune`.

use crate::harness::Place;
use crate::stores::on_every_store;

on_every_store! {
    prune_forgets_ended_tasks_and_keeps_as_many_as_told,
    a_task_is_kept_as_long_as_its_submitter_said_whatever_a_prune_is_told,
    prune_needs_to_be_told_what,
}

/// Shows: T17
fn prune_forgets_ended_tasks_and_keeps_as_many_as_told(place: Place) {
    place.onward_with(&["submit", "--kind", "k", "--lines"], "a\nb\nc\n");
    place.onward(&["work", "--kind", "k", "--until-idle", "--", "cat"]);
    assert_eq!(place.onward(&["store", "prune", "--keep", "1"]).stdout, "removed 2 ended tasks\n");
    assert_eq!(place.onward(&["store", "prune", "--older-than", "1h"]).stdout, "removed 0 ended tasks\n");
    assert_eq!(place.json(&["task", "list"]).len(), 1);
}

/// Shows: Q6
fn a_task_is_kept_as_long_as_its_submitter_said_whatever_a_prune_is_told(place: Place) {
    place.onward(&["submit", "--kind", "k", "--retention", "7d", "precious"]);
    place.onward(&["submit", "--kind", "k", "--retention", "0", "of no use"]);
    place.onward(&["submit", "--kind", "k", "other"]);
    place.onward(&["work", "--kind", "k", "--until-idle", "--", "cat"]);
    assert_eq!(place.onward(&["store", "prune", "--keep", "0"]).stdout, "removed 2 ended tasks\n");
    assert_eq!(place.json(&["task", "show", "1"])[0]["result"], "precious");
}

/// Shows: T17
fn prune_needs_to_be_told_what(place: Place) {
    assert_eq!(place.onward(&["store", "prune"]).code, Some(2));
}
