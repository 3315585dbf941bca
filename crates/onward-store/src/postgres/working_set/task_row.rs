//! Rows of tasks.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::api::dependency::Dependencies;
use crate::api::error::{Error, Result};
use crate::api::io::Io;
use crate::api::name::Name;
use crate::api::orchestration::{Instance, decode_instance, decode_message, encode_instance};
use crate::api::task::{
    AttemptError, NewTask, OnDuplicate, Priority, Progress, SessionId, TaskId, TaskState, UniqueKey, When,
};
use crate::api::timestamp::Timestamp;
use crate::model::{AwaitedCompletion, End, Output, Task};

/// A row of a task. Values that queries search are columns; the rest is in `body`.
#[derive(Debug, Clone)]
pub(crate) struct TaskRow {
    pub(crate) id: i64,
    /// The code of the state.
    pub(crate) state: i16,
    pub(crate) queue: String,
    pub(crate) kind: String,
    /// The group; empty for none.
    pub(crate) group: String,
    /// The affinity key; empty for none.
    pub(crate) affinity_key: String,
    /// The position within the sub-queue.
    pub(crate) sort_key: i64,
    pub(crate) priority: i16,
    /// The due time, like all times in microseconds.
    pub(crate) run_at: i64,
    /// The time at which it expires; `None` if it does not.
    pub(crate) expires_at: Option<i64>,
    /// The time by which a task must be completed externally. For an ended task, the time until
    /// which it is retained, if it has a retention of its own.
    pub(in crate::postgres) overdue_at: Option<i64>,
    /// The session that runs it.
    pub(crate) session: Option<i64>,
    /// True if it is asked to stop.
    pub(crate) cancel_requested: bool,
    pub(crate) parent: Option<i64>,
    pub(crate) submitted_at: i64,
    /// The unique key.
    pub(crate) key: Option<Vec<u8>>,
    /// The payload; `None` keeps the stored one.
    pub(crate) payload: Option<Bytes>,
    pub(crate) result: Option<Bytes>,
    pub(crate) finished_at: Option<i64>,
    /// The number of the task's end, by which ended tasks are sorted.
    pub(in crate::postgres) end_number: Option<i64>,
    /// The entry of the log with the end.
    pub(in crate::postgres) ended_in: Option<i64>,
    /// Everything without a column, as JSON.
    pub(crate) body: String,
    /// The encoded state of an orchestration, without its history and its messages.
    pub(crate) instance: Option<Vec<u8>>,
    /// True for an orchestration.
    pub(crate) orchestration: bool,
}

/// The columns that change while the submission stays the same.
#[derive(Debug, Clone)]
pub(in crate::postgres) struct ChangedRow {
    pub(crate) id: i64,
    pub(crate) state: i16,
    /// The position within the sub-queue, which a retry may change.
    pub(crate) sort_key: i64,
    pub(crate) run_at: i64,
    pub(crate) expires_at: Option<i64>,
    /// A time as in [`TaskRow::overdue_at`].
    pub(in crate::postgres) overdue_at: Option<i64>,
    pub(crate) session: Option<i64>,
    pub(crate) cancel_requested: bool,
    pub(crate) result: Option<Bytes>,
    pub(crate) finished_at: Option<i64>,
    pub(in crate::postgres) end_number: Option<i64>,
    pub(in crate::postgres) ended_in: Option<i64>,
    pub(crate) body: String,
    /// The encoded state of an orchestration, if it has changed.
    pub(crate) instance: Option<Vec<u8>>,
}

/// The row of an orchestration that has changed only in its instance.
#[derive(Debug, Clone)]
pub(in crate::postgres) struct InstanceRow {
    pub(crate) id: i64,
    pub(crate) instance: Vec<u8>,
}

/// The relations of a task, which are in other rows than its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::postgres) struct Relations {
    /// The tasks that it waits for.
    pub(crate) waits_for: Vec<i64>,
    /// The tasks that wait for it.
    pub(crate) dependents: Vec<i64>,
    /// The batch that it is an item of.
    pub(crate) batch: Option<i64>,
    /// The items, if it is a batch.
    pub(crate) batch_items: Vec<i64>,
    /// True if any task is its child.
    pub(in crate::postgres) has_children: bool,
    /// The holder of its unique key, and the time until which the key stays taken.
    pub(crate) key: Option<(i64, Option<i64>)>,
    /// The first unread messages.
    pub(crate) messages: Vec<Vec<u8>>,
}

