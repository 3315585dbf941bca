//! Steps with `each`.

use onward_store::TaskState;
use serde_json::json;

use super::super::{ActionKind, Arrival};
use super::play::Play;

const LIST: &str = "steps: {a: {task: t, each: input, parallel: 2, with: \"${{ [index, item] }}\"}, b: {task: t, depends_on: [a], with: \"${{ steps.a }}\"}}";

#[test]
fn items_run_as_many_at_once_as_may_and_their_results_are_in_order() {
    let mut play = Play::start_with(LIST, &json!(["x", "y", "z"]));
    assert_eq!((play.open(), play.payload("a[1]")), (vec!["a[0]", "a[1]"], json!([1, "y"])));
    play.complete("a[1]", json!(2));
    assert_eq!(play.open(), ["a[0]", "a[2]"]);
    play.complete("a[2]", json!(3));
    play.complete("a[0]", json!(1));
    let step = json!({"state": "completed", "result": [1, 2, 3], "error": null, "failed": [], "count": 3});
    assert_eq!(play.payload("b"), step);
}

#[test]
fn zero_items_complete_at_once() {
    let play = Play::start_with(LIST, &json!([]));
    assert_eq!((play.step("a"), &play.payload("b")["result"]), ("completed", &json!([])));
}

#[test]
fn a_range_has_parts_of_a_width() {
    let text = "steps: {a: {task: t, each: {from: 0, to: input, by: 4}, with: \"${{ item }}\"}}";
    let play = Play::start_with(text, &json!(10));
    let parts = ["a[0]", "a[1]", "a[2]"].map(|item| play.payload(item));
    assert_eq!(parts, [json!({"from": 0, "to": 4}), json!({"from": 4, "to": 8}), json!({"from": 8, "to": 10})]);
}

#[test]
fn items_that_are_no_list_or_too_many_fail_the_step() {
    let play = Play::start_with(LIST, &json!(5));
    assert_eq!(play.error(), "step `a` is failed: `each` is a list, not an int");
    let play = Play::start("steps: {a: {task: t, each: {from: 0, to: 100001, by: 1}}}");
    assert!(play.error().contains("at most 100000"), "{}", play.error());
}

#[test]
fn over_the_tolerance_no_item_starts_and_the_step_is_dead() {
    let mut play = Play::start_with(LIST, &json!([1, 2, 3, 4]));
    play.fail("a[0]");
    assert_eq!(play.open(), ["a[1]"]);
    play.complete("a[1]", json!(1));
    assert_eq!((play.step("a"), play.phase()), ("dead", "dead"));
    assert!(play.error().contains("1 of 4 items"), "{}", play.error());
}

#[test]
fn items_within_the_tolerance_are_null_and_named() {
    let text = LIST.replace("parallel: 2", "tolerate: 34%");
    let mut play = Play::start_with(&text, &json!([7, 8, 9]));
    play.complete("a[0]", json!(1));
    play.fail("a[1]");
    play.complete("a[2]", json!(3));
    let failed = json!([{"index": 1, "item": 8, "error": {"message": "no stock"}}]);
    let step = json!({"state": "completed", "result": [1, null, 3], "error": null, "failed": failed, "count": 3});
    assert_eq!(play.payload("b"), step);
}

#[test]
fn a_batch_goes_on_to_its_end_while_the_run_stops() {
    let text = LIST.replace("b: {", "c: {task: t}, b: {");
    let mut play = Play::start_with(&text, &json!([1, 2, 3]));
    play.fail("c");
    play.complete("a[0]", json!(1));
    assert_eq!(play.open(), ["a[1]", "a[2]"]);
    play.complete("a[1]", json!(1));
    play.complete("a[2]", json!(1));
    assert_eq!((play.step("a"), play.phase()), ("completed", "failed"));
}

#[test]
fn no_item_starts_after_a_cancel() {
    let mut play = Play::start_with(LIST, &json!([1, 2, 3]));
    play.arrive(Arrival::Cancel);
    play.report("a[0]", TaskState::Cancelled, None, None);
    play.complete("a[1]", json!(1));
    assert_eq!((play.states().as_str(), play.phase()), ("a=cancelled b=unreached", "cancelled"));
}

#[test]
fn a_retry_runs_only_the_items_that_did_not_complete() {
    let mut play = Play::start_with(LIST, &json!([1, 2]));
    play.complete("a[1]", json!(5));
    play.fail("a[0]");
    play.act(ActionKind::Retry { steps: vec![] });
    assert_eq!((play.phase(), play.open()), ("running", vec!["a[0]"]));
    play.complete("a[0]", json!(4));
    assert_eq!(play.payload("b")["result"], json!([4, 5]));
}

#[test]
fn an_item_whose_payload_fails_counts_as_failed() {
    let text = "steps: {a: {task: t, each: input, with: \"${{ 1 / item }}\", tolerate: 1}}";
    let mut play = Play::start_with(text, &json!([0, 1]));
    assert_eq!(play.open(), ["a[1]"]);
    play.complete("a[1]", json!(1));
    assert_eq!(play.result(), json!([null, 1]));
}

#[test]
fn batches_too_large_for_one_turn_go_on_in_the_next() {
    let step = "{task: t, each: {from: 0, to: 10000, by: 1}, parallel: 10000, with: 1}";
    let mut play = Play::start(&format!("steps: {{a: {step}, b: {step}}}"));
    assert_eq!(play.next, super::super::RunNext::Wait { until: Some(play.now) });
    play.arrive(Arrival::Moment);
    play.arrive(Arrival::Moment);
    assert_eq!(play.open.len(), 20_000);
}

#[test]
fn items_that_depend_on_failed_items_of_many_steps_do_not_nest() {
    let step = |number: usize| match number {
        0 => "s000: {task: t, each: '[1, 2]', tolerate: all}".to_owned(),
        _ => {
            let before = number - 1;
            format!(
                "s{number:03}: {{task: t, depends_on: [s{before:03}], each: \"steps.s{before:03}.failed.map(f, f.item)\", tolerate: all, with: 1}}"
            )
        }
    };
    let steps: Vec<String> = (0..300).map(step).collect();
    let mut play = Play::start(&format!("steps: {{{}}}", steps.join(", ")));
    for number in 0..299 {
        play.fail(&format!("s{number:03}[0]"));
        play.fail(&format!("s{number:03}[1]"));
    }
    // A state that was folded from the history has evaluated nothing yet.
    play.refold();
    play.fail("s299[0]");
    play.fail("s299[1]");
    assert_eq!((play.phase(), play.result()), ("completed", json!([null, null])));
}
