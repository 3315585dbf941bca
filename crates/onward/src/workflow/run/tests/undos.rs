//! Undoing runs.

use onward_store::TaskState;
use serde_json::json;

use super::super::{ActionKind, Arrival, RunEvent, RunNext};
use super::play::Play;

const SAGA: &str = "on_failure: undo\nsteps:\n  a: {task: t, undo: {task: u, with: \"${{ steps.a.result }}\"}}\n  b: {task: t, depends_on: [a], undo: {task: u}}\n  c: {task: t, depends_on: [b], undo: {task: u}}\n  d: {task: t, depends_on: [a], undo: {task: u}}\n  e: {task: t, depends_on: [c]}\n";

fn failed_saga() -> Play {
    let mut play = Play::start(SAGA);
    play.complete("a", json!({"id": 4}));
    play.complete("b", json!(1));
    play.complete("d", json!(1));
    play.die("c");
    play
}

#[test]
fn dependents_are_undone_first_and_independent_steps_at_once() {
    let mut play = failed_saga();
    assert_eq!((play.phase(), play.open()), ("undoing", vec!["undo.c", "undo.d"]));
    play.complete("undo.c", json!(1));
    assert_eq!(play.open(), ["undo.d", "undo.b"]);
    play.complete("undo.b", json!(1));
    assert_eq!(play.open(), ["undo.d"]);
    play.complete("undo.d", json!(1));
    assert_eq!((play.open(), play.payload("undo.a")), (vec!["undo.a"], json!({"id": 4})));
    play.complete("undo.a", json!(1));
    assert_eq!((play.phase(), play.error()), ("dead", "step `c` is dead: lost"));
}

#[test]
fn steps_without_an_effect_are_not_undone() {
    let mut play = Play::start(SAGA);
    play.complete("a", json!({"id": 4}));
    play.report_attempts("d", TaskState::Cancelled, None, None, 0);
    play.fail("b");
    assert_eq!(play.open(), ["undo.a"]);
    let mut play = Play::start(SAGA);
    play.complete("a", json!({"id": 4}));
    play.report_attempts("d", TaskState::Cancelled, None, None, 1);
    play.fail("b");
    assert_eq!(play.open(), ["undo.d"]);
}

#[test]
fn a_run_whose_undo_fails_is_held_until_it_is_retried_or_resolved() {
    let mut play = failed_saga();
    play.die("undo.c");
    play.complete("undo.d", json!(1));
    assert_eq!((play.phase(), &play.next), ("held", &RunNext::Held));
    play.act(ActionKind::Cancel { undo: false });
    assert!(play.refusal().unwrap().contains("its undo has begun; possible are retry"), "{:?}", play.refusal());
    play.act(ActionKind::Retry { steps: vec!["c".into()] });
    assert_eq!((play.phase(), play.open()), ("undoing", vec!["undo.c"]));
    play.fail("undo.c");
    play.act(ActionKind::Resolve { step: "c".into() });
    assert_eq!(play.open(), ["undo.b"]);
    play.complete("undo.b", json!(1));
    play.complete("undo.a", json!(1));
    assert_eq!(play.phase(), "dead");
}

#[test]
fn an_undone_run_takes_no_retry() {
    let mut play = failed_saga();
    ["undo.c", "undo.d", "undo.b", "undo.a"].into_iter().for_each(|undo| play.complete(undo, json!(1)));
    play.act(ActionKind::Retry { steps: vec![] });
    assert!(play.refusal().unwrap().contains("its undo has begun"), "{:?}", play.refusal());
}

#[test]
fn an_undo_can_be_asked_for_with_the_cancel_or_after_the_end() {
    let text = SAGA.replace("on_failure: undo\n", "");
    let mut play = Play::start(&text);
    play.complete("a", json!(1));
    play.act(ActionKind::Cancel { undo: true });
    play.report_attempts("b", TaskState::Cancelled, None, None, 1);
    play.complete("d", json!(1));
    assert_eq!(play.open(), ["undo.b", "undo.d"]);
    ["undo.d", "undo.b", "undo.a"].into_iter().for_each(|undo| play.complete(undo, json!(1)));
    assert_eq!(play.phase(), "cancelled");

    let mut play = Play::start(&text);
    play.complete("a", json!(1));
    play.complete("d", json!(1));
    play.fail("b");
    assert_eq!(play.phase(), "failed");
    play.act(ActionKind::Undo);
    assert_eq!(play.open(), ["undo.d"]);
    play.complete("undo.d", json!(1));
    play.complete("undo.a", json!(1));
    assert_eq!((play.phase(), play.error()), ("failed", "step `b` is failed: no stock"));
}

#[test]
fn items_that_may_have_happened_are_undone() {
    let text = "on_failure: undo\nsteps: {a: {task: t, each: input, parallel: 2, with: \"${{ item }}\", undo: {task: u, with: \"${{ item }}\"}}}";
    let mut play = Play::start_with(text, &json!([5, 6, 7]));
    play.complete("a[0]", json!(1));
    play.fail("a[1]");
    play.die("a[2]");
    assert_eq!((play.open(), play.payload("undo.a[2]")), (vec!["undo.a[0]", "undo.a[2]"], json!(7)));
    play.complete("undo.a[2]", json!(1));
    play.die("undo.a[0]");
    assert_eq!(play.phase(), "held");
    play.act(ActionKind::Retry { steps: vec![] });
    assert_eq!(play.open(), ["undo.a[0]"]);
    play.complete("undo.a[0]", json!(1));
    assert_eq!(play.phase(), "dead");
}

#[test]
fn a_step_that_was_completed_by_hand_before_it_had_items_is_not_undone() {
    let text = "steps: {a: {task: t, each: input, undo: {task: u}}, b: {task: t}}";
    let mut play = Play::start_with(text, &json!("no list"));
    play.act(ActionKind::Complete { step: "a".into(), result: "[1]".into() });
    play.act(ActionKind::Retry { steps: vec![] });
    play.fail("b");
    assert_eq!((play.refusal(), play.states().as_str()), (None, "a=completed b=failed"));
    play.act(ActionKind::Undo);
    let begun = play.events.iter().find_map(|event| match event {
        RunEvent::UndoBegan { steps } => Some(steps.as_slice()),
        _ => None,
    });
    assert_eq!((play.refusal(), begun), (None, Some(&[][..])));
}

#[test]
fn a_workflow_without_an_undo_is_undone_as_its_template_says() {
    let mut play = Play::start("on_failure: undo\nsteps: {a: {workflow: w}, b: {task: t, depends_on: [a]}}");
    play.complete("a", json!(1));
    play.fail("b");
    assert_eq!(play.payload("undo.a"), json!({"workflow": "w", "undo": 101}));
    play.complete("undo.a", json!(null));
    assert_eq!(play.phase(), "failed");
}

#[test]
fn an_undo_goes_on_when_the_run_is_cancelled() {
    let mut play = failed_saga();
    play.arrive(Arrival::Cancel);
    assert_eq!((play.phase(), play.cancelled.len()), ("undoing", 0));
    ["undo.c", "undo.d", "undo.b", "undo.a"].into_iter().for_each(|undo| play.complete(undo, json!(1)));
    assert_eq!(play.phase(), "cancelled");
}
