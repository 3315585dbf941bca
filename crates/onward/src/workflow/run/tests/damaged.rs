//! Histories that a disk has changed: they are refused or read, and never cost more than they may.

use proptest::prelude::*;
use serde_json::json;

use super::super::bounds::EACH_ITEMS;
use super::super::{Arrival, RunEvent, RunState, decode, encode, exercise_history};
use super::play::{Play, context};

const TEMPLATE: &str = "
on_failure: undo
steps:
  a: {task: t, undo: {task: u}, publishes: [{name: e}]}
  b: {task: t, each: {from: 0, to: 5, by: 1}, undo: {task: u}, depends_on: [a]}
  ask: {signal: s, depends_on: [a]}
  late: {wait: 1h, depends_on: [ask]}";

/// Plays a run that fails, and returns its history.
fn history() -> Vec<RunEvent> {
    let mut play = Play::start(TEMPLATE);
    play.complete("a", json!({"x": [1, null]}));
    let signal = onward_store::Name::new("s").unwrap();
    play.arrive(Arrival::Signal { name: signal, payload: "7".into() });
    play.complete("b[0]", json!(1));
    play.fail("b[1]");
    play.events
}

/// Folds what can be read of some bytes.
fn fold(bytes: &[u8]) -> Result<RunState, String> {
    let context = context(TEMPLATE, &serde_json::Value::Null);
    let mut state = RunState::new(&context.template);
    for event in decode(bytes)? {
        state.fold_read(&context, &event)?;
    }
    Ok(state)
}

#[test]
fn a_history_is_folded_as_it_was_written() {
    assert!(fold(&encode(&history())).is_ok());
}

#[test]
fn numbers_that_no_version_writes_are_refused() {
    let submitted = |reference, item| RunEvent::StepSubmitted { step: 0, reference, item, is_undo: false };
    let items = EACH_ITEMS as u32;
    let wrong = [
        submitted(0, None),
        submitted(2, None),
        submitted(u64::MAX, None),
        submitted(1, Some(items)),
        submitted(1, Some(u32::MAX)),
        RunEvent::BatchBegan { step: 1, count: items + 1 },
        RunEvent::BatchBegan { step: 1, count: u32::MAX },
    ];
    for event in wrong {
        let refused = fold(&encode(std::slice::from_ref(&event))).unwrap_err();
        assert!(refused.contains("is damaged") && refused.contains("backup"), "{event:?}: {refused}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = fold(&bytes);
        exercise_history(&bytes);
    }

    #[test]
    fn a_history_with_changed_bytes_is_refused_or_read(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = encode(&history());
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = fold(&bytes);
        exercise_history(&bytes);
    }

    #[test]
    fn the_events_of_a_history_in_any_order_are_refused_or_read(events in Just(history()).prop_shuffle()) {
        let _ = fold(&encode(&events));
        exercise_history(&encode(&events));
    }

    #[test]
    fn every_part_of_a_history_is_refused_or_read(from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()) {
        let bytes = encode(&history());
        let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
        let _ = fold(&bytes[from.min(to)..from.max(to)]);
    }
}
