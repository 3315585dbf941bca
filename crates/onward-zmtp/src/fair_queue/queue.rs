//! The queue from the reader's side.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use super::handle::{Handle, InsertError};
use super::mailbox::Mailbox;
use super::signal::Signal;
#[cfg(feature = "tokio")]
use super::source::ReadAhead;
use super::source::{Ended, SourceId};
use super::sources::{NoMessage, Sources};

/// The default limit of sources in a queue.
pub const DEFAULT_SOURCE_LIMIT: usize = 65_536;

/// The number of polls in a row that may find a message. The next poll returns `Pending` and wakes
/// its task, so that other work of the task gets its turn.
pub const READS_BEFORE_YIELD: u32 = 128;

/// The number of sources without a message that one poll polls before it returns `Pending` and
/// wakes its task.
pub const EMPTY_POLLS_BEFORE_YIELD: u32 = 128;

/// A queue that reads from many sources, each a stream of messages, and lets none of them starve.
/// The [module's page](super) has an example.
///
/// The queue owns its sources, and the reader has exclusive access to the queue. Other tasks insert
/// and remove sources through a [`Handle`].
///
/// # Order and fairness
///
/// Messages of one source keep their order. Between two messages of one source, each other source
/// returns one if it had a message before the first of the two was read. A source that floods the
/// queue gets one turn in each round, like every other.
///
/// # Cancellation
///
/// A message leaves its source only in the poll that returns it to the caller. A future of
/// [`recv`](Self::recv) or [`recv_many`](Self::recv_many) that is dropped before it is ready has
/// taken nothing.
pub struct FairQueue<K, S> {
    sources: Sources<K, S>,
    /// The signal of the mailbox.
    signal: Arc<Signal>,
    mailbox: Arc<Mailbox<K, S>>,
    /// The number of reads left before one yields.
    budget: u32,
    on_end: Option<OnEnd<K, S>>,
    /// A waker for the task that reads. Polls made outside of a task use it.
    reader: Waker,
}

type OnEnd<K, S> = Box<dyn FnMut(Ended<K, S>) + Send>;

/// The way in which a queue reads its sources, as the last read left it. For diagnosis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No source.
    Empty,
    /// One source, which is polled directly.
    One,
    /// Several sources, which take turns; or one that has not been alone for long.
    Many,
}

/// The next step of a read that found no message.
enum NextStep {
    /// Poll again: a source has ended, and another may have a message.
    PollAgain,
    /// Return `Pending`; the task will be woken, or has been.
    Wait,
    /// Report the end: there is nothing to wait for.
    End,
}

impl<K, S> FairQueue<K, S> {
    /// Creates a queue for up to [`DEFAULT_SOURCE_LIMIT`] sources. It allocates nothing for them
    /// yet.
    pub fn new() -> Self {
        Self::with_limit(DEFAULT_SOURCE_LIMIT)
    }

    /// Creates a queue for up to `limit` sources. A removed source counts until the reader has
    /// dropped it.
    pub fn with_limit(limit: usize) -> Self {
        let signal = Arc::new(Signal::new());
        let mailbox = Arc::new(Mailbox::new(limit, signal.clone()));
        let reader = Waker::from(signal.clone());
        Self { sources: Sources::Empty, signal, mailbox, budget: READS_BEFORE_YIELD, on_end: None, reader }
    }

    /// Returns a handle with which other tasks insert and remove sources. While a handle exists, an
    /// empty queue waits instead of ending.
    pub fn handle(&self) -> Handle<K, S> {
        Handle::new(self.mailbox.clone())
    }

    /// Adds a source, as [`Handle::insert`] does.
    ///
    /// # Errors
    ///
    /// Returns an error if the queue is at its limit of sources. The error contains the key and the
    /// source.
    pub fn insert(&mut self, key: K, source: S) -> Result<SourceId, InsertError<K, S>> {
        self.mailbox.insert(key, source).map_err(InsertError::new)
    }

    /// Removes a source, as [`Handle::remove`] does.
    pub fn remove(&mut self, id: SourceId) -> bool {
        self.mailbox.remove(id)
    }