/// A loaded task. It is decoded as soon as its row arrives: rows are large, and would pile up until
/// the last one has arrived.
#[derive(Debug)]
pub(in crate::postgres) struct LoadedTask {
    /// The task, shared with the row cache.
    pub(in crate::postgres) task: Arc<Task>,
    /// The relations; `None` if there are none.
    pub(in crate::postgres) relations: Option<Box<Relations>>,
}

impl LoadedTask {
    /// Decodes a task from its row.
    pub(crate) fn of(row: TaskRow, relations: Relations) -> Result<Self> {
        let mut task = row.into_task()?;
        set_messages(&mut task, &relations.messages)?;
        let relations =
            (relations != Relations::default()).then(|| Box::new(Relations { messages: Vec::new(), ..relations }));
        Ok(Self { task: Arc::new(task), relations })
    }

    /// Returns the task's number.
    pub(crate) fn id(&self) -> TaskId {
        self.task.id
    }
}

impl Relations {
    /// Returns true if the task is related to other tasks, not counting its key and its children.
    pub(in crate::postgres) fn is_related(&self) -> bool {
        // No `..`: a new relation must be classified here.
        let Self { waits_for, dependents, batch, batch_items, has_children: _, key: _, messages: _ } = self;
        !waits_for.is_empty() || !dependents.is_empty() || batch.is_some() || !batch_items.is_empty()
    }
}

/// Replaces the loaded messages of an orchestration. A longer list replaces a shorter one.
pub(super) fn set_messages(task: &mut Task, messages: &[Vec<u8>]) -> Result<()> {
    if let Some(instance) = &mut task.instance {
        let messages = messages.iter().map(|message| decode_message(message));
        Arc::make_mut(instance).mailbox = messages.collect::<Result<_>>()?;
    }
    Ok(())
}

/// The values without a column. Field names are part of the schema.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Body {
    /// The submission without its payload, if the columns do not cover it.
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<NewTask>,
    /// The attempts that count toward the retry limit.
    #[serde(skip_serializing_if = "is_default")]
    attempts: u32,
    /// The claims; with the session they are the fence.
    #[serde(skip_serializing_if = "is_default")]
    claims: u32,
    /// The lost leases.
    #[serde(skip_serializing_if = "is_default")]
    lost: u32,
    /// The start of the last attempt, in microseconds.
    #[serde(skip_serializing_if = "is_default")]
    started_at: Option<i64>,
    /// The time at which it would expire if it were not claimed.
    #[serde(skip_serializing_if = "is_default")]
    expiry_before_claim: Option<i64>,
    /// The errors of attempts.
    #[serde(skip_serializing_if = "is_default")]
    errors: Vec<AttemptError>,
    /// The progress that the handler last reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    /// The recorded I/O.
    #[serde(skip_serializing_if = "is_default")]
    io: Option<Io>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Output>,
    /// The checkpoint.
    #[serde(skip_serializing_if = "is_default")]
    checkpoint: Option<Bytes>,
    /// The external completion that is awaited.
    #[serde(skip_serializing_if = "Option::is_none")]
    awaited: Option<AwaitedCompletion>,
    /// The queue to which it moves after its attempt.
    #[serde(skip_serializing_if = "is_default")]
    move_to: Option<Name>,
    /// The number of its items, if it is a batch.
    #[serde(skip_serializing_if = "is_default")]
    items: u32,
    /// The task to submit when it ends, under the same unique key.
    #[serde(skip_serializing_if = "Option::is_none")]
    follower: Option<Box<NewTask>>,
}

