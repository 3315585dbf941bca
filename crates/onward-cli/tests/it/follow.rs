//! Output of running tasks: `onward task follow`, `task output` and `task show`.

use std::io::{BufRead as _, BufReader, Read as _};

use onward_store::rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::{Sandbox, numbers};
use crate::stores::on_every_store;

on_every_store! {
    output_is_shown_while_the_command_runs,
    both_streams_are_shown_and_a_follower_ends_with_the_task,
    a_follower_of_a_task_that_fails_ends_with_1,
    a_follower_begins_with_the_last_lines_on_request,
    a_follower_shows_the_output_of_each_attempt,
    followed_output_is_json_on_request,
    output_of_an_ended_task_is_shown,
    of_long_output_the_beginning_and_the_end_are_shown,
    a_task_is_shown_with_the_end_of_its_standard_error,
    output_of_a_task_that_is_not_there_is_refused,
    the_standard_output_of_a_command_that_completes_is_whole,
}

#[test]
fn the_standard_output_of_a_command_is_stored_once() {
    let sandbox = Sandbox::new();
    submit(&sandbox, &[]);
    work(&sandbox, "seq 20000; echo err >&2");
    let connection = Connection::open(sandbox.path("onward.db")).unwrap();
    let sum = |table: &str, column: &str| -> usize {
        let sum = format!("SELECT coalesce(sum(length({column})), 0) FROM {table}");
        connection.query_row(&sum, [], |row| row.get(0)).unwrap()
    };
    let output = numbers(20_000);
    assert_eq!((sum("history", "result"), sum("output_piece", "bytes")), (output.len(), "err\n".len()));
    assert_eq!(sandbox.onward(&["task", "output", "1"]).stdout, output);
}

fn submit(sandbox: &Sandbox, arguments: &[&str]) {
    let ran = sandbox.onward(&[&["submit", "--kind", "k"], arguments].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn work(sandbox: &Sandbox, script: &str) {
    let ran = sandbox.onward(&["work", "--kind", "k", "--until-idle", "--", "sh", "-c", script]);
    assert!(ran.code.is_some_and(|code| code <= 1), "{ran:?}");
}

fn output_is_shown_while_the_command_runs(sandbox: Sandbox) {
    sandbox.pipe("seen");
    submit(&sandbox, &[]);
    let script = "echo begun; cat seen > /dev/null; echo done";
    let worker = sandbox.start(&["work", "--kind", "k", "--until-idle", "--", "sh", "-c", script], "");
    let mut follower = sandbox.spawn(&["task", "follow", "1"]);
    let mut shown = BufReader::new(follower.stdout.take().unwrap());
    let mut line = String::new();
    shown.read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    // The command ends only now, after its output was seen.
    sandbox.write("seen", "");
    let mut rest = String::new();
    shown.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), follower.wait().unwrap().code()), ("done\n", Some(0)));
    assert_eq!(worker.wait().code, Some(0));
}

fn both_streams_are_shown_and_a_follower_ends_with_the_task(sandbox: Sandbox) {
    submit(&sandbox, &[]);
    let follower = sandbox.start(&["task", "follow", "1"], "");
    work(&sandbox, "echo out; echo err >&2");
    let ran = follower.wait();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "out\n"));
    assert!(ran.stderr.ends_with("err\n"), "{ran:?}");
}

fn a_follower_of_a_task_that_fails_ends_with_1(sandbox: Sandbox) {
    submit(&sandbox, &[]);
    work(&sandbox, "echo why >&2; exit 100");
    let ran = sandbox.onward(&["task", "follow", "1"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), "why\ntask 1 failed; `onward task show 1` shows why\n"));
}

