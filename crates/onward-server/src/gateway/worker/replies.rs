//! Submits and reads for a worker.

use std::time::Duration;

use bytes::Bytes;
use onward::store::Page;
use onward::{Context, Engine, Error, NewTask, StoreReads as _, Submitted, TaskFilter, TaskId, TaskRecord};
use onward_protocol::gateway::{ErrorMessage, Relative, Reply, SubmittedTask};
use onward_protocol::worker::{Ask, ReadTarget, Submit};
use onward_protocol::{Code, Id, bounds as protocol_bounds};
use serde_json::to_vec;

use super::new_task::new_task;
use crate::gateway::bounds::{PAGE, REPLY_HEADER_BYTES};

/// A reply with its payloads.
pub(super) type ReplyWithPayloads = (Box<Reply>, Vec<Bytes>);

/// Submits tasks, as children of a running task if there is one.
pub(super) async fn submit(
    engine: &Engine,
    parent: Option<&Context>,
    submit: &Submit,
    payloads: &[Bytes],
) -> ReplyWithPayloads {
    let tasks = submit.tasks.iter().map(|new| new_task(new, payloads));
    let submitted = match tasks.collect::<Result<Vec<NewTask>, Error>>() {
        Ok(tasks) => match parent {
            Some(context) => context.spawn_all_now(tasks).await,
            None => engine.submit_all(tasks).await,
        },
        Err(error) => Err(error),
    };
    let mut reply = Reply { request: submit.request, ..Reply::default() };
    match submitted {
        Ok(submitted) => reply.tasks = Some(submitted.into_iter().map(submitted_task).collect()),
        Err(error) => reply.error = Some(error_message(&error)),
    }
    (Box::new(reply), Vec::new())
}

fn submitted_task(submitted: Submitted) -> SubmittedTask {
    SubmittedTask { task: Id(submitted.id().0), result: submitted.as_str().to_owned() }
}

/// Returns the reply for an attempt that the worker does not hold.
pub(super) fn not_held(request: u64, task: Id) -> ReplyWithPayloads {
    let text = format!("this worker does not hold task {task} under this fence");
    (failed(request, Code::Stale, text), Vec::new())
}

/// Reads. `context` is the attempt of the task, if the worker holds it.
pub(super) async fn ask(engine: &Engine, context: Option<&Context>, ask: Ask) -> ReplyWithPayloads {
    match (ask.what, context) {
        (ReadTarget::Result, _) => result(engine, ask).await,
        (_, None) => not_held(ask.request, ask.task),
        (ReadTarget::Children, Some(_)) => {
            let filter = TaskFilter { parent: Some(TaskId(ask.task.0)), with_payload: true, ..TaskFilter::default() };
            relatives(engine, filter, ask).await
        }
        (ReadTarget::Items, Some(_)) => {
            let filter = TaskFilter { batch: Some(TaskId(ask.task.0)), with_payload: true, ..TaskFilter::default() };
            relatives(engine, filter, ask).await
        }
    }
}

async fn result(engine: &Engine, ask: Ask) -> ReplyWithPayloads {
    let task = TaskId(ask.task.0);
    let wait = Duration::from_millis(ask.wait_ms.unwrap_or(0));
    let record = match tokio::time::timeout(wait, engine.wait(task)).await {
        Ok(record) => record,
        Err(_) => match engine.store().task(task).await {
            Ok(Some(record)) => Ok(record),
            Ok(None) => {
                return (failed(ask.request, Code::NotFound, format!("task {task} is not in the store")), Vec::new());
            }
            Err(error) => Err(error.into()),
        },
    };
    let mut reply = Reply { request: ask.request, ..Reply::default() };
    let mut payloads = Vec::new();
    match record {
        Ok(record) => {
            reply.state = Some(record.state.as_str().to_owned());
            reply.error_text = error_text(&record);
            reply.payload = result_of(&record).map(|result| push(&mut payloads, result));
            reply.payloads = payloads.len();
        }
        Err(error) => reply.error = Some(error_message(&error)),
    }
    (Box::new(reply), payloads)
}

