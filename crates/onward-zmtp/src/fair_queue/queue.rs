//! The queue as its reader sees it.

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
use super::source::Ahead;
use super::source::{Ended, SourceId};
use super::sources::{Nothing, Sources};

/// How many sources a queue takes unless it was told otherwise.
pub const DEFAULT_SOURCE_LIMIT: usize = 65_536;

/// How many polls in a row may find something before one returns `Pending` and wakes its task, so that other work of the task gets its
/// turn.
pub const READS_BEFORE_YIELD: u32 = 128;

/// How many sources one poll asks in vain before it returns `Pending` and wakes its task.
pub const FRUITLESS_POLLS: u32 = 128;

/// Reads from many sources, each a stream of messages, and lets none of them starve. The [module's page](super) shows it at work.
///
/// The queue owns its sources; whoever reads holds it exclusively. Others insert and remove sources through a [`Handle`].
///
/// # Order and fairness
///
/// Messages of one source keep their order. Between two messages of one source, every other source gives one that had a message before the
/// first of them was read. So a source that floods the queue gets one turn in each round, as all others do.
///
/// # Cancellation
///
/// A message leaves its source only in the poll that gives it to the caller. A future of [`recv`](Self::recv) or
/// [`recv_many`](Self::recv_many) that is dropped before it is ready has taken nothing.
pub struct FairQueue<K, S> {
    sources: Sources<K, S>,
    /// The mailbox's.
    signal: Arc<Signal>,
    mailbox: Arc<Mailbox<K, S>>,
    /// Reads left before the next one yields.
    budget: u32,
    on_end: Option<OnEnd<K, S>>,
    /// Wakes whichever task reads: for looks that no task makes.
    reader: Waker,
}

type OnEnd<K, S> = Box<dyn FnMut(Ended<K, S>) + Send>;

/// How many sources a queue had when it was last read, as far as it makes a difference. For diagnosis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// None.
    Empty,
    /// One, which is polled directly.
    One,
    /// Several, which take turns; or one, until it is clear that it stays alone.
    Many,
}

/// What is to be done where there was no message.
enum Settled {
    /// Something has ended. There may be a message elsewhere.
    LookOn,
    /// Return `Pending`; the task is woken, or has been.
    Wait,
    /// There is nothing to wait for.
    End,
}

impl<K, S> FairQueue<K, S> {
    /// A queue for up to [`DEFAULT_SOURCE_LIMIT`] sources. It allocates nothing for them yet.
    pub fn new() -> Self {
        Self::with_limit(DEFAULT_SOURCE_LIMIT)
    }

    /// A queue for up to `limit` sources. One that was removed counts until the reader has dropped it.
    pub fn with_limit(limit: usize) -> Self {
        let signal = Arc::new(Signal::new());
        let mailbox = Arc::new(Mailbox::new(limit, signal.clone()));
        let reader = Waker::from(signal.clone());
        Self { sources: Sources::Empty, signal, mailbox, budget: READS_BEFORE_YIELD, on_end: None, reader }
    }

    /// What other tasks insert and remove sources with. See there what its existence means for the end of the queue.
    pub fn handle(&self) -> Handle<K, S> {
        Handle::new(self.mailbox.clone())
    }

    /// Adds a source, as [`Handle::insert`] does.
    ///
    /// # Errors
    ///
    /// If the queue has as many sources as it takes. The error has key and source.
    pub fn insert(&mut self, key: K, source: S) -> Result<SourceId, InsertError<K, S>> {
        self.mailbox.insert(key, source).map_err(InsertError::new)
    }

    /// Removes a source, as [`Handle::remove`] does.
    pub fn remove(&mut self, id: SourceId) -> bool {
        self.mailbox.remove(id)
    }

    /// Has `told` called with every source that comes to its end, in place of what was there before. It is not called for sources that were
    /// removed.
    ///
    /// It runs inside the read that found the end, under no lock: it may use a handle of this queue (which counts as any other), but
    /// whatever it waits for, the reader waits for.
    pub fn on_end(&mut self, told: impl FnMut(Ended<K, S>) + Send + 'static) {
        self.on_end = Some(Box::new(told));
    }

    /// How many sources are in the queue.
    pub fn len(&self) -> usize {
        self.mailbox.len()
    }

    /// Whether no source is in the queue.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The state that the last read left.
    pub fn state(&self) -> State {
        match self.sources {
            Sources::Empty => State::Empty,
            Sources::One(_) => State::One,
            Sources::Many(_) => State::Many,
        }
    }

    /// Does what handles asked for and lines up what was woken. Costs one load when there is nothing.
    #[inline]
    fn attend(&mut self) {
        if self.signal.is_raised() {
            self.attend_to_signal();
        }
    }

