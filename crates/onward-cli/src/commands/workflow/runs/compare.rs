//! `onward workflow compare`

use clap::Args;
use onward::workflow::{ComparedRun, ComparedStep, RunComparison};
use onward_store::TaskId;
use serde_json::Value;

use crate::commands::run::colored;
use crate::commands::workflow::command::open_to_read;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{Align, Table, duration_text, one_line, optional, print_json, print_line, print_table};

/// The columns that are shown of a value.
const VALUE_COLUMNS: usize = 60;

/// Arguments of `onward workflow compare`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The number of a run
    #[arg(value_name = "RUN")]
    one: TaskId,
    /// The number of the run to compare it with
    #[arg(value_name = "OTHER")]
    other: TaskId,
}

/// Compares two runs, step by step.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let engine = open_to_read(options).await?;
    let compared = engine.compare_runs(arguments.one, arguments.other).await?;
    if options.json {
        print_json(&compared)?;
    } else {
        print_differences(&compared)?;
        print_table(table(&compared))?;
    }
    Ok(ExitCode::Done)
}

/// Returns a property of a run.
type Fact = fn(&ComparedRun) -> Value;

/// Prints a line for each property of the runs that differs.
fn print_differences(compared: &RunComparison) -> anyhow::Result<()> {
    let RunComparison { one, other, .. } = compared;
    let value = |value: &Value| one_line(&value.to_string(), VALUE_COLUMNS);
    let facts: [(&str, Fact); 4] = [
        ("template", |run| format!("{} {}", run.workflow, run.template.label()).into()),
        ("environment", |run| run.environment.clone().into()),
        ("input", |run| run.input.clone()),
        ("result", |run| run.result.clone().unwrap_or_default()),
    ];
    print_line(format_args!("run {} is {}, run {} is {}", one.id, one.phase.as_str(), other.id, other.phase.as_str()))?;
    for (name, fact) in facts {
        let (first, second) = (fact(one), fact(other));
        if first != second {
            print_line(format_args!("{name}: {} and {}", value(&first), value(&second)))?;
        }
    }
    Ok(())
}

fn table(compared: &RunComparison) -> Table {
    let mut table = Table::new([
        ("STEP", Align::Left),
        ("FIRST", Align::Left),
        ("SECOND", Align::Left),
        ("RESULT", Align::Left),
        ("FIRST TOOK", Align::Right),
        ("SECOND TOOK", Align::Right),
    ]);
    for step in &compared.steps {
        let state = |step: Option<&ComparedStep>| optional(step, |step| colored(step.state));
        let took = |step: Option<&ComparedStep>| optional(step.and_then(|step| step.took), duration_text);
        let results = (step.one.as_ref().map(|step| &step.result), step.other.as_ref().map(|step| &step.result));
        let result = match results {
            (Some(one), Some(other)) if one == other => "same",
            (Some(_), Some(_)) => "differs",
            _ => "-",
        };
        let (one, other) = (step.one.as_ref(), step.other.as_ref());
        table.row([step.name.clone(), state(one), state(other), result.to_owned(), took(one), took(other)]);
    }
    table
}
