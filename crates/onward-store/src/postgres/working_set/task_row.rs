//! A task as a row.

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

/// A task as a store keeps it: what is looked for in columns, the rest in `body`.
#[derive(Debug, Clone)]
pub(crate) struct TaskRow {
    pub(crate) id: i64,
    pub(crate) state: i16,
    pub(crate) queue: String,
    pub(crate) kind: String,
    /// Empty for none.
    pub(crate) group: String,
    /// Empty for none.
    pub(crate) affinity_key: String,
    pub(crate) sort_key: i64,
    pub(crate) priority: i16,
    pub(crate) run_at: i64,
    pub(crate) expires_at: Option<i64>,
    /// By when it must be finished from elsewhere; of an ended one until when it is kept, if it
    /// said how long that is.
    pub(in crate::postgres) overdue_at: Option<i64>,
    pub(crate) session: Option<i64>,
    pub(crate) cancel_requested: bool,
    pub(crate) parent: Option<i64>,
    pub(crate) submitted_at: i64,
    pub(crate) key: Option<Vec<u8>>,
    /// What the store has is kept where this is `None`.
    pub(crate) payload: Option<Bytes>,
    pub(crate) result: Option<Bytes>,
    pub(crate) finished_at: Option<i64>,
    pub(in crate::postgres) end_number: Option<i64>,
    pub(in crate::postgres) end_entry: Option<i64>,
    pub(crate) body: String,
    /// What is kept of an orchestration, but its history and its messages.
    pub(crate) instance: Option<Vec<u8>>,
    /// True for an orchestration.
    pub(crate) orchestration: bool,
}

/// What changes of a task while what its submitter said stays as it is.
#[derive(Debug, Clone)]
pub(in crate::postgres) struct ChangedRow {
    pub(crate) id: i64,
    pub(crate) state: i16,
    pub(crate) sort_key: i64,
    pub(crate) run_at: i64,
    pub(crate) expires_at: Option<i64>,
    pub(in crate::postgres) overdue_at: Option<i64>,
    pub(crate) session: Option<i64>,
    pub(crate) cancel_requested: bool,
    pub(crate) result: Option<Bytes>,
    pub(crate) finished_at: Option<i64>,
    pub(in crate::postgres) end_number: Option<i64>,
    pub(in crate::postgres) end_entry: Option<i64>,
    pub(crate) body: String,
    /// What is kept of an orchestration, if that has changed.
    pub(crate) instance: Option<Vec<u8>>,
}

/// An orchestration of which nothing has changed but what is kept of it as one.
#[derive(Debug, Clone)]
pub(in crate::postgres) struct InstanceRow {
    pub(crate) id: i64,
    pub(crate) instance: Vec<u8>,
}

/// What is known of a task beside its row.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::postgres) struct Relations {
    pub(crate) waits_for: Vec<i64>,
    pub(crate) dependents: Vec<i64>,
    pub(crate) bundle: Option<i64>,
    pub(crate) members: Vec<i64>,
    /// Whether any task is its child.
    pub(in crate::postgres) has_children: bool,
    /// Who has its key, and until when that is kept.
    pub(crate) key: Option<(i64, Option<i64>)>,
    /// The first few messages that wait for it.
    pub(crate) messages: Vec<Vec<u8>>,
}

/// A task as it was loaded. It is made of its row as soon as that is there: rows are large, and
/// many wait for the last of them.
#[derive(Debug)]
pub(in crate::postgres) struct LoadedTask {
    pub(in crate::postgres) task: Arc<Task>,
    /// `None` where nothing is known of it beside its row.
    pub(in crate::postgres) relations: Option<Box<Relations>>,
}

impl LoadedTask {
    pub(crate) fn of(row: TaskRow, relations: Relations) -> Result<Self> {
        let mut task = row.into_task()?;
        set_messages(&mut task, &relations.messages)?;
        let relations =
            (relations != Relations::default()).then(|| Box::new(Relations { messages: Vec::new(), ..relations }));
        Ok(Self { task: Arc::new(task), relations })
    }

    pub(crate) fn id(&self) -> TaskId {
        self.task.id
    }
}

impl Relations {
    /// Whether other tasks have to do with it, but for a key and for children.
    pub(in crate::postgres) fn is_related(&self) -> bool {
        // Without `..`, so that whoever adds a link says here whether it is one of those.
        let Self { waits_for, dependents, bundle, members, has_children: _, key: _, messages: _ } = self;
        !waits_for.is_empty() || !dependents.is_empty() || bundle.is_some() || !members.is_empty()
    }
}

/// What is loaded of a mailbox; more replaces less.
pub(super) fn set_messages(task: &mut Task, messages: &[Vec<u8>]) -> Result<()> {
    if let Some(instance) = &mut task.instance {
        let messages = messages.iter().map(|message| decode_message(message));
        Arc::make_mut(instance).mailbox = messages.collect::<Result<_>>()?;
    }
    Ok(())
}