/// Returns a page of children or items, the oldest first.
async fn relatives(engine: &Engine, filter: TaskFilter, ask: Ask) -> ReplyWithPayloads {
    let is_items = ask.what == ReadTarget::Items;
    let records = match all(engine, filter, ask.after).await {
        Ok(records) => records,
        Err(error) => {
            let reply = Reply { request: ask.request, error: Some(error_message(&error)), ..Reply::default() };
            return (Box::new(reply), Vec::new());
        }
    };
    let (mut entries, mut payloads, mut bytes, mut header) = (Vec::new(), Vec::new(), 0, 0);
    let mut reply = Reply { request: ask.request, ..Reply::default() };
    for record in records {
        let size = record.payload.as_ref().map_or(0, Bytes::len) + result_bytes(&record);
        if entries.len() == PAGE || (bytes + size > protocol_bounds::MESSAGE_PAYLOAD_BYTES && !entries.is_empty()) {
            reply.next = entries.last().map(|entry: &Relative| entry.task);
            break;
        }
        let (mut entry, payload) = if is_items { item(record) } else { child(record) };
        entry.payload = payload.as_ref().map(|_| payloads.len());
        header += to_vec(&entry).map_or(0, |entry| entry.len() + 1);
        if header > REPLY_HEADER_BYTES {
            reply.next = entries.last().map(|entry: &Relative| entry.task);
            break;
        }
        bytes += size;
        payloads.extend(payload);
        entries.push(entry);
    }
    reply.payloads = payloads.len();
    if is_items {
        reply.items = Some(entries)
    } else {
        reply.children = Some(entries)
    }
    (Box::new(reply), payloads)
}

/// Describes an item of a batch, with its payload.
fn item(record: TaskRecord) -> (Relative, Option<Bytes>) {
    let task = Id(record.id.0);
    (Relative { task, kind: None, state: None, payload: None, error_text: None }, record.payload)
}

/// Describes a child, with its result.
fn child(record: TaskRecord) -> (Relative, Option<Bytes>) {
    let (kind, state) = (Some(record.kind.to_string()), Some(record.state.as_str().to_owned()));
    let error_text = error_text(&record).map(short);
    (Relative { task: Id(record.id.0), kind, state, payload: None, error_text }, result_of(&record))
}

/// Returns the tasks of a filter after an id, the oldest first.
async fn all(engine: &Engine, filter: TaskFilter, after: Option<Id>) -> Result<Vec<TaskRecord>, Error> {
    let (mut records, mut before) = (Vec::new(), None);
    loop {
        let page = engine.store().tasks(filter.clone(), Page { before, limit: PAGE }).await?;
        before = page.next;
        let is_old = |record: &TaskRecord| after.is_some_and(|after| record.id.0 <= after.0);
        let is_last = page.tasks.iter().any(is_old) || before.is_none();
        records.extend(page.tasks.into_iter().filter(|record| !is_old(record)));
        if is_last {
            records.reverse();
            return Ok(records);
        }
    }
}

fn push(payloads: &mut Vec<Bytes>, payload: Bytes) -> usize {
    payloads.push(payload);
    payloads.len() - 1
}

fn result_bytes(record: &TaskRecord) -> usize {
    record.result.bytes().map_or(0, Bytes::len)
}

fn result_of(record: &TaskRecord) -> Option<Bytes> {
    record.result.bytes().cloned()
}

/// Returns the text of the last error of a task that did not complete.
fn error_text(record: &TaskRecord) -> Option<String> {
    let is_failed = record.state.is_ended() && record.state != onward::TaskState::Completed;
    record.errors.last().filter(|_| is_failed).map(|error| error.message.clone())
}

/// Cuts a text, so that a page of them fits in a header.
fn short(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(128));
    text
}

fn failed(request: u64, code: Code, text: String) -> Box<Reply> {
    let error = ErrorMessage { code, text, remedy: code.remedy().to_owned(), fatal: false };
    Box::new(Reply { request, error: Some(error), ..Reply::default() })
}

fn error_message(error: &Error) -> ErrorMessage {
    let code = if error.is_not_found() {
        Code::NotFound
    } else if error.is_invalid() || error.refusal().is_some() {
        Code::Invalid
    } else {
        Code::Store
    };
    ErrorMessage { fatal: false, ..ErrorMessage::from(&onward_protocol::Error::new(code, error.to_string())) }
}