    #[cold]
    fn attend_to_signal(&mut self) {
        let raised = self.signal.take();
        if raised.has_mailbox() {
            let orders = self.mailbox.orders();
            for id in orders.removed {
                self.sources.remove(id);
            }
            for entry in orders.inserted.into_values() {
                self.sources.insert(entry, &self.signal);
            }
        }
        self.sources.enqueue_woken(raised);
    }

    /// Takes out a source that ended, and tells of it unless it was removed at the same time.
    #[cold]
    fn end(&mut self, id: SourceId) {
        let entry = self.sources.remove(id);
        let was_there = self.mailbox.retire(id);
        if let (true, Some(entry), Some(on_end)) = (was_there, entry, &mut self.on_end) {
            on_end(entry.into());
        }
    }

    /// Nothing is ready: arranges to be woken, and finds out whether there is anything to wait for.
    #[cold]
    fn park(&mut self, context: &Context<'_>) -> Settled {
        if self.sources.pause() {
            return self.give_way(context);
        }
        self.budget = READS_BEFORE_YIELD;
        self.signal.register(context.waker());
        // In this order: what the last handle did before it was dropped is then seen as raised.
        let has_handles = self.mailbox.has_handles();
        if self.signal.is_raised() {
            context.waker().wake_by_ref();
        } else if !has_handles && matches!(self.sources, Sources::Empty) {
            return Settled::End;
        }
        Settled::Wait
    }

    /// There is more to do, but others come first.
    #[cold]
    fn give_way(&mut self, context: &Context<'_>) -> Settled {
        self.sources.pause();
        self.budget = READS_BEFORE_YIELD;
        context.waker().wake_by_ref();
        Settled::Wait
    }
}

impl<K: Clone, S: Stream + Unpin> FairQueue<K, S> {
    /// The next message and the key of its source; `None` when the queue is empty and no handle is left that could insert something.
    ///
    /// Cancel safe. See [`poll_recv`](Self::poll_recv) for when it lets other work go first.
    pub async fn recv(&mut self) -> Option<(K, S::Item)> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// Waits for a message, then appends it and all others that are ready to `messages`, at most `limit`. Returns how many; zero when the
    /// queue is at its end, or `limit` is zero.
    ///
    /// Cancel safe: nothing is appended before the future is ready.
    pub async fn recv_many(&mut self, messages: &mut Vec<(K, S::Item)>, limit: usize) -> usize {
        poll_fn(|context| self.poll_recv_many(context, messages, limit)).await
    }

    /// The next message if one is ready. `None` says that there is none now, or ever.
    ///
    /// Sources are asked as by a read, at most [`FRUITLESS_POLLS`] of them in vain. A task that waits in [`poll_recv`](Self::poll_recv) is
    /// still woken afterwards.
    pub fn try_recv(&mut self) -> Option<(K, S::Item)> {
        self.sources.pause();
        let reader = self.reader.clone();
        let mut message = None;
        self.look_each(&mut Context::from_waker(&reader), 1, |found| message = Some(found));
        message
    }

    /// Appends the messages that are ready to `messages`, at most `limit`, and returns how many. Otherwise as [`try_recv`](Self::try_recv).
    pub fn try_recv_many(&mut self, messages: &mut Vec<(K, S::Item)>, limit: usize) -> usize {
        self.sources.pause();
        let reader = self.reader.clone();
        self.look_each(&mut Context::from_waker(&reader), limit, |message| messages.push(message)).0
    }

    /// The next message and the key of its source.
    ///
    /// `Ready(None)` when the queue is empty and no handle is left. `Pending` when no source has anything, and, with the task woken at
    /// once, after [`READS_BEFORE_YIELD`] reads in a row that found something, or [`FRUITLESS_POLLS`] sources asked in vain. Each source
    /// that has nothing is asked at most once. Only the last task that polled is woken.
    // What finds a message at once is compiled into the caller, and what is out of line leaves its message elsewhere. Were there one place for both, every
    // message would be written there and read again at once, which cost more than all else that is done for a lone source.
    #[inline]
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<(K, S::Item)>> {
        if self.budget == 0 {
            self.give_way(context);
            return Poll::Pending;
        }
        self.attend();
        let mut fruitless = FRUITLESS_POLLS;
        // Each state has its own way out, so that no message is moved to where that of another would be.
        let nothing = match &mut self.sources {
            Sources::One(one) => match one.look(context) {
                Ok(message) => {
                    self.budget -= 1;
                    return Poll::Ready(Some(message));
                }
                Err(nothing) => nothing,
            },
            Sources::Many(many) => match many.look(&mut fruitless) {
                Ok(message) => {
                    self.budget -= 1;
                    return Poll::Ready(Some(message));
                }
                Err(nothing) => nothing,
            },
            Sources::Empty => Nothing::Idle,
        };
        let mut message = None;
        self.poll_on(nothing, fruitless, context, &mut message).map(|()| message)
    }

