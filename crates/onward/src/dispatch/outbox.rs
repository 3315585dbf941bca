//! Writes that are committed with the dispatcher's next batch. The orchestrations that they wake
//! are then claimed in the same commit instead of the one after it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onward_store::{Outcome, Write};
use tokio::sync::oneshot;

use crate::bounds;
use crate::engine::Run;

/// The writes that a run's dispatcher commits for other callers. `None` while it accepts none.
#[derive(Debug, Default)]
pub(crate) struct Outbox(Mutex<Option<Vec<QueuedWrite>>>);

/// A write and the sender for its result.
#[derive(Debug)]
pub(crate) struct QueuedWrite {
    pub(crate) write: Write,
    pub(crate) reply: oneshot::Sender<OutboxReply>,
}

/// The result of a queued write.
#[derive(Debug)]
pub(crate) enum OutboxReply {
    /// The store was called and returned this.
    Applied(onward_store::Result<Outcome>),
    /// The store was not called: the caller sends the write itself.
    Returned(Box<Write>),
}

impl QueuedWrite {
    fn return_to_caller(self) {
        // A caller that was dropped does not need its write.
        let _ = self.reply.send(OutboxReply::Returned(Box::new(self.write)));
    }
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Option<Vec<QueuedWrite>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the outbox for writes.
    pub(crate) fn open(&self) {
        self.lock().get_or_insert_default();
    }

    /// Closes the outbox and returns the queued writes to their callers.
    pub(crate) fn close(&self) {
        let waiting = self.lock().take();
        waiting.into_iter().flatten().for_each(QueuedWrite::return_to_caller);
    }

    /// Returns the queued writes to their callers.
    pub(crate) fn return_to_caller(&self) {
        self.take().into_iter().for_each(QueuedWrite::return_to_caller);
    }

    /// Queues a write, or returns it at once if the outbox is closed or full.
    pub(crate) fn enqueue(&self, write: Write) -> Result<oneshot::Receiver<OutboxReply>, Write> {
        let mut queued = self.lock();
        let room = |queued: &&mut Vec<QueuedWrite>| queued.len() < bounds::QUEUED_WRITES;
        let Some(queued) = queued.as_mut().filter(room) else { return Err(write) };
        let (reply, receiver) = oneshot::channel();
        queued.push(QueuedWrite { write, reply });
        Ok(receiver)
    }

    /// Takes the queued writes.
    pub(crate) fn take(&self) -> Vec<QueuedWrite> {
        self.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// A guard that keeps the outbox of a run open until it is dropped, or [closed](Outbox::close)
/// before. However the dispatcher ends, no caller waits for ever.
pub(crate) struct OpenOutbox(Arc<Run>);

impl OpenOutbox {
    pub(crate) fn of(run: &Arc<Run>) -> Self {
        run.outbox.open();
        Self(Arc::clone(run))
    }
}

impl Drop for OpenOutbox {
    fn drop(&mut self) {
        self.0.outbox.close();
    }
}

#[cfg(test)]
mod tests {
    use onward_store::TaskId;

    use super::*;

    const WRITE: Write = Write::Cancel { task: TaskId(7) };

    fn is_returned(mut receiver: oneshot::Receiver<OutboxReply>) -> bool {
        matches!(receiver.try_recv(), Ok(OutboxReply::Returned(write)) if *write == WRITE)
    }

    #[test]
    fn nothing_is_taken_along_before_it_is_open_and_after_it_is_shut() {
        let outbox = Outbox::default();
        assert_eq!(outbox.enqueue(WRITE).unwrap_err(), WRITE);
        outbox.open();
        let waiting = outbox.enqueue(WRITE).unwrap();
        outbox.close();
        assert!(is_returned(waiting));
        assert_eq!(outbox.enqueue(WRITE).unwrap_err(), WRITE);
    }

    #[test]
    fn a_full_outbox_returns_the_write_to_its_caller() {
        let outbox = Outbox::default();
        outbox.open();
        let waiting: Vec<_> = (0..bounds::QUEUED_WRITES).map(|_| outbox.enqueue(WRITE).unwrap()).collect();
        assert_eq!(outbox.enqueue(WRITE).unwrap_err(), WRITE);
        assert_eq!(outbox.take().len(), waiting.len());
        assert!(outbox.enqueue(WRITE).is_ok());
    }

    #[test]
    fn what_was_taken_is_not_given_back() {
        let outbox = Outbox::default();
        outbox.open();
        let (taken, left) = (outbox.enqueue(WRITE).unwrap(), outbox.take());
        let later = outbox.enqueue(WRITE).unwrap();
        outbox.return_to_caller();
        assert!(!is_returned(taken) && is_returned(later));
        assert_eq!(left.len(), 1);
    }
}