/// Returns true for a default value, which is omitted from the body.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl ChangedRow {
    /// Encodes the columns that may change.
    pub(crate) fn of(task: &Task) -> Result<Self> {
        let microseconds = |at: Option<Timestamp>| at.map(Timestamp::as_microseconds);
        Ok(Self {
            id: task.id.0,
            state: i16::try_from(task.state.code()).unwrap_or_default(),
            sort_key: task.sort_key().at,
            run_at: task.run_at.as_microseconds(),
            expires_at: microseconds(task.expires_at),
            overdue_at: microseconds(task.completion_deadline().or(task.retained_until())),
            session: task.session.map(|session| session.0),
            cancel_requested: task.cancel_requested,
            result: task.result.clone(),
            finished_at: microseconds(task.finished_at),
            end_number: task.end.map(|end| end.number.cast_signed()),
            ended_in: task.end.map(|end| end.entry),
            body: body(task)?,
            instance: None,
        })
    }

    /// Adds the encoded state of an orchestration.
    pub(super) fn and_instance(self, instance: &Instance) -> Result<Self> {
        Ok(Self { instance: Some(encode_instance(instance)?), ..self })
    }
}

impl InstanceRow {
    /// Encodes an orchestration's state.
    pub(in crate::postgres) fn of(task: TaskId, instance: &Instance) -> Result<Self> {
        Ok(Self { id: task.0, instance: encode_instance(instance)? })
    }
}

impl TaskRow {
    /// Encodes a task, without its payload if the store has it already.
    pub(crate) fn of(task: &Task, with_payload: bool) -> Result<Self> {
        let new = &task.new;
        let changed = ChangedRow::of(task)?;
        Ok(Self {
            id: changed.id,
            state: changed.state,
            queue: new.queue.to_string(),
            kind: new.kind.to_string(),
            group: text(new.group.as_ref()),
            affinity_key: text(new.affinity.as_ref()),
            sort_key: changed.sort_key,
            priority: i16::from(new.priority.0),
            run_at: changed.run_at,
            expires_at: changed.expires_at,
            overdue_at: changed.overdue_at,
            session: changed.session,
            cancel_requested: changed.cancel_requested,
            parent: new.parent.map(|parent| parent.0),
            submitted_at: task.submitted_at.as_microseconds(),
            key: new.unique.as_ref().map(|unique| unique.key.clone().into_bytes()),
            payload: with_payload.then(|| new.payload.clone()),
            result: changed.result,
            finished_at: changed.finished_at,
            end_number: changed.end_number,
            ended_in: changed.ended_in,
            body: changed.body,
            instance: task.instance.as_deref().map(encode_instance).transpose()?,
            orchestration: new.orchestration,
        })
    }

    /// Decodes a task without its relations and messages.
    pub(crate) fn into_task(self) -> Result<Task> {
        let body: Body = serde_json::from_str(&self.body).map_err(|error| damaged(self.id, error))?;
        let state = TaskState::from_code(self.state.into()).ok_or_else(|| damaged(self.id, "its state is unknown"))?;
        let plain = self.plain()?;
        let new = match body.new {
            // The columns take precedence: they may be newer than the body.
            Some(new) => NewTask { queue: plain.queue, priority: plain.priority, payload: plain.payload, ..new },
            None => plain,
        };
        let at = |microseconds: Option<i64>| microseconds.map(Timestamp::from_microseconds);
        let end = self.end_number.zip(self.ended_in);
        Ok(Task {
            id: TaskId(self.id),
            new,
            state,
            submitted_at: Timestamp::from_microseconds(self.submitted_at),
            run_at: Timestamp::from_microseconds(self.run_at),
            expires_at: at(self.expires_at),
            expiry_before_claim: at(body.expiry_before_claim),
            attempts: body.attempts,
            claims: body.claims,
            lost: body.lost,
            started_at: at(body.started_at),
            finished_at: at(self.finished_at),
            session: self.session.map(SessionId),
            cancel_requested: self.cancel_requested,
            result: self.result,
            errors: body.errors,
            progress: body.progress,
            io: body.io,
            output: body.output.map(Arc::new),
            checkpoint: body.checkpoint,
            awaited: body.awaited,
            move_to: body.move_to,
            items: body.items,
            follower: body.follower,
            instance: self.instance.as_deref().map(decode_instance).transpose()?.map(Arc::new),
            end: end.map(|(number, entry)| End { number: number.cast_unsigned(), entry }),
        })
    }

    /// Decodes the part of the submission that columns cover.
    fn plain(&self) -> Result<NewTask> {
        let mut new = NewTask::of(Name::new(&self.kind)?);
        new.queue = Name::new(&self.queue)?;
        new.group = name(&self.group)?;
        new.affinity = name(&self.affinity_key)?;
        new.priority = Priority(u8::try_from(self.priority).unwrap_or(u8::MAX));
        new.payload = self.payload.clone().unwrap_or_default();
        new.parent = self.parent.map(TaskId);
        let key = self.key.clone().map(String::from_utf8).transpose().map_err(|error| damaged(self.id, error))?;
        new.unique = key.map(plain_key);
        Ok(new)
    }
}