/// What has no column. Field names are part of the schema.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Body {
    /// What its submitter said, where that is more than the columns have; without the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<NewTask>,
    #[serde(skip_serializing_if = "is_default")]
    attempts: u32,
    #[serde(skip_serializing_if = "is_default")]
    claims: u32,
    #[serde(skip_serializing_if = "is_default")]
    lost: u32,
    #[serde(skip_serializing_if = "is_default")]
    started_at: Option<i64>,
    #[serde(skip_serializing_if = "is_default")]
    expiry_before_claim: Option<i64>,
    #[serde(skip_serializing_if = "is_default")]
    errors: Vec<AttemptError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    #[serde(skip_serializing_if = "is_default")]
    io: Option<Io>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Output>,
    #[serde(skip_serializing_if = "is_default")]
    memo: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    awaited: Option<AwaitedCompletion>,
    #[serde(skip_serializing_if = "is_default")]
    move_to: Option<Name>,
    #[serde(skip_serializing_if = "is_default")]
    members: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    follower: Option<Box<NewTask>>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl ChangedRow {
    pub(crate) fn of(task: &Task) -> Result<Self> {
        let microseconds = |at: Option<Timestamp>| at.map(Timestamp::as_microseconds);
        Ok(Self {
            id: task.id.0,
            state: i16::try_from(task.state.code()).unwrap_or_default(),
            sort_key: task.sort_key().at,
            run_at: task.run_at.as_microseconds(),
            expires_at: microseconds(task.expires_at),
            overdue_at: microseconds(task.must_be_finished_by().or(task.retained_until())),
            session: task.session.map(|session| session.0),
            cancel_requested: task.cancel_requested,
            result: task.result.clone(),
            finished_at: microseconds(task.finished_at),
            end_number: task.end.map(|end| end.number.cast_signed()),
            end_entry: task.end.map(|end| end.entry),
            body: body(task)?,
            instance: None,
        })
    }

    /// With what is kept of an orchestration.
    pub(super) fn and_instance(self, instance: &Instance) -> Result<Self> {
        Ok(Self { instance: Some(encode_instance(instance)?), ..self })
    }
}

impl InstanceRow {
    pub(in crate::postgres) fn of(task: TaskId, instance: &Instance) -> Result<Self> {
        Ok(Self { id: task.0, instance: encode_instance(instance)? })
    }
}

impl TaskRow {
    /// The row of a task; without its payload, if the store has that already.
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
            end_entry: changed.end_entry,
            body: changed.body,
            instance: task.instance.as_deref().map(encode_instance).transpose()?,
            orchestration: new.orchestration,
        })
    }

    pub(crate) fn into_task(self) -> Result<Task> {
        let body: Body = serde_json::from_str(&self.body).map_err(|error| damaged(self.id, error))?;
        let state = TaskState::from_code(self.state.into()).ok_or_else(|| damaged(self.id, "its state is unknown"))?;
        let plain = self.plain()?;
        let new = match body.new {
            // The columns may be newer.
            Some(new) => NewTask { queue: plain.queue, priority: plain.priority, payload: plain.payload, ..new },
            None => plain,
        };
        let at = |microseconds: Option<i64>| microseconds.map(Timestamp::from_microseconds);
        let end = self.end_number.zip(self.end_entry);
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
            memo: body.memo,
            awaited: body.awaited,
            move_to: body.move_to,
            members: body.members,
            follower: body.follower,
            instance: self.instance.as_deref().map(decode_instance).transpose()?.map(Arc::new),
            end: end.map(|(number, entry)| End { number: number.cast_unsigned(), entry }),
        })
    }

    /// What the columns say of what the submitter said.
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

fn plain_key(key: String) -> UniqueKey {
    UniqueKey { key, on_duplicate: OnDuplicate::default(), keep_for: std::time::Duration::ZERO }
}

/// Whether the columns have all that the submitter said.
fn is_plain(new: &NewTask) -> bool {
    // Without `..`, so that whoever adds a field says here whether a column has it.
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

/// Whether a task's columns, its numbers and its times are all there is of it.
pub(in crate::postgres) fn is_brief(task: &Task) -> bool {
    // Without `..`, so that whoever adds a field says here whether it is one of those.
    let Task {
        new,
        errors,
        progress,
        io,
        output,
        memo,
        awaited,
        move_to,
        members,
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
        errors.is_empty() && progress.is_none() && io.is_none() && output.is_none() && memo.is_none();
    let is_by_itself =
        awaited.is_none() && move_to.is_none() && *members == 0 && follower.is_none() && instance.is_none();
    has_said_nothing && is_by_itself && is_plain(new)
}

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
        memo: task.memo.clone(),
        awaited: task.awaited,
        move_to: task.move_to.clone(),
        members: task.members,
        follower: task.follower.clone(),
    };
    serde_json::to_string(&body).map_err(|error| Error::io(format!("task {} cannot be written: {error}", task.id)))
}

pub(in crate::postgres) fn text(name: Option<&Name>) -> String {
    name.map(ToString::to_string).unwrap_or_default()
}

/// The name that a column has; none if that is empty.
pub(in crate::postgres) fn name(text: &str) -> Result<Option<Name>> {
    if text.is_empty() { Ok(None) } else { Name::new(text).map(Some) }
}

#[cold]
fn damaged(task: i64, what: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("the row of task {task} cannot be read: {what}; restore a backup"))
}
