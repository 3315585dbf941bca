//! The same done to all tasks that a filter selects.

use onward::{BulkSummary, Engine};
use onward_store::{BulkVerb, Store, TaskFilter, TaskState, rules};
use serde_json::{Map, Value, json};

use super::chosen::ByFilter;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{counted, print_json, print_line};
use crate::store_file;

/// The words of a verb: what was done, and what would be.
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

/// Does it, or says to how many tasks it would.
pub(crate) async fn run(options: &GlobalOptions, verb: BulkVerb, chosen: ByFilter) -> anyhow::Result<ExitCode> {
    let filter = chosen.filter()?;
    let store = store_file::open_existing(options).await?;
    if chosen.dry_run {
        let counts = preview(&*store, &verb, &filter).await?;
        tell_preview(options, &verb, &counts)?;
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
        tell(options, &verb, summary?)?;
    }
    Ok(ExitCode::Done)
}

/// How many tasks there are to which it would be done, by state.
async fn preview(store: &dyn Store, verb: &BulkVerb, filter: &TaskFilter) -> anyhow::Result<Vec<(TaskState, u64)>> {
    let mut counts = Vec::new();
    let Some(eligible) = rules::bulk::eligible(verb, filter) else { return Ok(counts) };
    for state in &eligible.states {
        let tasks = store.count(TaskFilter { states: vec![*state], ..eligible.clone() }).await?;
        counts.extend((tasks > 0).then_some((*state, tasks)));
    }
    Ok(counts)
}

fn tell_preview(options: &GlobalOptions, verb: &BulkVerb, counts: &[(TaskState, u64)]) -> anyhow::Result<()> {
    let [_, would] = words(verb);
    let all: u64 = counts.iter().map(|(_, tasks)| tasks).sum();
    if options.json {
        let states: Map<_, _> = counts.iter().map(|(state, tasks)| (state.to_string(), Value::from(*tasks))).collect();
        print_json(&json!({ would: all, "states": states }))?;
        return Ok(());
    }
    let states: Vec<_> = counts.iter().map(|(state, tasks)| format!("{tasks} {state}")).collect();
    let states = if states.is_empty() { String::new() } else { format!(": {}", states.join(", ")) };
    Ok(print_line(format_args!("{} {}{states}", would.replace('_', " "), counted(all, "task")))?)
}

fn tell(options: &GlobalOptions, verb: &BulkVerb, summary: BulkSummary) -> anyhow::Result<()> {
    let ([done, _], BulkSummary { tasks, asked, passed_over }) = (words(verb), summary);
    if options.json {
        print_json(&json!({ done: tasks, "asked": asked, "passed_over": passed_over }))?;
        return Ok(());
    }
    let asked = if asked > 0 { format!("; {asked} of them run and have been asked to stop") } else { String::new() };
    let over = if passed_over > 0 { format!("; {passed_over} passed over") } else { String::new() };
    Ok(print_line(format_args!("{} {}{asked}{over}", done.replace('_', " "), counted(tasks, "task")))?)
}
