//! Properties of all runs, over random templates and random courses.

use std::collections::BTreeMap;
use std::time::Duration;

use onward_store::TaskState;
use proptest::prelude::*;

use super::super::state::event::TakenAction;
use super::super::{ActionKind, Arrival, Phase, ReportedResult, RunEvent, RunState, StepState, UndoState};
use super::oracle::Oracle;
use super::play::{Play, context};
use super::random::{Dice, ENDS, drain, end, happen, sketch, states};
use crate::workflow::template::StepAction;

const POLICIES: [&str; 4] = ["stop", "finish", "undo", "hold"];

fn rolls() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(any::<u32>(), 20..250)
}

/// Plays a random run to its end, with a look at it after each turn.
fn play(rolls: &[u32], acts: bool, mut look: impl FnMut(&Play, &Play)) -> Play {
    let mut dice = Dice::new(rolls);
    let sketch = sketch(&mut dice, &POLICIES);
    let mut play = Play::of(context(&sketch.text(0), &serde_json::Value::Null));
    play.arrive(Arrival::Start);
    while !dice.is_used() {
        let before = play.clone();
        happen(&mut dice, &mut play, acts);
        look(&before, &play);
    }
    play
}

proptest! {
    #[test]
    fn the_order_of_the_file_changes_nothing(rolls in rolls()) {
        let sketch_of = |dice: &mut Dice<'_>| sketch(dice, &POLICIES);
        let course = |first: usize| {
            let mut dice = Dice::new(&rolls);
            let text = sketch_of(&mut dice).text(first);
            let mut play = Play::of(context(&text, &serde_json::Value::Null));
            play.arrive(Arrival::Start);
            while !dice.is_used() {
                happen(&mut dice, &mut play, true);
            }
            (play.events, play.submitted, play.cancelled, play.withdrawn)
        };
        prop_assert_eq!(course(0), course(rolls[0] as usize % 8 + 1));
    }

    #[test]
    fn every_order_of_ends_comes_to_the_states_of_the_specification(rolls in rolls()) {
        let mut dice = Dice::new(&rolls);
        let sketch = sketch(&mut dice, &["finish"]);
        let context = context(&sketch.text(0).replace("timeout: 5h\n", ""), &serde_json::Value::Null);
        let template = context.template.clone();
        let ends: BTreeMap<String, TaskState> =
            template.steps.iter().map(|step| (step.name.clone(), dice.pick(&ENDS))).collect();
        let mut play = Play::of(context);
        play.arrive(Arrival::Start);
        while play.state.phase() == Phase::Running {
            let open: Vec<String> = play.open().into_iter().map(str::to_owned).collect();
            if open.is_empty() || dice.one_in(4) {
                play.after(Duration::from_secs(1800));
            } else {
                let name = open[dice.roll(open.len())].clone();
                end(&mut play, &name, ends[name.split('[').next().unwrap()]);
            }
        }
        let oracle = Oracle { template: &template, ends: &ends };
        let expected: Vec<_> = template.steps.iter().map(|step| (step.name.clone(), oracle.state(step))).collect();
        prop_assert_eq!(states(&play), expected, "{}", sketch.text(0));
    }

    #[test]
    fn at_its_end_nothing_of_a_run_is_left_and_nothing_follows(rolls in rolls()) {
        play(&rolls, true, |before, play| {
            let phase = play.state.phase();
            if phase.is_ended() {
                let is_left = |state: StepState| !state.is_ended();
                assert!(!states(play).into_iter().any(|(_, state)| is_left(state)), "{}", play.states());
                assert!(play.open.is_empty(), "{:?}", play.open());
                let undos = play.state.steps(&play.context).map(|step| step.undo);
                assert!(undos.into_iter().all(|undo| matches!(undo, UndoState::None | UndoState::Completed)));
            }
            let is_silent = |event: &RunEvent| matches!(event, RunEvent::Refused { .. });
            let acted = play.events[before.events.len()..].iter().any(|event| matches!(event, RunEvent::ActionTaken { .. }));
            if before.state.phase().is_ended() && !acted {
                assert!(play.events[before.events.len()..].iter().all(is_silent));
            }
        });
    }

    #[test]
    fn every_run_ends_or_is_held(rolls in rolls()) {
        let mut play = play(&rolls, true, |_, _| ());
        prop_assert!(drain(&mut play), "{} {}", play.phase(), play.states());
        prop_assert!(!play.error_of_bug(), "{:?}", play.next);
    }

    #[test]
    fn the_fold_of_a_prefix_and_the_rest_is_the_same_run(rolls in rolls()) {
        let play = play(&rolls, true, |_, _| ());
        let mut state = RunState::new(&play.context.template);
        play.events.iter().for_each(|event| state.fold(&play.context, event));
        prop_assert!(state == play.state);
    }

    #[test]
    fn a_report_twice_has_no_effect(rolls in rolls()) {
        play(&rolls, true, |before, play| {
            for reference in before.open.keys().filter(|reference| !play.open.contains_key(reference)) {
                let mut again = play.clone();
                let (task, state, result) = (onward_store::TaskId(1), TaskState::Completed, ReportedResult::None);
                again.arrive(Arrival::StepEnded { reference: *reference, task, state, result, error: None, attempts: 1 });
                assert!(again.state == play.state && again.events.len() == play.events.len());
            }
        });
    }

    #[test]
    fn exactly_what_may_have_happened_is_undone_dependents_first(rolls in rolls()) {
        play(&rolls, true, |before, play| {
            let template = &play.context.template;
            for event in &play.events[before.events.len()..] {
                if let RunEvent::UndoBegan { steps } = event {
                    let expected: Vec<u32> = (0..template.steps.len())
                        .filter(|step| may_have_happened(play, *step))
                        .map(|step| u32::try_from(step).unwrap())
                        .collect();
                    assert_eq!(steps, &expected);
                }
            }
            for (reference, (name, _)) in play.open.iter().filter(|(_, (name, _))| name.starts_with("undo.")) {
                if before.open.contains_key(reference) {
                    continue;
                }
                let step = name.trim_start_matches("undo.").split('[').next().unwrap();
                let number = template.number(step).unwrap();
                let undone = |other: usize| {
                    let undo = play.view(&template.steps[other].name).undo;
                    matches!(undo, UndoState::None | UndoState::Completed)
                };
                assert!((0..template.steps.len()).all(|other| !template.graph.is_ancestor(number, other) || undone(other)));
            }
        });
    }

    #[test]
    fn actions_are_allowed_as_the_table_says(rolls in rolls()) {
        let mut dice = Dice::new(&rolls);
        let mut play = Play::of(context(&sketch(&mut dice, &POLICIES).text(0), &serde_json::Value::Null));
        play.arrive(Arrival::Start);
        while !dice.is_used() {
            let action = super::random::random_action(&mut dice, &play);
            let allowed = is_allowed(&play, &action);
            let mut acted = play.clone();
            acted.act(action.clone());
            prop_assert_eq!(acted.refusal().is_none(), allowed, "{:?} {} {}", action, play.phase(), play.states());
            if dice.roll(3) == 0 {
                play = acted;
            }
            happen(&mut dice, &mut play, false);
        }
    }
}

