//! Output of a run on the way.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anstyle::{AnsiColor, Style};
use onward::workflow::{RunPhase, RunView, StepState, StepView};
use onward_store::{OutputStream, TaskId};
use serde_json::json;

use super::tree::Tree;
use crate::commands::workflow::reply_command;
use crate::options::GlobalOptions;
use crate::output::{one_line, print_json, remark};

/// The columns that are shown of a reason.
const REASON_COLUMNS: usize = 200;

/// The output of a run on the way. Handlers write to it as well.
#[derive(Debug)]
pub(crate) struct View {
    form: Form,
    seen: Mutex<ShownStates>,
}

/// The states that were shown last.
#[derive(Debug, Default)]
struct ShownStates {
    steps: BTreeMap<String, StepState>,
    phase: Option<RunPhase>,
}

#[derive(Debug)]
enum Form {
    /// One JSON object a line on stdout.
    Json,
    /// Lines on stderr.
    Lines,
    /// A tree on the terminal, redrawn in place.
    Tree(Tree),
}

impl View {
    /// Returns the view that the options and the terminal call for.
    pub(in crate::commands::run) fn new(options: &GlobalOptions) -> Self {
        let form = if options.json {
            Form::Json
        } else if options.no_progress || !std::io::stderr().is_terminal() {
            Form::Lines
        } else {
            Form::Tree(Tree::new())
        };
        Self { form, seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, ShownStates> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows that a run was started, or is continued.
    pub(in crate::commands::run) fn started(&self, id: TaskId, workflow: &str, is_new: bool) -> anyhow::Result<()> {
        match &self.form {
            Form::Json => print_json(&json!({ "event": "run", "run": id, "workflow": workflow, "is_new": is_new }))?,
            Form::Lines | Form::Tree(_) => {
                let how = if is_new { "" } else { ", which exists already" };
                self.remark(&format!("run {id} of {workflow}{how}"));
            }
        }
        Ok(())
    }

    /// Shows what has changed since the last call.
    pub(in crate::commands::run) fn update(&self, view: &RunView) -> anyhow::Result<()> {
        if let Form::Tree(tree) = &self.form {
            tree.update(view);
        }
        for step in &view.steps {
            let before = self.seen().steps.insert(step.name.clone(), step.state);
            if before != Some(step.state) && step.state != StepState::Pending {
                self.step(view.id, step)?;
            }
        }
        let before = self.seen().phase.replace(view.phase);
        if before != Some(view.phase) && view.phase == RunPhase::Held {
            self.remark(&format!(
                "run {} is held and waits for a person: correct the cause, and run the same command with --retry; \
                 `onward workflow status {}` shows what else is possible",
                view.id, view.id
            ));
        }
        Ok(())
    }

    fn step(&self, run: TaskId, step: &StepView) -> anyhow::Result<()> {
        match &self.form {
            Form::Json => print_json(&json!({
                "event": "step",
                "step": step.name,
                "state": step.state,
                "reason": step.reason,
                "question": step.question,
                "reply_with": reply_command(run, step),
                "items": step.items,
            }))?,
            Form::Lines => self.remark(&format!("{}: {}{}", step.name, colored(step.state), reason(step))),
            // The tree has a line for each step. Only a bad end is worth another one.
            Form::Tree(_) if step.state.is_bad() => {
                self.remark(&format!("{}: {}{}", step.name, colored(step.state), reason(step)));
            }
            Form::Tree(_) => {}
        }
        if let (Some(reply), false) = (reply_command(run, step), matches!(self.form, Form::Json)) {
            let question = step.question.as_deref().unwrap_or("it waits for a signal");
            self.remark(&format!("{}: {}; reply with: {reply}", step.name, one_line(question, REASON_COLUMNS)));
        }
        Ok(())
    }

    /// Shows a line of a script's output.
    pub(in crate::commands::run) fn output(&self, step: &str, stream: OutputStream, line: &str) {
        match &self.form {
            // The program may end for other reasons before this is read: an error of stdout is
            // reported by the next event.
            Form::Json => {
                let _ = print_json(&json!({
                    "event": "output", "step": step, "stream": stream.as_str(), "text": line
                }));
            }
            Form::Lines | Form::Tree(_) => self.remark(&format!("{step} | {}", one_line(line, usize::MAX))),
        }
    }

    /// Writes a line for people above everything that is redrawn.
    pub(in crate::commands::run) fn remark(&self, line: &str) {
        match &self.form {
            Form::Json => remark(json!({ "event": "remark", "message": line })),
            Form::Lines => remark(line),
            Form::Tree(tree) => tree.above(|| remark(line)),
        }
    }

    /// Leaves the last state of the tree on the terminal.
    pub(in crate::commands::run) fn close(&self) {
        if let Form::Tree(tree) = &self.form {
            tree.close();
        }
    }
}

fn reason(step: &StepView) -> String {
    step.reason.as_deref().map_or_else(String::new, |reason| format!(": {}", one_line(reason, REASON_COLUMNS)))
}

/// Returns the state of a step in its colour.
pub(crate) fn colored(state: StepState) -> String {
    let style = style(state);
    format!("{style}{}{style:#}", state.as_str())
}

fn style(state: StepState) -> Style {
    match state {
        StepState::Completed => AnsiColor::Green.on_default(),
        state if state.is_bad() => AnsiColor::Red.on_default(),
        StepState::Open | StepState::Waiting => AnsiColor::Cyan.on_default(),
        StepState::Pending => Style::new(),
        _ => AnsiColor::Yellow.on_default(),
    }
}
