//! Events that runs publish, on every store.

use onward::observe::EventCursor;
use onward::workflow::{PublishedEvent, PublishedEvents};
use onward_store::{Page, StoreReads, TaskFilter, TaskState};
use serde_json::{Value, json};

use crate::fixture::{TestStore, state};
use crate::workflow_runs::{engine, result, run};

on_every_store! {
    an_event_of_the_log_is_read_with_its_payload,
    a_reader_of_the_log_continues_from_its_cursor,
    a_skipped_step_and_a_bad_payload_are_in_the_log,
    events_are_in_the_log_in_the_order_of_the_ends,
    the_undo_of_a_run_publishes_its_events_once,
    a_live_event_reaches_those_who_listen_and_is_not_stored,
    an_event_that_is_a_task_goes_to_its_queue,
    a_deleted_run_takes_its_events_with_it,
    many_steps_that_begin_items_in_one_turn_submit_no_more_than_a_store_takes,
}

async fn all(events: &mut PublishedEvents) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    while let Some(PublishedEvent { name, payload, .. }) = events.try_next().await.unwrap() {
        found.push((name, payload));
    }
    found
}

fn event(name: &str, payload: Value) -> (String, Value) {
    (name.to_owned(), payload)
}

/// Shows: W11
async fn an_event_of_the_log_is_read_with_its_payload(store: TestStore) {
    let template = "
steps:
  pay: {task: double, with: 5, publishes: [{name: order.paid, with: {cents: '${{ steps.pay.result }}'}}]}";
    let (engine, _) = engine(&store, template).await;
    let run = run(&engine, &Value::Null).await;
    let published = engine.published_events(EventCursor::START).try_next().await.unwrap().unwrap();
    assert_eq!((published.run, published.workflow.as_str()), (run, "test"));
    assert_eq!((published.name.as_str(), published.payload), ("order.paid", json!({"cents": 10})));
    assert_eq!(result(&store, run).await, json!(10));
}

/// Shows: W11
async fn a_reader_of_the_log_continues_from_its_cursor(store: TestStore) {
    let template = "steps: {a: {value: '${{ input }}', publishes: [{name: one}, {name: two}]}}";
    let (engine, _) = engine(&store, template).await;
    run(&engine, &json!(1)).await;
    let mut first = engine.published_events(EventCursor::START);
    assert_eq!(first.try_next().await.unwrap().unwrap().name, "one");
    let cursor = first.cursor();
    run(&engine, &json!(2)).await;
    let expected = [event("two", json!(1)), event("one", json!(2)), event("two", json!(2))];
    assert_eq!(all(&mut engine.published_events(cursor)).await, expected);
    assert_eq!(all(&mut first).await, expected);
}

/// Shows: W11
async fn a_skipped_step_and_a_bad_payload_are_in_the_log(store: TestStore) {
    let template = "
steps:
  a: {task: double, with: 1, if: 1 > 2, publishes: [{name: gone, when: skipped, with: why}]}
  b: {value: 7, publishes: [{name: checked, schema: {type: string}}]}";
    let (engine, _) = engine(&store, template).await;
    run(&engine, &Value::Null).await;
    let mut found = all(&mut engine.published_events(EventCursor::START)).await;
    found.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(found, [event("checked.invalid", json!(7)), event("gone", json!("why"))]);
}

/// Shows: W11
async fn events_are_in_the_log_in_the_order_of_the_ends(store: TestStore) {
    let template = "
steps:
  one: {task: double, with: 1, publishes: [{name: one}]}
  two: {task: double, with: 2, depends_on: [one], publishes: [{name: two}]}
  three: {task: fail, depends_on: [two], publishes: [{name: lost, when: failed}, {name: never}]}";
    let (engine, _) = engine(&store, template).await;
    run(&engine, &Value::Null).await;
    let found = all(&mut engine.published_events(EventCursor::START)).await;
    assert_eq!(found, [event("one", json!(2)), event("two", json!(4)), event("lost", Value::Null)]);
}

/// Shows: W11
async fn the_undo_of_a_run_publishes_its_events_once(store: TestStore) {
    let below = "
name: below
on_failure: undo
steps:
  take: {task: double, with: 1, undo: {task: undo, with: 1}, publishes: [{name: taken}]}";
    let template = "
on_failure: undo
steps:
  below: {workflow: below}
  fail: {task: fail, depends_on: [below]}";
    let (engine, seen) = engine(&store, template).await;
    engine.add_workflow(onward::workflow::template::TemplateFile::read("below.yaml", below).unwrap());
    run(&engine, &Value::Null).await;
    assert_eq!(seen.kinds(), ["double", "fail", "undo"]);
    assert_eq!(all(&mut engine.published_events(EventCursor::START)).await, [event("taken", json!(2))]);
}

/// Shows: W11
async fn a_live_event_reaches_those_who_listen_and_is_not_stored(store: TestStore) {
    let template = "steps: {a: {task: double, with: 5, publishes: [{name: tick, delivery: live}]}}";
    let (engine, _) = engine(&store, template).await;
    run(&engine, &Value::Null).await;
    let (mut one, mut other) = (engine.live_events(), engine.live_events());
    let second = run(&engine, &Value::Null).await;
    for listener in [&mut one, &mut other] {
        let received = listener.next().await.unwrap();
        assert_eq!((received.run, received.name.as_str(), received.payload), (second, "tick", json!(10)));
    }
    assert_eq!(all(&mut engine.published_events(EventCursor::START)).await, []);
}

/// Shows: W11
async fn an_event_that_is_a_task_goes_to_its_queue(store: TestStore) {
    let template = "steps: {a: {value: 5, publishes: [{name: tick, delivery: task, queue: news}]}}";
    let (engine, _) = engine(&store, template).await;
    run(&engine, &Value::Null).await;
    let filter = TaskFilter { kind: Some(onward::Name::new("event:tick").unwrap()), ..TaskFilter::default() };
    let found = store.tasks(filter, Page { before: None, limit: 10 }).await.unwrap().tasks;
    let found: Vec<_> = found.iter().map(|task| (task.queue.as_str(), task.state)).collect();
    assert_eq!(found, [("news", TaskState::Waiting)]);
}

/// Shows: W11
async fn a_deleted_run_takes_its_events_with_it(store: TestStore) {
    let template = "steps: {a: {value: '${{ input }}', publishes: [{name: e}]}}";
    let (engine, _) = engine(&store, template).await;
    let first = run(&engine, &json!(1)).await;
    run(&engine, &json!(2)).await;
    engine.delete(first).await.unwrap();
    assert_eq!(all(&mut engine.published_events(EventCursor::START)).await, [event("e", json!(2))]);
}

/// Shows: W4
async fn many_steps_that_begin_items_in_one_turn_submit_no_more_than_a_store_takes(store: TestStore) {
    let template = "
steps:
  ask_a: {signal: a}
  ask_b: {signal: b}
  a: {task: echo, depends_on: [ask_a], each: {from: 0, to: 6000, by: 1}, parallel: 10000, with: 1}
  b: {task: echo, depends_on: [ask_b], each: {from: 0, to: 6000, by: 1}, parallel: 10000, with: 1}
result: '${{ steps.a.count + steps.b.count }}'";
    let (engine, _) = engine(&store, template).await;
    let run = run(&engine, &Value::Null).await;
    engine.signal(run, "a", &json!(1)).await.unwrap();
    engine.signal(run, "b", &json!(1)).await.unwrap();
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, run).await, TaskState::Completed);
}