/// Returns true if a step has an undo, and its reports and actions say that it may have had an
/// effect.
fn may_have_happened(play: &Play, step: usize) -> bool {
    let template = &play.context.template;
    let StepAction::Work(work) = &template.steps[step].action else { return false };
    let is_workflow = matches!(work.kind, crate::workflow::template::WorkKind::Workflow { .. });
    if work.undo.is_none() && !is_workflow {
        return false;
    }
    let number = u32::try_from(step).unwrap();
    // The items of a step, or the step as its only item.
    let mut happened: BTreeMap<Option<u32>, bool> = BTreeMap::new();
    let mut open: BTreeMap<u64, Option<u32>> = BTreeMap::new();
    for event in &play.events {
        match event {
            RunEvent::StepSubmitted { step, reference, item, is_undo: false } if *step == number => {
                open.insert(*reference, *item);
            }
            RunEvent::TaskEnded { reference, state, attempts, .. } => {
                let Some(item) = open.remove(reference) else { continue };
                let happened = happened.entry(item).or_default();
                match state {
                    StepState::Completed | StepState::Dead => *happened = true,
                    StepState::Failed if *attempts > 0 => *happened = false,
                    StepState::Cancelled if *attempts > 0 => *happened = true,
                    _ => {}
                }
            }
            RunEvent::StepEnded { step, state: StepState::Completed, .. } if *step == number && work.each.is_none() => {
                happened.insert(None, true);
            }
            _ => {}
        }
    }
    let is_skipped = play.view(&template.steps[step].name).state == StepState::Skipped;
    !is_skipped && happened.values().any(|happened| *happened)
}