/// Returns a unique key with the default policy.
fn plain_key(key: String) -> UniqueKey {
    UniqueKey { key, on_duplicate: OnDuplicate::default(), keep_for: std::time::Duration::ZERO }
}

/// Returns true if the columns cover the whole submission.
fn is_plain(new: &NewTask) -> bool {
    // No `..`: a new field must be classified here.
    let NewTask {
        kind: _,
        queue: _,
        payload: _,
        priority: _,
        group: _,
        affinity: _,
        parent: _,
        when,
        unique,
        ttl,
        timeout,
        heartbeat_timeout,
        deadline,
        retention,
        retry,
        scheduled_at,
        tags,
        depends_on,
        io,
        aggregate,
        orchestration,
        report,
    } = new;
    let has_plain_key =
        unique.as_ref().is_none_or(|unique| unique.on_duplicate == OnDuplicate::default() && unique.keep_for.is_zero());
    let is_unlimited = ttl.is_none() && timeout.is_none() && heartbeat_timeout.is_none() && deadline.is_none();
    let is_plain_attempt = is_unlimited && retry.is_none();
    let is_alone = tags.is_empty() && *depends_on == Dependencies::default() && aggregate.is_none() && report.is_none();
    *when == When::Now
        && retention.is_none()
        && has_plain_key
        && is_plain_attempt
        && is_alone
        && scheduled_at.is_none()
        && io.is_none()
        && !orchestration
}

/// Returns true if the columns, numbers and times cover a task completely, so that it fits a
/// columnar batch.
pub(in crate::postgres) fn is_brief(task: &Task) -> bool {
    // No `..`: a new field must be classified here.
    let Task {
        new,
        errors,
        progress,
        io,
        output,
        checkpoint,
        awaited,
        move_to,
        items,
        follower,
        instance,
        id: _,
        state: _,
        submitted_at: _,
        run_at: _,
        expires_at: _,
        expiry_before_claim: _,
        attempts: _,
        claims: _,
        lost: _,
        started_at: _,
        finished_at: _,
        session: _,
        cancel_requested: _,
        result: _,
        end: _,
    } = task;
    let has_said_nothing =
        errors.is_empty() && progress.is_none() && io.is_none() && output.is_none() && checkpoint.is_none();
    let is_by_itself =
        awaited.is_none() && move_to.is_none() && *items == 0 && follower.is_none() && instance.is_none();
    has_said_nothing && is_by_itself && is_plain(new)
}

/// Encodes the values without a column.
fn body(task: &Task) -> Result<String> {
    let new = &task.new;
    let microseconds = |at: Option<Timestamp>| at.map(Timestamp::as_microseconds);
    let body = Body {
        new: (!is_plain(new)).then(|| NewTask { payload: Bytes::new(), ..new.clone() }),
        attempts: task.attempts,
        claims: task.claims,
        lost: task.lost,
        started_at: microseconds(task.started_at),
        expiry_before_claim: microseconds(task.expiry_before_claim),
        errors: task.errors.clone(),
        progress: task.progress.clone(),
        io: task.io,
        output: task.output.as_deref().map(Output::without_pieces),
        checkpoint: task.checkpoint.clone(),
        awaited: task.awaited,
        move_to: task.move_to.clone(),
        items: task.items,
        follower: task.follower.clone(),
    };
    serde_json::to_string(&body).map_err(|error| Error::io(format!("task {} cannot be written: {error}", task.id)))
}

/// Returns a name as a column; empty for none.
pub(in crate::postgres) fn text(name: Option<&Name>) -> String {
    name.map(ToString::to_string).unwrap_or_default()
}

/// Decodes a name from a column; an empty one is none.
pub(in crate::postgres) fn name(text: &str) -> Result<Option<Name>> {
    if text.is_empty() { Ok(None) } else { Name::new(text).map(Some) }
}

/// The error for a row that cannot be decoded.
#[cold]
fn damaged(task: i64, what: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("the row of task {task} cannot be read: {what}; restore a backup"))
}
