//! `onward run` after the first run: retried, forked, and with selected steps.

use serde_json::json;

use crate::harness::{CommandResult, Sandbox};
use crate::stores::on_every_store;

on_every_store! {
    a_retry_after_an_edit_is_refused_with_what_is_possible,
    a_retry_without_a_run_is_refused,
    a_retry_goes_on_with_the_content_with_which_the_run_started,
    after_an_undo_the_remedy_is_another_run,
    a_last_step_that_prints_nothing_prints_no_line,
    an_edited_step_runs_again_on_the_results_of_the_last_run,
    a_step_alone_runs_on_the_results_of_the_last_run,
    a_step_alone_needs_the_steps_before_it,
    a_fork_has_the_input_of_its_run_unless_another_is_given,
    two_runs_are_compared_step_by_step,
    the_slow_branch_is_the_critical_path_and_the_other_has_slack,
    a_check_prints_what_each_step_of_a_graph_needs,
}

/// A chain whose second step fails until the file `mended` exists.
const CHAIN: &str = "steps:
  one: {run: echo one >> log; echo 1}
  two: {run: test -e mended; echo $((ONE + 1)), env: {ONE: '${{ steps.one.result }}'}, depends_on: [one]}
";

fn run(sandbox: &Sandbox, arguments: &[&str]) -> CommandResult {
    sandbox.onward(&[&["run"][..], arguments].concat())
}

