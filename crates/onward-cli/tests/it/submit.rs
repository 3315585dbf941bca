//! `onward submit`.

use crate::harness::Sandbox;
use crate::stores::on_every_store;

on_every_store! {
    a_submit_prints_the_result,
    a_rejected_duplicate_exits_with_1,
    each_line_is_a_task_with_the_line_as_payload_and_empty_ones_are_left_out,
    expected_bytes_are_submitted_and_counted_by_kind_on_completion,
    every_flag_reaches_the_task,
    a_submit_waits_for_the_result_where_asked,
    a_submit_that_waits_reports_that_no_worker_serves_its_kind,
    a_submit_that_waits_reports_a_pause,
    a_time_of_day_with_seconds_is_the_next_one,
    a_submit_that_waits_ends_when_the_deadline_passes_without_a_worker,
    a_submit_that_waits_gives_up_after_its_time,
    times_are_written_as_people_write_them,
    priorities_have_names,
    a_number_alone_counts_seconds,
    a_submit_that_waits_exits_with_1_when_its_task_fails,
    a_task_waits_for_those_that_it_depends_on,
    an_unknown_dependency_exits_with_1,
    a_submitted_task_shows_its_affinity_key,
    a_payload_that_is_too_large_is_wrong_usage,
}

/// Shows: T1
fn a_submit_that_waits_gives_up_after_its_time(sandbox: Sandbox) {
    let ran = sandbox.onward(&["submit", "--kind", "mail", "--wait", "--wait-timeout", "50ms"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("50ms") && ran.stderr.contains("onward task wait"), "{}", ran.stderr);
    assert_eq!(sandbox.json(&["task", "show", "1"])[0]["state"], "waiting");
}

/// Shows: T5
fn times_are_written_as_people_write_them(sandbox: Sandbox) {
    let zone = [("TZ", "Asia/Tokyo".to_owned())];
    sandbox.onward_as(&zone, &["submit", "--kind", "mail", "--at", "2090-11-27 12:00"]);
    assert_eq!(sandbox.json(&["task", "show", "1"])[0]["run_at"], "2090-11-27T03:00:00Z");
    let ran = sandbox.onward(&["submit", "--kind", "mail", "--at", "noon"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--at") && ran.stderr.contains("tomorrow 9:00"), "{}", ran.stderr);
    let listed = |option: &str, time: &str| sandbox.json(&["task", "list", option, time]).len();
    assert_eq!([listed("--since", "1h"), listed("--since", "now"), listed("--until", "1h ago")], [1, 0, 0]);
}

/// Shows: T4
fn priorities_have_names(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "mail", "--priority", "urgent"]);
    sandbox.onward(&["submit", "--kind", "mail", "--priority", "low"]);
    let listed = sandbox.json(&["task", "list", "--min-priority", "high"]);
    assert_eq!(listed.iter().map(|task| task["priority"].clone()).collect::<Vec<_>>(), [255]);
    let ran = sandbox.onward(&["submit", "--kind", "mail", "--priority", "asap"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("low, normal, high, urgent"), "{}", ran.stderr);
}

/// Shows: T7
fn a_number_alone_counts_seconds(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "mail", "--timeout", "5"]);
    sandbox.onward(&["submit", "--kind", "mail", "--timeout", "5s"]);
    let [number, unit] = ["1", "2"].map(|task| sandbox.json(&["task", "show", task])[0]["timeout"].clone());
    assert!(!number.is_null());
    assert_eq!(number, unit);
}

/// Shows: T2
fn a_submit_prints_the_result(sandbox: Sandbox) {
    let submit = ["submit", "--kind", "mail", "--key", "k"];
    let output = [
        sandbox.onward(&submit),
        sandbox.onward(&submit),
        sandbox.onward(&[&submit[..], &["--priority", "200"]].concat()),
        sandbox.onward(&[&submit[..], &["--on-duplicate", "supersede"]].concat()),
    ];
    insta::assert_snapshot!(output.map(|ran| ran.stdout).concat(), @r"
    task 1 submitted
    task 1 has the key already; nothing was changed
    task 1 has the key already and is now as urgent as the new one
    task 2 replaces task 1
    ");
}

/// Shows: T3
fn a_rejected_duplicate_exits_with_1(sandbox: Sandbox) {
    let submit = ["submit", "--kind", "mail", "--key", "k", "--on-duplicate", "reject"];
    sandbox.onward(&submit);
    let ran = sandbox.onward(&submit);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "rejected: task 1 has the key\n"));
}

