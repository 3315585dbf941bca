//! `onward work`.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Running, Sandbox};
use crate::stores::on_every_store;

on_every_store! {
    a_command_gets_the_payload_and_its_output_is_the_result,
    while_it_works_it_is_seen_what_it_serves_and_for_whom_a_worker_is_missing,
    why_says_that_a_task_behind_a_busy_worker_waits_for_a_slot,
    a_killed_worker_is_reported_as_gone_without_a_replacement not on postgres,
    exits_and_reports_decide_what_becomes_of_a_task,
    a_command_without_heartbeats_is_stopped_and_retried,
    a_delay_requested_by_the_command_is_kept,
    progress_stays_with_the_task,
    a_result_larger_than_the_store_takes_is_a_permanent_failure,
    while_tasks_are_ahead_of_the_bandwidth_only_what_is_urgent_starts,
    a_worker_reports_that_the_machine_does_not_measure_pressure,
    an_interrupted_worker_gives_its_task_back_uncounted,
    a_worker_whose_terminal_is_closed_gives_its_task_back_uncounted,
    a_worker_that_is_to_outlive_its_terminal_does,
    a_running_command_is_stopped_when_its_task_is_cancelled,
    a_command_gives_way_to_an_urgent_task_and_runs_again,
    metrics_are_served_for_prometheus_while_it_works,
    a_silent_client_does_not_keep_metrics_from_another,
    an_address_for_metrics_that_is_taken_is_named_with_the_remedy,
    a_lease_that_is_too_short_is_named_with_what_it_may_be,
    a_worker_reports_what_it_serves_its_failures_and_a_summary,
    an_interrupted_worker_reports_a_summary,
    a_quiet_worker_prints_nothing,
    output_of_a_worker_is_json_on_request,
    what_a_command_that_succeeds_writes_to_standard_error_is_shown_and_marked_where_it_was_cut,
    the_output_of_each_attempt_may_go_to_files,
    a_move_to_the_queue_of_the_task_is_a_failed_attempt,
}

fn work(sandbox: &Sandbox, script: &str) -> crate::harness::CommandResult {
    sandbox.onward(&["work", "--kind", "k", "--until-idle", "--", "sh", "-c", script])
}

/// Shows: T17
fn a_move_to_the_queue_of_the_task_is_a_failed_attempt(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "--retries", "0"]);
    let ran = work(&sandbox, "echo move slow >> $ONWARD_REPORT; echo moved >> runs");
    assert!(ran.stderr.contains("moves to the queue `slow`, in which it is already"), "{}", ran.stderr);
    assert_eq!(sandbox.read("runs"), "moved\nmoved\n");
}

/// Shows: T17, T20
fn a_command_gets_the_payload_and_its_output_is_the_result(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "hello"]);
    assert_eq!(
        work(&sandbox, "tr a-z A-Z; printf %s $ONWARD_TASK_ID-$ONWARD_KIND-$ONWARD_QUEUE-$ONWARD_ATTEMPT").code,
        Some(0)
    );
    let task = &sandbox.json(&["task", "show", "1"])[0];
    assert_eq!((&task["state"], &task["result"]), (&"completed".into(), &"HELLO1-k-default-1".into()));
}

/// Shows: B6
fn while_it_works_it_is_seen_what_it_serves_and_for_whom_a_worker_is_missing(sandbox: Sandbox) {
    sandbox.pipe("started");
    sandbox.pipe("go-on");
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    sandbox.onward(&["submit", "--kind", "other", "x"]);
    let script = "echo started > started; cat go-on";
    let worker = sandbox.start(&["work", "--kind", "k", "--until-idle", "--", "sh", "-c", script], "");
    sandbox.await_writer("started");
    let why = sandbox.json(&["task", "why", "1"]).remove(0);
    let session = sandbox.json(&["stats"])[0]["sessions"][0].clone();
    assert_eq!(session["serves"], serde_json::json!({ "queues": null, "kinds": { "only": ["k"] }, "code": [] }));
    assert_eq!((&why["reasons"], &why["served_by"]), (&serde_json::json!([]), &serde_json::json!([session["name"]])));
    let output = sandbox.onward(&["task", "why", "2"]).stdout;
    assert!(output.contains("- no worker serves the kind `other`; start one."), "{output}");
    assert!(output.contains(session["name"].as_str().unwrap()), "{output}");
    sandbox.write("go-on", "");
    assert_eq!(worker.wait().code, Some(0));
}

