//! Random templates, and random courses of their runs.

use std::time::Duration;

use onward_store::TaskState;
use serde_json::{Value, json};

use super::super::{ActionKind, Arrival, Phase, StepState};
use super::play::Play;

/// A source of choices. A shorter list makes simpler ones.
pub(super) struct Dice<'a> {
    rolls: &'a [u32],
    at: usize,
}

impl<'a> Dice<'a> {
    pub(super) fn new(rolls: &'a [u32]) -> Self {
        Self { rolls, at: 0 }
    }

    /// Returns a number below a bound; 0 once all rolls are used.
    pub(super) fn roll(&mut self, bound: usize) -> usize {
        let roll = self.rolls.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        roll as usize % bound
    }

    /// Returns true once in so many times.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.roll(times) == times - 1
    }

    pub(super) fn is_used(&self) -> bool {
        self.at >= self.rolls.len()
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())]
    }
}

/// A random template.
pub(super) struct Sketch {
    pub(super) head: String,
    /// The steps in an order in which each comes after all that it depends on.
    pub(super) steps: Vec<(String, String)>,
}

impl Sketch {
    /// Returns the text of the template, with its steps in an order that starts at one of them.
    pub(super) fn text(&self, first: usize) -> String {
        let count = self.steps.len();
        let ordered = (0..count).map(|at| &self.steps[(count * 2 - at + first) % count]);
        let steps: Vec<String> = ordered.map(|(name, body)| format!("  {name}: {{{body}}}")).collect();
        format!("{}steps:\n{}\n", self.head, steps.join("\n"))
    }
}

const NAMES: [&str; 8] = ["m", "c", "x", "a", "t", "f", "z", "k"];

/// Makes a template of all kinds of steps.
pub(super) fn sketch(dice: &mut Dice<'_>, policies: &[&str]) -> Sketch {
    let count = 1 + dice.roll(NAMES.len());
    let mut chosen_by: Vec<Option<usize>> = vec![None; count];
    let mut choices: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (step, chosen_by) in chosen_by.iter_mut().enumerate().skip(1) {
        if dice.one_in(4) {
            let chooser = dice.roll(step);
            *chosen_by = Some(chooser);
            choices[chooser].push(step);
        }
    }
    let steps: Vec<(String, String)> =
        (0..count).map(|step| (NAMES[step].to_owned(), body(dice, step, chosen_by[step], &choices[step]))).collect();
    let mut policy = dice.pick(policies);
    if policy == "undo" && !steps.iter().any(|(_, body)| body.contains("undo") || body.contains("workflow")) {
        policy = "stop";
    }
    let timeout = if dice.one_in(6) { "timeout: 5h\n" } else { "" };
    Sketch { head: format!("on_failure: {policy}\n{timeout}"), steps }
}

fn body(dice: &mut Dice<'_>, step: usize, chooser: Option<usize>, choices: &[usize]) -> String {
    let mut fields = vec![action(dice, step, !choices.is_empty())];
    let mut needed = Vec::new();
    for (other, name) in NAMES.iter().enumerate().take(step) {
        if Some(other) != chooser && dice.roll(3) == 1 {
            needed.push(match dice.roll(5) {
                3 => format!("{{{name}: failed}}"),
                4 => format!("{{{name}: ended}}"),
                _ => (*name).to_owned(),
            });
        }
    }
    if !needed.is_empty() {
        fields.push(format!("depends_on: [{}]", needed.join(", ")));
    }
    if !choices.is_empty() {
        let names: Vec<&str> = choices.iter().map(|choice| NAMES[*choice]).collect();
        fields.push(format!("chooses: [{}]", names.join(", ")));
    }
    if dice.one_in(6) {
        fields.push(format!("if: {}", dice.pick(&["2 > 1", "1 > 2", "1 / 0 > 1"])));
    }
    if dice.one_in(5) {
        fields.push("on_failure: continue".to_owned());
    }
    fields.join(", ")
}