fn ok(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let ran = sandbox.onward(arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
    ran.stdout
}

fn failed_chain(sandbox: &Sandbox) {
    sandbox.write("flow.yaml", CHAIN);
    assert_eq!(run(sandbox, &["flow.yaml"]).code, Some(1));
}

/// Shows: B9
fn a_retry_after_an_edit_is_refused_with_what_is_possible(sandbox: Sandbox) {
    failed_chain(&sandbox);
    sandbox.write("flow.yaml", &CHAIN.replace("test -e mended", "true"));
    let retried = run(&sandbox, &["flow.yaml", "--retry"]);
    assert_eq!(retried.code, Some(2));
    for part in ["run 1 of flow", "--from STEP", "--again", "onward workflow retry 1"] {
        assert!(retried.stderr.contains(part), "{}", retried.stderr);
    }
    assert_eq!(sandbox.json(&["workflow", "runs"]).len(), 1);
}

/// Shows: B9
fn a_retry_without_a_run_is_refused(sandbox: Sandbox) {
    sandbox.write("flow.yaml", CHAIN);
    let retried = run(&sandbox, &["flow.yaml", "--retry"]);
    assert!(retried.code == Some(2) && retried.stderr.contains("no run of flow"), "{}", retried.stderr);
}

/// Shows: B9
fn a_retry_goes_on_with_the_content_with_which_the_run_started(sandbox: Sandbox) {
    let text = "key: daily\nsteps: {one: {run: test -e mended; echo old}}";
    sandbox.write("flow.yaml", text);
    assert_eq!(run(&sandbox, &["flow.yaml"]).code, Some(1));
    sandbox.write("flow.yaml", &text.replace("old", "new"));
    sandbox.write("mended", "");
    let retried = run(&sandbox, &["flow.yaml", "--retry"]);
    assert_eq!((retried.code, &*retried.stdout), (Some(0), "old\n"), "{}", retried.stderr);
    assert!(retried.stderr.contains("keeps the content of the file"), "{}", retried.stderr);
}

/// Shows: W5
fn after_an_undo_the_remedy_is_another_run(sandbox: Sandbox) {
    let text =
        "on_failure: undo\nsteps: {one: {run: echo, undo: {run: echo}}, two: {run: exit 100, depends_on: [one]}}";
    sandbox.write("flow.yaml", text);
    let ran = run(&sandbox, &["flow.yaml"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("--again") && !ran.stderr.contains("--retry"), "{}", ran.stderr);
}

/// Shows: B9
fn a_last_step_that_prints_nothing_prints_no_line(sandbox: Sandbox) {
    sandbox.write("quiet.yaml", "- echo one\n- touch quiet\n");
    let ran = run(&sandbox, &["quiet.yaml"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), ""), "{}", ran.stderr);
}

/// Shows: W7, B9
fn an_edited_step_runs_again_on_the_results_of_the_last_run(sandbox: Sandbox) {
    failed_chain(&sandbox);
    sandbox.write("flow.yaml", &CHAIN.replace("test -e mended; echo $((ONE + 1))", "echo $((ONE + 10))"));
    let ran = run(&sandbox, &["flow.yaml", "--from", "two"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "11\n"), "{}", ran.stderr);
    assert_eq!(sandbox.read("log"), "one\n");
    let unknown = run(&sandbox, &["flow.yaml", "--from", "tow"]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("did you mean `two`?"), "{}", unknown.stderr);
}

/// Shows: W7, B9
fn a_step_alone_runs_on_the_results_of_the_last_run(sandbox: Sandbox) {
    let text = "result: all ${{ steps.last.result }}
steps:
  one: {run: echo one >> log; echo 1}
  two: {run: echo two >> log; echo $((ONE + 1)), env: {ONE: '${{ steps.one.result }}'}, depends_on: [one]}
  last: {run: echo last >> log; echo 3, depends_on: [two]}";
    sandbox.write("flow.yaml", text);
    assert_eq!(run(&sandbox, &["flow.yaml"]).stdout, "all 3\n");
    let ran = run(&sandbox, &["flow.yaml", "--only", "two"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "2\n"), "{}", ran.stderr);
    assert_eq!(sandbox.read("log"), "one\ntwo\nlast\ntwo\n");
}

/// Shows: W7, B9
fn a_step_alone_needs_the_steps_before_it(sandbox: Sandbox) {
    sandbox.write("flow.yaml", CHAIN);
    let refused = run(&sandbox, &["flow.yaml", "--only", "two"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("`two` needs step `one`"), "{}", refused.stderr);
    let ran = run(&sandbox, &["flow.yaml", "--only", "one"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "1\n"), "{}", ran.stderr);
    assert_eq!(sandbox.read("log"), "one\n");
}

/// Shows: W7
fn a_fork_has_the_input_of_its_run_unless_another_is_given(sandbox: Sandbox) {
    sandbox.write("flow.yaml", "steps: {day: {run: 'echo \"$DAY\"', env: {DAY: '${{ input.day }}'}}}");
    assert_eq!(run(&sandbox, &["flow.yaml", "--input", "day=monday"]).stdout, "monday\n");
    assert_eq!(ok(&sandbox, &["workflow", "fork", "1", "--from", "day"]), "run 3 started as a fork of run 1\n");
    ok(&sandbox, &["workflow", "fork", "1", "--from", "day", "--input", "day=friday"]);
    let refused = sandbox.onward(&["workflow", "fork", "3", "--from", "day"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("run 3 is waiting"), "{}", refused.stderr);
    ok(&sandbox, &["work", "--workflows", "--scripts", "--until-idle"]);
    let result = |run: &str| sandbox.json(&["task", "show", run])[0]["result"].clone();
    assert_eq!((result("3"), result("4")), (json!("\"monday\""), json!("\"friday\"")));
}

/// Shows: W7
fn two_runs_are_compared_step_by_step(sandbox: Sandbox) {
    sandbox.write("flow.yaml", "steps: {a: {value: 1}, b: {value: '${{ input.n }}'}}");
    run(&sandbox, &["flow.yaml", "--input", "n=1"]);
    run(&sandbox, &["flow.yaml", "--input", "n=2"]);
    let compared = sandbox.json(&["workflow", "compare", "1", "2"]).remove(0);
    let differs: Vec<bool> =
        compared["steps"].as_array().unwrap().iter().map(|step| step["differs"].as_bool().unwrap()).collect();
    assert_eq!((&compared["one"]["input"]["n"], differs), (&json!(1), vec![false, true]), "{compared}");
    let shown = ok(&sandbox, &["workflow", "compare", "1", "2"]);
    assert!(shown.contains("input: {\"n\":1} and {\"n\":2}") && shown.contains("differs"), "{shown}");
}

/// Shows: W7
fn the_slow_branch_is_the_critical_path_and_the_other_has_slack(sandbox: Sandbox) {
    let text = "steps:
  a: {value: 1}
  quick: {value: 2, depends_on: [a]}
  slow: {wait: 300ms, depends_on: [a]}
  last: {value: 3, depends_on: [quick, slow]}";
    sandbox.write("flow.yaml", text);
    run(&sandbox, &["flow.yaml"]);
    let path = sandbox.json(&["workflow", "critical-path", "1"]).remove(0);
    let names: Vec<_> = path["steps"].as_array().unwrap().iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "slow", "last"], "{path}");
    assert!(path["steps"][1]["took"].as_f64().unwrap() >= 0.3 && path["steps"][1]["kind"] == "wait", "{path}");
    let shown = ok(&sandbox, &["workflow", "critical-path", "1"]);
    assert!(shown.starts_with("run 1 of flow is completed after ") && shown.contains("SHARE"), "{shown}");
    let refused = sandbox.onward(&["workflow", "critical-path", "9"]);
    assert!(refused.code == Some(1) && refused.stderr.contains("there is no run 9"), "{}", refused.stderr);
}

/// Shows: W13
fn a_check_prints_what_each_step_of_a_graph_needs(sandbox: Sandbox) {
    let text = "steps: {a: {run: echo}, b: {run: echo}, c: {run: echo, depends_on: [a, {b: failed}]}}";
    sandbox.write("graph.yaml", text);
    let checked = ok(&sandbox, &["run", "graph.yaml", "--check"]);
    assert!(checked.ends_with("\n  a\n  b\n  c after a, b (failed)\n"), "{checked}");
    let json = sandbox.json(&["run", "graph.yaml", "--check"]).remove(0);
    assert_eq!(json["depends_on"]["c"], json!(["a", "b (failed)"]));
}
