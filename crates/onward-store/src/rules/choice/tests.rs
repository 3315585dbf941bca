//! Fairness: over any turns, with any weights, for any size of claims.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::api::name::Name;
use crate::api::queue::{QueueChoice, QueueMode};
use crate::rules::choice::{Chooser, QueueCandidate};

fn name(number: usize) -> Name {
    Name::new(format!("queue-{number:03}")).unwrap()
}

/// Returns the turns of queues with these weights, taken in claims of these sizes. `has_work`
/// states whether a queue has work at a turn.
fn turns(
    mode: QueueMode,
    weights: &[u32],
    claims: &[usize],
    random: u64,
    has_work: impl Fn(usize, usize) -> bool,
) -> Vec<usize> {
    let mut taken = Vec::new();
    let mut choice = QueueChoice { random, ..QueueChoice::default() };
    for size in claims {
        for _ in 0..*size {
            let with_work = |queue: &usize| has_work(taken.len(), *queue);
            let open: BTreeMap<QueueCandidate, usize> = (0..weights.len())
                .filter(with_work)
                .map(|queue| (QueueCandidate::of(mode, &name(queue), weights[queue]), queue))
                .collect();
            let mut chooser = Chooser::new(
                mode,
                choice.clone(),
                open.iter().map(|(candidate, queue)| (candidate.clone(), weights[*queue])),
            );
            let Some(picked) = chooser.pick() else { return taken };
            taken.push(open[chooser.candidate(picked).unwrap()]);
            chooser.took();
            choice = chooser.choice();
        }
    }
    taken
}

/// Returns the turns with one chooser per claim, as a store uses it.
fn turns_of_claims(mode: QueueMode, weights: &[u32], claims: &[usize], random: u64) -> Vec<usize> {
    let mut taken = Vec::new();
    let mut choice = QueueChoice { random, ..QueueChoice::default() };
    for size in claims {
        let candidates = weights
            .iter()
            .enumerate()
            .map(|(queue, weight)| (QueueCandidate::of(mode, &name(queue), *weight), *weight));
        let mut chooser = Chooser::new(mode, choice, candidates);
        for _ in 0..*size {
            taken.extend(chooser.pick());
            chooser.took();
        }
        choice = chooser.choice();
    }
    taken
}

fn count(turns: &[usize], queue: usize) -> usize {
    turns.iter().filter(|turn| **turn == queue).count()
}

fn weights() -> impl Strategy<Value = Vec<u32>> {
    vec(1..8u32, 1..6)
}

fn sum(weights: &[u32]) -> usize {
    weights.iter().map(|weight| *weight as usize).sum()
}

#[test]
fn an_interleaved_round_spreads_the_turns_of_a_queue_over_it() {
    let turns = turns(QueueMode::Interleaved, &[3, 1, 2], &[1; 12], 0, |_, _| true);
    assert_eq!(turns, [0, 1, 2, 0, 2, 0, 0, 1, 2, 0, 2, 0]);
}

#[test]
fn no_candidate_has_a_turn_without_work() {
    for mode in QueueMode::ALL {
        let mut chooser = Chooser::new(mode, QueueChoice::default(), [(QueueCandidate::of(mode, &name(0), 1), 1)]);
        chooser.close(0);
        assert_eq!(chooser.pick(), None, "{mode}");
    }
}

#[test]
fn a_lottery_gives_each_queue_about_its_weight() {
    let turns = turns_of_claims(QueueMode::Lenient, &[6, 3, 1], &[100_000], 7);
    let shares = [0, 1, 2].map(|queue| count(&turns, queue) / 1000);
    for (share, expected) in shares.into_iter().zip([60, 30, 10]) {
        assert!(share.abs_diff(expected) <= 1, "{shares:?}");
    }
}

#[test]
fn a_lottery_of_claims_of_one_gives_each_queue_about_its_weight() {
    let draw = |random| turns_of_claims(QueueMode::Lenient, &[6, 3, 1], &[1], random);
    let turns: Vec<usize> = (0..100_000).flat_map(draw).collect();
    let shares = [0, 1, 2].map(|queue| count(&turns, queue) / 1000);
    for (share, expected) in shares.into_iter().zip([60, 30, 10]) {
        assert!(share.abs_diff(expected) <= 1, "{shares:?}");
    }
}