/// The table of manual actions, as the documentation has it.
fn is_allowed(play: &Play, action: &ActionKind) -> bool {
    let phase = play.state.phase();
    let undo_began = play.events.iter().any(|event| matches!(event, RunEvent::UndoBegan { .. }));
    let stopped = matches!(phase, Phase::Held | Phase::Failed | Phase::Dead | Phase::Cancelled);
    let open_undo = |step: &str| phase == Phase::Held && play.view(step).undo == UndoState::Failed;
    let mended = |state: StepState| state.is_bad() || state == StepState::Cancelled;
    let state = |step: &str| play.view(step).state;
    let chooses = |step: &str| !play.context.template.step(step).unwrap().chooses.is_empty();
    let graph = &play.context.template.graph;
    match action {
        ActionKind::Retry { steps } => match steps.as_slice() {
            [] => {
                let mut all = play.state.steps(&play.context);
                let any = all.any(|step| open_undo(step.name) || stopped && !undo_began && mended(step.state));
                let own_failure = stopped && !undo_began && !matches!(phase, Phase::Held);
                any || own_failure
            }
            steps => steps.iter().all(|step| open_undo(step) || stopped && !undo_began && mended(state(step))),
        },
        ActionKind::Reset { step } => {
            let number = play.context.template.number(step).unwrap();
            let mut others = play.context.template.steps.iter().enumerate();
            let open_behind =
                others.any(|(other, step)| graph.is_ancestor(number, other) && state(&step.name).is_active());
            state(step).is_ended() && (stopped && !undo_began || phase == Phase::Running && !open_behind)
        }
        ActionKind::Resolve { step } => {
            open_undo(step) || stopped && !undo_began && mended(state(step)) && !chooses(step)
        }
        ActionKind::Complete { step, .. } => {
            (phase == Phase::Running || stopped && !undo_began)
                && (mended(state(step)) || state(step) == StepState::Waiting)
        }
        ActionKind::Skip { step } => {
            let is_open = matches!(state(step), StepState::Pending | StepState::Waiting);
            (phase == Phase::Running || stopped && !undo_began) && (mended(state(step)) || is_open)
        }
        ActionKind::Cancel { undo } => {
            let asked = play
                .events
                .iter()
                .rev()
                .take_while(|event| !matches!(event, RunEvent::PhaseChanged { phase: Phase::Running, .. }));
            let (mut is_cancelled, mut wants_undo) = (false, false);
            for event in asked {
                match event {
                    RunEvent::CancelRequested { .. } => is_cancelled = true,
                    RunEvent::ActionTaken { action: TakenAction::Cancel { undo }, .. } => {
                        is_cancelled = true;
                        wants_undo |= undo;
                    }
                    RunEvent::ActionTaken { action: TakenAction::Undo, .. } => wants_undo = true,
                    _ => {}
                }
            }
            let is_asked = is_cancelled && (wants_undo || !*undo);
            let is_half_undone = phase == Phase::Held && undo_began;
            !phase.is_ended() && !is_half_undone && !is_asked
        }
        ActionKind::Undo => stopped && !undo_began,
    }
}
