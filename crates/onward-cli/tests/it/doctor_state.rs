//! Checks of `onward doctor` that apply to every store.

use crate::harness::Sandbox;
use crate::stores::on_every_store;

on_every_store! {
    a_durability_level_below_full_is_reported,
    dead_letters_and_pauses_are_reported_with_the_remedy,
}

/// Shows: B11
fn a_durability_level_below_full_is_reported(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k"]);
    let ran = sandbox.onward(&["--durability", "normal", "doctor"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("warn  durability") && ran.stdout.contains("not power loss"), "{}", ran.stdout);
}

/// Shows: B11, T8
fn dead_letters_and_pauses_are_reported_with_the_remedy(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "--retries", "0"]);
    sandbox.onward(&["work", "--kind", "k", "--until-idle", "--", "false"]);
    sandbox.onward(&["queue", "pause", "--all"]);
    let ran = sandbox.onward(&["doctor"]);
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stdout.contains("onward task list --state dead") && ran.stdout.contains("onward queue resume"),
        "{}",
        ran.stdout
    );
}
