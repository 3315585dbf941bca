//! `onward workflow runs`

use clap::Args;
use onward::workflow::{RunPage, RunPhase, RunQuery, RunSummary};
use onward_store::{Name, Store, StoreReads, TaskId, Timestamp, bounds};

use super::status::colored_phase;
use crate::commands::workflow::CARRIER_REMEDY;
use crate::commands::workflow::carriers::carries;
use crate::commands::workflow::command::open_to_read;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{Align, Table, counted, duration_text, one_line, optional, print_json, print_table, remark};

/// The widest key that a table shows, in columns.
const KEY_COLUMNS: usize = 32;

/// Arguments of `onward workflow runs`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only runs of this workflow
    #[arg(value_name = "NAME")]
    workflow: Option<String>,
    /// Only runs in this phase: waiting, running, stopping, undoing, held, completed, failed, dead
    /// or cancelled
    #[arg(long, value_name = "PHASE")]
    phase: Option<RunPhase>,
    /// Only runs with this key
    #[arg(long)]
    key: Option<String>,
    /// Only runs with a lower number than this one: the next page
    #[arg(long, value_name = "RUN")]
    before: Option<TaskId>,
    /// At most this many
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Lists runs, the newest first.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    let engine = open_to_read(options).await?;
    let Arguments { workflow, phase, key, before, limit } = arguments;
    let limit = limit as usize;
    let (mut query, mut runs) = (RunQuery { workflow, phase, key, before, limit }, Vec::new());
    loop {
        query.limit = limit.saturating_sub(runs.len()).min(bounds::PAGE);
        let RunPage { runs: found, next, .. } = engine.runs(query.clone()).await?;
        runs.extend(found);
        query.before = next;
        if next.is_none() || runs.len() >= limit {
            break;
        }
    }
    print(options, &runs, engine.store().clock().now())?;
    if !options.json {
        remark_on_carriers(&**engine.store(), &runs).await?;
    }
    if let Some(before) = query.before {
        remark(format_args!("there are more: --before {before}"));
    }
    Ok(ExitCode::Done)
}

/// Prints a note about runs that no process continues.
async fn remark_on_carriers(store: &dyn Store, runs: &[RunSummary]) -> anyhow::Result<()> {
    let live: Vec<&RunSummary> = runs.iter().filter(|run| !run.phase.is_ended()).collect();
    if live.is_empty() {
        return Ok(());
    }
    let sessions = store.sessions().await?;
    let is_left = |run: &RunSummary| -> anyhow::Result<bool> {
        let kind = Name::new(format!("{}{}", bounds::RUN_KIND_PREFIX, run.workflow))?;
        Ok(!sessions.iter().any(|session| carries(session, &run.queue, &kind)))
    };
    let mut left = 0;
    for run in live {
        left += u64::from(is_left(run)?);
    }
    if left > 0 {
        remark(format_args!("no process carries {} of these on; {CARRIER_REMEDY}", counted(left, "run")));
    }
    Ok(())
}

fn print(options: &GlobalOptions, runs: &[RunSummary], now: Timestamp) -> anyhow::Result<()> {
    if options.json {
        for run in runs {
            print_json(run)?;
        }
    } else if runs.is_empty() {
        remark("no runs; onward workflow start starts one");
    } else {
        print_table(table(runs, now))?;
    }
    Ok(())
}

fn table(runs: &[RunSummary], now: Timestamp) -> Table {
    let mut table = Table::new([
        ("RUN", Align::Right),
        ("WORKFLOW", Align::Left),
        ("KEY", Align::Left),
        ("PHASE", Align::Left),
        ("STEPS", Align::Right),
        ("OPEN", Align::Right),
        ("BAD", Align::Right),
        ("AGE", Align::Right),
        ("WAITS FOR", Align::Left),
    ])
    .dropping(&["KEY", "OPEN", "AGE"]);
    for run in runs {
        let signals: Vec<&str> = run.awaits.iter().map(|name| name.as_str()).collect();
        table.row([
            run.id.to_string(),
            run.workflow.clone(),
            optional(run.key.as_deref(), |key| one_line(key, KEY_COLUMNS)),
            colored_phase(run.phase, run.is_paused),
            format!("{}/{}", run.ended, run.steps),
            run.open.to_string(),
            run.bad.to_string(),
            duration_text(now - run.started_at),
            signals.join(", "),
        ]);
    }
    table
}
