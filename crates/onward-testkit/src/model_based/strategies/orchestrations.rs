//! Generates turns of orchestrations, and signals to them.

use std::time::Duration;

use bytes::Bytes;
use onward_store::{AttemptEnd, Dependencies, NewTask};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::sequences::{after_failure, delay, kind, new_task, pick, tag};
use crate::model_based::steps::{ChildPick, EndWithTurnOperation, NextTurn, Operation, TurnOperation};

pub(super) fn operation() -> impl Strategy<Value = Operation> {
    let key = select(vec!["a", "b", "b", "ä"]);
    prop_oneof![
        6 => turn().prop_map(|turn| Operation::Turn(Box::new(turn))),
        6 => end_with_turn().prop_map(|end| Operation::EndWithTurn(Box::new(end))),
        3 => pick().prop_map(Operation::Signal),
        1 => pick().prop_map(Operation::Terminate),
        2 => signal_or_start(),
        2 => pick().prop_map(Operation::PauseOrchestration),
        2 => pick().prop_map(Operation::ResumeOrchestration),
        1 => (kind(), key).prop_map(|(kind, key)| Operation::SignalKey { kind, key: key.to_owned() }),
    ]
}

fn signal_or_start() -> impl Strategy<Value = Operation> {
    let keep_for = select(vec![Duration::ZERO, Duration::from_secs(5), Duration::from_secs(60)]);
    let key = select(vec!["a", "b", "ä", ""]);
    (kind(), key, keep_for).prop_map(|(kind, key, keep_for)| Operation::SignalKeyOrStart {
        kind,
        key: key.to_owned(),
        keep_for,
    })
}

/// Generates an end with a turn: mostly as planned, sometimes of another generation, or planned on
/// an end that may not be there.
pub(super) fn end_with_turn() -> impl Strategy<Value = EndWithTurnOperation> {
    let end = prop_oneof![
        4 => option::of(blob()).prop_map(|result| AttemptEnd::Complete { result }),
        2 => after_failure().prop_map(|next| AttemptEnd::Fail { error: "oops".into(), next }),
        1 => Just(AttemptEnd::ConfirmCancel { reason: "stopped".into() }),
    ];
    let ahead = prop_oneof![6 => Just(0), 2 => Just(1), 1 => Just(2)];
    (pick(), end, turn(), ahead, proptest::bool::weighted(0.05))
        .prop_map(|(lease, end, turn, ahead, outdated)| EndWithTurnOperation { lease, end, turn, ahead, outdated })
}

fn child() -> impl Strategy<Value = ChildPick> {
    prop_oneof![pick().prop_map(ChildPick::Task), (0..3u64).prop_map(ChildPick::Reference)]
}

fn turn() -> impl Strategy<Value = TurnOperation> {
    let appended = (0..3u64, prop_oneof![9 => Just(0), 1 => 1..3u64]);
    let consumed = prop_oneof![3 => Just(64u64), 1 => 0..3u64];
    let published = (option::weighted(0.2, blob()), vec((select(vec!["x", "y"]), option::of(blob())), 0..2));
    let published = (published, changed_tags());
    let tasks = (vec(submit(), 0..3), (vec(child(), 0..2), vec(child(), 0..2)));
    let next = (next_turn(), prop_oneof![3 => Just(false), 1 => Just(true)]);
    (pick(), appended, consumed, published, tasks, next).prop_map(
        |(lease, (events, behind), consumed, ((status, values), tags), (submits, (cancels, withdraws)), next)| {
            TurnOperation {
                lease,
                events,
                behind,
                consumed,
                status,
                values: values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
                tags,
                submits,
                cancels,
                withdraws,
                leaves_unread: next.1,
                next: next.0,
            }
        },
    )
}

/// Generates tag changes: often none, mostly of the few tags that tasks have, sometimes invalid.
fn changed_tags() -> impl Strategy<Value = Vec<(String, Option<String>)>> {
    let change = tag().prop_flat_map(|(key, value)| {
        let removed = (key, None);
        prop_oneof![2 => Just((key, Some(value))), 1 => Just(removed)]
    });
    let tags = prop_oneof![30 => vec(change, 0..4), 1 => Just(vec![("a=b", Some("1"))])];
    let owned = |(key, value): (&str, Option<&str>)| (key.to_owned(), value.map(str::to_owned));
    option::weighted(0.5, tags).prop_map(move |tags| tags.unwrap_or_default().into_iter().map(owned).collect())
}

fn blob() -> impl Strategy<Value = Bytes> {
    select(vec![b"".as_slice(), b"value", &[0; 33]]).prop_map(Into::into)
}

/// Generates a submit of a turn. Most are allowed in a turn, some are rejected. Any parent stands
/// for the orchestration itself.
fn submit() -> impl Strategy<Value = NewTask> {
    (new_task(), prop_oneof![9 => Just(true), 1 => Just(false)]).prop_map(|(new, is_allowed)| {
        if is_allowed { NewTask { depends_on: Dependencies::default(), aggregate: None, ..new } } else { new }
    })
}

fn next_turn() -> impl Strategy<Value = NextTurn> {
    prop_oneof![
        3 => Just(NextTurn::Continue),
        6 => option::of(delay()).prop_map(NextTurn::Park),
        1 => option::of(blob()).prop_map(NextTurn::Complete),
        1 => Just(NextTurn::Fail),
        2 => Just(NextTurn::Dead),
        1 => Just(NextTurn::Cancelled),
        2 => (blob(), 0..3u64).prop_map(|(payload, events)| NextTurn::ContinueAsNew { payload, events }),
    ]
}