    /// Sets the callback for sources that end, and replaces the previous one. It is not called for
    /// sources that were removed.
    ///
    /// The callback runs inside the read that found the end, under no lock. It may use a handle of
    /// this queue, which counts like any other. The reader waits until it returns.
    pub fn on_end(&mut self, callback: impl FnMut(Ended<K, S>) + Send + 'static) {
        self.on_end = Some(Box::new(callback));
    }

    /// Returns the number of sources in the queue.
    pub fn len(&self) -> usize {
        self.mailbox.len()
    }

    /// Returns true if the queue has no source.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the state that the last read left.
    pub fn state(&self) -> State {
        match self.sources {
            Sources::Empty => State::Empty,
            Sources::One(_) => State::One,
            Sources::Many(_) => State::Many,
        }
    }

    /// Applies the changes of handles and adds woken sources to the ready list. Costs one load if
    /// there is nothing to do.
    #[inline]
    fn process_signal(&mut self) {
        if self.signal.is_raised() {
            self.process_raised();
        }
    }

    #[cold]
    fn process_raised(&mut self) {
        let raised = self.signal.take();
        if raised.has_mailbox() {
            let changes = self.mailbox.take_changes();
            // Removals come first, so that insertions can reuse their slots.
            for id in changes.removed {
                self.sources.remove(id);
            }
            for entry in changes.inserted.into_values() {
                self.sources.insert(entry, &self.signal);
            }
        }
        self.sources.enqueue_woken(raised);
    }

    /// Removes a source that ended, and calls the callback unless a handle removed the source at
    /// the same time.
    #[cold]
    fn end(&mut self, id: SourceId) {
        let entry = self.sources.remove(id);
        let was_there = self.mailbox.remove_ended(id);
        if let (true, Some(entry), Some(on_end)) = (was_there, entry, &mut self.on_end) {
            on_end(entry.into());
        }
    }

    /// Registers the reader's waker once nothing is ready, and checks whether there is anything to
    /// wait for.
    #[cold]
    fn park(&mut self, context: &Context<'_>) -> NextStep {
        if self.sources.pause() {
            return self.yield_to_others(context);
        }
        self.budget = READS_BEFORE_YIELD;
        self.signal.register(context.waker());
        // The handles are checked before the signal. Everything that the last handle did before its
        // drop is then seen as raised.
        let has_handles = self.mailbox.has_handles();
        if self.signal.is_raised() {
            context.waker().wake_by_ref();
        } else if !has_handles && matches!(self.sources, Sources::Empty) {
            return NextStep::End;
        }
        NextStep::Wait
    }

    /// Yields to other tasks although there is more to read.
    #[cold]
    fn yield_to_others(&mut self, context: &Context<'_>) -> NextStep {
        self.sources.pause();
        self.budget = READS_BEFORE_YIELD;
        context.waker().wake_by_ref();
        NextStep::Wait
    }
}

impl<K: Clone, S: Stream + Unpin> FairQueue<K, S> {
    /// Returns the next message and the key of its source. Returns `None` when the queue is empty
    /// and no handle is left to insert a source.
    ///
    /// Cancel safe. It yields to other work as [`poll_recv`](Self::poll_recv) does.
    pub async fn recv(&mut self) -> Option<(K, S::Item)> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// Waits for a message, then appends it and all others that are ready to `messages`, at most
    /// `limit`. Returns their number, which is zero when the queue is at its end or `limit` is
    /// zero.
    ///
    /// Cancel safe: nothing is appended before the future is ready.
    pub async fn recv_many(&mut self, messages: &mut Vec<(K, S::Item)>, limit: usize) -> usize {
        poll_fn(|context| self.poll_recv_many(context, messages, limit)).await
    }

