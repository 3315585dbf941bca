//! `onward task why`

use onward_store::rules::orchestration::is_run;
use onward_store::{Refusal, SessionRecord, Store, StoreReads, TaskId, WaitReason, bounds};
use serde_json::json;

use super::numbers::Tasks;
use crate::apply::for_each;
use crate::commands::orchestration::Waiting;
use crate::commands::workflow::CARRIER_REMEDY;
use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::output::{colored_state, in_seconds, print_json, print_line};
use crate::store_file;

/// Explains for each of the tasks why it does not run.
pub(crate) async fn run(options: &GlobalOptions, tasks: Tasks) -> anyhow::Result<ExitCode> {
    let store = store_file::open_to_read(options).await?;
    let tasks = tasks.numbers(&*store).await?;
    for_each(tasks, options, async |task| explain(options, &*store, task).await).await
}

/// Prints the reasons why a task does not run.
async fn explain(options: &GlobalOptions, store: &dyn Store, task: TaskId) -> anyhow::Result<()> {
    let record = store.task(task).await?.ok_or(Refusal::TaskNotFound(task))?;
    let reasons = store.why(task).await?.ok_or(Refusal::TaskNotFound(task))?;
    let sessions = if record.state.is_ended() { Vec::new() } else { store.sessions().await? };
    let is_held = sessions.iter().any(|session| Some(session.id) == record.session);
    let instance = if record.orchestration { store.instance(task).await? } else { None };
    let version = instance.and_then(|instance| instance.version);
    let serves = |session: &SessionRecord| {
        if record.orchestration {
            session.serves_orchestration(&record.queue, &record.kind, version)
        } else {
            session.serves(&record.queue, &record.kind)
        }
    };
    let workers: Vec<String> = sessions.into_iter().filter(serves).map(|session| session.name).collect();
    let is_left = workers.is_empty() && is_run(&record.kind) && !record.state.is_ended();
    let left = is_left.then(|| format!("no process carries the run on; {CARRIER_REMEDY}"));
    let waiting = Waiting::read(store, &record).await?;
    let reasons = if waiting.is_some() { without_repeated(reasons) } else { reasons };
    if options.json {
        let text: Vec<String> = reasons.iter().map(ToString::to_string).chain(left).collect();
        let mut object =
            json!({ "task": task, "state": record.state, "reasons": reasons, "text": text, "served_by": workers });
        if let Some(waiting) = waiting {
            object["waits_for"] = waiting.json();
        }
        print_json(&in_seconds(object))?;
        return Ok(());
    }
    let follows = if waiting.is_some() || left.is_some() { ":" } else { conclusion(&record, &reasons, is_held) };
    print_line(format_args!("task {task} is {}{follows}", colored_state(record.state)))?;
    for reason in &reasons {
        print_line(format_args!("- {reason}"))?;
    }
    for text in waiting.iter().flat_map(Waiting::texts) {
        print_line(format_args!("- it waits for {text}"))?;
    }
    if let Some(left) = left {
        print_line(format_args!("- {left}"))?;
    }
    if !workers.is_empty() {
        print_line(format_args!("workers that serve it: {}", named(&workers)))?;
    }
    Ok(())
}

/// Returns the names of the first workers, and the number of the others.
fn named(workers: &[String]) -> String {
    let first = workers.iter().take(bounds::NAMED_WORKERS).cloned().collect::<Vec<_>>().join(", ");
    match workers.len().saturating_sub(bounds::NAMED_WORKERS) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Removes the reasons that repeat what a parked orchestration is known to wait for.
fn without_repeated(mut reasons: Vec<WaitReason>) -> Vec<WaitReason> {
    let is_repeated = |reason: &WaitReason| {
        matches!(reason, WaitReason::Blocked { .. } | WaitReason::NotDue { .. } | WaitReason::Parked { .. })
    };
    reasons.retain(|reason| !is_repeated(reason));
    reasons
}

fn conclusion(record: &onward_store::TaskRecord, reasons: &[WaitReason], is_held: bool) -> &'static str {
    match (reasons.is_empty(), record.state.is_ended(), record.session) {
        (false, ..) => ":",
        (true, true, _) => "; it waits for nothing",
        (true, false, Some(_)) if is_held => "; a worker holds it",
        (true, false, Some(_)) => "; its worker is gone, and the next one that runs its kind takes it over",
        (true, false, None) => "; nothing delays it: a worker that runs its kind claims it when a slot is free",
    }
}
