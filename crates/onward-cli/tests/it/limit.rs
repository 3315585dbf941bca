//! `onward limit`, groups, and `onward task why`.

use crate::harness::{Sandbox, settings};
use crate::stores::on_every_store;

on_every_store! {
    limits_are_set_listed_and_cleared,
    weights_and_minimums_are_set_shown_and_removed,
    a_worker_works_off_what_a_rate_holds_back,
    tasks_are_listed_and_shown_with_their_group,
    why_explains_the_wait_of_a_task_and_its_end,
    why_says_when_a_waiting_task_expires,
    an_invalid_limit_is_wrong_usage_with_the_valid_forms,
}

fn with_tasks(sandbox: Sandbox) -> Sandbox {
    for group in ["tenant-1", "tenant-1", "tenant-2"] {
        sandbox.onward(&["submit", "--kind", "k", "--group", group, "x"]);
    }
    sandbox
}

/// Shows: T9
fn limits_are_set_listed_and_cleared(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let ran = sandbox.onward(&[
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
    sandbox.onward(&["limit", "set", "--kind", "k", "--concurrency", "4"]);
    let ran = sandbox.onward(&["limit", "list"]);
    settings().bind(|| {
        insta::assert_snapshot!(ran.stdout, @r"
        LIMIT ON             CONCURRENCY  RUNNING   RATE  BURST  TOKENS  WEIGHT  MINIMUM
        kind k                         4        0      -      -       -       -        -
        each group tenant-*            2        -  600/m      5       -       -        -
        ");
    });
    assert_eq!(sandbox.onward(&["limit", "clear", "--kind", "k"]).stdout, "limit on kind k: none\n");
    let limits = sandbox.json(&["limit", "list"]);
    assert_eq!((limits.len(), &limits[0]["rate"]["per"]), (1, &60.0.into()));
}

/// Shows: T9
fn weights_and_minimums_are_set_shown_and_removed(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let set =
        |arguments: &[&str]| sandbox.onward(&[&["limit", "set", "--group", "tenant-2"], arguments].concat()).stdout;
    assert_eq!(set(&["--weight", "3", "--minimum", "2"]), "limit on group tenant-2: weight 3, minimum 2\n");
    let limit = sandbox.json(&["limit", "list"]).remove(0);
    assert_eq!((&limit["weight"], &limit["minimum"]), (&3.into(), &2.into()));
    assert_eq!(set(&["--minimum", "none"]), "limit on group tenant-2: weight 3\n");
}

/// Shows: T9
fn a_worker_works_off_what_a_rate_holds_back(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    sandbox.onward(&["limit", "set", "--all", "--rate", "20/s", "--burst", "1"]);
    let ran = sandbox.onward(&["work", "--kind", "k", "--until-idle", "--", "cat"]);
    assert!(ran.stderr.contains("3 completed"), "{}", ran.stderr);
}

/// Shows: T9
fn tasks_are_listed_and_shown_with_their_group(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let listed = sandbox.json(&["task", "list", "--group", "tenant-1"]);
    assert_eq!(listed.len(), 2);
    assert!(sandbox.onward(&["task", "show", "3"]).stdout.contains("group        tenant-2"));
}

/// Shows: B6
fn why_explains_the_wait_of_a_task_and_its_end(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    sandbox.onward(&["queue", "pause", "--group", "tenant-1"]);
    let ran = sandbox.onward(&["task", "why", "2"]);
    settings().bind(|| {
        insta::assert_snapshot!(ran.stdout, @r"
        task 2 is waiting:
        - the group `tenant-1` is paused until it is resumed
        - 1 of its queue, kind and group go first; a higher priority would put it before them
        - no worker has the store open; start one
        ");
    });
    let why = sandbox.json(&["task", "why", "2"]).remove(0);
    assert_eq!(why["reasons"][1], serde_json::json!({ "reason": "behind", "tasks": 1 }));
}

/// Shows: B6, T6
fn why_says_when_a_waiting_task_expires(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "--deadline", "2200-01-01T00:00:00Z", "x"]);
    sandbox.onward(&["submit", "--kind", "k", "--deadline", "2020-01-01T00:00:00Z", "x"]);
    let why = |task: &str| sandbox.onward(&["task", "why", task]).stdout;
    assert!(why("1").contains("- its deadline is 2200-01-01T00:00:00Z: it expires then unless"), "{}", why("1"));
    let expired =
        "- it expired at 2020-01-01T00:00:00Z, its deadline, and will not run; submit it again with a later one";
    assert_eq!(why("2"), format!("task 2 is expired:\n{expired}\n"));
}

fn an_invalid_limit_is_wrong_usage_with_the_valid_forms(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    for (arguments, output) in [
        (["--groups", "tenant", "--rate", "1/s"], "tenant-*"),
        (["--group", "a", "--rate", "0/s"], "10/s"),
        (["--group", "a", "--concurrency", "0"], "pause it"),
        (["--group", "a", "--burst", "5"], "--rate"),
        (["--group", "a", "--weight", "1001"], "1 to 1000"),
        (["--queue", "q", "--weight", "2"], "cannot be used with"),
    ] {
        let arguments: Vec<&str> = ["limit", "set"].into_iter().chain(arguments).collect();
        let ran = sandbox.onward(&arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}");
        assert!(ran.stderr.contains(output), "{}", ran.stderr);
    }
}