/// Shows: B6
fn why_says_that_a_task_behind_a_busy_worker_waits_for_a_slot(sandbox: Sandbox) {
    sandbox.pipe("started");
    sandbox.pipe("go-on");
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], &crate::harness::numbers(100));
    let script = "[ $ONWARD_TASK_ID = 1 ] || exit 0; echo started > started; cat go-on";
    let worker = sandbox.start(&["work", "--kind", "k", "--jobs", "1", "--until-idle", "--", "sh", "-c", script], "");
    sandbox.await_writer("started");
    let output = sandbox.onward(&["task", "why", "100"]).stdout;
    assert!(output.contains("- every worker that serves it is at work (workers: 1, tasks in hand: "), "{output}");
    sandbox.write("go-on", "");
    assert_eq!(worker.wait().code, Some(0));
}

/// Shows: B6, B11
fn a_killed_worker_is_reported_as_gone_without_a_replacement(sandbox: Sandbox) {
    sandbox.pipe("started");
    sandbox.pipe("go-on");
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    let script = "echo started > started; cat go-on";
    let worker = sandbox.start(&["work", "--kind", "k", "--jobs", "1", "--", "sh", "-c", script], "");
    sandbox.await_writer("started");
    sandbox.onward(&["submit", "--kind", "k", "y"]);
    worker.signal(Signal::KILL);
    worker.wait();
    let why = |task| sandbox.onward(&["task", "why", task]).stdout;
    assert_eq!(why("1"), "task 1 is running; its worker is gone, and the next one that runs its kind takes it over\n");
    assert!(why("2").contains("no worker has the store open"), "{}", why("2"));
    assert_eq!(sandbox.json(&["stats"])[0]["sessions"], serde_json::json!([]));
    let doctor = sandbox.onward(&["doctor"]).stdout;
    assert!(doctor.contains("belongs to workers that are gone"), "{doctor}");
}

/// Shows: T7, T8
fn exits_and_reports_decide_what_becomes_of_a_task(sandbox: Sandbox) {
    sandbox
        .onward_with(&["submit", "--kind", "k", "--lines", "--retries", "1", "--backoff", "0"], "75\n100\n3\nreport\n");
    let script = r#"read code; test $code != report || { echo "fail gone for good" > $ONWARD_REPORT; exit 0; }
        echo "no $code" >&2; exit $code"#;
    let ran = work(&sandbox, script);
    let summary = "0 completed, 2 failed, 2 dead, 0 cancelled; 2 attempts to be retried, 0 lost; ";
    assert!(ran.stderr.lines().last().is_some_and(|last| last.starts_with(summary)), "{}", ran.stderr);
    let tasks = sandbox.json(&["task", "list"]);
    let shown: Vec<String> =
        tasks.iter().map(|task| format!("{} {}", task["state"], task["errors"][0]["message"])).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    "failed" "gone for good"
    "dead" "exit status 3: no 3"
    "failed" "exit status 100: no 100"
    "dead" "exit status 75: no 75"
    "#);
}

/// Shows: D2, T17
fn a_command_without_heartbeats_is_stopped_and_retried(sandbox: Sandbox) {
    sandbox.pipe("hold");
    // On a busy machine it may take several attempts until one ends before its heartbeat timeout.
    let limits = ["--heartbeat-timeout", "200ms", "--retries", "100", "--backoff", "0"];
    sandbox.onward(&[&["submit", "--kind", "k"], &limits[..], &["x"]].concat());
    let script = "test $ONWARD_ATTEMPT = 1 || exit 0; echo heartbeat > $ONWARD_REPORT; exec cat hold";
    assert_eq!(work(&sandbox, script).code, Some(0));
    let task = &sandbox.json(&["task", "show", "1"])[0];
    assert!(task["state"] == "completed" && task["attempts"].as_u64() > Some(1), "{task}");
    let error = task["errors"][0]["message"].as_str().unwrap();
    assert!(error.starts_with("no heartbeat for 200ms"), "{error}");
}

/// Shows: T7
fn a_delay_requested_by_the_command_is_kept(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    work(&sandbox, "echo retry-after 1h > $ONWARD_REPORT; exit 75");
    let task = &sandbox.json(&["task", "show", "1"])[0];
    assert_eq!((&task["state"], &task["attempts"]), (&"scheduled".into(), &1.into()));
}

/// Shows: T15
fn progress_stays_with_the_task(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    work(&sandbox, "echo progress 0.5 halfway > $ONWARD_REPORT; echo progress 0.75 nearly > $ONWARD_REPORT");
    let progress = &sandbox.json(&["task", "show", "1"])[0]["progress"];
    assert_eq!((&progress["fraction"], &progress["message"]), (&0.75.into(), &"nearly".into()));
}