/// Shows: T1
fn each_line_is_a_task_with_the_line_as_payload_and_empty_ones_are_left_out(sandbox: Sandbox) {
    let ran = sandbox.onward_with(&["submit", "--kind", "mail", "--lines"], "a\n\nb\nc\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "3 tasks submitted\n"));
    let payloads: Vec<_> =
        sandbox.json(&["task", "list", "--payload"]).iter().map(|task| task["payload"].clone()).collect();
    assert_eq!(payloads, ["c", "b", "a"]);
}

/// Shows: T18
fn expected_bytes_are_submitted_and_counted_by_kind_on_completion(sandbox: Sandbox) {
    let sizes = ["--io-read", "2GiB", "--io-write", "64MiB", "--io-receive", "1", "--io-send", "1KiB"];
    sandbox.onward(&[&["submit", "--kind", "copy"][..], &sizes].concat());
    let expected = serde_json::json!({
        "disk_read": 2_147_483_648_u64, "disk_written": 67_108_864, "network_received": 1, "network_sent": 1024
    });
    assert_eq!(sandbox.json(&["task", "show", "1"])[0]["expected_io"], expected);
    assert!(sandbox.onward(&["task", "show", "1"]).stdout.contains("2.00 GiB disk read, 64.0 MiB disk written"));
    sandbox.onward(&["work", "--kind", "copy", "--until-idle", "--", "true"]);
    let io = &sandbox.json(&["stats"])[0]["kinds"][0]["io"];
    assert_eq!((&io["tasks"], &io["expected"]), (&1.into(), &expected));
    let stats = sandbox.onward(&["stats"]).stdout;
    let row = stats.lines().find(|line| line.contains("disk read")).unwrap_or_default();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["copy", "disk", "read", "1", "2.00", "GiB", "0", "B"]);
}

/// Shows: T5, T6, T7
fn every_flag_reaches_the_task(sandbox: Sandbox) {
    let flags = [
        "--queue",
        "q",
        "--priority",
        "7",
        "--key",
        "k",
        "--keep-key",
        "1h",
        "--at",
        "2100-01-01T00:00:00Z",
        "--ttl",
        "1h",
    ];
    sandbox
        .onward(&[&["submit", "--kind", "k", "--retries", "3", "--backoff", "5s"][..], &flags, &["payload"]].concat());
    let task = &sandbox.json(&["task", "show", "1"])[0];
    assert_eq!((&task["queue"], &task["priority"], &task["key"]), (&"q".into(), &7.into(), &"k".into()));
    assert_eq!((&task["state"], &task["run_at"]), (&"scheduled".into(), &"2100-01-01T00:00:00Z".into()));
    assert_eq!(task["payload"], "payload");
    assert!(task["expires_at"].is_string());
    sandbox.onward(&["submit", "--kind", "k", "--ttl", "1h", "--ttl-from", "first-attempt"]);
    assert!(sandbox.json(&["task", "show", "2"])[0]["expires_at"].is_null());
    let what_else =
        ["--timeout", "5s", "--heartbeat-timeout", "2s", "--deadline", "2100-01-01T00:00:00Z", "--retries", "3"];
    let kept = ["--key", "2", "--keep-key", "1h", "--retention", "7d"];
    sandbox.onward(&[&["submit", "--kind", "k"][..], &kept, &what_else].concat());
    let task = &sandbox.json(&["task", "show", "3"])[0];
    assert_eq!(
        (&task["timeout"], &task["heartbeat_timeout"], &task["keep_key_for"]),
        (&5.0.into(), &2.0.into(), &3600.0.into())
    );
    assert_eq!((&task["deadline"], &task["retry"]["attempts"]), (&"2100-01-01T00:00:00Z".into(), &4.into()));
    assert_eq!(task["retention"], 604_800.0);
    let shown = sandbox.onward(&["task", "show", "2", "3"]).stdout;
    for fact in [
        "time to live 1h00m from its first attempt",
        "timeout      5.00s",
        "heartbeat    every 2.00s",
        "retention    7d00h",
        "retries      3, jitter:",
    ] {
        assert!(shown.contains(fact), "{shown}");
    }
}

/// Shows: Q6, T17
fn a_submit_waits_for_the_result_where_asked(sandbox: Sandbox) {
    let submitted = sandbox.start(&["submit", "--kind", "shout", "--wait", "hello"], "");
    // The worker may start before the task exists. It runs until it is interrupted.
    let worker = sandbox.start(&["work", "--kind", "shout", "--", "tr", "a-z", "A-Z"], "");
    let ran = submitted.wait();
    worker.signal(rustix::process::Signal::INT);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "HELLO\n"));
    assert_eq!(worker.wait().code, Some(130));
}

/// Shows: Q6, T17
fn a_submit_that_waits_reports_that_no_worker_serves_its_kind(sandbox: Sandbox) {
    let mut submitted = sandbox.start(&["submit", "--kind", "shout", "--wait", "hello"], "");
    submitted.await_said("task 1 waits: no worker has the store open");
    sandbox.onward(&["task", "cancel", "1"]);
    assert_eq!(submitted.wait().code, Some(1));
}

