//! `onward workflow status`

use anstyle::{AnsiColor, Style};
use clap::Args;
use onward::workflow::{RunPhase, RunView, StepView};
use onward_store::{Store, StoreReads, TaskId};
use serde_json::{Value, json};

use super::reply::reply_command;
use crate::apply::for_each;
use crate::commands::run::colored;
use crate::commands::workflow::command::open_to_read;
use crate::commands::workflow::{CARRIER_REMEDY, carriers};
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{Align, Table, moment, one_line, optional, print_json, print_line, print_table, remark};

/// The columns that are shown of a reason, and of a question.
const REASON_COLUMNS: usize = 100;

/// Arguments of `onward workflow status`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Numbers of runs
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<TaskId>,
}

/// Shows runs and their steps, and what they ask people.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let engine = open_to_read(options).await?;
    for_each(arguments.runs, options, async |run| {
        let view = engine.run_view(run).await?;
        let carriers = carriers_of(&**engine.store(), run).await?;
        if options.json {
            return Ok(print_json(&as_json(&view, &carriers)?)?);
        }
        print(&view)?;
        if carriers.is_empty() && !view.is_ended() {
            remark(format_args!("no process carries run {run} on; {CARRIER_REMEDY}"));
        }
        Ok(())
    })
    .await
}

async fn carriers_of(store: &dyn Store, run: TaskId) -> anyhow::Result<Vec<String>> {
    match store.task(run).await? {
        Some(record) => carriers(store, &record.queue, &record.kind).await,
        None => Ok(Vec::new()),
    }
}

/// Returns a run with the commands that reply to its questions, and the processes that carry it on.
fn as_json(view: &RunView, carriers: &[String]) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(view)?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("carried_on_by".to_owned(), json!(carriers));
    }
    let steps = value.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten();
    for (fields, step) in steps.zip(&view.steps) {
        if let (Some(command), Some(fields)) = (reply_command(view.id, step), fields.as_object_mut()) {
            fields.insert("reply_with".to_owned(), json!(command));
        }
    }
    Ok(value)
}

fn print(view: &RunView) -> anyhow::Result<()> {
    let phase = colored_phase(view.phase, view.is_paused);
    let error = view.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
    print_line(format_args!("run {} of {} is {phase}{error}", view.id, view.workflow))?;
    print_table(table(view))?;
    for step in &view.steps {
        if let Some(command) = reply_command(view.id, step) {
            let question = step.question.as_deref().unwrap_or("it waits for a signal");
            let question = one_line(question, REASON_COLUMNS);
            let who = if step.who.is_empty() { String::new() } else { format!("; for {}", step.who.join(", ")) };
            print_line(format_args!("{}: {question}{who}; reply with: {command}", step.name))?;
        }
    }
    hint(view)
}

/// Names the commands for a run that waits for a person.
fn hint(view: &RunView) -> anyhow::Result<()> {
    let RunView { id, phase, .. } = view;
    let is_half_undone = view.steps.iter().any(|step| step.undo == Some("failed"));
    let text = match phase {
        RunPhase::Held if is_half_undone => format!(
            "an undo failed: `onward workflow retry {id}` tries it again, and `resolve {id} STEP` takes it as done by hand"
        ),
        RunPhase::Held => format!(
            "it waits for a person: `onward workflow retry {id}`, `resolve`, `complete` or `skip` continues it, and `cancel` or `undo` ends it"
        ),
        _ => return Ok(()),
    };
    Ok(print_line(text)?)
}

fn table(view: &RunView) -> Table {
    let mut table = Table::new([
        ("STEP", Align::Left),
        ("STATE", Align::Left),
        ("ITEMS", Align::Right),
        ("ATTEMPTS", Align::Right),
        ("TASK", Align::Right),
        ("UNTIL", Align::Left),
        ("REASON", Align::Left),
    ])
    .dropping(&["ATTEMPTS", "TASK"]);
    for step in &view.steps {
        let undo = step.undo.map(|undo| format!(", undo {undo}")).unwrap_or_default();
        table.row([
            step.name.clone(),
            format!("{}{undo}", colored(step.state)),
            optional(step.items, |items| format!("{}/{}", items.completed + items.bad, items.all)),
            step.attempts.to_string(),
            optional(step.task, |task| task.to_string()),
            optional(step.until, moment),
            optional(reason(step), |reason| one_line(reason, REASON_COLUMNS)),
        ]);
    }
    table
}

fn reason(step: &StepView) -> Option<&str> {
    step.undo_error.as_deref().or(step.reason.as_deref())
}

/// Returns the phase of a run in its colour.
pub(super) fn colored_phase(phase: RunPhase, is_paused: bool) -> String {
    let style = match phase {
        RunPhase::Completed => AnsiColor::Green.on_default(),
        RunPhase::Failed | RunPhase::Dead => AnsiColor::Red.on_default(),
        RunPhase::Running | RunPhase::Undoing => AnsiColor::Cyan.on_default(),
        RunPhase::Waiting => Style::new(),
        _ => AnsiColor::Yellow.on_default(),
    };
    let paused = if is_paused { " (paused)" } else { "" };
    format!("{style}{}{paused}{style:#}", phase.as_str())
}
