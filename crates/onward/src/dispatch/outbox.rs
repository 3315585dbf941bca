//! Signals that go with what the dispatcher writes next: whom they wake is then claimed in the same
//! commit, and not in the one after it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onward_store::{Outcome, Write};
use tokio::sync::oneshot;

use crate::engine::Run;

/// What the dispatcher of a run takes along for others, while it takes something.
#[derive(Debug, Default)]
pub(crate) struct Mail(Mutex<Option<Vec<Letter>>>);

/// A write, and who waits for what becomes of it.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) write: Write,
    pub(crate) answer: oneshot::Sender<Delivery>,
}

/// What became of a letter.
#[derive(Debug)]
pub(crate) enum Delivery {
    /// The store was asked, and this is what it said.
    Answered(onward_store::Result<Outcome>),
    /// The store was not asked: whoever wrote it sends it by itself.
    GivenBack(Box<Write>),
}

impl Letter {
    fn give_back(self) {
        // Who has gone does not want it.
        let _ = self.answer.send(Delivery::GivenBack(Box::new(self.write)));
    }
}

impl Mail {
    fn lock(&self) -> MutexGuard<'_, Option<Vec<Letter>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on something is taken along.
    pub(crate) fn open(&self) {
        self.lock().get_or_insert_default();
    }

    /// Nothing more is taken along; what waits is given back.
    pub(crate) fn shut(&self) {
        let waiting = self.lock().take();
        waiting.into_iter().flatten().for_each(Letter::give_back);
    }

    /// Gives back what waits.
    pub(crate) fn give_back(&self) {
        self.take().into_iter().for_each(Letter::give_back);
    }

    /// Hands in a write, or gives it back at once where nothing is taken along.
    pub(crate) fn hand_in(&self, write: Write) -> Result<oneshot::Receiver<Delivery>, Write> {
        let mut letters = self.lock();
        let Some(letters) = letters.as_mut() else { return Err(write) };
        let (answer, receiver) = oneshot::channel();
        letters.push(Letter { write, answer });
        Ok(receiver)
    }

    /// Takes what was handed in.
    pub(crate) fn take(&self) -> Vec<Letter> {
        self.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// As long as this is there, the mail of a run is taken along (until it is [shut](Mail::shut)
/// before): whatever ends the dispatcher, nobody waits for ever.
pub(crate) struct Opened(Arc<Run>);

impl Opened {
    pub(crate) fn of(run: &Arc<Run>) -> Self {
        run.mail.open();
        Self(Arc::clone(run))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.mail.shut();
    }
}

#[cfg(test)]
mod tests {
    use onward_store::TaskId;

    use super::*;

    const WRITE: Write = Write::Cancel { task: TaskId(7) };

    fn is_given_back(mut receiver: oneshot::Receiver<Delivery>) -> bool {
        matches!(receiver.try_recv(), Ok(Delivery::GivenBack(write)) if *write == WRITE)
    }

    #[test]
    fn nothing_is_taken_along_before_it_is_open_and_after_it_is_shut() {
        let mail = Mail::default();
        assert_eq!(mail.hand_in(WRITE).unwrap_err(), WRITE);
        mail.open();
        let waiting = mail.hand_in(WRITE).unwrap();
        mail.shut();
        assert!(is_given_back(waiting));
        assert_eq!(mail.hand_in(WRITE).unwrap_err(), WRITE);
    }

    #[test]
    fn what_was_taken_is_not_given_back() {
        let mail = Mail::default();
        mail.open();
        let (taken, left) = (mail.hand_in(WRITE).unwrap(), mail.take());
        let later = mail.hand_in(WRITE).unwrap();
        mail.give_back();
        assert!(!is_given_back(taken) && is_given_back(later));
        assert_eq!(left.len(), 1);
    }
}
