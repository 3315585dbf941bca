//! The reads and writes of the storage interface that each role may use.

use onward_store::rules::orchestration::is_run;
use onward_store::{
    Name, NewTask, PutDocument, Read, ReadReply, Recipient, Signal, StoreReads as _, TaskId, TaskRecord, Write,
};

use super::runs::check_replier;
use super::store::not_served;
use crate::http::access::Role;
use crate::http::change::GUARDS;
use crate::http::problem::Problem;
use crate::http::request::Call;

/// The collections of the templates, which a viewer may read and a developer may change.
const TEMPLATES: [&str; 2] = ["onward.templates", "onward.template-names"];

/// Checks that the actor may make a read. The documents of the server itself cannot be read: they
/// hold digests of keys, sessions and audit records.
pub(super) fn check_read(call: &Call, read: &Read) -> Result<(), Problem> {
    match read {
        Read::Document { collection, .. } => check_collection(collection, &TEMPLATES),
        Read::Documents { query } => check_collection(&query.collection, &TEMPLATES),
        // It consists of payloads and results.
        Read::InstanceHistory { .. } => call.needs_payloads(),
        _ => Ok(()),
    }
}

fn check_collection(collection: &Name, allowed: &[&str]) -> Result<(), Problem> {
    if allowed.contains(&collection.as_str()) {
        return Ok(());
    }
    Err(not_served(&format!("the collection `{collection}`")))
}

/// Removes payloads, results and output from a reply.
pub(super) fn without_payloads(reply: ReadReply) -> ReadReply {
    match reply {
        ReadReply::Task(task) => ReadReply::Task(task.map(without_payload)),
        ReadReply::Peek(task) => ReadReply::Peek(task.map(without_payload)),
        ReadReply::Tasks(mut page) => {
            page.tasks = page.tasks.into_iter().map(without_payload).collect();
            ReadReply::Tasks(page)
        }
        ReadReply::Schedules(mut schedules) => {
            schedules.iter_mut().for_each(|record| record.schedule.task.payload.clear());
            ReadReply::Schedules(schedules)
        }
        ReadReply::TaskOutput(_) => ReadReply::TaskOutput(None),
        ReadReply::Instance(Some(mut instance)) => {
            instance.status = None;
            instance.values.clear();
            ReadReply::Instance(Some(instance))
        }
        other => other,
    }
}

fn without_payload(task: TaskRecord) -> TaskRecord {
    TaskRecord { payload: None, result: onward_store::TaskResult::default(), ..task }
}

/// Checks that the actor may make a write. Worker writes have no form in JSON, so they do not reach
/// this.
pub(super) async fn check_write(call: &Call, write: &Write) -> Result<(), Problem> {
    match write {
        Write::All(writes) => {
            for write in writes {
                check_single(call, write).await?;
            }
            Ok(())
        }
        write => check_single(call, write).await,
    }
}

async fn check_single(call: &Call, write: &Write) -> Result<(), Problem> {
    match write {
        Write::Submit(task) => check_submit(task),
        Write::Signal(signal) => check_signal(call, signal).await,
        Write::SetSchedule(set) => {
            needs_developer(call)?;
            check_submit(&set.schedule.task)
        }
        Write::DeleteSchedule { .. } => needs_developer(call),
        Write::PutDocument(document) if document.collection.as_str() == GUARDS => check_guard(document),
        Write::PutDocument(document) => {
            check_collection(&document.collection, &TEMPLATES)?;
            needs_developer(call)
        }
        Write::DeleteDocument { collection, .. } => {
            check_collection(collection, &TEMPLATES)?;
            needs_developer(call)
        }
        Write::Cancel { .. }
        | Write::Retry { .. }
        | Write::RunNow { .. }
        | Write::Kill { .. }
        | Write::Delete { .. }
        | Write::Pause { .. }
        | Write::Resume { .. }
        | Write::SetQueue(_)
        | Write::SetQueueMode(_)
        | Write::SetLimit(_)
        | Write::Purge { .. }
        | Write::DeleteQueue { .. }
        | Write::PauseSchedule { .. }
        | Write::ResumeSchedule { .. }
        | Write::FireSchedule(_)
        | Write::Sweep
        | Write::Bulk(_)
        | Write::CompleteExternally { .. }
        | Write::Move { .. }
        | Write::Terminate { .. }
        | Write::PauseOrchestration { .. }
        | Write::ResumeOrchestration { .. } => Ok(()),
        _ => Err(not_served("this write")),
    }
}

/// Checks the guard of a limit or a schedule, which is a random number.
fn check_guard(document: &PutDocument) -> Result<(), Problem> {
    let is_of_thing = ["limit ", "schedule "].iter().any(|what| document.key.starts_with(what));
    if is_of_thing && document.content.len() == size_of::<u128>() && document.index.is_empty() {
        return Ok(());
    }
    Err(not_served("a guard of another form"))
}

