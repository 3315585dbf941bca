//! The writes of a turn.

use bytes::Bytes;
use onward_store::{AfterTurn, ChildTask, Lease, Message, MessageBody, NewTask, TaskState, Turn};
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::orchestration::replay::{Command, HistoryEvent, TaskEnd, encode};

/// Everything that has happened since the last write.
#[derive(Debug, Default)]
pub(super) struct PendingTurn {
    pub(in crate::orchestration) events: Vec<HistoryEvent>,
    pub(super) consumed: u64,
    /// The point from which the code can be offered more, if the last arrival makes it end.
    pub(super) cut: CutPoint,
    /// `None` for a task that was cancelled before it was submitted.
    submits: Vec<Option<NewTask>>,
    /// The index of the submit of each operation.
    positions: FxHashMap<u64, usize>,
    /// The operations of the submits; `None` for tasks that the code does not wait for.
    pub(super) operations: Vec<Option<u64>>,
    /// The operations whose tasks are to be cancelled.
    pub(super) cancelled: Vec<u64>,
    /// One entry for each key.
    tags: Vec<ChangedTag>,
    /// True if other processes should see a part of it before a step has ended.
    pub(super) is_urgent: bool,
}

/// A point before the arrival that made the code end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CutPoint {
    /// The number of events before it.
    pub(in crate::orchestration) events: usize,
    /// The highest message number up to which every message lies before it.
    pub(super) consumed: u64,
    /// True if the arrival behind it comes only once, such as the end of a step.
    pub(super) holds: bool,
}

/// The change of a tag since the last write.
#[derive(Debug)]
struct ChangedTag {
    key: String,
    before: Option<String>,
    now: Option<String>,
}

impl PendingTurn {
    /// Returns a turn that begins with events of another orchestration.
    pub(super) fn inherited(events: Vec<HistoryEvent>) -> Self {
        Self { events, ..Self::default() }
    }

    /// Records that more can be offered to the code here, up to the message with a number.
    pub(super) fn cut(&mut self, consumed: u64, holds: bool) {
        self.cut = CutPoint { events: self.events.len(), consumed, holds };
    }

    /// Adds an arrival and the commands of the code.
    pub(super) fn add(&mut self, event: HistoryEvent, commands: Vec<Command>) {
        self.events.push(event);
        self.add_commands(commands);
    }

    /// Adds commands that follow the last arrival of the history.
    pub(super) fn add_commands(&mut self, commands: Vec<Command>) {
        for command in commands {
            self.events.push(command.event());
            self.is_urgent = true;
            match command {
                Command::Submit { operation, task } => self.submit(*task, Some(operation)),
                Command::Detach { task } => self.submit(*task, None),
                Command::Cancel { operation } => self.cancel(operation),
                Command::ChangeTag { key, value, before } => self.change_tag(key, before, value),
                Command::StartTimer { .. } | Command::Patch { .. } => {}
            }
        }
    }

    fn submit(&mut self, task: NewTask, operation: Option<u64>) {
        if let Some(operation) = operation {
            self.positions.insert(operation, self.submits.len());
        }
        self.submits.push(Some(task));
        self.operations.push(operation);
    }

    /// Cancels a task. If this write would submit the task, the submit is removed instead.
    fn cancel(&mut self, operation: u64) {
        match self.positions.remove(&operation).and_then(|index| self.submits.get_mut(index)) {
            Some(submit) => *submit = None,
            None => self.cancelled.push(operation),
        }
    }

    /// Takes the tasks to submit, and keeps their operations.
    fn take_submits(&mut self) -> Vec<NewTask> {
        self.positions.clear();
        let submits = std::mem::take(&mut self.submits).into_iter().zip(std::mem::take(&mut self.operations));
        let (tasks, operations) = submits.filter_map(|(task, operation)| Some((task?, operation))).unzip();
        self.operations = operations;
        tasks
    }

    fn change_tag(&mut self, key: String, before: Option<String>, now: Option<String>) {
        match self.tags.iter_mut().find(|changed| changed.key == key) {
            Some(changed) => changed.now = now,
            None => self.tags.push(ChangedTag { key, before, now }),
        }
    }

    pub(super) fn write(
        &mut self,
        lease: Lease,
        length: u64,
        cancels: Vec<ChildTask>,
        next: AfterTurn,
    ) -> Result<Turn> {
        let chunk = if self.events.is_empty() { Bytes::new() } else { encode(&self.events)?.into() };
        let tags = std::mem::take(&mut self.tags).into_iter().filter(|changed| changed.before != changed.now);
        Ok(Turn {
            events: self.events.len() as u64,
            chunk,
            consumed: self.consumed,
            tags: tags.map(|changed| (changed.key, changed.now)).collect(),
            submits: self.take_submits(),
            cancels,
            ..Turn::new(lease, length, next)
        })
    }
}

/// Returns the event of a message for code that has not begun, or `None` if the message is not for
/// this code.
pub(super) fn carried_event_of(message: &Message) -> Option<HistoryEvent> {
    match &message.body {
        MessageBody::Signal { name, payload } => {
            Some(HistoryEvent::SignalCarried { name: name.to_string(), payload: payload.to_vec().into() })
        }
        MessageBody::Cancel => Some(HistoryEvent::CancelCarried),
        // No task of this code can have ended yet.
        MessageBody::Ended { .. } | MessageBody::NotStarted { .. } => None,
    }
}

/// Returns the event of a message.
pub(super) fn event_of(message: &Message) -> HistoryEvent {
    match &message.body {
        MessageBody::Ended { reference, state: TaskState::Completed, result, .. } => {
            let result = result.as_ref().map(|result| result.to_vec().into());
            HistoryEvent::TaskEnded { operation: *reference, end: TaskEnd::Completed { result } }
        }
        MessageBody::Ended { reference, state, error, .. } => HistoryEvent::TaskEnded {
            operation: *reference,
            end: TaskEnd::Failed { state: state.code(), error: error.clone() },
        },
        MessageBody::NotStarted { reference, existing } => {
            HistoryEvent::TaskEnded { operation: *reference, end: TaskEnd::NotStarted { existing: existing.0 } }
        }
        MessageBody::Signal { name, payload } => {
            HistoryEvent::SignalReceived { name: name.to_string(), payload: payload.to_vec().into() }
        }
        MessageBody::Cancel => HistoryEvent::CancelRequested,
    }
}
