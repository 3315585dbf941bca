//! `onward queue` and `onward stats`.

use crate::harness::{Sandbox, settings};
use crate::stores::on_every_store;

on_every_store! {
    queues_are_listed_with_their_sizes,
    the_history_of_a_queue_that_does_not_exist_is_an_error_that_names_it,
    a_queue_is_the_same_object_in_the_list_and_by_itself,
    a_pause_until_a_moment_that_has_passed_is_wrong_usage_and_one_that_is_over_is_not_shown,
    a_paused_queue_is_worked_on_only_when_it_is_resumed,
    everything_can_be_paused_until_a_time,
    a_queue_is_set_and_shown,
    settings_of_a_queue_that_make_no_sense_are_wrong_usage,
    the_mode_is_shown_and_changed,
    work_follows_weights_and_mode,
    a_purge_counts_first_and_removes_when_meant,
    only_a_queue_without_live_tasks_can_be_deleted,
    a_queue_that_is_not_there_is_named,
    a_wait_ends_when_the_queue_is_empty,
    a_wait_that_takes_too_long_counts_what_is_left,
    statistics_show_outcomes_by_kind,
    the_history_shows_how_tasks_ended_today,
    a_queue_is_shown_with_how_long_its_oldest_task_has_waited,
    the_wait_for_affinity_is_set_and_shown,
    a_resume_without_a_pause_says_so,
    a_reserved_queue_is_refused_wherever_one_is_named_to_change_it,
}

/// Shows: Q1
fn a_resume_without_a_pause_says_so(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    sandbox.onward(&["queue", "pause", "mail"]);
    let of_another = sandbox.onward(&["queue", "resume", "mial"]);
    assert_eq!(of_another.stdout, "queue mial is not paused; onward stats lists the pauses\n");
    assert_eq!(sandbox.onward(&["queue", "resume", "mail"]).stdout, "resumed queue mail\n");
    assert_eq!(sandbox.json(&["queue", "resume", "mail"])[0]["was_paused"], false);
}

