//! `onward run`: the workflow of a file.

use onward_store::rusqlite::Connection;
use rustix::process::Signal;
use serde_json::json;

use crate::harness::{CommandResult, Sandbox};
use crate::stores::on_every_store;

on_every_store! {
    a_list_of_commands_runs_in_order_and_prints_the_last_result,
    the_same_command_again_prints_the_result_without_running_anything,
    after_kill_9_the_same_command_resumes_and_repeats_no_finished_step,
    ctrl_c_stops_the_scripts_and_prints_how_to_continue,
    a_closed_terminal_stops_the_scripts_and_prints_how_to_continue,
    output_is_shown_while_the_script_runs_and_kept_with_its_task,
    a_failed_step_is_shown_with_its_error_and_retried_on_request,
    another_input_is_another_run,
    the_option_again_starts_another_run,
    a_value_reaches_a_script_by_its_environment_only,
    json_has_one_object_for_each_event,
    a_number_of_the_input_that_would_lose_digits_is_refused_by_name,
    an_input_that_does_not_fit_is_wrong_usage_and_starts_nothing,
    a_check_prints_the_plan_and_leaves_no_store not on postgres,
    a_check_refuses_an_input_that_does_not_fit,
    a_run_names_the_kinds_that_it_leaves_to_other_processes,
    a_held_run_goes_on_with_the_option_retry,
    a_pause_that_holds_the_run_back_is_reported,
    a_run_that_completed_after_a_retry_ends_without_an_error_in_json,
}

/// Shows: B6, W1
fn a_pause_that_holds_the_run_back_is_reported(sandbox: Sandbox) {
    sandbox.write("flow.yaml", "- echo done\n");
    sandbox.onward(&["queue", "pause", "--all"]);
    let mut running = sandbox.start(&["run", "flow.yaml"], "");
    running.await_said("run 1 waits: everything is paused until it is resumed");
    sandbox.onward(&["queue", "resume", "--all"]);
    let ran = running.wait();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"));
}

/// Shows: B11, W1
fn a_run_that_completed_after_a_retry_ends_without_an_error_in_json(sandbox: Sandbox) {
    sandbox.write("flow.yaml", "- test -e there\n- echo done\n");
    run(&sandbox, "flow.yaml");
    sandbox.write("there", "");
    let ended = sandbox.json(&["run", "flow.yaml", "--retry"]).pop().unwrap();
    assert_eq!((&ended["event"], &ended["state"], &ended["error"]), (&"ended".into(), &"completed".into(), &().into()));
}

/// Three steps. The second waits until it is killed or stopped, unless the file `second` exists.
const HELD: &str = "- echo one >> finished
- if ! test -e second; then echo > reached; exec cat hold; fi; echo two >> finished
- echo three >> finished; echo done
";

fn run(sandbox: &Sandbox, file: &str) -> CommandResult {
    sandbox.onward(&["run", file])
}

fn held(sandbox: &Sandbox) -> crate::harness::Running {
    sandbox.pipe("reached");
    sandbox.pipe("hold");
    sandbox.write("held.yaml", HELD);
    let running = sandbox.start(&["run", "held.yaml"], "");
    sandbox.await_writer("reached");
    running
}

fn go_on(sandbox: &Sandbox) {
    sandbox.write("second", "");
    let ran = run(sandbox, "held.yaml");
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "done\n"), "{}", ran.stderr);
    assert_eq!(sandbox.read("finished"), "one\ntwo\nthree\n");
}

/// Shows: B9, W1
fn a_list_of_commands_runs_in_order_and_prints_the_last_result(sandbox: Sandbox) {
    sandbox.write("build.yaml", "- echo one >> order\n- echo two >> order\n- cat order\n");
    let ran = run(&sandbox, "build.yaml");
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "one\ntwo\n"), "{}", ran.stderr);
}

#[test]
fn the_output_of_a_script_that_is_json_is_stored_once() {
    let sandbox = Sandbox::new();
    sandbox.write("list.yaml", "- seq -s ', ' 20000 | sed 's/^/[/; s/$/]/'; echo err >&2\n");
    let ran = run(&sandbox, "list.yaml");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let connection = Connection::open(sandbox.path("onward.db")).unwrap();
    let sum = "SELECT coalesce(sum(length(bytes)), 0) FROM output_piece";
    assert_eq!(connection.query_row(sum, [], |row| row.get::<_, usize>(0)), Ok("err\n".len()));
    let output = sandbox.onward(&["task", "output", "2"]).stdout;
    assert!(output.starts_with("[1, 2, ") && output.ends_with(", 20000]\n"), "{} bytes", output.len());
}

