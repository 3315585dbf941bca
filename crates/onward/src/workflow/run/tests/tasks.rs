//! The tasks of steps.

use std::time::Duration;

use onward_store::{Priority, TaskId, TaskState};
use serde_json::json;

use super::super::{Arrival, ReportedResult};
use super::play::Play;

#[test]
fn a_payload_without_with_has_input_and_results_of_ancestors() {
    let mut play = Play::start_with("[{name: a, task: t}, {name: b, task: u}]", &json!({"n": 1}));
    assert_eq!(play.payload("a"), json!({"input": {"n": 1}, "results": {}}));
    play.complete("a", json!([2]));
    assert_eq!(play.payload("b"), json!({"input": {"n": 1}, "results": {"a": [2]}}));
    assert_eq!((&*play.task("b").kind, play.task("b").affinity.as_deref()), ("u", Some("run-7")));
}

#[test]
fn a_task_has_the_settings_of_its_step() {
    let text = "queue: q\npriority: 3\ntags: {run: r}\nsteps: {a: {task: t, group: \"g-${{ input }}\", tags: {x: y}, key: k, ttl: 1m, timeout: 2m, heartbeat: 3m, retry: 4, deadline: 1h, affinity: z}}";
    let play = Play::start_with(text, &json!(5));
    let task = play.task("a");
    assert_eq!(
        (&*task.queue, task.priority, task.group.as_deref(), task.affinity.as_deref()),
        ("q", Priority(3), Some("g-5"), Some("z"))
    );
    assert_eq!(task.tags.iter().collect::<Vec<_>>(), [("run", "r"), ("x", "y")]);
    assert_eq!(task.unique.as_ref().map(|unique| unique.key.as_str()), Some("k"));
    assert_eq!(task.ttl.map(|ttl| ttl.duration), Some(Duration::from_secs(60)));
    assert_eq!(
        (task.timeout, task.heartbeat_timeout),
        (Some(Duration::from_secs(120)), Some(Duration::from_secs(180)))
    );
    assert_eq!(
        (task.retry.map(|retry| retry.attempts), task.deadline),
        (Some(4), Some(play.now.plus(Duration::from_secs(3600))))
    );
}

#[test]
fn a_script_gets_its_values_by_environment_and_stdin() {
    let text = "steps: {a: {run: 'echo $X', env: {X: \"${{ input }}\"}, stdin: in}}";
    let play = Play::start_with(text, &json!(5));
    assert_eq!(&*play.task("a").kind, "onward.script");
    assert_eq!(play.payload("a"), json!({"step": "a", "script": "echo $X", "env": {"X": "5"}, "stdin": "in"}));
}

#[test]
fn workflows_and_orchestrations_are_children() {
    let play = Play::start("steps: {a: {workflow: ops/build@4, with: {r: 1}}, b: {orchestration: roll, with: 2}}");
    assert_eq!((&*play.task("a").kind, play.task("a").orchestration), ("run:ops/build", true));
    assert_eq!(play.payload("a"), json!({"workflow": "ops/build", "version": "4", "input": {"r": 1}}));
    assert_eq!((&*play.task("b").kind, play.task("b").orchestration, play.payload("b")), ("roll", true, json!(2)));
}

#[test]
fn a_result_that_does_not_fit_makes_the_step_dead() {
    let mut play = Play::start("steps: {a: {task: t, result_schema: {type: integer}}}");
    play.complete("a", json!("x"));
    assert_eq!(play.step("a"), "dead");
    assert!(play.error().contains("does not fit `result_schema`"), "{}", play.error());
}

#[test]
fn large_results_are_read_with_their_task() {
    let mut play = Play::start(
        "steps: {a: {task: t}, b: {task: t, depends_on: [a], with: 1}, c: {task: t, depends_on: [b], with: \"${{ size(steps.a.result) }}\"}}",
    );
    play.complete("a", json!("x".repeat(5000)));
    assert!(super::super::encode(&play.events).len() < 1000);
    play.complete("b", json!(1));
    assert_eq!((play.payload("c"), play.needed), (json!(5000), 1));
}

#[test]
fn a_task_whose_key_is_taken_fails_the_step() {
    let mut play = Play::start("steps: {a: {task: t, key: k}}");
    play.arrive(Arrival::NotStarted { reference: 1, existing: TaskId(3) });
    assert_eq!(
        play.error(),
        "step `a` is failed: task 3 has the key of this step; wait for its end, or use another key"
    );
}

#[test]
fn a_report_twice_changes_nothing() {
    let mut play = Play::start("[{name: a, task: t}, {name: b, task: t}]");
    play.complete("a", json!(1));
    let (state, events) = (play.state.clone(), play.events.len());
    let (task, result) = (TaskId(101), ReportedResult::None);
    play.arrive(Arrival::StepEnded { reference: 1, task, state: TaskState::Dead, result, error: None, attempts: 1 });
    assert_eq!((play.state == state, play.events.len()), (true, events));
}