/// Shows: T17
fn a_result_larger_than_the_store_takes_is_a_permanent_failure(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    work(&sandbox, "head -c 1100000 /dev/zero");
    let task = &sandbox.json(&["task", "show", "1"])[0];
    assert_eq!(task["state"], "failed");
}

/// The first task declares I/O that takes years at this bandwidth, and the second is not urgent.
///
/// Shows: T18
fn while_tasks_are_ahead_of_the_bandwidth_only_what_is_urgent_starts(sandbox: Sandbox) {
    sandbox.pipe("started");
    sandbox.pipe("go-on");
    // Without the bandwidth the first task would wait for ever.
    sandbox.onward(&["submit", "--kind", "k", "--io-receive", "1TiB", "--timeout", "60s", "--retries", "0", "x"]);
    let options = ["-v", "work", "--kind", "k", "--jobs", "1", "--bandwidth", "receive=1KiB", "--until-idle"];
    let script = "echo $ONWARD_TASK_ID > started; cat go-on";
    let mut worker = sandbox.start(&[&options[..], &["--", "sh", "-c", script]].concat(), "");
    assert_eq!(sandbox.await_writer("started"), "1\n");
    worker.await_said("only tasks of this priority and above start");
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    sandbox.write("go-on", "");
    sandbox.onward(&["task", "wait", "1"]);
    sandbox.onward(&["submit", "--kind", "k", "--priority", "255", "x"]);
    assert_eq!(sandbox.await_writer("started"), "3\n");
    assert_eq!(sandbox.json(&["task", "show", "2"])[0]["state"], "waiting");
    worker.signal(Signal::INT);
    assert_eq!(worker.wait().code, Some(130));
}

/// Shows: T18
fn a_worker_reports_that_the_machine_does_not_measure_pressure(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "--priority", "255", "x"]);
    let ran = sandbox.onward(&["work", "--kind", "k", "--pressure", "memory", "--until-idle", "--", "cat"]);
    let is_readable = std::fs::read_to_string("/proc/pressure/memory").is_ok();
    let output = if is_readable { "1 completed" } else { "psi=1" };
    assert_eq!(ran.code, Some(if is_readable { 0 } else { 2 }), "{}", ran.stderr);
    assert!(ran.stderr.contains(output), "{}", ran.stderr);
}

/// Shows: T21
fn an_interrupted_worker_gives_its_task_back_uncounted(sandbox: Sandbox) {
    gives_its_task_back_uncounted(&sandbox, Signal::INT);
}

/// Shows: T21
fn a_worker_whose_terminal_is_closed_gives_its_task_back_uncounted(sandbox: Sandbox) {
    gives_its_task_back_uncounted(&sandbox, Signal::HUP);
}

const HELD: [&str; 6] = ["--kind", "k", "--", "sh", "-c", "echo > reached; exec cat hold"];

fn gives_its_task_back_uncounted(sandbox: &Sandbox, signal: Signal) {
    sandbox.pipe("reached");
    sandbox.pipe("hold");
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    let worker = sandbox.start(&[&["work"], &HELD[..]].concat(), "");
    sandbox.await_writer("reached");
    worker.signal(signal);
    assert_eq!(worker.wait().code, Some(130));
    assert_eq!(work(sandbox, "echo done").code, Some(0));
    let task = &sandbox.json(&["task", "show", "1"])[0];
    assert_eq!((&task["state"], &task["attempts"]), (&"completed".into(), &1.into()));
}

