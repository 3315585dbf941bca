//! Manual actions.

use serde_json::json;

use super::super::{ActionKind, Arrival, RunEvent};
use super::play::Play;

const CHAIN: &str = "steps: {a: {task: t}, b: {task: t, depends_on: [a]}, c: {task: t, depends_on: [b]}, log: {task: t, depends_on: [{a: ended}]}}";

fn failed() -> Play {
    let mut play = Play::start(CHAIN);
    play.fail("a");
    play.complete("log", json!(1));
    assert_eq!((play.states().as_str(), play.phase()), ("a=failed b=unreached c=unreached log=completed", "failed"));
    play
}

fn step(name: &str) -> String {
    name.to_owned()
}

#[test]
fn a_retry_runs_a_step_and_all_behind_it_again() {
    let mut play = failed();
    play.act(ActionKind::Retry { steps: vec![] });
    assert_eq!((play.states().as_str(), play.phase()), ("a=open b=pending c=pending log=pending", "running"));
    let [.., taken, _, _] = play.events.as_slice() else { panic!("events") };
    assert!(!matches!(taken, RunEvent::Refused { .. }));
    play.complete("a", json!(1));
    assert_eq!(play.open(), ["b", "log"]);
}

#[test]
fn a_report_of_an_earlier_epoch_changes_nothing() {
    let mut play = failed();
    play.act(ActionKind::Retry { steps: vec![step("a")] });
    let state = play.state.clone();
    let (task, result) = (onward_store::TaskId(101), super::super::ReportedResult::None);
    let arrival = Arrival::StepEnded {
        reference: 1,
        task,
        state: onward_store::TaskState::Completed,
        result,
        error: None,
        attempts: 1,
    };
    play.arrive(arrival);
    assert!(play.state == state);
}

#[test]
fn a_resolved_step_is_completed_with_null() {
    let mut play = failed();
    play.act(ActionKind::Resolve { step: step("a") });
    assert_eq!(play.states(), "a=completed b=open c=pending log=completed");
    assert_eq!(play.payload("b"), json!({"input": null, "results": {"a": null}}));
}

#[test]
fn a_step_can_be_completed_with_a_result() {
    let mut play = failed();
    play.act(ActionKind::Complete { step: step("a"), result: "5".into() });
    assert_eq!(play.payload("b"), json!({"input": null, "results": {"a": 5}}));
    let mut play = Play::start("steps: {a: {signal: s, result_schema: {type: integer}}}");
    play.act(ActionKind::Complete { step: step("a"), result: "true".into() });
    assert!(play.refusal().unwrap().contains("does not fit"), "{:?}", play.refusal());
    play.act(ActionKind::Complete { step: step("a"), result: "{".into() });
    assert!(play.refusal().unwrap().contains("is no JSON"), "{:?}", play.refusal());
    play.act(ActionKind::Complete { step: step("a"), result: "5".into() });
    assert_eq!(play.result(), json!(5));
}

#[test]
fn a_completed_decision_has_to_choose() {
    let mut play = Play::start("on_failure: hold\nsteps: {r: {task: t, chooses: [x, y]}, x: {task: t}, y: {task: t}}");
    play.fail("r");
    play.act(ActionKind::Resolve { step: step("r") });
    assert!(play.refusal().unwrap().contains("possible are retry, reset, complete, skip"), "{:?}", play.refusal());
    play.act(ActionKind::Complete { step: step("r"), result: "\"z\"".into() });
    assert!(play.refusal().unwrap().contains("chooses among `x`, `y`"), "{:?}", play.refusal());
    play.act(ActionKind::Complete { step: step("r"), result: "\"y\"".into() });
    assert_eq!(play.states(), "r=completed x=skipped y=open");
}

#[test]
fn a_step_can_be_skipped() {
    let mut play = failed();
    play.act(ActionKind::Skip { step: step("a") });
    assert_eq!((play.states().as_str(), play.phase()), ("a=skipped b=skipped c=skipped log=completed", "completed"));
    let mut play = Play::start(CHAIN);
    play.act(ActionKind::Skip { step: step("b") });
    assert_eq!(play.states(), "a=open b=skipped c=skipped log=pending");
}

#[test]
fn a_reset_runs_a_completed_step_again_unless_something_behind_it_is_open() {
    let mut play = Play::start(CHAIN);
    play.complete("a", json!(1));
    play.act(ActionKind::Reset { step: step("a") });
    assert!(play.refusal().unwrap().contains("`reset` is not possible: step `a` is completed"), "{:?}", play.refusal());
    play.fail("b");
    play.complete("log", json!(1));
    play.act(ActionKind::Reset { step: step("a") });
    assert_eq!((play.states().as_str(), play.phase()), ("a=open b=pending c=pending log=pending", "running"));
}

#[test]
fn a_completed_run_never_changes() {
    let mut play = Play::start("steps: {a: {value: 1}}");
    let (state, name) = (play.state.steps(&play.context).count(), || step("a"));
    let actions = [
        ActionKind::Retry { steps: vec![] },
        ActionKind::Reset { step: name() },
        ActionKind::Resolve { step: name() },
        ActionKind::Complete { step: name(), result: "1".into() },
        ActionKind::Skip { step: name() },
        ActionKind::Cancel { undo: true },
        ActionKind::Undo,
    ];
    for action in actions {
        play.act(action);
        assert!(play.refusal().unwrap().contains("the run is completed; nothing"), "{:?}", play.refusal());
    }
    assert_eq!((play.phase(), state), ("completed", 1));
}

#[test]
fn an_unknown_step_is_refused_with_the_nearest() {
    let mut play = Play::start("steps: {load: {task: t}}");
    play.act(ActionKind::Skip { step: step("laod") });
    assert_eq!(play.refusal(), Some("the run has no step `laod`; did you mean `load`?"));
}

#[test]
fn a_run_whose_result_failed_can_be_retried() {
    let mut play = Play::start("steps: {a: {signal: s}}\nresult: \"${{ steps.a.result.x }}\"");
    play.signal("s", json!({}));
    assert_eq!(play.phase(), "failed");
    play.act(ActionKind::Reset { step: step("a") });
    play.signal("s", json!({"x": 3}));
    assert_eq!(play.result(), json!(3));
}
