//! Orchestrations that begin in the midst of another's history.

use onward_store::{NewTask, OnDuplicate, Outcome, Refusal, Store, Tags, TaskId, TaskRecord, UniqueKey, Write};

use super::history::HistoryEvent;
use super::live::{Begun, History, Unplayable, read_history};
use super::machine::is_command;
use super::tags;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// The tag by which a fork knows where it begins.
const FORKED_FROM: &str = "onward.forked-from";

/// Where a fork begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) task: TaskId,
    /// How many events it takes over.
    events: u64,
    /// Of which of the origin's generations.
    generation: u32,
    /// In which generation the operations of that are [numbered](super::journal::Journal): the
    /// origin may be a fork itself.
    numbered: u32,
}

impl Origin {
    /// That of an orchestration, if it is a fork.
    pub(super) fn of(tags: &Tags) -> Option<Self> {
        let mut parts = tags.get(FORKED_FROM)?.split(':');
        let (task, events) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let mut generation = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
        Some(Self { task: TaskId(task), events, generation: generation(), numbered: generation() })
    }

    fn tag(self) -> String {
        let Self { task, events, generation, numbered } = self;
        format!("{}:{events}:{generation}:{numbered}", task.0)
    }

    /// What it takes over.
    pub(super) async fn history(&self, store: &dyn Store) -> Result<Vec<HistoryEvent>, Unplayable> {
        let Self { task, events, generation, .. } = *self;
        let history = read_history(store, task, events).await;
        // It is of this generation if that is the one now: none comes back.
        let now = store.instance(task).await.map_err(|error| Unplayable::Unread(error.into()))?;
        if now.is_some_and(|now| now.generation != generation) {
            return Err(self.gone("the orchestration has continued as new"));
        }
        let mut history = history.map_err(|error| self.unread(error))?;
        history.events.truncate(usize::try_from(events).unwrap_or(usize::MAX));
        Ok(history.events)
    }

    /// Why it could not be read: what is not there will not come back, and a store that fails will.
    fn unread(&self, error: Error) -> Unplayable {
        if error.is_corrupt() || error.is_not_found() { self.gone("it was removed") } else { Unplayable::Unread(error) }
    }

    fn gone(&self, why: &str) -> Unplayable {
        Unplayable::Gone(Error::invalid(format!(
            "the history of orchestration {}, from which this one is forked, is gone: {why}; start another",
            self.task
        )))
    }
}

/// Takes the tag of a fork out; whether it is there.
pub(super) fn take_origin(tags: &mut Tags) -> bool {
    tags.remove(FORKED_FROM).is_some()
}

/// In which generation an orchestration numbers its operations: a fork goes on from where its
/// origin was.
pub(super) fn numbered(tags: &Tags, generation: u32) -> u32 {
    Origin::of(tags).map_or(0, |origin| origin.numbered).saturating_add(generation)
}

/// Going back in a history.
impl Engine {
    /// Starts another orchestration that begins with the first `events` events of this one's
    /// history, and goes on by itself from there: with code that was mended, or to see what else
    /// may come of it. What was under way then is submitted again. It has the tags that this one
    /// had there, and no key. Answers its number.
    ///
    /// The history of the first has to be there until the second has begun: it may not have
    /// continued as new by then.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found); [`is_invalid`](Error::is_invalid) if the history is
    /// shorter, or cannot be cut there; the text says where it can.
    pub async fn fork(&self, orchestration: TaskId, events: u64) -> Result<TaskId> {
        let new = self.new_fork(orchestration, events).await?.1;
        Ok(self.submit_task(new).await?.id())
    }

    /// The same, and it takes the key and the place of the first, which is
    /// [terminated](Self::terminate) if it has not ended: both or neither. A key that is kept after
    /// the end of the first goes over to it, and is kept as long after its own.
    ///
    /// # Errors
    /// As [`fork`](Self::fork); [`is_invalid`](Error::is_invalid) if another has the key meanwhile.
    /// Nothing has changed then.
    pub async fn reset(&self, orchestration: TaskId, events: u64, reason: &str) -> Result<TaskId> {
        let (record, mut new) = self.new_fork(orchestration, events).await?;
        let (on_duplicate, keep_for) = (OnDuplicate::TakeOver(orchestration), record.keep_key_for);
        new.unique = record.key.clone().map(|key| UniqueKey { key, on_duplicate, keep_for });
        let mut writes = vec![Write::Submit(Box::new(new))];
        if !record.state.is_ended() {
            writes.insert(0, Write::Terminate { task: orchestration, reason: reason.to_owned() });
        }
        let Outcome::All(outcomes) = self.apply(Write::All(writes)).await.map_err(not_reset)? else {
            return Err(Error::unexpected("a reset"));
        };
        match outcomes.last() {
            Some(Outcome::Submitted(submitted)) => Ok(submitted.id()),
            _ => Err(Error::unexpected("a reset")),
        }
    }

    async fn new_fork(&self, orchestration: TaskId, events: u64) -> Result<(TaskRecord, NewTask)> {
        let (begun, history) = self.read_begun(orchestration).await?;
        check_cut(orchestration, &history, events)?;
        let record = self.record(orchestration).await?;
        let mut new = NewTask::new(record.kind.as_str())?;
        new.orchestration = true;
        new.queue = record.queue.clone();
        new.group.clone_from(&record.group);
        new.affinity.clone_from(&record.affinity);
        new.priority = record.priority;
        new.payload = begun.payload;
        let Begun { task, generation, numbered, tags, .. } = begun;
        let later = usize::try_from(events).unwrap_or(usize::MAX);
        new.tags = tags::before(tags, history.events.get(later..).unwrap_or_default());
        new.tags.set(FORKED_FROM, Origin { task, events, generation, numbered }.tag());
        Ok((record, new))
    }
}

/// Says of a refused reset which of its writes it was for.
fn not_reset(error: Error) -> Error {
    let Some(Refusal::Member { refusal, .. }) = error.refusal() else { return error };
    match &**refusal {
        Refusal::KeyTaken { task, by } => Error::invalid(format!(
            "another orchestration, {by}, has the key of {task} meanwhile; reset that, or fork this"
        )),
        refusal => refusal.clone().into(),
    }
}

/// A history is cut between what the code did about one arrival and the next arrival.
fn check_cut(orchestration: TaskId, history: &History, events: u64) -> Result<()> {
    let length = history.events.len() as u64;
    let wanted = usize::try_from(events).unwrap_or(usize::MAX);
    if length == 0 {
        return Err(Error::invalid(format!("orchestration {orchestration} has no history yet; start another")));
    }
    if events == 0 || events > length {
        return Err(Error::invalid(format!(
            "the history of orchestration {orchestration} has {length} events, and {events} of them cannot be taken over; take from 1 to {length}"
        )));
    }
    let behind = history.events[wanted..].iter().take_while(|event| is_command(event)).count();
    if behind == 0 {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the history of orchestration {orchestration} cannot be cut behind event {events}, in the midst of what the code did; cut it behind {}",
        wanted + behind
    )))
}
