//! The steps of a run on a terminal, redrawn in place.
//!
//! Lines of people and of scripts are written above the tree: [`Tree::above`] removes the tree from
//! the terminal, lets them be written, and draws it again. A line that is written in any other way
//! would be overwritten by the next redraw.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use onward::workflow::{RunView, StepState, StepView};

use super::output::colored;
use crate::output::one_line;

/// The steps that have a line of their own. Of a larger workflow only the open steps have one.
const LINES: usize = 24;

/// The columns that are shown of a name or of a reason.
const COLUMNS: usize = 60;

/// The interval at which the times of open steps are redrawn.
const REDRAW: Duration = Duration::from_millis(100);

/// A line for each step, and a bar for all of them.
#[derive(Debug)]
pub(super) struct Tree {
    bars: MultiProgress,
    drawn: Mutex<Bars>,
}

#[derive(Debug, Default)]
struct Bars {
    all: Option<ProgressBar>,
    steps: BTreeMap<String, ProgressBar>,
}

impl Tree {
    pub(super) fn new() -> Self {
        Self { bars: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()), drawn: Mutex::default() }
    }

    fn drawn(&self) -> MutexGuard<'_, Bars> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws the present state.
    pub(super) fn update(&self, view: &RunView) {
        let mut drawn = self.drawn();
        let depths = depths(view);
        for step in &view.steps {
            let is_open = matches!(step.state, StepState::Open | StepState::Waiting);
            if view.steps.len() <= LINES || is_open || drawn.steps.contains_key(&step.name) {
                let depth = depths.get(step.name.as_str()).copied().unwrap_or_default();
                let bar = drawn.steps.entry(step.name.clone()).or_insert_with(|| self.line(depth));
                draw(bar, step);
                if view.steps.len() > LINES && !is_open {
                    bar.finish_and_clear();
                    drawn.steps.remove(&step.name);
                }
            }
        }
        let all = drawn.all.get_or_insert_with(|| self.bar(view.steps.len() as u64));
        all.set_position(view.steps.iter().filter(|step| step.state.is_ended()).count() as u64);
    }

    fn line(&self, depth: usize) -> ProgressBar {
        let bar = self.bars.add(ProgressBar::no_length());
        let indent = "  ".repeat(depth);
        let template = format!("{indent}{{spinner}} {{prefix}} {{msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "));
        }
        bar
    }

    fn bar(&self, steps: u64) -> ProgressBar {
        let bar = self.bars.add(ProgressBar::new(steps));
        if let Ok(style) = ProgressStyle::with_template("{bar:30.cyan} {pos}/{len} steps  {elapsed_precise}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(REDRAW);
        bar
    }

    /// Writes above the lines.
    pub(super) fn above(&self, write: impl FnOnce()) {
        self.bars.suspend(write);
    }

    /// Leaves the last state on the terminal.
    pub(super) fn close(&self) {
        let drawn = self.drawn();
        drawn.steps.values().chain(&drawn.all).for_each(ProgressBar::abandon);
    }
}

fn draw(bar: &ProgressBar, step: &StepView) {
    bar.set_prefix(one_line(&step.name, COLUMNS));
    let items = step.items.map(|items| format!(" {}/{}", items.completed + items.bad, items.all)).unwrap_or_default();
    let reason = step.reason.as_deref().map(|reason| format!("  {}", one_line(reason, COLUMNS))).unwrap_or_default();
    bar.set_message(format!("{}{items}{reason}", colored(step.state)));
    match step.state {
        // Only steps whose time grows are redrawn on their own: each ticking line has a thread.
        StepState::Open | StepState::Waiting => bar.enable_steady_tick(REDRAW),
        _ => bar.disable_steady_tick(),
    }
}

/// Returns the number of steps on the longest path to each step.
fn depths(view: &RunView) -> BTreeMap<&str, usize> {
    let mut depths = BTreeMap::new();
    // Each step comes after those that it depends on.
    for step in &view.steps {
        let above = step.depends_on.iter().filter_map(|name| depths.get(name.as_str()).copied()).max();
        depths.insert(step.name.as_str(), above.map_or(0, |above: usize| above + 1));
    }
    depths
}
