//! `onward store prune`.

use crate::harness::Sandbox;
use crate::stores::on_every_store;

on_every_store! {
    prune_forgets_ended_tasks_and_keeps_the_requested_number,
    a_tasks_own_retention_holds_regardless_of_a_prune,
    prune_needs_an_option,
}

/// Shows: T17
fn prune_forgets_ended_tasks_and_keeps_the_requested_number(sandbox: Sandbox) {
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], "a\nb\nc\n");
    sandbox.onward(&["work", "--kind", "k", "--until-idle", "--", "cat"]);
    assert_eq!(sandbox.onward(&["store", "prune", "--keep", "1"]).stdout, "removed 2 ended tasks\n");
    assert_eq!(sandbox.onward(&["store", "prune", "--older-than", "1h"]).stdout, "removed 0 ended tasks\n");
    assert_eq!(sandbox.json(&["task", "list"]).len(), 1);
}

/// Shows: Q6
fn a_tasks_own_retention_holds_regardless_of_a_prune(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "--retention", "7d", "precious"]);
    sandbox.onward(&["submit", "--kind", "k", "--retention", "0", "of no use"]);
    sandbox.onward(&["submit", "--kind", "k", "other"]);
    sandbox.onward(&["work", "--kind", "k", "--until-idle", "--", "cat"]);
    assert_eq!(sandbox.onward(&["store", "prune", "--keep", "0"]).stdout, "removed 2 ended tasks\n");
    assert_eq!(sandbox.json(&["task", "show", "1"])[0]["result"], "precious");
}

/// Shows: T17
fn prune_needs_an_option(sandbox: Sandbox) {
    assert_eq!(sandbox.onward(&["store", "prune"]).code, Some(2));
}
