//! `onward workflow` on runs.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{CommandResult, Running, Sandbox};
use crate::stores::on_every_store;

on_every_store! {
    a_stored_template_is_started_by_its_name_and_listed,
    a_second_start_with_the_key_finds_the_run,
    a_key_for_a_template_that_makes_keys_is_refused,
    a_started_run_is_awaited_with_its_result,
    a_worker_carries_on_started_runs_and_runs_their_scripts,
    a_worker_without_scripts_leaves_them_to_others,
    a_worker_may_serve_the_kind_of_a_step_too,
    a_question_is_shown_with_the_command_that_replies_to_it,
    a_reply_that_does_not_fit_is_refused,
    a_held_run_goes_on_with_a_result_that_a_person_gives,
    a_step_that_was_mended_by_hand_is_resolved,
    a_step_that_is_not_wanted_is_skipped,
    a_step_is_run_again_with_all_behind_it,
    a_run_is_cancelled_and_undone,
    a_failed_run_is_undone_on_request,
    a_run_is_not_terminated_as_an_orchestration,
    an_action_is_not_sent_as_a_signal,
    an_action_that_is_not_possible_is_refused_with_those_that_are,
    the_history_has_the_author_and_the_reason_of_an_action,
    a_paused_run_keeps_a_signal_until_it_is_resumed,
    published_events_are_shown_from_a_cursor_on,
    runs_are_found_by_their_phase,
    a_task_that_is_no_run_is_named,
    a_run_that_does_not_exist_is_named_as_a_run,
    a_run_that_no_process_carries_on_is_shown_with_the_remedy,
}

/// Sends the question of a step, and returns the reply as the result.
const ASK: &str = r"
steps:
  approve:
    signal: approval
    ask:
      title: Ship order ${{ input.order }}?
      schema: {type: object, required: [approved], properties: {approved: {type: boolean}}}
";

/// Holds until its step is mended. The file `mended` lets the step complete.
const HOLD: &str = r#"
on_failure: hold
steps:
  copy: {run: "test -e mended || exit 100; echo 7"}
  count: {value: "${{ [steps.copy.state, steps.copy.result] }}", depends_on: [copy]}
"#;

/// Two steps that can be undone, and one that fails.
const UNDONE: &str = r"
steps:
  reserve: {run: echo reserved >> log, undo: {run: echo released >> log}}
  ship: {run: exit 100, depends_on: [reserve]}
";

fn ok(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let ran = sandbox.onward(arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
    ran.stdout
}

/// Runs a workflow until its output has a text, and leaves the run where it is.
fn run_until(sandbox: &Sandbox, text: &str, said: &str) -> Running {
    sandbox.write("flow.yaml", text);
    let mut running = sandbox.start(&["run", "flow.yaml", "--input", "order=A-17"], "");
    running.await_said(said);
    running
}

/// Returns the one run of a sandbox that is named by the template.
fn status(sandbox: &Sandbox) -> Value {
    sandbox.json(&["workflow", "status", "1"]).remove(0)
}

fn state<'v>(status: &'v Value, step: &str) -> &'v Value {
    let steps = status["steps"].as_array().unwrap();
    &steps.iter().find(|other| other["name"] == step).unwrap()["state"]
}

/// Expects that a run ends well, and returns its result.
fn result(running: Running) -> Value {
    let CommandResult { code, stdout, stderr } = running.wait();
    assert_eq!(code, Some(0), "{stderr}");
    serde_json::from_str(&stdout).unwrap()
}

fn put(sandbox: &Sandbox, name: &str, text: &str) {
    let file = format!("{name}.yaml");
    sandbox.write(&file, text);
    ok(sandbox, &["workflow", "put", &file]);
}

