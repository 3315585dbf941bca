//! Tests of the computation, with a search of all chains as the other side.

use proptest::prelude::*;

use super::compute::{Link, TimedStep, critical_path};

fn step(depends_on: &[usize], started: i64, ended: i64) -> TimedStep {
    TimedStep { depends_on: depends_on.to_vec(), did_run: true, started: Some(started), ended: Some(ended) }
}

fn open(depends_on: &[usize], started: i64) -> TimedStep {
    TimedStep { ended: None, ..step(depends_on, started, 0) }
}

fn pending(depends_on: &[usize]) -> TimedStep {
    TimedStep { depends_on: depends_on.to_vec(), ..TimedStep::default() }
}

fn chain(steps: &[TimedStep], now: i64) -> Vec<usize> {
    critical_path(steps, 0, now).links.iter().map(|link| link.step).collect()
}

#[test]
fn the_slower_of_two_branches_is_the_path_and_the_other_has_slack() {
    let steps = [step(&[], 1, 4), step(&[0], 4, 10), step(&[0], 5, 7), step(&[1, 2], 11, 12)];
    let path = critical_path(&steps, 0, 99);
    let link = |step, waited, took| Link { step, waited, took };
    assert_eq!(path.links, [link(0, 1, 3), link(1, 0, 6), link(3, 1, 1)]);
    assert_eq!((path.slack, path.end), (vec![Some(0), Some(0), Some(3), Some(0)], 12));
}

#[test]
fn a_run_without_a_started_step_has_no_path() {
    let path = critical_path(&[pending(&[]), pending(&[0])], 5, 9);
    assert_eq!((path.links, path.slack, path.end), (vec![], vec![None, None], 5));
}

#[test]
fn a_step_that_was_skipped_early_did_not_wait_for_the_rest() {
    let skipped = TimedStep { depends_on: vec![0, 1], did_run: false, started: None, ended: Some(3) };
    let steps = [step(&[], 0, 3), step(&[], 0, 9), skipped, step(&[2], 3, 12)];
    assert_eq!(chain(&steps, 99), [0, 2, 3]);
}

#[test]
fn the_path_of_a_live_run_ends_with_the_open_step_that_has_most_behind_it() {
    let steps = [step(&[], 0, 2), open(&[0], 2), open(&[0], 3), pending(&[2]), pending(&[3])];
    let path = critical_path(&steps, 0, 10);
    assert_eq!((path.links.last().map(|link| (link.step, link.took)), path.end), (Some((2, 7)), 10));
    assert_eq!(path.slack[1], Some(0), "{path:?}");
}

#[test]
fn a_last_step_without_a_duration_is_on_the_path_and_a_skipped_one_is_not() {
    let last = TimedStep { started: None, ..step(&[0], 0, 5) };
    let skipped = TimedStep { did_run: false, ..last.clone() };
    assert_eq!(chain(&[step(&[], 0, 5), last, skipped], 99), [0, 1]);
}

#[test]
fn a_clock_that_was_set_back_gives_no_negative_time() {
    let path = critical_path(&[step(&[], 10, 5), step(&[0], 2, 1)], 7, 99);
    assert!(path.links.iter().all(|link| link.waited >= 0 && link.took >= 0), "{path:?}");
    assert!(path.slack.iter().flatten().all(|slack| *slack >= 0), "{path:?}");
}

/// A step of a random run: its dependencies, the time until its start, and its duration. Without a
/// duration it was skipped when it was ready.
type Drawn = (Vec<usize>, i64, Option<i64>);

fn runs() -> impl Strategy<Value = Vec<Drawn>> {
    let step =
        (prop::collection::vec(any::<prop::sample::Index>(), 0..4), 0..5_i64, prop::option::weighted(0.8, 0..9_i64));
    prop::collection::vec(step, 1..14).prop_map(|steps| {
        let before = |(number, (picks, gap, took)): (usize, (Vec<prop::sample::Index>, i64, Option<i64>))| {
            let picks = if number == 0 { Vec::new() } else { picks };
            (picks.iter().map(|pick| pick.index(number)).collect(), gap, took)
        };
        steps.into_iter().enumerate().map(before).collect()
    })
}

/// Plays a run in which each step is ready when all that it depends on has ended. `late` makes one
/// step end later.
fn played(run: &[Drawn], began: i64, late: Option<(usize, i64)>) -> Vec<TimedStep> {
    let mut steps: Vec<TimedStep> = Vec::new();
    for (number, (depends_on, gap, took)) in run.iter().enumerate() {
        let ends = depends_on.iter().filter_map(|before| steps[*before].ended);
        let ready = ends.max().unwrap_or(began);
        let extra = late.filter(|(step, _)| *step == number).map_or(0, |(_, extra)| extra);
        let started = took.map(|_| ready + gap);
        let ended = Some(started.unwrap_or(ready) + took.unwrap_or(0) + extra);
        steps.push(TimedStep { depends_on: depends_on.clone(), did_run: took.is_some(), started, ended });
    }
    steps
}

/// Returns the length of the longest chain, found by a search of all chains.
fn longest(run: &[Drawn]) -> i64 {
    fn to(run: &[Drawn], step: usize) -> i64 {
        let (depends_on, gap, took) = &run[step];
        let own = took.map_or(0, |took| gap + took);
        own + depends_on.iter().map(|before| to(run, *before)).max().unwrap_or(0)
    }
    (0..run.len()).map(|step| to(run, step)).max().unwrap_or(0)
}

fn end(steps: &[TimedStep]) -> i64 {
    steps.iter().filter_map(|step| step.ended).max().unwrap_or(0)
}

proptest! {
    #[test]
    fn the_path_is_the_longest_chain(run in runs(), began in 0..100_i64) {
        let path = critical_path(&played(&run, began, None), began, 1_000);
        let length: i64 = path.links.iter().map(|link| link.waited + link.took).sum();
        prop_assert_eq!(length, longest(&run));
        prop_assert_eq!(path.end - began, length);
        for pair in path.links.windows(2) {
            prop_assert!(run[pair[1].step].0.contains(&pair[0].step));
        }
        prop_assert!(path.links.iter().all(|link| path.slack[link.step] == Some(0)));
    }

    #[test]
    fn a_step_can_be_late_by_its_slack_and_no_more(run in runs(), pick in any::<prop::sample::Index>()) {
        let steps = played(&run, 0, None);
        let late = pick.index(run.len());
        // A step that was skipped is not ready later than what it depends on.
        prop_assume!(run[late].2.is_some());
        let slack = critical_path(&steps, 0, 1_000).slack[late].unwrap_or_default();
        prop_assert_eq!(end(&played(&run, 0, Some((late, slack)))), end(&steps));
        prop_assert!(end(&played(&run, 0, Some((late, slack + 1)))) > end(&steps));
    }
}
