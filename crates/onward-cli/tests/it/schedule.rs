//! `onward schedule`.

use std::time::Duration;

use onward_store::Timestamp;

use crate::harness::{Sandbox, settings};
use crate::stores::on_every_store;

on_every_store! {
    a_schedule_is_set_listed_and_shown,
    a_schedule_is_json_for_programs,
    the_tasks_of_a_schedule_are_described_as_those_of_a_submit,
    of_two_processes_one_does_each_firing,
    upcoming_firings_are_shown,
    a_triggered_firing_is_run_by_a_worker_that_knows_its_moment,
    a_worker_fires_what_is_due,
    a_range_is_backfilled,
    a_schedule_is_paused_resumed_and_deleted,
    what_cannot_be_meant_is_wrong_usage_and_sets_nothing,
}

/// Creates a schedule that fires at noon every day, in Berlin.
fn with_schedule(sandbox: Sandbox) -> Sandbox {
    let set = ["schedule", "set", "noon", "--cron", "0 12 * * *", "--zone", "Europe/Berlin", "--kind", "report", "{}"];
    let ran = sandbox.onward(&set);
    assert_eq!((ran.code, ran.stdout.starts_with("schedule noon created; next at ")), (Some(0), true), "{ran:?}");
    sandbox
}

/// Shows: T5
fn a_schedule_is_set_listed_and_shown(sandbox: Sandbox) {
    let sandbox = with_schedule(sandbox);
    let listed = sandbox.onward(&["schedule", "list"]);
    let shown = sandbox.onward(&["schedule", "show", "noon"]);
    settings().bind(|| {
        insta::assert_snapshot!(listed.stdout, @r"
        SCHEDULE  WHEN                      KIND    NEXT                       LAST  FIRED  SKIPPED  MISSED  FAILED  ERROR
        noon      0 12 * * * Europe/Berlin  report  [time]  -         0        0       0       0  -
        ");
        insta::assert_snapshot!(shown.stdout, @r"
        schedule     noon
        when         0 12 * * * Europe/Berlin
        overlap      skip
        catch-up     last
        kind         report
        queue        default
        payload      {}
        next         [time]
        firings      0 fired, 0 skipped, 0 missed, 0 failed
        ");
    });
}

/// Shows: T5
fn a_schedule_is_json_for_programs(sandbox: Sandbox) {
    let sandbox = with_schedule(sandbox);
    let shown = sandbox.json(&["schedule", "show", "noon"]).remove(0);
    assert_eq!(
        (&shown["cron"], &shown["zone"], &shown["task"]["payload"]),
        (&"0 12 * * *".into(), &"Europe/Berlin".into(), &"{}".into())
    );
    assert_eq!(sandbox.json(&["schedule", "list"]), [shown]);
    let again = [
        "schedule",
        "set",
        "noon",
        "--every",
        "1h30m",
        "--kind",
        "report",
        "--overlap",
        "queue-one",
        "--catch-up",
        "3",
    ];
    assert_eq!(sandbox.json(&again)[0]["set"], "changed");
    let shown = sandbox.json(&["schedule", "show", "noon"]).remove(0);
    assert_eq!(
        (&shown["every"], &shown["overlap"], &shown["catch_up"]),
        (&5400.0.into(), &"queue-one".into(), &"3".into())
    );
}

/// Shows: T5
fn the_tasks_of_a_schedule_are_described_as_those_of_a_submit(sandbox: Sandbox) {
    let set = ["schedule", "set", "s", "--cron", "0 12 * * *", "--kind", "report"];
    let described = [
        "--queue",
        "slow",
        "--group",
        "tenant-7",
        "--tag",
        "of=sales",
        "--key",
        "report",
        "--on-duplicate",
        "supersede",
        "--keep-key",
        "1m",
        "--priority",
        "200",
        "--after",
        "5s",
        "--ttl",
        "1h",
        "--timeout",
        "30s",
        "--retries",
        "2",
        "--backoff",
        "5s",
        "{}",
    ];
    assert_eq!(sandbox.onward(&[&set[..], &described].concat()).code, Some(0));
    let shown = sandbox.onward(&["schedule", "show", "s"]).stdout;
    for line in ["group        tenant-7", "priority     200", "key          report", "tags         of=sales"] {
        assert!(shown.contains(line), "{shown}");
    }
    sandbox.onward(&["schedule", "trigger", "s"]);
    sandbox.onward(&[&["submit", "--kind", "report"], &described[..]].concat());
    let task = |number: &str| {
        let mut task = sandbox.json(&["task", "show", number]).remove(0);
        for own in ["id", "submitted_at", "run_at", "expires_at", "scheduled_at", "state", "finished_at", "errors"] {
            task.as_object_mut().unwrap().remove(own);
        }
        task
    };
    assert_eq!(task("1"), task("2"));
    assert_eq!((&task("1")["group"], &task("1")["tags"]["of"]), (&"tenant-7".into(), &"sales".into()));
}

/// Shows: T5, Q11
fn of_two_processes_one_does_each_firing(sandbox: Sandbox) {
    sandbox.pipe("enough");
    let policies = ["--overlap", "allow", "--catch-up", "1000"];
    sandbox.onward(&[&["schedule", "set", "tick", "--every", "100ms", "--kind", "tick"][..], &policies].concat());
    let script = "echo $ONWARD_SCHEDULED_AT >> ran; test $(wc -l < ran) -lt 20 || echo > enough";
    let work =
        || sandbox.start(&["work", "--kind", "tick", "--jobs", "1", "--grace", "0", "--", "sh", "-c", script], "");
    let workers = [work(), work()];
    sandbox.await_writer("enough");
    assert_eq!(sandbox.json(&["stats"])[0]["sessions"].as_array().unwrap().len(), 2);
    workers.iter().for_each(|worker| worker.signal(rustix::process::Signal::INT));
    workers.into_iter().for_each(|worker| assert_eq!(worker.wait().code, Some(130)));
    let fired = moments(sandbox.json(&["task", "list", "--limit", "1000"]).iter().map(|task| {
        let key = task["key"].as_str().unwrap();
        key.strip_prefix("schedule:tick:").unwrap()
    }));
    let steps: Vec<_> = fired.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(steps.iter().all(|step| *step == Duration::from_millis(100)), "{steps:?}");
    let text = sandbox.read("ran");
    let ran = moments(text.lines());
    assert!(ran.len() >= 20 && ran.windows(2).all(|pair| pair[0] < pair[1]), "{ran:?}");
    assert!(ran.iter().all(|moment| fired.contains(moment)), "{ran:?} of {fired:?}");
}

/// Returns moments in chronological order.
fn moments<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<Timestamp> {
    let mut moments: Vec<Timestamp> = texts.map(|text| text.parse().unwrap()).collect();
    moments.sort_unstable();
    moments
}

/// Shows: T5
fn upcoming_firings_are_shown(sandbox: Sandbox) {
    let sandbox = with_schedule(sandbox);
    let set = ["schedule", "set", "leap", "--cron", "0 0 29 2 *", "--start", "2096-01-01T00:00:00Z", "--kind", "k"];
    sandbox.onward(&set);
    let ran = sandbox.onward(&["schedule", "next", "leap", "--count", "2"]);
    assert_eq!(ran.stdout, "2096-02-29T00:00:00Z\n2104-02-29T00:00:00Z\n");
    assert_eq!(sandbox.json(&["schedule", "next", "noon", "--count", "3"]).len(), 3);
}

/// Shows: T5
fn a_triggered_firing_is_run_by_a_worker_that_knows_its_moment(sandbox: Sandbox) {
    let sandbox = with_schedule(sandbox);
    assert_eq!(sandbox.onward(&["schedule", "trigger", "noon"]).stdout, "task 1 submitted\n");
    assert_eq!(sandbox.onward(&["schedule", "trigger", "noon"]).stdout, "skipped: task 1 is active\n");
    let echo = ["work", "--kind", "report", "--until-idle", "--", "sh", "-c", "echo $ONWARD_SCHEDULED_AT"];
    sandbox.onward(&echo);
    let task = sandbox.json(&["task", "show", "1"]).remove(0);
    let moment = task["key"].as_str().unwrap().trim_start_matches("schedule:noon:").to_owned();
    assert_eq!(task["result"].as_str().unwrap().trim_end(), moment);
}

/// Shows: T5
fn a_worker_fires_what_is_due(sandbox: Sandbox) {
    sandbox.onward(&["schedule", "set", "often", "--every", "100ms", "--kind", "report"]);
    sandbox.pipe("done");
    let once = "mkdir once && echo fired > done; true";
    let work = sandbox.start(&["work", "--kind", "report", "--", "sh", "-c", once], "");
    assert_eq!(sandbox.await_writer("done"), "fired\n");
    work.signal(rustix::process::Signal::INT);
    work.wait();
    assert!(sandbox.json(&["schedule", "show", "often"])[0]["fired"].as_u64().unwrap() > 0);
}

/// Shows: T5
fn a_range_is_backfilled(sandbox: Sandbox) {
    let sandbox = with_schedule(sandbox);
    let fill = ["schedule", "backfill", "noon", "--from", "2026-03-28T00:00:00Z", "--until", "2026-03-30T00:00:00Z"];
    let ran = sandbox.onward(&fill);
    assert_eq!(ran.stdout, "2026-03-28T11:00:00Z  task 1 submitted\n2026-03-29T10:00:00Z  task 2 submitted\n");
    let again = sandbox.onward(&fill);
    assert_eq!(again.code, Some(1), "{again:?}");
}

/// Shows: T5
fn a_schedule_is_paused_resumed_and_deleted(sandbox: Sandbox) {
    let sandbox = with_schedule(sandbox);
    assert_eq!(sandbox.onward(&["schedule", "pause", "noon"]).stdout, "paused schedule noon\n");
    assert_eq!(sandbox.json(&["schedule", "show", "noon"])[0]["paused"], true);
    assert_eq!(sandbox.onward(&["schedule", "resume", "noon"]).stdout, "resumed schedule noon\n");
    assert_eq!(sandbox.json(&["schedule", "show", "noon"])[0]["paused"], false);
    assert_eq!(sandbox.onward(&["schedule", "delete", "noon"]).stdout, "deleted schedule noon\n");
    let gone = sandbox.onward(&["schedule", "show", "noon"]);
    assert_eq!((gone.code, gone.stderr.contains("no schedule `noon`")), (Some(1), true));
}

/// Shows: T5
fn what_cannot_be_meant_is_wrong_usage_and_sets_nothing(sandbox: Sandbox) {
    let sandbox = with_schedule(sandbox);
    let set = |when: &[&str]| sandbox.onward(&[&["schedule", "set", "bad", "--kind", "k"], when].concat());
    for (when, part) in [
        (&["--cron", "0 25 * * *"][..], "`0 25 * * *`"),
        (&["--cron", "@daily", "--zone", "Europe/Berln"], "`Europe/Berln`"),
        (&["--cron", "0 0 30 2 *"], "never fires"),
        (&["--every", "0"], "zero"),
        (&["--every", "1h", "--catch-up", "some"], "none, last"),
        (&[], "--every"),
    ] {
        let ran = set(when);
        assert_eq!((ran.code, ran.stderr.contains(part)), (Some(2), true), "{ran:?}");
    }
    assert_eq!(sandbox.json(&["schedule", "list"]).len(), 1);
    let range = ["--from", "2026-05-02T00:00:00Z", "--until", "2026-05-01T00:00:00Z"];
    let ran = sandbox.onward(&[&["schedule", "backfill", "nightly"][..], &range].concat());
    assert_eq!((ran.code, ran.stderr.contains("--until")), (Some(2), true), "{ran:?}");
}
