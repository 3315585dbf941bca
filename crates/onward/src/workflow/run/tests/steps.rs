//! Steps without a task: values, failures, timers and signals.

use std::time::Duration;

use serde_json::json;

use super::play::Play;

#[test]
fn a_value_is_its_own_result() {
    let play = Play::start_with("steps: {a: {value: \"${{ input.n + 1 }}\"}}", &json!({"n": 1}));
    assert_eq!((play.phase(), play.result()), ("completed", json!(2)));
}

#[test]
fn a_fail_fails_with_its_message() {
    let play = Play::start_with("steps: {a: {fail: \"no ${{ input.n }}\"}}", &json!({"n": 5}));
    assert_eq!((play.phase(), play.error()), ("failed", "step `a` is failed: no 5"));
}

#[test]
fn an_error_of_an_expression_fails_the_step_and_names_the_field() {
    let play = Play::start_with("steps: {a: {task: t, with: {to: \"${{ input.adress }}\"}}}", &json!({"address": 1}));
    let error = play.view("a").error.unwrap();
    assert!(error.contains("`adress`") && error.ends_with("In with.to"), "{error}");
}

#[test]
fn a_step_whose_condition_is_false_is_skipped() {
    let play = Play::start("steps: {a: {task: t, if: 1 > 2}, b: {task: t}}");
    assert_eq!(play.states(), "a=skipped b=open");
    assert_eq!(play.view("a").reason.as_deref(), Some("`if` is false"));
}

#[test]
fn a_timer_ends_at_its_moment() {
    let mut play = Play::start("steps: {a: {wait: 10s}, b: {task: t, depends_on: [a]}}");
    assert_eq!(play.states(), "a=waiting b=pending");
    let super::super::RunNext::Wait { until } = play.next else { panic!("the run waits") };
    assert_eq!(until, Some(play.now.plus(Duration::from_secs(10))));
    play.after(Duration::from_secs(9));
    assert_eq!(play.step("a"), "waiting");
    play.after(Duration::from_secs(1));
    assert_eq!(play.states(), "a=completed b=open");
}

#[test]
fn a_timer_can_have_a_computed_time_or_a_moment() {
    let input = json!({"d": "1m", "at": "1970-01-01T00:00:31Z"});
    let text = "steps: {a: {wait: \"${{ input.d }}\"}, b: {wait: {until: timestamp(input.at)}}}";
    let mut play = Play::start_with(text, &input);
    play.after(Duration::from_secs(30));
    assert_eq!(play.states(), "a=waiting b=completed");
    play.after(Duration::from_secs(30));
    assert_eq!(play.phase(), "completed");
}

#[test]
fn a_step_can_start_some_time_after_it_is_ready() {
    let mut play = Play::start("steps: {a: {value: 1, after: 5s}, b: {task: t, after: 5s}}");
    assert_eq!(play.states(), "a=waiting b=open");
    let onward_store::When::At(at) = play.task("b").when else { panic!("the task is delayed") };
    assert_eq!(at, play.now.plus(Duration::from_secs(5)));
    play.after(Duration::from_secs(5));
    assert_eq!(play.step("a"), "completed");
}

#[test]
fn a_signal_ends_the_step_that_waits_for_it() {
    let mut play = Play::start("steps: {a: {signal: go}}");
    play.signal("go", json!({"x": 1}));
    assert_eq!((play.phase(), play.result()), ("completed", json!({"x": 1})));
}

#[test]
fn signals_that_come_early_are_kept_in_their_order() {
    let text = "steps: {t: {task: t}, a: {signal: go, depends_on: [t]}, b: {signal: go, depends_on: [a]}}\nresult: \"${{ [steps.a.result, steps.b.result] }}\"";
    let mut play = Play::start(text);
    play.signal("go", json!(1));
    play.signal("go", json!(2));
    play.complete("t", json!(null));
    assert_eq!(play.result(), json!([1, 2]));
}

#[test]
fn a_signal_that_no_step_waits_for_is_refused() {
    let mut play = Play::start("steps: {a: {signal: go}, b: {task: t}}");
    play.signal("come", json!(1));
    assert_eq!(play.refusal(), Some("no step waits for the signal `come`; there are go"));
    play.signal("go", json!(1));
    play.signal("go", json!(1));
    assert_eq!(play.refusal(), Some("no step waits for the signal `go` any more"));
}

#[test]
fn an_answer_that_does_not_fit_the_question_is_refused() {
    let mut play = Play::start("steps: {a: {signal: go, ask: {title: \"Go?\", schema: {type: boolean}}}}");
    assert_eq!(play.view("a").title, Some("Go?"));
    play.signal("go", json!("yes"));
    assert!(play.refusal().unwrap().starts_with("the answer does not fit the question"), "{:?}", play.refusal());
    assert_eq!(play.step("a"), "waiting");
    play.signal("go", json!(true));
    assert_eq!(play.phase(), "completed");
}

#[test]
fn a_deadline_ends_a_wait_with_otherwise_or_as_failed() {
    let mut play = Play::start(
        "steps: {a: {signal: x, deadline: 1m, otherwise: {no: 1}}, b: {signal: y, deadline: 2m}}\non_failure: finish",
    );
    play.after(Duration::from_secs(60));
    assert_eq!(play.states(), "a=completed b=waiting");
    play.after(Duration::from_secs(60));
    assert_eq!(play.states(), "a=completed b=failed");
    assert_eq!(play.error(), "step `b` is failed: no signal `y` came before the deadline");
}
