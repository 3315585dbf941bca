//! Chains, joins, decisions and failure paths.

use serde_json::json;

use super::play::Play;

#[test]
fn a_chain_runs_one_step_after_the_other() {
    let mut play = Play::start("[{name: a, task: t}, {name: b, task: t}, {name: c, task: t}]");
    assert_eq!(play.open(), ["a"]);
    play.complete("a", json!(1));
    assert_eq!(play.open(), ["b"]);
    play.complete("b", json!(2));
    play.complete("c", json!(3));
    assert_eq!((play.phase(), play.result()), ("completed", json!(3)));
}

#[test]
fn a_join_waits_for_all_that_it_depends_on() {
    let mut play = Play::start("steps: {a: {task: t}, b: {task: t}, c: {task: t, depends_on: [a, b]}}");
    play.complete("b", json!(1));
    assert_eq!(play.open(), ["a"]);
    play.complete("a", json!(2));
    assert_eq!(play.open(), ["c"]);
}

#[test]
fn steps_with_the_longest_path_behind_them_start_first() {
    let text = "steps: {a: {task: t}, b: {task: t}, c: {task: t, depends_on: [b]}, d: {task: t, depends_on: [c]}, e: {task: t, depends_on: [a]}}";
    assert_eq!(Play::start(text).submitted, ["b", "a"]);
}

const STOP: &str = "steps: {a: {task: t}, b: {task: t}, c: {task: t, depends_on: [b]}, alarm: {task: t, depends_on: [{a: failed}]}, tidy: {task: t, depends_on: [{c: ended}]}}";

#[test]
fn after_a_failure_only_failure_paths_start() {
    let mut play = Play::start(STOP);
    play.fail("a");
    assert_eq!(play.states(), "a=failed alarm=open b=open c=unreached tidy=open");
    assert_eq!((play.phase(), play.withdrawn.as_slice()), ("stopping", &["b".to_owned()][..]));
    play.complete("b", json!(1));
    play.complete("alarm", json!(1));
    assert_eq!(play.phase(), "stopping");
    play.complete("tidy", json!(1));
    assert_eq!((play.phase(), play.error()), ("failed", "step `a` is failed: no stock"));
}

#[test]
fn under_finish_all_goes_on_that_does_not_need_what_failed() {
    let mut play = Play::start(&format!("{STOP}\non_failure: finish"));
    play.fail("a");
    assert_eq!(play.phase(), "running");
    play.complete("b", json!(1));
    play.complete("c", json!(1));
    play.complete("alarm", json!(1));
    play.complete("tidy", json!(1));
    assert_eq!(play.phase(), "failed");
}

#[test]
fn a_failure_that_is_forgiven_counts_as_completed() {
    let mut play = Play::start(
        "steps: {a: {task: t, on_failure: continue}, b: {task: t, depends_on: [a]}}\nresult: \"${{ steps.a.result }}\"",
    );
    play.die("a");
    assert_eq!(play.states(), "a=dead b=open");
    play.complete("b", json!(1));
    assert_eq!((play.phase(), play.result()), ("completed", json!(null)));
}

#[test]
fn a_run_with_a_dead_step_is_dead() {
    let mut play = Play::start("steps: {a: {task: t}, b: {task: t}}\non_failure: finish");
    play.fail("b");
    play.die("a");
    assert_eq!(play.phase(), "dead");
}

const CHOICE: &str =
    "steps: {r: {task: t, chooses: [x, y]}, x: {task: t}, y: {task: t}, z: {task: t, depends_on: [x, y]}}";

#[test]
fn a_decision_runs_what_it_chose_and_the_convergence() {
    for choice in [json!("x"), json!(["x"]), json!({"chosen": ["x"]})] {
        let mut play = Play::start(CHOICE);
        play.complete("r", choice);
        assert_eq!(play.states(), "r=completed x=open y=skipped z=pending");
        play.complete("x", json!(1));
        assert_eq!(play.open(), ["z"]);
    }
}

#[test]
fn a_convergence_is_skipped_where_nothing_was_chosen() {
    let mut play = Play::start(CHOICE);
    play.complete("r", json!([]));
    assert_eq!(play.states(), "r=completed x=skipped y=skipped z=skipped");
    assert_eq!(play.phase(), "completed");
    assert_eq!(play.view("y").reason.as_deref(), Some("step `r` did not choose it"));
}

#[test]
fn a_choice_of_something_else_makes_the_step_dead() {
    for choice in [json!("z"), json!(["x", "nothing"]), json!(5), json!({"chose": "x"})] {
        let mut play = Play::start(CHOICE);
        play.complete("r", choice.clone());
        assert_eq!((play.step("r"), play.phase()), ("dead", "dead"), "{choice}");
    }
}

#[test]
fn skip_stands_before_never() {
    let text = "steps: {r: {value: y, chooses: [x, y]}, x: {task: t, depends_on: [a]}, y: {value: 1}, a: {task: t}}\non_failure: finish";
    let play = Play::start(text);
    assert_eq!(play.states(), "a=open r=completed x=skipped y=completed");
}

#[test]
fn never_waits_for_the_other_dependencies() {
    let text = "steps: {a: {task: t}, b: {task: t}, c: {task: t, depends_on: [a, b]}}\non_failure: finish";
    let mut play = Play::start(text);
    play.fail("a");
    assert_eq!(play.step("c"), "pending");
    play.complete("b", json!(1));
    assert_eq!(play.states(), "a=failed b=completed c=unreached");
}