/// Shows: W11
fn published_events_are_shown_from_a_cursor_on(sandbox: Sandbox) {
    sandbox.write("flow.yaml", "steps: {a: {value: 7, publishes: [{name: one, with: {n: 1}}, {name: two}]}}");
    ok(&sandbox, &["run", "flow.yaml"]);
    let events = sandbox.json(&["workflow", "events"]);
    let shown: Vec<_> = events.iter().map(|event| (&event["run"], &event["name"], &event["payload"])).collect();
    assert_eq!(shown, [(&json!(1), &json!("one"), &json!({"n": 1})), (&json!(1), &json!("two"), &json!(7))]);
    let later = ok(&sandbox, &["workflow", "events", "--after", events[0]["cursor"].as_str().unwrap()]);
    assert!(later.ends_with("  two of run 1 (flow) 7\n") && later.lines().count() == 1, "{later}");
}

/// Shows: W7, B9
fn a_stored_template_is_started_by_its_name_and_listed(sandbox: Sandbox) {
    put(&sandbox, "order", ASK);
    let started = ok(&sandbox, &["workflow", "start", "order", "--input", "order=A-17"]);
    assert_eq!(started, "run 1 of order started\n");
    let listed = sandbox.json(&["workflow", "runs", "order"]);
    assert_eq!((listed.len(), &listed[0]["id"], &listed[0]["phase"]), (1, &json!(1), &json!("waiting")));
    assert!(sandbox.json(&["workflow", "runs", "other"]).is_empty());
}

/// Shows: W6
fn a_second_start_with_the_key_finds_the_run(sandbox: Sandbox) {
    put(&sandbox, "order", ASK);
    let start = |order: &str| sandbox.onward(&["workflow", "start", "order", "--key", "A", "--input", order]);
    assert_eq!(start("order=A-17").code, Some(0));
    assert!(start("order=A-17").stdout.contains("run 1 of order has the key already"));
    let other = start("order=A-18");
    assert_eq!(other.code, Some(2));
    assert!(other.stderr.contains("run 1 has the same key and another input"), "{}", other.stderr);
    assert_eq!(sandbox.json(&["workflow", "runs", "--key", "A"]).len(), 1);
}

