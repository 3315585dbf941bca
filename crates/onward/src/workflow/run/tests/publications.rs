//! Published events.

use serde_json::json;

use super::super::RunEvent;
use super::play::Play;

fn published(step: &str, end: impl FnOnce(&mut Play)) -> Vec<(String, serde_json::Value)> {
    let mut play = Play::start(&format!("steps: {{a: {step}}}"));
    end(&mut play);
    play.published
}

#[test]
fn an_end_publishes_the_result_of_the_step() {
    let step = "{task: t, publishes: [{name: e}, {name: f, when: failed}, {name: g, when: ended}]}";
    let ended = published(step, |play| play.complete("a", json!(5)));
    assert_eq!(ended, [("e".to_owned(), json!(5)), ("g".to_owned(), json!(5))]);
    let failed = published(step, |play| play.fail("a"));
    assert_eq!(failed, [("f".to_owned(), json!(null)), ("g".to_owned(), json!(null))]);
}

#[test]
fn an_event_has_a_condition_and_a_payload() {
    let step = "{task: t, publishes: [{name: e, if: steps.a.result > 3, with: {n: \"${{ steps.a.result }}\"}}]}";
    assert_eq!(published(step, |play| play.complete("a", json!(5))), [("e".to_owned(), json!({"n": 5}))]);
    assert_eq!(published(step, |play| play.complete("a", json!(1))), []);
}

#[test]
fn a_wrong_payload_is_published_as_invalid_and_fails_nothing() {
    let step = "{task: t, publishes: [{name: e, schema: {type: text}}]}".replace("text", "string");
    assert_eq!(published(&step, |play| play.complete("a", json!(5))), [("e.invalid".to_owned(), json!(5))]);
    let step = "{task: t, publishes: [{name: e, with: \"${{ steps.a.result.x }}\"}]}";
    let events = published(step, |play| {
        play.complete("a", json!(5));
        assert_eq!(play.phase(), "completed");
    });
    assert_eq!(events[0].0, "e.invalid");
}

#[test]
fn a_skipped_step_publishes_that_it_was() {
    let step = "{task: t, if: 1 > 2, publishes: [{name: e}, {name: s, when: skipped, with: 1}]}";
    assert_eq!(published(step, |_| ()), [("s".to_owned(), json!(1))]);
}

#[test]
fn events_beyond_the_bound_are_counted() {
    let events: Vec<String> = (0..60).map(|number| format!("{{name: e{number}}}")).collect();
    let steps: Vec<String> =
        (0..20).map(|number| format!("s{number}: {{value: 1, publishes: [{}]}}", events.join(", "))).collect();
    let play = Play::start(&format!("steps: {{{}}}", steps.join(", ")));
    assert_eq!(play.published.len(), 1000);
    assert!(play.events.contains(&RunEvent::PublicationsLeftOut { count: 200 }));
}