fn a_follower_begins_with_the_last_lines_on_request(sandbox: Sandbox) {
    submit(&sandbox, &[]);
    work(&sandbox, "seq 9; seq 5 >&2");
    let ran = sandbox.onward(&["task", "follow", "1", "--tail", "2"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("8\n9\n", "4\n5\n"));
}

fn a_follower_shows_the_output_of_each_attempt(sandbox: Sandbox) {
    sandbox.pipe("seen");
    submit(&sandbox, &["--retries", "1", "--backoff", "0"]);
    let script = "echo attempt $ONWARD_ATTEMPT; test $ONWARD_ATTEMPT = 2 || { cat seen > /dev/null; exit 1; }";
    let worker = sandbox.start(&["work", "--kind", "k", "--until-idle", "--", "sh", "-c", script], "");
    let mut follower = sandbox.spawn(&["task", "follow", "1"]);
    let mut shown = BufReader::new(follower.stdout.take().unwrap());
    let mut text = String::new();
    shown.read_line(&mut text).unwrap();
    sandbox.write("seen", "");
    shown.read_to_string(&mut text).unwrap();
    let mut remarks = String::new();
    follower.stderr.take().unwrap().read_to_string(&mut remarks).unwrap();
    assert_eq!((text.as_str(), follower.wait().unwrap().code()), ("attempt 1\nattempt 2\n", Some(0)));
    assert!(remarks.ends_with("the output of attempt 2 follows\n"), "{remarks}");
    worker.wait();
}

fn followed_output_is_json_on_request(sandbox: Sandbox) {
    submit(&sandbox, &[]);
    work(&sandbox, "echo out; echo err >&2");
    let part = |stream, text| json!({ "task": 1, "attempt": 1, "stream": stream, "at": 0, "text": text });
    let end = json!({ "task": 1, "state": "completed" });
    assert_eq!(sandbox.json(&["task", "follow", "1"]), [part("stdout", "out\n"), part("stderr", "err\n"), end]);
}

fn output_of_an_ended_task_is_shown(sandbox: Sandbox) {
    submit(&sandbox, &[]);
    work(&sandbox, "echo out; echo err >&2");
    assert_eq!(sandbox.onward(&["task", "output", "1"]).stdout, "out\n");
    assert_eq!(sandbox.onward(&["task", "output", "1", "--stderr"]).stdout, "err\n");
}

fn of_long_output_the_beginning_and_the_end_are_shown(sandbox: Sandbox) {
    submit(&sandbox, &[]);
    work(&sandbox, "exec >&2; echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last");
    let output = sandbox.json(&["task", "output", "1", "--stderr"]).remove(0);
    let text = output["text"].as_str().unwrap();
    assert!(text.starts_with("first\nxx") && text.ends_with("x\nlast\n"), "{} bytes", text.len());
    assert_eq!((&output["bytes"], &output["cut"]), (&json!(3_000_012), &json!(3_000_012 - text.len())));
    let shown = sandbox.onward(&["task", "output", "1", "--stderr"]);
    assert!(shown.stderr.contains("bytes of stderr are not kept"), "{}", shown.stderr);
}

fn a_task_is_shown_with_the_end_of_its_standard_error(sandbox: Sandbox) {
    submit(&sandbox, &[]);
    work(&sandbox, "echo out; seq 9 >&2");
    let task = sandbox.json(&["task", "show", "1"]).remove(0);
    let stderr = json!({ "bytes": 18, "cut": 0, "end": "5\n6\n7\n8\n9\n" });
    assert_eq!(task["output"], json!({ "attempt": 1, "stdout": { "bytes": 4, "cut": 0 }, "stderr": stderr }));
    let shown = sandbox.onward(&["task", "show", "1"]).stdout;
    let expected =
        "output       4 bytes of stdout and 18 of stderr in attempt 1 (`onward task output 1`)\nstderr       5\n";
    assert!(shown.contains(expected), "{shown}");
}

fn output_of_a_task_that_is_not_there_is_refused(sandbox: Sandbox) {
    submit(&sandbox, &[]);
    for command in ["follow", "output"] {
        let ran = sandbox.onward(&["task", command, "9"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.stderr.contains("task 9"), "{ran:?}");
    }
    let none: Value = sandbox.json(&["task", "output", "1"]).remove(0);
    assert_eq!((&none["bytes"], &none["attempt"]), (&json!(0), &Value::Null));
}

fn the_standard_output_of_a_command_that_completes_is_whole(sandbox: Sandbox) {
    submit(&sandbox, &[]);
    // More than a worker keeps between two saves of output that is not the result.
    work(&sandbox, "seq 150000; echo err >&2");
    let output = numbers(150_000);
    let task = sandbox.json(&["task", "show", "1"]).remove(0);
    assert_eq!(task["output"]["stdout"], json!({ "bytes": output.len(), "cut": 0 }));
    let ran = sandbox.onward(&["task", "follow", "1"]);
    assert!(ran.stdout == output, "{} bytes instead of {}: {}", ran.stdout.len(), output.len(), ran.stderr);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "err\n"));
    assert_eq!(sandbox.onward(&["task", "follow", "1", "--tail", "2"]).stdout, "149999\n150000\n");
}
