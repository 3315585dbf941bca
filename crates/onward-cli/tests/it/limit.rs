//! `onward limit`, groups, and `onward task why`.

use crate::harness::{Place, settings};
use crate::stores::on_every_store;

on_every_store! {
    limits_are_set_listed_and_cleared,
    weights_and_minimums_are_set_shown_and_taken_away,
    a_worker_works_off_what_a_rate_holds_back,
    tasks_are_listed_and_shown_with_their_group,
    a_task_says_why_it_waits_and_what_would_release_it,
    a_task_that_waits_says_when_it_expires,
    what_cannot_be_a_limit_is_wrong_usage_and_says_how_to_write_it,
}

fn with_tasks(place: Place) -> Place {
    for group in ["tenant-1", "tenant-1", "tenant-2"] {
        place.onward(&["submit", "--kind", "k", "--group", group, "x"]);
    }
    place
}

/// Shows: T9
fn limits_are_set_listed_and_cleared(place: Place) {
    let place = with_tasks(place);
    let ran = place.onward(&[
        "limit",
        "set",
        "--groups",
        "tenant-*",
        "--concurrency",
        "2",
        "--rate",
        "600/m",
        "--burst",
        "5",
    ]);
    assert_eq!(ran.stdout, "limit on each group tenant-*: concurrency 2, rate 600/m with a burst of 5\n");
    place.onward(&["limit", "set", "--kind", "k", "--concurrency", "4"]);
    let ran = place.onward(&["limit", "list"]);
    settings().bind(|| {
        insta::assert_snapshot!(ran.stdout, @r"
        LIMIT ON             CONCURRENCY  RUNNING   RATE  BURST  TOKENS  WEIGHT  MINIMUM
        kind k                         4        0      -      -       -       -        -
        each group tenant-*            2        -  600/m      5       -       -        -
        ");
    });
    assert_eq!(place.onward(&["limit", "clear", "--kind", "k"]).stdout, "limit on kind k: none\n");
    let limits = place.json(&["limit", "list"]);
    assert_eq!((limits.len(), &limits[0]["rate"]["per"]), (1, &60.0.into()));
}

/// Shows: T9
fn weights_and_minimums_are_set_shown_and_taken_away(place: Place) {
    let place = with_tasks(place);
    let set = |arguments: &[&str]| place.onward(&[&["limit", "set", "--group", "tenant-2"], arguments].concat()).stdout;
    assert_eq!(set(&["--weight", "3", "--minimum", "2"]), "limit on group tenant-2: weight 3, minimum 2\n");
    let limit = place.json(&["limit", "list"]).remove(0);
    assert_eq!((&limit["weight"], &limit["minimum"]), (&3.into(), &2.into()));
    assert_eq!(set(&["--minimum", "none"]), "limit on group tenant-2: weight 3\n");
}

/// Shows: T9
fn a_worker_works_off_what_a_rate_holds_back(place: Place) {
    let place = with_tasks(place);
    place.onward(&["limit", "set", "--all", "--rate", "20/s", "--burst", "1"]);
    let ran = place.onward(&["work", "--kind", "k", "--until-idle", "--", "cat"]);
    assert!(ran.stderr.contains("3 completed"), "{}", ran.stderr);
}

/// Shows: T9
fn tasks_are_listed_and_shown_with_their_group(place: Place) {
    let place = with_tasks(place);
    let listed = place.json(&["task", "list", "--group", "tenant-1"]);
    assert_eq!(listed.len(), 2);
    assert!(place.onward(&["task", "show", "3"]).stdout.contains("group        tenant-2"));
}

/// Shows: B6
fn a_task_says_why_it_waits_and_what_would_release_it(place: Place) {
    let place = with_tasks(place);
    place.onward(&["queue", "pause", "--group", "tenant-1"]);
    let ran = place.onward(&["task", "why", "2"]);
    settings().bind(|| {
        insta::assert_snapshot!(ran.stdout, @r"
        task 2 is waiting:
        - the group `tenant-1` is paused until it is resumed
        - 1 of its queue, kind and group go first; a higher priority would put it before them
        - no worker has the store open; start one
        ");
    });
    let why = place.json(&["task", "why", "2"]).remove(0);
    assert_eq!(why["reasons"][1], serde_json::json!({ "reason": "behind", "tasks": 1 }));
}

/// Shows: B6, T6
fn a_task_that_waits_says_when_it_expires(place: Place) {
    place.onward(&["submit", "--kind", "k", "--deadline", "2200-01-01T00:00:00Z", "x"]);
    place.onward(&["submit", "--kind", "k", "--deadline", "2020-01-01T00:00:00Z", "x"]);
    let why = |task: &str| place.onward(&["task", "why", task]).stdout;
    assert!(why("1").contains("- its deadline is 2200-01-01T00:00:00Z: it expires then unless"), "{}", why("1"));
    let expired =
        "- it expired at 2020-01-01T00:00:00Z, its deadline, and will not run; submit it again with a later one";
    assert_eq!(why("2"), format!("task 2 is expired:\n{expired}\n"));
}

fn what_cannot_be_a_limit_is_wrong_usage_and_says_how_to_write_it(place: Place) {
    let place = with_tasks(place);
    for (arguments, said) in [
        (["--groups", "tenant", "--rate", "1/s"], "tenant-*"),
        (["--group", "a", "--rate", "0/s"], "10/s"),
        (["--group", "a", "--concurrency", "0"], "pause it"),
        (["--group", "a", "--burst", "5"], "--rate"),
        (["--group", "a", "--weight", "1001"], "1 to 1000"),
        (["--queue", "q", "--weight", "2"], "cannot be used with"),
    ] {
        let arguments: Vec<&str> = ["limit", "set"].into_iter().chain(arguments).collect();
        let ran = place.onward(&arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}");
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}
