//! The ends of runs.

use std::time::Duration;

use onward_store::TaskState;
use serde_json::json;

use super::super::{Arrival, RunNext};
use super::play::Play;

#[test]
fn a_run_without_result_has_the_results_of_its_last_steps() {
    let mut play = Play::start("steps: {a: {task: t}, b: {task: t}, c: {task: t, depends_on: [a]}}");
    play.complete("a", json!(1));
    play.complete("b", json!(2));
    play.complete("c", json!(3));
    assert_eq!(play.result(), json!({"b": 2, "c": 3}));
}

#[test]
fn a_result_that_cannot_be_made_or_does_not_fit_fails_the_run() {
    let play = Play::start("steps: {a: {value: 1}}\nresult: \"${{ steps.a.result.x }}\"");
    assert_eq!(play.phase(), "failed");
    let play = Play::start("steps: {a: {value: 1}}\nresult_schema: {type: string}");
    assert!(play.error().starts_with("the result of the run does not fit `result_schema`"), "{}", play.error());
}

#[test]
fn a_cancelled_run_asks_what_is_open_to_stop_and_ends_when_it_has() {
    let mut play = Play::start(
        "steps: {a: {task: t}, b: {wait: 1h}, c: {task: t, depends_on: [a]}, d: {task: t, depends_on: [{a: ended}]}}",
    );
    play.arrive(Arrival::Cancel);
    assert_eq!(play.states(), "a=open b=cancelled c=unreached d=unreached");
    assert_eq!((play.phase(), play.cancelled.as_slice()), ("stopping", &["a".to_owned()][..]));
    play.report("a", TaskState::Cancelled, None, None);
    assert_eq!((play.phase(), play.error()), ("cancelled", "the run was cancelled"));
}

#[test]
fn a_run_that_takes_too_long_fails() {
    let mut play =
        Play::start("timeout: 1m\nsteps: {a: {task: t}, b: {signal: s}, c: {task: t, depends_on: [{a: ended}]}}");
    assert_eq!(play.next, RunNext::Wait { until: Some(play.now.plus(Duration::from_secs(60))) });
    play.after(Duration::from_secs(60));
    assert_eq!(
        (play.states().as_str(), play.cancelled.as_slice()),
        ("a=open b=cancelled c=pending", &["a".to_owned()][..])
    );
    play.report("a", TaskState::Cancelled, None, None);
    assert_eq!(play.open(), ["c"]);
    play.complete("c", json!(1));
    assert_eq!((play.phase(), play.error()), ("failed", "the run took longer than its `timeout`"));
}

#[test]
fn a_run_under_hold_waits_for_a_person() {
    let mut play = Play::start("on_failure: hold\nsteps: {a: {task: t}}");
    play.fail("a");
    assert_eq!((play.phase(), &play.next), ("held", &RunNext::Held));
    play.arrive(Arrival::Cancel);
    assert_eq!(play.phase(), "cancelled");
}

#[test]
fn an_ended_run_takes_no_more_arrivals() {
    let mut play = Play::start("steps: {a: {task: t}, b: {signal: s}}");
    play.fail("a");
    let events = play.events.len();
    play.arrive(Arrival::Cancel);
    play.arrive(Arrival::Moment);
    play.arrive(Arrival::Start);
    assert_eq!((play.phase(), play.events.len()), ("failed", events));
}
