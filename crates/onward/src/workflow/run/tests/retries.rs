//! Further attempts of runs and orchestrations below a run.

use std::time::Duration;

use onward_store::{TaskState, When};
use serde_json::json;

use super::super::{ActionKind, Arrival};
use super::play::Play;

const TWICE: &str = "{attempts: 2, backoff: constant, first: 10s}";

#[test]
fn a_run_below_is_tried_again_after_the_delay() {
    let mut play = Play::start(&format!("steps: {{a: {{workflow: w, retry: {TWICE}}}}}"));
    play.die("a");
    assert_eq!((play.step("a"), play.phase()), ("open", "running"));
    assert_eq!(play.task("a").when, When::At(play.now.plus(Duration::from_secs(10))));
    play.complete("a", json!(7));
    assert_eq!((play.result(), play.view("a").attempts), (json!(7), 2));
}

#[test]
fn the_last_attempt_of_an_orchestration_decides() {
    let mut play = Play::start(&format!("steps: {{a: {{orchestration: o, retry: {TWICE}}}}}"));
    play.fail("a");
    play.fail("a");
    assert_eq!((play.step("a"), play.phase(), play.submitted.len()), ("failed", "failed", 2));
}

#[test]
fn an_item_that_is_tried_again_is_not_counted_as_bad() {
    let mut play = Play::start(&format!("steps: {{a: {{workflow: w, each: '[1, 2]', retry: {TWICE}}}}}"));
    play.fail("a[0]");
    play.complete("a[1]", json!(2));
    play.complete("a[0]", json!(1));
    assert_eq!((play.step("a"), play.result()), ("completed", json!([1, 2])));
}

#[test]
fn the_deadline_bounds_all_attempts() {
    let mut play =
        Play::start("steps: {a: {workflow: w, deadline: 15s, retry: {attempts: 9, backoff: constant, first: 10s}}}");
    play.fail("a");
    play.after(Duration::from_secs(10));
    play.fail("a");
    assert_eq!((play.step("a"), play.submitted.len()), ("failed", 2));
}

#[test]
fn a_run_that_is_cancelled_tries_nothing_again() {
    let mut play = Play::start(&format!("steps: {{a: {{workflow: w, retry: {TWICE}}}}}"));
    play.arrive(Arrival::Cancel);
    play.fail("a");
    assert_eq!((play.submitted.len(), play.phase()), (1, "cancelled"));
}

#[test]
fn a_cancelled_attempt_is_not_tried_again() {
    let mut play = Play::start(&format!("steps: {{a: {{workflow: w, retry: {TWICE}}}}}"));
    play.report("a", TaskState::Cancelled, None, Some("no longer wanted"));
    assert_eq!((play.submitted.len(), play.step("a")), (1, "cancelled"));
}

#[test]
fn a_retry_by_hand_has_all_attempts() {
    let mut play = Play::start(&format!("steps: {{a: {{workflow: w, retry: {TWICE}}}}}"));
    play.fail("a");
    play.fail("a");
    play.act(ActionKind::Retry { steps: vec![] });
    play.fail("a");
    assert_eq!((play.step("a"), play.submitted.len()), ("open", 4));
}

#[test]
fn a_run_below_gets_its_limits_with_its_input() {
    let play = Play::start("steps: {a: {workflow: w, with: 1, timeout: 1s, deadline: 2s}}");
    let deadline = play.now.plus(Duration::from_secs(2)).as_microseconds();
    let expected = json!({"workflow": "w", "input": 1, "timeout": 1_000_000, "deadline": deadline});
    assert_eq!(play.payload("a"), expected);
}

#[test]
fn defaults_hold_for_tasks_alone() {
    let play = Play::start("defaults: {retry: 7, timeout: 1m}\nsteps: {a: {workflow: w, with: 1}, b: {task: t}}");
    assert_eq!(play.payload("a"), json!({"workflow": "w", "input": 1}));
    assert_eq!(play.task("b").retry.map(|retry| retry.attempts), Some(7));
}