/// Shows: B9
fn the_same_command_again_prints_the_result_without_running_anything(sandbox: Sandbox) {
    sandbox.write("build.yaml", "- echo ran >> ran\n- echo done\n");
    assert_eq!(run(&sandbox, "build.yaml").stdout, "done\n");
    let again = run(&sandbox, "build.yaml");
    assert_eq!((again.code, &*again.stdout), (Some(0), "done\n"), "{}", again.stderr);
    assert_eq!(sandbox.read("ran"), "ran\n");
}

/// Shows: B9
fn after_kill_9_the_same_command_resumes_and_repeats_no_finished_step(sandbox: Sandbox) {
    let running = held(&sandbox);
    running.signal(Signal::KILL);
    assert_eq!(running.wait().code, None);
    go_on(&sandbox);
}

/// Shows: B9
fn ctrl_c_stops_the_scripts_and_prints_how_to_continue(sandbox: Sandbox) {
    stops_the_scripts_and_prints_how_to_continue(&sandbox, Signal::INT);
}

/// Shows: B9
fn a_closed_terminal_stops_the_scripts_and_prints_how_to_continue(sandbox: Sandbox) {
    stops_the_scripts_and_prints_how_to_continue(&sandbox, Signal::HUP);
}

fn stops_the_scripts_and_prints_how_to_continue(sandbox: &Sandbox, signal: Signal) {
    let running = held(sandbox);
    running.signal(signal);
    let ran = running.wait();
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(ran.stderr.contains("the same command resumes where it stopped"), "{}", ran.stderr);
    go_on(sandbox);
}

/// Shows: B9
fn output_is_shown_while_the_script_runs_and_kept_with_its_task(sandbox: Sandbox) {
    sandbox.pipe("hold");
    sandbox.write("slow.yaml", "- echo halfway; cat hold; echo done\n");
    let mut running = sandbox.start(&["run", "slow.yaml"], "");
    running.await_said("step_1 | halfway");
    sandbox.write("hold", "");
    assert_eq!(running.wait().code, Some(0));
    assert_eq!(sandbox.onward(&["task", "output", "2"]).stdout, "halfway\ndone\n");
}

/// Shows: W7
fn a_failed_step_is_shown_with_its_error_and_retried_on_request(sandbox: Sandbox) {
    let steps = "- echo one >> finished\n- test -e mended || { echo no such disk >&2; exit 3; }\n- echo done\n";
    sandbox.write("copy.yaml", steps);
    let failed = run(&sandbox, "copy.yaml");
    assert_eq!(failed.code, Some(1));
    assert!(failed.stderr.contains("`step_2`") && failed.stderr.contains("no such disk"), "{}", failed.stderr);
    sandbox.write("mended", "");
    let retried = sandbox.onward(&["run", "copy.yaml", "--retry"]);
    assert_eq!((retried.code, &*retried.stdout), (Some(0), "done\n"), "{}", retried.stderr);
    assert_eq!(sandbox.read("finished"), "one\n");
}

/// Shows: W6
fn another_input_is_another_run(sandbox: Sandbox) {
    sandbox.write("day.yaml", "steps: {day: {run: 'echo \"$DAY\"', env: {DAY: '${{ input.day }}'}}}");
    let of = |day: &str| sandbox.onward(&["run", "day.yaml", "--input", day]).stdout;
    assert_eq!((of("day=monday"), of("day=tuesday")), ("monday\n".to_owned(), "tuesday\n".to_owned()));
}

/// Shows: B9
fn the_option_again_starts_another_run(sandbox: Sandbox) {
    sandbox.write("build.yaml", "- echo ran >> ran\n");
    run(&sandbox, "build.yaml");
    assert_eq!(sandbox.onward(&["run", "build.yaml", "--again"]).code, Some(0));
    assert_eq!(sandbox.read("ran"), "ran\nran\n");
}