    /// Returns the next message if one is ready. `None` means that there is none now, or that the
    /// queue is at its end.
    ///
    /// Sources are polled as by a read; at most [`EMPTY_POLLS_BEFORE_YIELD`] of them may have
    /// nothing. A task that waits in [`poll_recv`](Self::poll_recv) is still woken afterwards.
    pub fn try_recv(&mut self) -> Option<(K, S::Item)> {
        self.sources.pause();
        // This waker raises the signal and leaves the registered waker in place. A task that waits
        // in `poll_recv` is therefore still woken.
        let reader = self.reader.clone();
        let mut message = None;
        self.read_each(&mut Context::from_waker(&reader), 1, |found| message = Some(found));
        message
    }

    /// Appends the messages that are ready to `messages`, at most `limit`, and returns their
    /// number. Otherwise it works like [`try_recv`](Self::try_recv).
    pub fn try_recv_many(&mut self, messages: &mut Vec<(K, S::Item)>, limit: usize) -> usize {
        self.sources.pause();
        let reader = self.reader.clone();
        self.read_each(&mut Context::from_waker(&reader), limit, |message| messages.push(message)).0
    }

    /// Polls for the next message and the key of its source.
    ///
    /// Returns `Ready(None)` when the queue is empty and no handle is left. Returns `Pending` when
    /// no source has a message. It also returns `Pending`, and wakes the task at once, in two
    /// cases:
    ///
    /// - after [`READS_BEFORE_YIELD`] reads in a row that found a message,
    /// - after [`EMPTY_POLLS_BEFORE_YIELD`] sources that had none.
    ///
    /// Each source that has nothing is polled at most once. Only the last task that polled is
    /// woken.
    // The fast path, which finds a message at once, is inlined into the caller. The slow path is
    // out of line and returns its message through a separate place. With one place for both, every
    // message would be written there and read again at once. That cost more than everything else on
    // the path of a lone source.
    #[inline]
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<(K, S::Item)>> {
        if self.budget == 0 {
            self.yield_to_others(context);
            return Poll::Pending;
        }
        self.process_signal();
        let mut empty_polls_left = EMPTY_POLLS_BEFORE_YIELD;
        // Each state returns on its own, so that no message is moved to a place that the states
        // share.
        let no_message = match &mut self.sources {
            Sources::One(one) => match one.poll_ready(context) {
                Ok(message) => {
                    self.budget -= 1;
                    return Poll::Ready(Some(message));
                }
                Err(no_message) => no_message,
            },
            Sources::Many(many) => match many.poll_ready(&mut empty_polls_left) {
                Ok(message) => {
                    self.budget -= 1;
                    return Poll::Ready(Some(message));
                }
                Err(no_message) => no_message,
            },
            Sources::Empty => NoMessage::Idle,
        };
        let mut message = None;
        self.poll_again(no_message, empty_polls_left, context, &mut message).map(|()| message)
    }

    /// Continues a read that has found nothing so far: removes sources that ended and polls until
    /// the result is clear. `Ready` without a message is the end of the queue.
    #[cold]
    #[inline(never)]
    fn poll_again(
        &mut self,
        mut no_message: NoMessage,
        mut empty_polls_left: u32,
        context: &mut Context<'_>,
        message: &mut Option<(K, S::Item)>,
    ) -> Poll<()> {
        loop {
            match self.after_no_message(no_message, context) {
                NextStep::PollAgain => {}
                NextStep::Wait => return Poll::Pending,
                NextStep::End => return Poll::Ready(()),
            }
            match self.sources.poll_ready(context, &mut empty_polls_left) {
                Ok(found) => {
                    self.budget -= 1;
                    *message = Some(found);
                    return Poll::Ready(());
                }
                Err(next) => no_message = next,
            }
        }
    }

    /// Removes a source that ended, or arranges a wake-up, after a poll without a message.
    #[cold]
    #[inline(never)]
    fn after_no_message(&mut self, no_message: NoMessage, context: &Context<'_>) -> NextStep {
        match no_message {
            NoMessage::Ended(id) => {
                self.end(id);
                NextStep::PollAgain
            }
            NoMessage::Idle => self.park(context),
            NoMessage::LimitReached => self.yield_to_others(context),
        }
    }