fn needs_developer(call: &Call) -> Result<(), Problem> {
    call.actor.as_ref().map_or(Ok(()), |actor| actor.needs(Role::Developer))
}

/// Checks a task: of the reserved kinds only runs of workflows may be submitted, and no tag may
/// pass for that of an idempotency key.
fn check_submit(task: &NewTask) -> Result<(), Problem> {
    if task.kind.is_reserved() && !is_run(&task.kind) {
        return Err(not_served(&format!("a task of the reserved kind `{}`", task.kind)));
    }
    match task.tags.iter().find(|(key, _)| *key == crate::http::change::REQUEST_TAG) {
        Some((key, _)) => Err(not_served(&format!("a task with the reserved tag `{key}`"))),
        None => Ok(()),
    }
}

/// Checks that the actor may reply to the question of a run, if the signal does.
async fn check_signal(call: &Call, signal: &Signal) -> Result<(), Problem> {
    let task = match &signal.to {
        Recipient::Task(task) => *task,
        // The replier of a run that is named by its key cannot be checked.
        Recipient::Key { kind, .. } | Recipient::KeyOrStart { kind, .. } if kind.is_reserved() => {
            return Err(not_served(&format!("a signal by key to the reserved kind `{kind}`")));
        }
        Recipient::Key { .. } | Recipient::KeyOrStart { .. } => return Ok(()),
    };
    match call.server.store.task(task).await? {
        Some(record) if is_run(&record.kind) => check_replier(call, task, &signal.name).await,
        _ => Ok(()),
    }
}

/// Returns what writes are about, for the audit record. It is empty for submits alone, because
/// their tasks are their records.
pub(super) fn subjects(writes: &[Write]) -> String {
    let mut shown: Vec<String> = writes.iter().flat_map(parts).filter_map(subject).take(SUBJECTS + 1).collect();
    if shown.len() > SUBJECTS {
        shown.truncate(SUBJECTS);
        shown.push("and more".to_owned());
    }
    shown.join(", ")
}

/// The largest number of writes that an audit record names.
const SUBJECTS: usize = 8;

fn parts(write: &Write) -> Box<dyn Iterator<Item = &Write> + '_> {
    match write {
        Write::All(writes) => Box::new(writes.iter()),
        write => Box::new(std::iter::once(write)),
    }
}

fn subject(write: &Write) -> Option<String> {
    let task = |verb: &str, task: &TaskId| format!("{verb} task {task}");
    Some(match write {
        Write::Submit(_) | Write::Sweep => return None,
        Write::PutDocument(document) if document.collection.as_str() == GUARDS => return None,
        Write::Cancel { task: id } => task("cancel", id),
        Write::Retry { task: id } => task("retry", id),
        Write::RunNow { task: id } => task("run", id),
        Write::Kill { task: id } => task("kill", id),
        Write::Delete { task: id } => task("delete", id),
        Write::Move { task: id, queue } => format!("move task {id} to {queue}"),
        Write::Terminate { task: id, .. } => task("terminate", id),
        Write::PauseOrchestration { task: id } => task("pause", id),
        Write::ResumeOrchestration { task: id } => task("resume", id),
        Write::CompleteExternally { token, .. } => format!("complete {token}"),
        Write::Pause { scope, .. } => format!("pause {}", crate::http::wire::pause_scope_text(scope)),
        Write::Resume { scope } => format!("resume {}", crate::http::wire::pause_scope_text(scope)),
        Write::SetQueue(set) => format!("set queue {}", set.queue),
        Write::SetQueueMode(mode) => format!("set queue mode {mode}"),
        Write::SetLimit(set) => format!("set limit {}", crate::http::wire::scope_text(&set.scope)),
        Write::Purge { queue, .. } => format!("purge queue {queue}"),
        Write::DeleteQueue { queue } => format!("delete queue {queue}"),
        Write::SetSchedule(set) => format!("set schedule {}", set.schedule.name),
        Write::DeleteSchedule { schedule } => format!("delete schedule {schedule}"),
        Write::PauseSchedule { schedule } => format!("pause schedule {schedule}"),
        Write::ResumeSchedule { schedule, .. } => format!("resume schedule {schedule}"),
        Write::FireSchedule(fire) => format!("fire schedule {}", fire.name),
        Write::Signal(signal) => format!("signal {}", signal.name),
        Write::PutDocument(document) => format!("put {} {}", document.collection, document.key),
        Write::DeleteDocument { collection, key, .. } => format!("delete {collection} {key}"),
        Write::Bulk(bulk) => format!("{:?} tasks by filter", bulk.verb).to_lowercase(),
        _ => "another change".to_owned(),
    })
}