fn action(dice: &mut Dice<'_>, step: usize, chooses: bool) -> String {
    let kinds = if chooses { 4 } else { 9 };
    let mut action = match dice.roll(kinds) {
        1 => "run: echo".to_owned(),
        2 => "workflow: w".to_owned(),
        3 => return if chooses { "value: []".to_owned() } else { "value: 1".to_owned() },
        4 => return "fail: no".to_owned(),
        5 => return "wait: 1h".to_owned(),
        6 => return format!("signal: s{step}, deadline: 2h"),
        7 => return format!("signal: s{step}, deadline: 2h, otherwise: 1"),
        8 => "task: t, each: '[1, 2, 3]', parallel: 2, tolerate: 1".to_owned(),
        _ => "task: t".to_owned(),
    };
    if dice.one_in(3) {
        action.push_str(", undo: {task: u}");
    }
    if dice.one_in(8) {
        action.push_str(", after: 1m");
    }
    action
}

/// The ends of a task.
pub(super) const ENDS: [TaskState; 8] = [
    TaskState::Completed,
    TaskState::Completed,
    TaskState::Completed,
    TaskState::Completed,
    TaskState::Failed,
    TaskState::Dead,
    TaskState::Expired,
    TaskState::Cancelled,
];

/// Ends a submission. A step that chooses gets the first that it can choose.
pub(super) fn end(play: &mut Play, name: &str, state: TaskState) {
    let step = name.trim_start_matches("undo.");
    let number = play.context.template.number(step.split('[').next().unwrap());
    let template = play.context.template.clone();
    let chosen =
        number.and_then(|number| template.steps[number].chooses.first()).map(|step| &template.steps[*step].name);
    let result = chosen.map_or(json!(1), |name| json!(name));
    let is_completed = state == TaskState::Completed;
    let result = is_completed.then(|| result.to_string().into());
    play.report(name, state, result, (!is_completed).then_some("bad"));
}

/// Returns an action on a step.
pub(super) fn random_action(dice: &mut Dice<'_>, play: &Play) -> ActionKind {
    let steps = &play.context.template.steps;
    let step = steps[dice.roll(steps.len())].name.clone();
    match dice.roll(9) {
        0 => ActionKind::Retry { steps: vec![] },
        1 | 2 => ActionKind::Retry { steps: vec![step] },
        3 => ActionKind::Reset { step },
        4 => ActionKind::Resolve { step },
        5 => {
            let chooses = play.context.template.step(&step).is_some_and(|step| !step.chooses.is_empty());
            let result: Value = if chooses { json!([]) } else { json!(5) };
            ActionKind::Complete { step, result: result.to_string().into() }
        }
        6 => ActionKind::Skip { step },
        7 => ActionKind::Cancel { undo: dice.roll(2) == 0 },
        _ => ActionKind::Undo,
    }
}

/// Lets something happen.
pub(super) fn happen(dice: &mut Dice<'_>, play: &mut Play, acts: bool) {
    let open: Vec<String> = play.open().into_iter().map(str::to_owned).collect();
    match dice.roll(if acts { 14 } else { 10 }) {
        0 | 1 => play.after(Duration::from_secs(1800)),
        2 => {
            let step = dice.roll(NAMES.len());
            play.signal(&format!("s{step}"), json!(1));
        }
        10 if dice.one_in(4) => play.arrive(Arrival::Cancel),
        11..14 => {
            let action = random_action(dice, play);
            play.act(action);
        }
        _ if open.is_empty() => play.after(Duration::from_secs(1800)),
        _ => {
            let name = &open[dice.roll(open.len())];
            end(play, name, dice.pick(&ENDS));
        }
    }
}

/// Lets all that is open complete, until the run has ended or is held. Returns false if it does not
/// within a number of turns.
pub(super) fn drain(play: &mut Play) -> bool {
    for _ in 0..200 {
        if play.state.phase().is_ended() || play.state.phase() == Phase::Held {
            return true;
        }
        match play.open().first().map(|name| (*name).to_owned()) {
            Some(name) => end(play, &name, TaskState::Completed),
            None => play.after(Duration::from_secs(3600)),
        }
    }
    false
}

/// Returns the states of all steps by name.
pub(super) fn states(play: &Play) -> Vec<(String, StepState)> {
    play.state.steps(&play.context).map(|step| (step.name.to_owned(), step.state)).collect()
}