    /// Appends the messages that are ready to `messages`, at most `limit`, and returns their
    /// number. Returns `Ready(0)` when the queue is at its end or `limit` is zero.
    ///
    /// Sources take turns within a batch as they do between reads. A batch counts as one read.
    /// Otherwise this works like [`poll_recv`](Self::poll_recv).
    pub fn poll_recv_many(
        &mut self,
        context: &mut Context<'_>,
        messages: &mut Vec<(K, S::Item)>,
        limit: usize,
    ) -> Poll<usize> {
        if limit == 0 {
            return Poll::Ready(0);
        }
        if self.budget == 0 {
            self.yield_to_others(context);
            return Poll::Pending;
        }
        let looked = self.read_each(context, limit, |message| messages.push(message));
        self.batch(context, looked)
    }

    /// Finishes the read of a batch.
    fn batch(&mut self, context: &Context<'_>, looked: (usize, NoMessage)) -> Poll<usize> {
        let (taken, no_message) = looked;
        if taken > 0 {
            self.budget -= 1;
            return Poll::Ready(taken);
        }
        match self.after_no_message(no_message, context) {
            NextStep::End => Poll::Ready(0),
            NextStep::Wait | NextStep::PollAgain => Poll::Pending,
        }
    }

    /// Reads like [`poll_recv_many`](Self::poll_recv_many), without the keys. A lone source returns
    /// everything that it has read ahead at once, up to `limit`.
    #[cfg(feature = "tokio")]
    pub(crate) fn poll_recv_ahead(
        &mut self,
        context: &mut Context<'_>,
        messages: &mut Vec<S::Item>,
        limit: usize,
    ) -> Poll<usize>
    where
        S: ReadAhead,
    {
        if limit == 0 {
            return Poll::Ready(0);
        }
        if self.budget == 0 {
            self.yield_to_others(context);
            return Poll::Pending;
        }
        let (first, mut empty_polls_left) = (messages.len(), EMPTY_POLLS_BEFORE_YIELD);
        self.process_signal();
        let no_message = loop {
            let taken = messages.len() - first;
            if taken >= limit {
                break NoMessage::LimitReached;
            }
            match self.sources.read_ahead(context, &mut empty_polls_left, messages, limit - taken) {
                Ok(()) => self.process_signal(),
                Err(NoMessage::Ended(id)) => self.end(id),
                Err(no_message) => break no_message,
            }
        };
        self.batch(context, (messages.len() - first, no_message))
    }

    /// Passes the ready messages to `give`, at most `limit`. Returns their number and the reason
    /// why there were no more.
    ///
    /// A source that is woken during the call gets a turn in the same batch, but the signal is
    /// checked only after a message. A batch is therefore bounded by `limit`, by the fruitless
    /// polls, and by the number of sources that can end.
    #[inline]
    fn read_each(
        &mut self,
        context: &mut Context<'_>,
        limit: usize,
        mut give: impl FnMut((K, S::Item)),
    ) -> (usize, NoMessage) {
        let mut empty_polls_left = EMPTY_POLLS_BEFORE_YIELD;
        let mut taken = 0;
        self.process_signal();
        while taken < limit {
            match self.sources.poll_ready(context, &mut empty_polls_left) {
                Ok(message) => {
                    give(message);
                    taken += 1;
                    self.process_signal();
                }
                Err(NoMessage::Ended(id)) => self.end(id),
                Err(no_message) => return (taken, no_message),
            }
        }
        (taken, NoMessage::LimitReached)
    }
}

/// A stream of the messages, as [`FairQueue::poll_recv`] returns them.
impl<K: Clone, S: Stream + Unpin> Stream for FairQueue<K, S> {
    type Item = (K, S::Item);

    #[inline]
    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_recv(context)
    }
}

/// The queue never pins anything: sources are `Unpin`, or boxed.
impl<K, S> Unpin for FairQueue<K, S> {}

impl<K, S> Default for FairQueue<K, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, S> Drop for FairQueue<K, S> {
    fn drop(&mut self) {
        self.mailbox.close();
    }
}

impl<K, S> fmt::Debug for FairQueue<K, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("FairQueue");
        fields.field("sources", &self.len()).field("state", &self.state()).finish_non_exhaustive()
    }
}