    /// A read that has found nothing so far: takes out what ended, and looks on until it is clear what to return. Without a message, `Ready` is the end.
    #[cold]
    #[inline(never)]
    fn poll_on(
        &mut self,
        mut nothing: Nothing,
        mut fruitless: u32,
        context: &mut Context<'_>,
        message: &mut Option<(K, S::Item)>,
    ) -> Poll<()> {
        loop {
            match self.settle(nothing, context) {
                Settled::LookOn => {}
                Settled::Wait => return Poll::Pending,
                Settled::End => return Poll::Ready(()),
            }
            match self.sources.look(context, &mut fruitless) {
                Ok(found) => {
                    self.budget -= 1;
                    *message = Some(found);
                    return Poll::Ready(());
                }
                Err(next) => nothing = next,
            }
        }
    }

    /// A look has found no message: takes out what ended, or arranges to be woken.
    #[cold]
    #[inline(never)]
    fn settle(&mut self, nothing: Nothing, context: &Context<'_>) -> Settled {
        match nothing {
            Nothing::Ended(id) => {
                self.end(id);
                Settled::LookOn
            }
            Nothing::Idle => self.park(context),
            Nothing::Cut => self.give_way(context),
        }
    }

    /// Appends the messages that are ready to `messages`, at most `limit`, and returns how many: `Ready(0)` when the queue is at its end,
    /// or `limit` is zero. Sources take turns within a batch as they do between reads. A batch counts as one read; otherwise as
    /// [`poll_recv`](Self::poll_recv).
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
            self.give_way(context);
            return Poll::Pending;
        }
        let looked = self.look_each(context, limit, |message| messages.push(message));
        self.batch(context, looked)
    }

    /// Ends a read of many.
    fn batch(&mut self, context: &Context<'_>, looked: (usize, Nothing)) -> Poll<usize> {
        let (taken, nothing) = looked;
        if taken > 0 {
            self.budget -= 1;
            return Poll::Ready(taken);
        }
        match self.settle(nothing, context) {
            Settled::End => Poll::Ready(0),
            Settled::Wait | Settled::LookOn => Poll::Pending,
        }
    }

    /// As [`poll_recv_many`](Self::poll_recv_many), without the keys. What a lone source has read ahead is taken at once, as far as nothing is to be attended
    /// to.
    #[cfg(feature = "tokio")]
    pub(crate) fn poll_recv_ahead(
        &mut self,
        context: &mut Context<'_>,
        messages: &mut Vec<S::Item>,
        limit: usize,
    ) -> Poll<usize>
    where
        S: Ahead,
    {
        if limit == 0 {
            return Poll::Ready(0);
        }
        if self.budget == 0 {
            self.give_way(context);
            return Poll::Pending;
        }
        let (first, mut fruitless) = (messages.len(), FRUITLESS_POLLS);
        self.attend();
        let nothing = loop {
            let taken = messages.len() - first;
            if taken >= limit {
                break Nothing::Cut;
            }
            match self.sources.look_ahead(context, &mut fruitless, messages, limit - taken) {
                Ok(()) => self.attend(),
                Err(Nothing::Ended(id)) => self.end(id),
                Err(nothing) => break nothing,
            }
        };
        self.batch(context, (messages.len() - first, nothing))
    }

    /// Gives out what is ready, up to `limit`, and returns how many messages there were, and why there were not more.
    ///
    /// Whoever is woken meanwhile gets a turn in the same batch, but is looked for only after a message. So a batch is bounded by `limit`,
    /// by the polls that may be fruitless, and by the sources that can end.
    #[inline]
    fn look_each(
        &mut self,
        context: &mut Context<'_>,
        limit: usize,
        mut give: impl FnMut((K, S::Item)),
    ) -> (usize, Nothing) {
        let mut fruitless = FRUITLESS_POLLS;
        let mut taken = 0;
        self.attend();
        while taken < limit {
            match self.sources.look(context, &mut fruitless) {
                Ok(message) => {
                    give(message);
                    taken += 1;
                    self.attend();
                }
                Err(Nothing::Ended(id)) => self.end(id),
                Err(nothing) => return (taken, nothing),
            }
        }
        (taken, Nothing::Cut)
    }
}

/// As [`FairQueue::poll_recv`].
impl<K: Clone, S: Stream + Unpin> Stream for FairQueue<K, S> {
    type Item = (K, S::Item);

    #[inline]
    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_recv(context)
    }
}

/// Nothing in a queue is ever pinned: sources are `Unpin`, or boxed.
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
