//! Starts orchestrations that begin in the middle of another one's history.

use onward_store::{NewTask, OnDuplicate, Outcome, Refusal, TaskId, TaskRecord, UniqueKey, Write};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::orchestration::replay::{is_command, tags};
use crate::orchestration::turn::{FORKED_FROM, ForkOrigin, History, InstanceStart};

/// Forks.
impl Engine {
    /// Starts another orchestration that begins with the first `events` events of this one's
    /// history, and continues on its own from there. Use it with fixed code, or to try another
    /// outcome. Tasks that ran at that point are submitted again. The fork has the tags that this
    /// orchestration had there, and no key. Returns the id of the fork.
    ///
    /// The history of the original must exist until the fork has begun: the original may not
    /// continue as new before.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found); [`is_invalid`](Error::is_invalid) if the history is
    /// shorter, or cannot be cut there; the text names a valid cut.
    pub async fn fork(&self, orchestration: TaskId, events: u64) -> Result<TaskId> {
        let new = self.new_fork(orchestration, events).await?.1;
        Ok(self.submit_task(new).await?.id())
    }

    /// Forks an orchestration as [`fork`](Self::fork) does, and gives the fork the key of the
    /// original, which is [terminated](Self::terminate) if it has not ended: both or neither. A key
    /// that is kept after the end of the original passes to the fork, and is kept as long after its
    /// end.
    ///
    /// # Errors
    /// The errors of [`fork`](Self::fork); [`is_invalid`](Error::is_invalid) if another
    /// orchestration has taken the key. Nothing has changed then.
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
        let (start, history) = self.read_start(orchestration).await?;
        check_cut(orchestration, &history, events)?;
        let record = self.record(orchestration).await?;
        let mut new = NewTask::new(record.kind.as_str())?;
        new.orchestration = true;
        new.queue = record.queue.clone();
        new.group.clone_from(&record.group);
        new.affinity.clone_from(&record.affinity);
        new.priority = record.priority;
        new.payload = start.payload;
        let InstanceStart { task, generation, numbered, tags, .. } = start;
        let later = usize::try_from(events).unwrap_or(usize::MAX);
        new.tags = tags::before(tags, history.events.get(later..).unwrap_or_default());
        new.tags.set(FORKED_FROM, ForkOrigin { task, events, generation, numbered }.tag());
        Ok((record, new))
    }
}

/// Returns the error of a rejected reset, for the write that was rejected.
fn not_reset(error: Error) -> Error {
    let Some(Refusal::InAll { refusal, .. }) = error.refusal() else { return error };
    match &**refusal {
        Refusal::KeyTaken { task, by } => Error::invalid(format!(
            "orchestration {by} has taken the key of orchestration {task}; reset {by}, or fork {task}"
        )),
        refusal => refusal.clone().into(),
    }
}

/// Checks that a cut lies between the commands of one arrival and the next arrival.
fn check_cut(orchestration: TaskId, history: &History, events: u64) -> Result<()> {
    let length = history.events.len() as u64;
    let wanted = usize::try_from(events).unwrap_or(usize::MAX);
    if length == 0 {
        return Err(Error::invalid(format!("orchestration {orchestration} has no history yet; start another")));
    }
    if events == 0 || events > length {
        return Err(Error::invalid(format!(
            "the history of orchestration {orchestration} has {length} events, so {events} of them cannot be copied; copy from 1 to {length}"
        )));
    }
    let behind = history.events[wanted..].iter().take_while(|event| is_command(event)).count();
    if behind == 0 {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the history of orchestration {orchestration} cannot be cut behind event {events}, which commands of its code follow; cut it behind event {}",
        wanted + behind
    )))
}
