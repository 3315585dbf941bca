//! Checks of `onward doctor` that apply to every store.

use crate::harness::Place;
use crate::stores::on_every_store;

on_every_store! {
    acknowledgements_that_power_loss_may_cost_are_told,
    dead_letters_and_pauses_are_told_with_what_to_do,
}

/// Shows: B11
fn acknowledgements_that_power_loss_may_cost_are_told(place: Place) {
    place.onward(&["submit", "--kind", "k"]);
    let ran = place.onward(&["--durability", "normal", "doctor"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("warn  durability") && ran.stdout.contains("not power loss"), "{}", ran.stdout);
}

/// Shows: B11, T8
fn dead_letters_and_pauses_are_told_with_what_to_do(place: Place) {
    place.onward(&["submit", "--kind", "k", "--retries", "0"]);
    place.onward(&["work", "--kind", "k", "--until-idle", "--", "false"]);
    place.onward(&["queue", "pause", "--all"]);
    let ran = place.onward(&["doctor"]);
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stdout.contains("onward task list --state dead") && ran.stdout.contains("onward queue resume"),
        "{}",
        ran.stdout
    );
}