/// `nohup` starts a program with the signal ignored, and so does this shell.
///
/// Shows: T21
fn a_worker_that_is_to_outlive_its_terminal_does(sandbox: Sandbox) {
    sandbox.pipe("reached");
    sandbox.pipe("hold");
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    let onward = sandbox.command(&[&["work", "--until-idle"], &HELD[..]].concat());
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(onward.get_program()).args(onward.get_args());
    shell.current_dir(sandbox.path("")).stdin(Stdio::null());
    shell.envs(onward.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut worker = shell.spawn().unwrap();
    sandbox.await_writer("reached");
    kill_process(Pid::from_child(&worker), Signal::HUP).unwrap();
    sandbox.write("hold", "");
    assert_eq!(worker.wait().unwrap().code(), Some(0));
}

/// Shows: T13
fn a_running_command_is_stopped_when_its_task_is_cancelled(sandbox: Sandbox) {
    sandbox.pipe("reached");
    sandbox.pipe("hold");
    sandbox.onward(&["submit", "--kind", "k", "x"]);
    let worker = sandbox.start(&["work", "--kind", "k", "--", "sh", "-c", "echo > reached; exec cat hold"], "");
    sandbox.await_writer("reached");
    assert_eq!(sandbox.onward(&["task", "cancel", "1"]).stdout, "task 1 runs and has been asked to stop\n");
    assert_eq!(sandbox.onward(&["task", "wait", "1"]).stdout, "task 1 cancelled\n");
    worker.signal(Signal::INT);
    worker.wait();
}

/// Shows: T4
fn a_command_gives_way_to_an_urgent_task_and_runs_again(sandbox: Sandbox) {
    sandbox.pipe("reached");
    sandbox.pipe("hold");
    sandbox.onward(&["submit", "--kind", "low", "x"]);
    let script = r#"test $ONWARD_KIND = low || exit 0
        test ! -e begun || exit 0
        touch begun; echo > reached; exec cat hold"#;
    let worker = sandbox.start(
        &[
            "work",
            "--kind",
            "low",
            "--kind",
            "urgent",
            "--jobs",
            "1",
            "--preempt-from",
            "200",
            "--",
            "sh",
            "-c",
            script,
        ],
        "",
    );
    sandbox.await_writer("reached");
    sandbox.onward(&["submit", "--kind", "urgent", "--priority", "255", "x"]);
    sandbox.onward(&["task", "wait", "1", "2"]);
    worker.signal(Signal::INT);
    worker.wait();
    let task = &sandbox.json(&["task", "show", "1"])[0];
    assert_eq!(
        (&task["state"], &task["attempts"], task["errors"].as_array().map(Vec::len)),
        (&"completed".into(), &1.into(), Some(0))
    );
}

/// Returns the response at an address, once a process serves there.
fn served(address: SocketAddr) -> String {
    let mut answer = String::new();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Starts a worker that serves metrics. It has completed the first of two tasks when this returns,
/// and works on the second until a line is written to the pipe `hold`.
fn serving_metrics(sandbox: &Sandbox) -> (Running, SocketAddr) {
    sandbox.pipe("second");
    sandbox.pipe("hold");
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], "1\n2\n");
    // This port is free, and stays so until the worker takes it.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let script = "read number; test $number = 1 || { echo > second; cat hold; }";
    let metrics = address.to_string();
    let work = ["work", "--kind", "k", "--jobs", "1", "--metrics", &metrics, "--until-idle", "--", "sh", "-c", script];
    let worker = sandbox.start(&work, "");
    sandbox.await_writer("second");
    (worker, address)
}

fn metrics_are_served_for_prometheus_while_it_works(sandbox: Sandbox) {
    let (worker, address) = serving_metrics(&sandbox);
    let answer = served(address);
    for line in [r#"onward_tasks_ended_total{kind="k",state="completed"} 1"#, "onward_running 1"] {
        assert!(answer.lines().any(|served| served == line), "{line}: {answer}");
    }
    sandbox.write("hold", "");
    assert_eq!(worker.wait().code, Some(0));
}

fn a_silent_client_does_not_keep_metrics_from_another(sandbox: Sandbox) {
    let (worker, address) = serving_metrics(&sandbox);
    let _silent = TcpStream::connect(address).unwrap();
    assert!(served(address).contains("onward_running 1"));
    sandbox.write("hold", "");
    assert_eq!(worker.wait().code, Some(0));
}