/// Shows: W1
fn a_value_reaches_a_script_by_its_environment_only(sandbox: Sandbox) {
    sandbox.write("name.yaml", "steps: {a: {run: 'echo \"$NAME\"', env: {NAME: '${{ input.name }}'}}}");
    let input = json!({"name": "$(touch harmed); `touch harmed`"}).to_string();
    let ran = sandbox.onward(&["run", "name.yaml", "--input", &input]);
    assert_eq!(ran.stdout, "$(touch harmed); `touch harmed`\n");
    assert!(!sandbox.path("harmed").exists());
}

/// Shows: B9, B11
fn json_has_one_object_for_each_event(sandbox: Sandbox) {
    sandbox.write("build.yaml", "- echo one\n");
    let events = sandbox.json(&["run", "build.yaml"]);
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!((names.first(), names.last()), (Some(&"run"), Some(&"ended")), "{events:?}");
    let output = events.iter().find(|event| event["event"] == "output").unwrap();
    assert_eq!((&output["step"], &output["text"]), (&json!("step_1"), &json!("one")));
    assert_eq!(events.last().unwrap()["result"], "one");
}

/// Shows: W1
fn an_input_that_does_not_fit_is_wrong_usage_and_starts_nothing(sandbox: Sandbox) {
    let template =
        "input_schema: {type: object, required: [day], properties: {day: {type: string}}}\nsteps: {a: {run: echo}}";
    sandbox.write("day.yaml", template);
    let ran = run(&sandbox, "day.yaml");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("day"), "{}", ran.stderr);
    assert_eq!(sandbox.onward(&["task", "list"]).stdout.lines().count(), 0);
}

/// Shows: W1
fn a_number_of_the_input_that_would_lose_digits_is_refused_by_name(sandbox: Sandbox) {
    sandbox.write("echo.yaml", "steps: {a: {value: \"${{ input.n }}\"}}");
    sandbox.write("input.json", "{\"n\": 0.12345678901234567890}");
    for (input, number) in
        [("n=123456789012345678901", "123456789012345678901"), ("@input.json", "0.12345678901234567890")]
    {
        let ran = sandbox.onward(&["run", "echo.yaml", "--input", input]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("--input") && ran.stderr.contains(number), "{}", ran.stderr);
    }
    let ran = sandbox.onward(&["run", "echo.yaml", "--input", "n=9007199254740993"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("9007199254740993"), "{}", ran.stdout);
}

/// Shows: W13
fn a_check_prints_the_plan_and_leaves_no_store(sandbox: Sandbox) {
    sandbox.write("build.yaml", "- echo one\n- echo two\n");
    let checked = sandbox.onward(&["run", "build.yaml", "--check"]);
    assert_eq!(checked.code, Some(0));
    assert!(checked.stdout.contains("step_1 → step_2"), "{}", checked.stdout);
    assert!(!sandbox.path("onward.db").exists());
}

/// Shows: W13
fn a_check_refuses_an_input_that_does_not_fit(sandbox: Sandbox) {
    let template = "input_schema: {type: object, required: [day]}\nsteps: {a: {run: echo}}";
    sandbox.write("day.yaml", template);
    let ran = sandbox.onward(&["run", "day.yaml", "--check", "--input", "{}"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("day"), "{}", ran.stderr);
}

/// Shows: B9
fn a_run_names_the_kinds_that_it_leaves_to_other_processes(sandbox: Sandbox) {
    sandbox.write("mail.yaml", "steps: {a: {task: send-mail}}");
    let mut running = sandbox.start(&["run", "mail.yaml"], "");
    running.await_said("send-mail");
    running.signal(Signal::INT);
    assert_eq!(running.wait().code, Some(130));
}

/// Shows: W7
fn a_held_run_goes_on_with_the_option_retry(sandbox: Sandbox) {
    sandbox.write("copy.yaml", "on_failure: hold\nsteps: {a: {run: 'test -e mended && echo done'}}");
    let mut running = sandbox.start(&["run", "copy.yaml"], "");
    running.await_said("is held");
    running.signal(Signal::INT);
    assert_eq!(running.wait().code, Some(130));
    sandbox.write("mended", "");
    let retried = sandbox.onward(&["run", "copy.yaml", "--retry"]);
    assert_eq!((retried.code, &*retried.stdout), (Some(0), "done\n"), "{}", retried.stderr);
}