/// Shows: B6, Q6
fn a_submit_that_waits_reports_a_pause(sandbox: Sandbox) {
    sandbox.onward(&["queue", "pause", "default"]);
    let mut submitted = sandbox.start(&["submit", "--kind", "shout", "--wait", "hello"], "");
    submitted.await_said("task 1 waits: the queue `default` is paused until it is resumed");
    sandbox.onward(&["task", "cancel", "1"]);
    assert_eq!(submitted.wait().code, Some(1));
}

/// Shows: T6, Q6
fn a_submit_that_waits_ends_when_the_deadline_passes_without_a_worker(sandbox: Sandbox) {
    let past = sandbox.onward(&["submit", "--kind", "late", "--wait", "--deadline", "2020-01-01T00:00:00Z"]);
    assert_eq!((past.code, past.stderr.as_str()), (Some(1), "task 1 is expired after 0 attempts\n"));
    let soon = sandbox.onward(&["submit", "--kind", "late", "--wait", "--ttl", "1s"]);
    assert_eq!(soon.code, Some(1));
    assert!(soon.stderr.ends_with("task 2 is expired after 0 attempts\n"), "{}", soon.stderr);
}

/// Shows: Q6, T8
fn a_submit_that_waits_exits_with_1_when_its_task_fails(sandbox: Sandbox) {
    let submitted = sandbox.start(&["submit", "--kind", "k", "--wait", "--retries", "0"], "");
    let worker = sandbox.start(&["work", "--kind", "k", "--", "sh", "-c", "echo broken >&2; exit 100"], "");
    let ran = submitted.wait();
    worker.signal(rustix::process::Signal::INT);
    worker.wait();
    assert_eq!(ran.code, Some(1));
    let failure = ran.stderr.lines().last().unwrap_or_default();
    insta::assert_snapshot!(failure, @"task 1 is failed after 1 attempt: exit status 100: broken");
}

/// Shows: T12
fn a_task_waits_for_those_that_it_depends_on(sandbox: Sandbox) {
    for _ in 0..2 {
        sandbox.onward(&["submit", "--kind", "k"]);
    }
    sandbox.onward(&["submit", "--kind", "k", "--depends-on", "1", "--depends-on", "2"]);
    sandbox.onward(&["submit", "--kind", "k", "--depends-on", "1", "--on-dependency-failure", "fail"]);
    sandbox.onward(&["submit", "--kind", "k", "--depends-on", "1", "--on-dependency-failure", "ignore"]);
    let shown = sandbox.onward(&["task", "show", "3"]).stdout;
    assert!(shown.contains("state        blocked") && shown.contains("blocked by   1 2"), "{shown}");
    sandbox.onward(&["task", "cancel", "1"]);
    let states: Vec<_> = sandbox.json(&["task", "list"]).iter().map(|task| task["state"].clone()).collect();
    assert_eq!(states, ["waiting", "failed", "cancelled", "waiting", "cancelled"]);
    let shown = sandbox.onward(&["task", "show", "3"]).stdout;
    assert!(
        shown.contains("no attempt at") && shown.contains("task 1, on which it depends, ended as cancelled"),
        "{shown}"
    );
}

/// Shows: T12
fn an_unknown_dependency_exits_with_1(sandbox: Sandbox) {
    let ran = sandbox.onward(&["submit", "--kind", "k", "--depends-on", "7"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("there is no task 7 to depend on"), "{}", ran.stderr);
}

/// Shows: Q12
fn a_submitted_task_shows_its_affinity_key(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "--affinity", "customer-7"]);
    let shown = sandbox.onward(&["task", "show", "1"]).stdout;
    assert!(shown.lines().any(|line| line.starts_with("affinity ") && line.ends_with(" customer-7")), "{shown}");
    assert_eq!(sandbox.json(&["task", "show", "1"])[0]["affinity"], "customer-7");
}

/// Shows: T1
fn a_payload_that_is_too_large_is_wrong_usage(sandbox: Sandbox) {
    sandbox.write("large", &"x".repeat(1024 * 1024 + 1));
    let ran = sandbox.onward(&["submit", "--kind", "k", "--payload-file", "large"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("1048576"), "{}", ran.stderr);
}

/// Shows: Q6, T6
fn a_time_of_day_with_seconds_is_the_next_one(sandbox: Sandbox) {
    let utc = [("TZ", "UTC".to_owned())];
    for (typed, shown) in [("12:00:30", "12:00:30Z"), ("0:00:01", "00:00:01Z")] {
        sandbox.onward_as(&utc, &["submit", "--kind", "k", "--at", typed]);
        let newest = sandbox.json(&["task", "list", "--limit", "1"]).remove(0);
        assert!(newest["run_at"].as_str().is_some_and(|at| at.ends_with(shown)), "{typed}: {newest}");
    }
}
