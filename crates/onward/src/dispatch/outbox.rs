//! Signals that go with what the dispatcher writes next: whom they wake is then claimed in the same
//! commit, and not in the one after it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onward_store::{Outcome, Write};
use tokio::sync::oneshot;

use crate::engine::Run;

/// What the dispatcher of a run takes along for others, while it takes something.
#[derive(Debug, Default)]
pub(crate) struct Outbox(Mutex<Option<Vec<QueuedWrite>>>);

/// A write, and who waits for what becomes of it.
#[derive(Debug)]
pub(crate) struct QueuedWrite {
    pub(crate) write: Write,
    pub(crate) reply: oneshot::Sender<OutboxReply>,
}

/// The result of a queued write.
#[derive(Debug)]
pub(crate) enum OutboxReply {
    /// The store was asked, and this is what it said.
    Applied(onward_store::Result<Outcome>),
    /// The store was not asked: whoever wrote it sends it by itself.
    Returned(Box<Write>),
}

impl QueuedWrite {
    fn return_to_caller(self) {
        // Who has gone does not want it.
        let _ = self.reply.send(OutboxReply::Returned(Box::new(self.write)));
    }
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Option<Vec<QueuedWrite>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on something is taken along.
    pub(crate) fn open(&self) {
        self.lock().get_or_insert_default();
    }

    /// Nothing more is taken along; what waits is given back.
    pub(crate) fn close(&self) {
        let waiting = self.lock().take();
        waiting.into_iter().flatten().for_each(QueuedWrite::return_to_caller);
    }

    /// Gives back what waits.
    pub(crate) fn return_to_caller(&self) {
        self.take().into_iter().for_each(QueuedWrite::return_to_caller);
    }

    /// Queues a write, or gives it back at once where nothing is taken along.
    pub(crate) fn enqueue(&self, write: Write) -> Result<oneshot::Receiver<OutboxReply>, Write> {
        let mut queued = self.lock();
        let Some(queued) = queued.as_mut() else { return Err(write) };
        let (reply, receiver) = oneshot::channel();
        queued.push(QueuedWrite { write, reply });
        Ok(receiver)
    }

    /// Takes what was queued.
    pub(crate) fn take(&self) -> Vec<QueuedWrite> {
        self.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// As long as this is there, the outbox of a run is open (until it is [closed](Outbox::close)
/// before): whatever ends the dispatcher, nobody waits for ever.
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
