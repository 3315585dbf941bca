//! Generates the operations of a sequence on schedules.

use std::time::Duration;

use onward_store::{
    AfterFiring, CatchUp, FireSchedule, Name, NewSchedule, NewTask, NextFiring, Overlap, Recurrence, SetSchedule,
    Timestamp, When,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::sequences::{new_task, pick};
use crate::model_based::steps::Operation;
use crate::test_store::name;

pub(super) fn operation() -> BoxedStrategy<Operation> {
    prop_oneof![
        4 => set().prop_map(|set| Operation::SetSchedule(Box::new(set))),
        8 => (fire(), pick()).prop_map(|(fire, revision)| Operation::FireSchedule { fire: Box::new(fire), revision }),
        1 => schedule().prop_map(Operation::DeleteSchedule),
        1 => schedule().prop_map(Operation::PauseSchedule),
        1 => (schedule(), pick(), option::of(next()))
            .prop_map(|(schedule, revision, next)| Operation::ResumeSchedule { schedule, revision, next }),
    ]
    .boxed()
}

fn set() -> impl Strategy<Value = SetSchedule> {
    const SECOND: Duration = Duration::from_secs(1);
    let interval = prop_oneof![1 => Just(Duration::ZERO), 9 => select(vec![SECOND, SECOND, 60 * SECOND])];
    let when = (interval, option::weighted(0.1, moment()));
    let catch_up =
        prop_oneof![1 => Just(CatchUp::All(0)), 9 => select(vec![CatchUp::None, CatchUp::Last, CatchUp::All(3)])];
    let policies = (overlap(), catch_up);
    let provider = option::weighted(0.1, Just(name("provider")));
    (schedule(), when, template(), policies, provider, option::weighted(0.8, next())).prop_map(
        |(name, (interval, starts_at), task, (overlap, catch_up), provider, next)| {
            let schedule = NewSchedule::new(name, Recurrence::Every(interval), task);
            SetSchedule { schedule: NewSchedule { overlap, catch_up, provider, starts_at, ..schedule }, next }
        },
    )
}

/// Generates the task of a schedule. Most of them a schedule may submit.
fn template() -> impl Strategy<Value = NewTask> {
    (new_task(), 0..10u8).prop_map(|(task, odd)| match odd {
        0 => task,
        1..4 => NewTask { when: When::Now, deadline: None, ..task },
        _ => NewTask { when: When::Now, deadline: None, unique: None, ..task },
    })
}

fn fire() -> impl Strategy<Value = FireSchedule> {
    let then = prop_oneof![
        3 => next().prop_map(AfterFiring::Next),
        2 => Just(AfterFiring::AsBefore),
        1 => Just(AfterFiring::Over),
    ];
    let error = option::weighted(0.1, Just("no such zone".to_owned()));
    (schedule(), vec(moment(), 0..6), option::weighted(0.5, overlap()), 0..3u64, error, then).prop_map(
        |(name, firings, overlap, missed, error, then)| FireSchedule {
            name,
            revision: 0,
            firings,
            overlap,
            missed,
            error,
            then,
        },
    )
}

fn overlap() -> impl Strategy<Value = Overlap> {
    select(Overlap::ALL.to_vec())
}

fn next() -> impl Strategy<Value = NextFiring> {
    (moment(), moment()).prop_map(|(at, due)| NextFiring { at, due })
}

fn moment() -> impl Strategy<Value = Timestamp> {
    select(vec![0, 1_704_067_205_000_000, 1_704_067_260_000_000, 1_704_067_320_000_001])
        .prop_map(Timestamp::from_microseconds)
}

fn schedule() -> impl Strategy<Value = Name> {
    select(vec!["daily", "daily", "hourly"]).prop_map(name)
}