proptest! {
    /// A claim is as large as the number of free slots, from 1 up. The size makes no difference.
    #[test]
    fn over_any_window_of_a_rounds_turns_each_queue_gets_its_weight(
        weights in weights(), slots in 1..20usize, start in 0..60usize,
    ) {
        let round = sum(&weights);
        let claims = vec![slots; (start + round) / slots + 1];
        let turns = turns_of_claims(QueueMode::Interleaved, &weights, &claims, 0);
        for (queue, weight) in weights.iter().enumerate() {
            prop_assert_eq!(count(&turns[start..start + round], queue), *weight as usize);
        }
    }

    /// The other queues gain and lose work at any turn.
    #[test]
    fn a_queue_that_always_has_work_gets_its_weight_in_any_window(
        weights in weights(), pattern in vec(any::<u8>(), 1..16), start in 0..60usize,
    ) {
        let round = sum(&weights);
        let has_work = |turn: usize, queue: usize| queue == 0 || pattern[turn % pattern.len()] >> queue & 1 == 1;
        let turns = turns(QueueMode::Interleaved, &weights, &vec![1; start + round], 0, has_work);
        prop_assert!(count(&turns[start..], 0) >= weights[0] as usize);
    }

    /// The test takes the turns of forty rounds. By chance alone a queue gets no turn once in e^40
    /// times.
    #[test]
    fn no_queue_starves_in_a_lottery(weights in weights(), random in 0..64u64, slots in 1..20usize) {
        let claims = vec![slots; sum(&weights) * 40 / slots + 1];
        let turns = turns_of_claims(QueueMode::Lenient, &weights, &claims, random);
        for queue in 0..weights.len() {
            prop_assert!(count(&turns, queue) > 0, "queue {} of {:?} had no turn", queue, weights);
        }
    }

    #[test]
    fn strict_takes_the_highest_weight_that_has_work(weights in weights(), pattern in vec(1..64u8, 1..16)) {
        let has_work = |turn: usize, queue: usize| pattern[turn % pattern.len()] >> queue & 1 == 1;
        let turns = turns(QueueMode::Strict, &weights, &[1; 16], 0, has_work);
        for (turn, queue) in turns.iter().enumerate() {
            let highest = (0..weights.len()).filter(|queue| has_work(turn, *queue)).map(|queue| weights[queue]).max();
            prop_assert_eq!(Some(weights[*queue]), highest);
        }
    }

    #[test]
    fn how_turns_are_divided_into_claims_makes_no_difference(weights in weights(), slots in 1..20usize) {
        for mode in [QueueMode::Strict, QueueMode::Interleaved] {
            let one_by_one = turns_of_claims(mode, &weights, &vec![1; slots * 5], 0);
            prop_assert_eq!(one_by_one, turns_of_claims(mode, &weights, &[slots; 5], 0));
        }
    }

    /// A chooser with a closed candidate behaves like a new one without that candidate.
    #[test]
    fn a_group_that_closes_is_as_one_that_was_never_there(
        weights in weights(), random: u64, before in 0..30usize, closed: usize, mode in 0..3usize,
    ) {
        let mode = QueueMode::ALL[mode];
        let closed = closed % weights.len();
        let candidates: BTreeMap<QueueCandidate, u32> =
            weights.iter().enumerate().map(|(queue, weight)| (QueueCandidate::of(mode, &name(queue), *weight), *weight)).collect();
        let choice = QueueChoice { random, ..QueueChoice::default() };
        let mut going_on = Chooser::new(mode, choice, candidates.clone());
        for _ in 0..before {
            going_on.pick();
            going_on.took();
        }
        let gone = QueueCandidate::of(mode, &name(closed), weights[closed]);
        let mut recreated = Chooser::new(mode, going_on.choice(), candidates.into_iter().filter(|(candidate, _)| *candidate != gone));
        let number = going_on.number(&gone).unwrap();
        going_on.close(number);
        for _ in 0..30 {
            let (one, other) = (going_on.pick(), recreated.pick());
            prop_assert_eq!(one.and_then(|number| going_on.candidate(number)), other.and_then(|number| recreated.candidate(number)));
            if one.is_none() {
                break;
            }
            going_on.took();
            recreated.took();
            prop_assert_eq!(going_on.choice(), recreated.choice());
        }
    }
}