fn an_address_for_metrics_that_is_taken_is_named_with_the_remedy(sandbox: Sandbox) {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = sandbox.onward(&["work", "--kind", "k", "--metrics", &address, "--until-idle", "--", "true"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let expected = [format!("--metrics {address}: "), "give an address that is free".to_owned()];
    assert!(expected.iter().all(|part| ran.stderr.contains(part)), "{}", ran.stderr);
}

/// Shows: B9
fn a_lease_that_is_too_short_is_named_with_what_it_may_be(sandbox: Sandbox) {
    let work = ["work", "--kind", "k", "--lease", "1ms", "--", "true"];
    sandbox.onward(&["submit", "--kind", "k"]);
    let ran = sandbox.onward(&work);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("the lease of the engine is 1ms; it must be from 100ms"), "{}", ran.stderr);
}

const FAILING: &str = "read code; test $code != 0 || exit 0; echo no $code >&2; exit $code";

fn submit_three(sandbox: &Sandbox) {
    sandbox.onward_with(&["submit", "--kind", "k", "--lines", "--retries", "1", "--backoff", "0"], "0\n7\n100\n");
}

/// Shows: B9, B11
fn a_worker_reports_what_it_serves_its_failures_and_a_summary(sandbox: Sandbox) {
    submit_three(&sandbox);
    let output =
        sandbox.onward(&["work", "--kind", "k", "--jobs", "1", "--until-idle", "--", "sh", "-c", FAILING]).stderr;
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines[0].starts_with("worker ") && lines[0].ends_with(": kind k of any queue, 1 job"), "{output}");
    for line in [
        "task 2 (k) failed in attempt 1, and is retried in 0µs: exit status 7: no 7",
        "task 2 (k) is dead after 2 attempts: exit status 7: no 7",
        "task 3 (k) failed permanently after 1 attempt: exit status 100: no 100",
    ] {
        assert!(lines.contains(&line), "{line}: {output}");
    }
    let summary = "1 completed, 1 failed, 1 dead, 0 cancelled; 1 attempt to be retried, 0 lost; ";
    assert!(lines[lines.len() - 1].starts_with(summary), "{output}");
}

/// Shows: B9, B11
fn an_interrupted_worker_reports_a_summary(sandbox: Sandbox) {
    sandbox.pipe("reached");
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], "1\n2\n");
    let script = "read line; test $line = 1 || { echo > reached; exec sleep 600; }";
    let worker = sandbox.start(&["work", "--kind", "k", "--jobs", "1", "--", "sh", "-c", script], "");
    sandbox.await_writer("reached");
    worker.signal(Signal::INT);
    let ran = worker.wait();
    let last = ran.stderr.lines().last().unwrap();
    assert!(ran.code == Some(130) && last.starts_with("1 completed, 0 failed, 0 dead"), "{}", ran.stderr);
}

/// Shows: B9, B11
fn a_quiet_worker_prints_nothing(sandbox: Sandbox) {
    submit_three(&sandbox);
    let ran = sandbox.onward(&["work", "--quiet", "--kind", "k", "--until-idle", "--", "sh", "-c", FAILING]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""));
}

/// Shows: B11
fn output_of_a_worker_is_json_on_request(sandbox: Sandbox) {
    submit_three(&sandbox);
    let script = format!("echo noted >&2; {FAILING}");
    let ran = sandbox.onward(&["work", "--json", "--kind", "k", "--until-idle", "--", "sh", "-c", &script]);
    let output: Vec<serde_json::Value> = ran.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&str> = output.iter().map(|value| value["event"].as_str().unwrap()).collect();
    assert_eq!((events[0], events[events.len() - 1]), ("started", "ended"));
    assert_eq!(events.iter().filter(|event| **event == "failure").count(), 3, "{events:?}");
    let stderr = output.iter().find(|value| value["event"] == "stderr").unwrap();
    assert_eq!((&stderr["task"], &stderr["text"]), (&1.into(), &"noted\n".into()));
    assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.stdout);
}

/// Shows: B9
fn what_a_command_that_succeeds_writes_to_standard_error_is_shown_and_marked_where_it_was_cut(sandbox: Sandbox) {
    sandbox.onward_with(&["submit", "--kind", "k", "--lines"], "little\nmuch\n");
    let script = "read what; test $what = little || printf '%5000s\n' >&2; echo a warning >&2";
    let output = work(&sandbox, script).stderr;
    assert!(output.contains("\ntask 1: a warning\n") && output.contains("\ntask 2: a warning\n"), "{output}");
    assert!(output.contains("\ntask 2: […] the last 4096 bytes of standard error:\n"), "{output}");
    assert!(!output.contains("task 1: […]"), "{output}");
}

/// Shows: B9
fn the_output_of_each_attempt_may_go_to_files(sandbox: Sandbox) {
    sandbox.onward(&["submit", "--kind", "k", "--retries", "1", "--backoff", "0", "x"]);
    let script = "echo out $ONWARD_ATTEMPT; echo err $ONWARD_ATTEMPT >&2; test $ONWARD_ATTEMPT = 2";
    sandbox.onward(&["work", "--kind", "k", "--until-idle", "--output-dir", "o", "--", "sh", "-c", script]);
    let files = ["1.1.out", "1.1.err", "1.2.out", "1.2.err"].map(|name| sandbox.read(&format!("o/{name}")));
    assert_eq!(files, ["out 1\n", "err 1\n", "out 2\n", "err 2\n"]);
}
