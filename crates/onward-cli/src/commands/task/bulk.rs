//! Applies a verb to all tasks that a filter selects.

use onward::Engine;
use onward::control::BulkSummary;
use onward_store::{BulkVerb, StateCounts, Store, StoreReads, TaskFilter, rules};
use serde_json::json;

use super::confirmation::{self, Confirmation};
use super::selection::ByFilter;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{counted, print_json, print_line};
use crate::store_file;

/// Returns the words for a verb: the done form, and the form for a dry run.
fn words(verb: &BulkVerb) -> [&'static str; 2] {
    match verb {
        BulkVerb::Cancel => ["cancelled", "would_cancel"],
        BulkVerb::Retry => ["retried", "would_retry"],
        BulkVerb::Delete => ["deleted", "would_delete"],
        BulkVerb::RunNow => ["made_due", "would_make_due"],
        BulkVerb::Kill => ["killed", "would_kill"],
        BulkVerb::Pause => ["paused", "would_pause"],
        BulkVerb::Resume => ["resumed", "would_resume"],
        BulkVerb::Move(_) => ["moved", "would_move"],
    }
}

/// Applies the verb to the tasks that the filter selects. A dry run prints only their number.
pub(crate) async fn run(options: &GlobalOptions, verb: BulkVerb, chosen: ByFilter) -> anyhow::Result<ExitCode> {
    let filter = chosen.filter()?;
    let store = store_file::open_existing(options).await?;
    let counts = preview(&*store, &verb, &filter).await?;
    let [_, would] = words(&verb);
    if chosen.dry_run {
        report(options, would, counts, 0, 0)?;
    } else if confirmation::ask(&summary_text(would, counts), counts.sum(), chosen.yes)? == Confirmation::Refused {
        return Ok(ExitCode::Failed);
    } else {
        let engine = Engine::builder().store(store).open().await?;
        let summary = match &verb {
            BulkVerb::Cancel => engine.cancel_all(filter).await,
            BulkVerb::Retry => engine.retry_all(filter).await,
            BulkVerb::Delete => engine.delete_all(filter).await,
            BulkVerb::RunNow => engine.run_all_now(filter).await,
            BulkVerb::Kill => engine.kill_all(filter).await,
            BulkVerb::Pause => engine.pause_orchestrations(filter).await,
            BulkVerb::Resume => engine.resume_orchestrations(filter).await,
            BulkVerb::Move(queue) => engine.move_all(filter, queue.as_str()).await,
        };
        let (BulkSummary { states, cancel_requested, skipped, .. }, [done, _]) = (summary?, words(&verb));
        report(options, done, states, cancel_requested, skipped)?;
    }
    Ok(ExitCode::Done)
}

/// Counts the tasks to which the verb would be applied.
async fn preview(store: &dyn Store, verb: &BulkVerb, filter: &TaskFilter) -> anyhow::Result<StateCounts> {
    let mut counts = StateCounts::default();
    let Some(eligible) = rules::bulk::eligible(verb, filter) else { return Ok(counts) };
    for state in &eligible.states {
        counts.add(*state, store.count(TaskFilter { states: vec![*state], ..eligible.clone() }).await?);
    }
    Ok(counts)
}

/// Returns a line such as `retried 5 tasks: 4 failed, 1 dead`.
fn summary_text(done: &str, counts: StateCounts) -> String {
    let states: Vec<_> = counts.iter().map(|(state, tasks)| format!("{tasks} {state}")).collect();
    let states = if states.is_empty() { String::new() } else { format!(": {}", states.join(", ")) };
    format!("{} {}{states}", done.replace('_', " "), counted(counts.sum(), "task"))
}

/// Prints the number of tasks by state. A dry run reports the same fields.
fn report(
    options: &GlobalOptions,
    done: &str,
    counts: StateCounts,
    cancel_requested: u64,
    over: u64,
) -> anyhow::Result<()> {
    if options.json {
        print_json(
            &json!({ done: counts.sum(), "states": counts, "cancel_requested": cancel_requested, "skipped": over }),
        )?;
        return Ok(());
    }
    let cancelling = if cancel_requested > 0 {
        format!("; {cancel_requested} of them run and have been asked to stop")
    } else {
        String::new()
    };
    let over = if over > 0 { format!("; {over} passed over") } else { String::new() };
    Ok(print_line(format_args!("{}{cancelling}{over}", summary_text(done, counts)))?)
}