/// Shows: Q1, Q7
fn a_reserved_queue_is_refused_wherever_one_is_named_to_change_it(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    for typed in [
        "submit --kind k --queue onward.x",
        "task move --to onward.x 1",
        "task move --to onward.x --kind k --yes",
        "queue set onward.x --weight 3",
        "queue pause onward.x",
        "limit set --queue onward.x --concurrency 1",
        "schedule set s --every 1h --kind k --queue onward.x",
        "orchestration start --queue onward.unstarted k",
        "work --kind k --queue onward.x --until-idle -- true",
    ] {
        let ran = sandbox.onward(&typed.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.code, Some(2), "{typed}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("the queue `onward.") && ran.stderr.contains("reserved"),
            "{typed}: {}",
            ran.stderr
        );
    }
    let queues = sandbox.json(&["queue", "list"]);
    assert_eq!(queues.iter().map(|queue| queue["name"].clone()).collect::<Vec<_>>(), ["mail"]);
}

fn with_tasks(sandbox: Sandbox) -> Sandbox {
    sandbox.onward_with(&["submit", "--kind", "k", "--queue", "mail", "--lines"], "a\nb\nc\n");
    sandbox
}

/// Shows: Q10
fn a_wait_ends_when_the_queue_is_empty(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let wait = sandbox.start(&["queue", "wait", "mail", "--json"], "");
    sandbox.onward(&["work", "--kind", "k", "--until-idle", "--", "true"]);
    let ran = wait.wait();
    let output: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &output["queue"], &output["ended"]["completed"]), (Some(0), &"mail".into(), &3.into()));
}

/// Shows: Q10
fn a_wait_that_takes_too_long_counts_what_is_left(sandbox: Sandbox) {
    let ran = with_tasks(sandbox).onward(&["queue", "wait", "mail", "--timeout", "50ms"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("3 tasks in mail"), "{}", ran.stderr);
}

/// Shows: Q1, Q10
fn queues_are_listed_with_their_sizes(sandbox: Sandbox) {
    let ran = with_tasks(sandbox).onward(&["queue", "list"]);
    settings().bind(|| {
        insta::assert_snapshot!(ran.stdout, @r"
        QUEUE  BLOCKED  SCHEDULED  WAITING  RUNNING  COMPLETED  FAILED  DEAD  CANCELLED  EXPIRED  OLDEST WAITING        PAUSED  WEIGHT  CONCURRENCY
        mail         0          0        3        0          0       0     0          0        0  [time]  no           1            -
        ");
    });
}

/// Shows: Q10
fn the_history_of_a_queue_that_does_not_exist_is_an_error_that_names_it(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let ran = sandbox.onward(&["queue", "history", "nosuch"]);
    assert_eq!(ran.code, sandbox.onward(&["queue", "show", "nosuch"]).code);
    assert!(ran.stderr.contains("nosuch"), "{}", ran.stderr);
}

/// Shows: Q10
fn a_queue_is_the_same_object_in_the_list_and_by_itself(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    sandbox.onward(&["queue", "pause", "mail"]);
    let [listed, shown] =
        [&["queue", "list"][..], &["queue", "show", "mail"]].map(|words| sandbox.json(words).remove(0));
    let keys = |object: &serde_json::Value| object.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&listed), keys(&shown));
    assert_eq!((&listed["affinity_wait"], &listed["pauses"]), (&5.0.into(), &shown["pauses"]));
    assert_eq!(sandbox.json(&["stats"])[0]["queues"][0]["affinity_wait"], 5.0);
}

/// Shows: T14
fn a_pause_until_a_moment_that_has_passed_is_wrong_usage_and_one_that_is_over_is_not_shown(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let ran = sandbox.onward(&["queue", "pause", "--all", "--until", "2020-01-01T00:00:00Z"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("has passed"), "{}", ran.stderr);
    sandbox.onward(&["queue", "pause", "mail", "--for", "1us"]);
    assert_eq!(sandbox.json(&["stats"])[0]["pauses"].as_array().map(Vec::len), Some(0));
    let why = sandbox.onward(&["task", "why", "1"]).stdout;
    assert!(!why.contains("paused"), "{why}");
}

/// Shows: T14, Q1
fn a_paused_queue_is_worked_on_only_when_it_is_resumed(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let work = ["work", "--kind", "k", "--until-idle", "--", "cat"];
    let waiting = || sandbox.json(&["queue", "show", "mail"])[0]["waiting"].clone();
    assert_eq!(sandbox.onward(&["queue", "pause", "mail"]).stdout, "paused queue mail\n");
    sandbox.onward(&work);
    assert_eq!(waiting(), 3);
    assert_eq!(sandbox.onward(&["queue", "resume", "mail"]).stdout, "resumed queue mail\n");
    sandbox.onward(&work);
    assert_eq!(waiting(), 0);
}

/// Shows: T14
fn everything_can_be_paused_until_a_time(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let ran = sandbox.onward(&["queue", "pause", "--all", "--until", "2100-01-01T00:00:00Z"]);
    assert_eq!(ran.stdout, "paused everything until 2100-01-01T00:00:00Z\n");
    assert_eq!(sandbox.json(&["stats"])[0]["pauses"][0]["scope"], "all");
}

/// Shows: Q4, Q10
fn a_queue_is_set_and_shown(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let ran = sandbox.onward(&["queue", "set", "mail", "--weight", "3", "--concurrency", "2"]);
    assert_eq!(ran.stdout, "set queue mail: weight 3, concurrency 2\n");
    assert!(ran.stderr.contains("the mode is strict"), "{}", ran.stderr);
    let mail = sandbox.json(&["queue", "show", "mail"]).remove(0);
    assert_eq!((&mail["weight"], &mail["concurrency"]), (&3.into(), &2.into()));
    let set = sandbox.json(&["queue", "set", "mail", "--concurrency", "none"]).remove(0);
    assert_eq!((&set["weight"], &set["concurrency"]), (&3.into(), &serde_json::Value::Null));
    assert_eq!(sandbox.json(&["queue", "list"])[0]["weight"], 3);
}

/// Shows: Q4
fn settings_of_a_queue_that_make_no_sense_are_wrong_usage(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    for (wrong, named) in [
        (&["--weight", "0"][..], "--weight"),
        (&["--weight", "1001"], "--weight"),
        (&["--concurrency", "0"], "--concurrency"),
        (&["--concurrency", "many"], "--concurrency"),
        (&["--speed", "3"], "--speed"),
        (&["--weight", "3", "--speed=3"], "--speed"),
        (&["weight=3"], "weight=3"),
        (&[], "--weight"),
    ] {
        let ran = sandbox.onward(&[&["queue", "set", "mail"], wrong].concat());
        assert!(ran.code == Some(2) && ran.stderr.contains(named), "{wrong:?}: {:?} {}", ran.code, ran.stderr);
    }
    assert_eq!(sandbox.json(&["queue", "show", "mail"])[0]["weight"], 1);
}

/// Shows: Q2, Q4
fn the_mode_is_shown_and_changed(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    assert_eq!(sandbox.onward(&["queue", "mode"]).stdout, "strict\n");
    assert_eq!(sandbox.onward(&["queue", "mode", "interleaved"]).stdout, "set queue mode interleaved\n");
    assert_eq!(sandbox.json(&["queue", "mode"])[0]["mode"], "interleaved");
    assert_eq!(sandbox.json(&["stats"])[0]["queue_mode"], "interleaved");
    assert_eq!(sandbox.onward(&["queue", "mode", "fair"]).code, Some(2));
}

/// Shows: Q2
fn work_follows_weights_and_mode(sandbox: Sandbox) {
    for (queue, weight) in [("light", "1"), ("heavy", "2")] {
        sandbox.onward_with(&["submit", "--kind", "k", "--queue", queue, "--lines"], "1\n2\n3\n");
        sandbox.onward(&["queue", "set", queue, "--weight", weight]);
    }
    sandbox.onward(&["queue", "mode", "interleaved"]);
    sandbox.onward(&[
        "work",
        "--kind",
        "k",
        "--jobs",
        "1",
        "--until-idle",
        "--",
        "sh",
        "-c",
        "echo $ONWARD_QUEUE >> order",
    ]);
    let order = std::fs::read_to_string(sandbox.path("order")).unwrap();
    assert_eq!(order.split_whitespace().collect::<Vec<_>>(), ["heavy", "light", "heavy", "heavy", "light", "light"]);
}

/// Shows: Q1
fn a_purge_counts_first_and_removes_when_meant(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let purge = ["queue", "purge", "mail", "--state", "waiting"];
    assert_eq!(sandbox.onward(&[&purge[..], &["--dry-run"]].concat()).stdout, "would remove 3 tasks\n");
    assert_eq!(sandbox.onward(&[&purge[..], &["--yes"]].concat()).stdout, "removed 3 tasks\n");
    assert_eq!(sandbox.json(&["task", "list"]).len(), 0);
}

/// Shows: Q1
fn only_a_queue_without_live_tasks_can_be_deleted(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    assert_eq!(sandbox.onward(&["queue", "delete", "mail"]).code, Some(1));
    sandbox.onward(&["queue", "purge", "mail", "--state", "waiting", "--yes"]);
    assert_eq!(sandbox.onward(&["queue", "delete", "mail"]).stdout, "deleted queue mail\n");
}

/// Shows: Q1
fn a_queue_that_is_not_there_is_named(sandbox: Sandbox) {
    let ran = with_tasks(sandbox).onward(&["queue", "show", "post"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("there is no queue `post`"), "{}", ran.stderr);
}

/// Shows: T17
fn statistics_show_outcomes_by_kind(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    sandbox.onward(&["work", "--kind", "k", "--until-idle", "--", "cat"]);
    let kind = &sandbox.json(&["stats"])[0]["kinds"][0];
    assert_eq!((&kind["kind"], &kind["ended"]["completed"], &kind["attempts"]), (&"k".into(), &3.into(), &3.into()));
}

/// Shows: Q10
fn the_history_shows_how_tasks_ended_today(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    sandbox.onward(&["task", "cancel", "1"]);
    sandbox.onward(&["work", "--kind", "k", "--until-idle", "--", "cat"]);
    let history = sandbox.json(&["queue", "history", "mail", "--days", "2"]);
    let sum = |state: &str| history.iter().map(|day| day["ended"][state].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("completed"), sum("cancelled")), (2, 1));
    assert!(sandbox.onward(&["queue", "history"]).stdout.contains("mail"));
    assert!(sandbox.json(&["queue", "history", "other"]).is_empty());
    assert_eq!(sandbox.onward(&["queue", "history", "--days", "91"]).code, Some(2));
}

/// Shows: Q10
fn a_queue_is_shown_with_how_long_its_oldest_task_has_waited(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let latency = |sandbox: &Sandbox| sandbox.json(&["queue", "show", "mail"])[0]["latency"].as_f64().unwrap();
    assert!(latency(&sandbox) > 0.0);
    assert!(sandbox.onward(&["queue", "show", "mail"]).stdout.contains("\nlatency "));
    sandbox.onward(&["queue", "purge", "mail", "--state", "waiting", "--yes"]);
    assert!(latency(&sandbox).abs() < f64::EPSILON);
}

/// Shows: Q12
fn the_wait_for_affinity_is_set_and_shown(sandbox: Sandbox) {
    let sandbox = with_tasks(sandbox);
    let ran = sandbox.onward(&["queue", "set", "mail", "--affinity-wait", "30s"]);
    assert_eq!(ran.stdout, "set queue mail: weight 1, concurrency none, affinity wait 30.00s\n");
    assert_eq!(sandbox.json(&["queue", "show", "mail"])[0]["affinity_wait"], 30.0);
    assert!(sandbox.onward(&["queue", "show", "mail"]).stdout.contains("affinity wait   30.00s"));
    let refused = sandbox.onward(&["queue", "set", "mail", "--affinity-wait", "2h"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("the limit is 1h"), "{}", refused.stderr);
}