/// Shows: W6
fn a_key_for_a_template_that_makes_keys_is_refused(sandbox: Sandbox) {
    put(&sandbox, "order", "key: order-1\nsteps: {a: {value: 1}}");
    let ran = sandbox.onward(&["workflow", "start", "order", "--key", "A"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("makes the keys of its runs itself"), "{}", ran.stderr);
    assert!(sandbox.json(&["workflow", "runs"]).is_empty());
}

/// Shows: W7
fn a_started_run_is_awaited_with_its_result(sandbox: Sandbox) {
    put(&sandbox, "sum", "steps: {sum: {value: '${{ input.a + 2 }}'}}");
    let waiting = sandbox.start(&["workflow", "start", "sum", "--input", "a=5", "--wait"], "");
    // Another process runs every run of the store, until its own has ended.
    let _other = ServesRuns::start(&sandbox);
    let CommandResult { code, stdout, stderr } = waiting.wait();
    assert_eq!((code, &*stdout), (Some(0), "7\n"), "{stderr}");
}

/// Shows: W7
fn a_run_is_not_terminated_as_an_orchestration(sandbox: Sandbox) {
    put(&sandbox, "order", ASK);
    ok(&sandbox, &["workflow", "start", "order", "--input", "order=A-17"]);
    let ran = sandbox.onward(&["orchestration", "terminate", "1"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("cancel it: `onward workflow cancel 1`"), "{}", ran.stderr);
    assert_eq!(sandbox.json(&["task", "show", "1"])[0]["state"], "waiting");
}

/// A signal with the name of an action would bypass its checks and its author.
///
/// Shows: W7
fn an_action_is_not_sent_as_a_signal(sandbox: Sandbox) {
    put(&sandbox, "order", ASK);
    ok(&sandbox, &["workflow", "start", "order", "--input", "order=A-17"]);
    let ran =
        sandbox.onward(&["orchestration", "signal", "1", "onward.action", r#"{"action":"skip","step":"approve"}"#]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("reserved for Onward"), "{}", ran.stderr);
}

/// Shows: W2, B9
fn a_worker_carries_on_started_runs_and_runs_their_scripts(sandbox: Sandbox) {
    put(&sandbox, "sum", "steps: {one: {run: echo 1}, sum: {value: '${{ steps.one.result + 2 }}', depends_on: [one]}}");
    ok(&sandbox, &["workflow", "start", "sum"]);
    let worked = sandbox.onward(&["work", "--workflows", "--scripts", "--until-idle"]);
    assert_eq!((worked.code, worked.stdout.as_str()), (Some(0), ""), "{}", worked.stderr);
    assert!(worked.stderr.contains(": workflow runs and their scripts of any queue, "), "{}", worked.stderr);
    let task = sandbox.json(&["task", "show", "1"]).remove(0);
    assert_eq!((&task["state"], &task["result"]), (&json!("completed"), &json!("3")), "{task}");
}

/// Shows: W2
fn a_worker_without_scripts_leaves_them_to_others(sandbox: Sandbox) {
    put(&sandbox, "one", "steps: {one: {run: touch started}}");
    ok(&sandbox, &["workflow", "start", "one"]);
    assert_eq!(sandbox.onward(&["work", "--workflows", "--until-idle"]).code, Some(0));
    assert_eq!((state(&status(&sandbox), "one"), sandbox.path("started").exists()), (&json!("open"), false));
}

/// Shows: W2
fn a_worker_may_serve_the_kind_of_a_step_too(sandbox: Sandbox) {
    put(&sandbox, "greet", "steps: {greet: {task: greet, with: Ada}}");
    ok(&sandbox, &["workflow", "start", "greet"]);
    let work = ["work", "--workflows", "--kind", "greet", "--until-idle", "--", "cat"];
    assert_eq!(sandbox.onward(&work).code, Some(0));
    assert_eq!(state(&status(&sandbox), "greet"), "completed");
}

/// A process that runs the workflows of a store until it is dropped.
struct ServesRuns(Option<Running>);

impl ServesRuns {
    fn start(sandbox: &Sandbox) -> Self {
        sandbox.write("serve.yaml", "steps: {never: {signal: never}}");
        Self(Some(sandbox.start(&["run", "serve.yaml", "--again"], "")))
    }
}

impl Drop for ServesRuns {
    fn drop(&mut self) {
        let running = self.0.take().unwrap();
        running.signal(Signal::INT);
        running.wait();
    }
}

/// Shows: W5, B9
fn a_question_is_shown_with_the_command_that_replies_to_it(sandbox: Sandbox) {
    let running = run_until(&sandbox, ASK, "Ship order A-17?; reply with: onward workflow signal 1 approval");
    let shown = ok(&sandbox, &["workflow", "status", "1"]);
    let reply = "onward workflow signal 1 approval --value approved=true";
    assert!(shown.contains(&format!("approve: Ship order A-17?; reply with: {reply}")), "{shown}");
    assert!(ok(&sandbox, &["workflow", "runs"]).contains("approval"));
    let words: Vec<&str> = reply.split(' ').skip(1).collect();
    assert_eq!(ok(&sandbox, &words), "`approval` was sent to run 1\n");
    assert_eq!(result(running), json!({"approved": true}));
}

/// Shows: W5
fn a_reply_that_does_not_fit_is_refused(sandbox: Sandbox) {
    let running = run_until(&sandbox, ASK, "reply with");
    let refused = sandbox.onward(&["workflow", "signal", "1", "approval", "--value", "approved=perhaps"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("the answer does not fit the question"), "{}", refused.stderr);
    let unknown = sandbox.onward(&["workflow", "signal", "1", "approvals"]);
    assert!(unknown.stderr.contains("there are approval"), "{}", unknown.stderr);
    assert_eq!(state(&status(&sandbox), "approve"), "waiting");
    running.signal(Signal::INT);
    running.wait();
}

/// Shows: W7
fn a_held_run_goes_on_with_a_result_that_a_person_gives(sandbox: Sandbox) {
    let running = run_until(&sandbox, HOLD, "is held");
    assert!(ok(&sandbox, &["workflow", "status", "1"]).contains("onward workflow retry 1"));
    ok(&sandbox, &["workflow", "complete", "1", "copy", "--result", "rows=3"]);
    assert_eq!(result(running), json!(["completed", {"rows": 3}]));
}

/// Shows: W7
fn a_step_that_was_mended_by_hand_is_resolved(sandbox: Sandbox) {
    let running = run_until(&sandbox, HOLD, "is held");
    ok(&sandbox, &["workflow", "resolve", "1", "copy"]);
    assert_eq!(result(running), json!(["completed", null]));
}

/// Shows: W7
fn a_step_that_is_not_wanted_is_skipped(sandbox: Sandbox) {
    let text = "steps: {approve: {signal: approval}, end: {value: '${{ steps.approve.state }}', depends_on: [{approve: ended}]}}";
    let running = run_until(&sandbox, text, "reply with");
    ok(&sandbox, &["workflow", "skip", "1", "approve"]);
    let ran = running.wait();
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "skipped\n"), "{}", ran.stderr);
}

/// Shows: W7
fn a_step_is_run_again_with_all_behind_it(sandbox: Sandbox) {
    let text = "on_failure: hold\nsteps: {one: {run: echo one >> log}, two: {run: 'echo two >> log; test -e mended', depends_on: [one]}}";
    let running = run_until(&sandbox, text, "is held");
    sandbox.write("mended", "");
    ok(&sandbox, &["workflow", "reset", "1", "one"]);
    assert_eq!(running.wait().code, Some(0));
    assert_eq!(sandbox.read("log"), "one\ntwo\none\ntwo\n");
}

/// Shows: W5, W7
fn a_run_is_cancelled_and_undone(sandbox: Sandbox) {
    let text = r"
steps:
  reserve: {run: echo reserved >> log, undo: {run: echo released >> log}}
  approve: {signal: approval, depends_on: [reserve]}";
    let running = run_until(&sandbox, text, "reply with");
    ok(&sandbox, &["workflow", "cancel", "1", "--undo"]);
    assert_eq!(running.wait().code, Some(1));
    assert_eq!(
        (status(&sandbox)["phase"].as_str(), &*sandbox.read("log")),
        (Some("cancelled"), "reserved\nreleased\n")
    );
}

/// Shows: W5, W7
fn a_failed_run_is_undone_on_request(sandbox: Sandbox) {
    sandbox.write("flow.yaml", UNDONE);
    assert_eq!(sandbox.onward(&["run", "flow.yaml"]).code, Some(1));
    ok(&sandbox, &["workflow", "undo", "1"]);
    assert_eq!(sandbox.onward(&["run", "flow.yaml"]).code, Some(1));
    assert_eq!(sandbox.read("log"), "reserved\nreleased\n");
}

/// Shows: W7, B9
fn an_action_that_is_not_possible_is_refused_with_those_that_are(sandbox: Sandbox) {
    sandbox.write("flow.yaml", UNDONE);
    sandbox.onward(&["run", "flow.yaml"]);
    let refused = |arguments: &[&str], part: &str| {
        let ran = sandbox.onward(&[&["workflow"], arguments].concat());
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{arguments:?}: {}", ran.stderr);
    };
    refused(&["skip", "1", "reserve"], "step `reserve` is completed and the run is failed; possible are reset");
    refused(&["cancel", "1"], "the run is failed; possible are retry, undo");
    refused(&["retry", "1", "shop"], "no step `shop`; did you mean `ship`?");
    let history = sandbox.json(&["workflow", "history", "1"]);
    assert!(history.iter().all(|entry| entry["event"] != "action"), "{history:?}");
}

/// Shows: W7
fn the_history_has_the_author_and_the_reason_of_an_action(sandbox: Sandbox) {
    let running = run_until(&sandbox, HOLD, "is held");
    ok(&sandbox, &["workflow", "resolve", "1", "copy", "--actor", "ada", "--reason", "copied by hand"]);
    assert_eq!(running.wait().code, Some(0));
    let history = sandbox.json(&["workflow", "history", "1"]);
    let action = history.iter().find(|entry| entry["event"] == "action").unwrap();
    assert_eq!((&action["actor"], &action["reason"]), (&json!("ada"), &json!("copied by hand")));
    let text = ok(&sandbox, &["workflow", "history", "1"]);
    assert!(text.contains("action: resolve copy by ada, because copied by hand"), "{text}");
    assert!(text.contains("phase changed: held"), "{text}");
}

/// Shows: W7
fn a_paused_run_keeps_a_signal_until_it_is_resumed(sandbox: Sandbox) {
    let running = run_until(&sandbox, ASK, "reply with");
    ok(&sandbox, &["workflow", "pause", "1"]);
    assert_eq!(status(&sandbox)["is_paused"], json!(true));
    ok(&sandbox, &["workflow", "signal", "1", "approval", "--value", "approved=true"]);
    let cancelled = sandbox.onward(&["workflow", "skip", "1", "approve"]);
    assert!(cancelled.stderr.contains("run 1 is paused"), "{}", cancelled.stderr);
    assert_eq!(state(&status(&sandbox), "approve"), "waiting");
    ok(&sandbox, &["workflow", "resume", "1"]);
    assert_eq!(result(running), json!({"approved": true}));
}

/// Shows: W7
fn runs_are_found_by_their_phase(sandbox: Sandbox) {
    sandbox.write("flow.yaml", UNDONE);
    sandbox.onward(&["run", "flow.yaml"]);
    sandbox.write("seven.yaml", "steps: {a: {value: 7}}");
    sandbox.onward(&["run", "seven.yaml"]);
    let names = |phase: &str| -> Vec<Value> {
        sandbox.json(&["workflow", "runs", "--phase", phase]).iter().map(|run| run["workflow"].clone()).collect()
    };
    assert_eq!(
        (names("failed"), names("completed"), names("held")),
        (vec![json!("flow")], vec![json!("seven")], vec![])
    );
    let page = sandbox.onward(&["workflow", "runs", "--limit", "1"]);
    assert!(page.stdout.contains("seven") && page.stderr.contains("--before"), "{page:?}");
    let wrong = sandbox.onward(&["workflow", "runs", "--phase", "hold"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("held"), "{}", wrong.stderr);
}

/// Shows: B9
fn a_task_that_is_no_run_is_named(sandbox: Sandbox) {
    ok(&sandbox, &["submit", "--kind", "mail"]);
    for arguments in [["workflow", "status", "1"], ["workflow", "pause", "1"], ["workflow", "undo", "1"]] {
        let ran = sandbox.onward(&arguments);
        assert_ne!(ran.code, Some(0), "{arguments:?}");
        assert!(ran.stderr.contains("task 1 of kind `mail` is not a run"), "{}", ran.stderr);
    }
}

/// Shows: B9
fn a_run_that_does_not_exist_is_named_as_a_run(sandbox: Sandbox) {
    ok(&sandbox, &["submit", "--kind", "mail"]);
    let ran = sandbox.onward(&["workflow", "status", "12"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("there is no run 12; `onward workflow runs`"), "{}", ran.stderr);
}

/// Shows: W7, B9
fn a_run_that_no_process_carries_on_is_shown_with_the_remedy(sandbox: Sandbox) {
    put(&sandbox, "order", ASK);
    let remedy = "`onward work --workflows`";
    let started = sandbox.onward(&["workflow", "start", "order", "--input", "order=A-17"]);
    assert!(started.stderr.contains(remedy), "{}", started.stderr);
    for command in [["workflow", "status", "1"].as_slice(), &["workflow", "runs"]] {
        let shown = sandbox.onward(command);
        assert!(shown.code == Some(0) && shown.stderr.contains(remedy), "{command:?}: {}", shown.stderr);
    }
    let why = ok(&sandbox, &["task", "why", "1"]);
    assert!(why.contains(remedy), "{why}");
    let mut other = sandbox.start(&["work", "--workflows"], "");
    other.await_said("workflow runs");
    let served = sandbox.onward(&["workflow", "status", "1"]);
    assert!(!served.stderr.contains(remedy), "{}", served.stderr);
    assert_eq!(status(&sandbox)["carried_on_by"].as_array().unwrap().len(), 1);
    other.signal(Signal::INT);
    other.wait();
}
