//! Who waits for which task.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use onward_store::{Heard, NewsReceiver, Store, TaskId, TaskNews};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Sleep;

use crate::engine::Inner;
use crate::limits;
use crate::recent_ends::{Moment, RecentEnds, Since};

/// What a waiter is told.
#[derive(Debug, Clone)]
pub(crate) enum News {
    /// The task completed with this result, and that is durable.
    Completed(Option<Bytes>),
    /// Something happened to the task: read it.
    Look,
}

impl News {
    /// A large result is read again rather than kept.
    pub(crate) fn completed(result: Option<&Bytes>) -> Self {
        match result {
            Some(result) if result.len() > limits::TOLD_RESULT_BYTES => Self::Look,
            result => Self::Completed(result.cloned()),
        }
    }
}

/// Everybody who waits in this process. One watcher hears from the store what ended and tells the waiters; after a hint that others
/// may have ended something it reads what is waited for.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<TaskId, WaitingHere>,
    recent: RecentEnds,
    watcher: Option<AbortHandle>,
}

/// Those who wait for one task; nearly always there is one.
#[derive(Debug)]
struct WaitingHere {
    first: oneshot::Sender<News>,
    others: Vec<oneshot::Sender<News>>,
}

impl WaitingHere {
    fn tell(self, news: &News) {
        for waiter in std::iter::once(self.first).chain(self.others) {
            // One who has gone away need not be told.
            let _ = waiter.send(news.clone());
        }
    }

    /// Without those who have gone away; `None` if all have.
    fn present(self) -> Option<Self> {
        let mut present = std::iter::once(self.first).chain(self.others).filter(|waiter| !waiter.is_closed());
        let first = present.next()?;
        Some(Self { first, others: present.collect() })
    }
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present moment, from which a wait can tell what has been told since.
    pub(crate) fn moment(inner: &Arc<Inner>) -> Option<Moment> {
        tokio::runtime::Handle::try_current().ok()?;
        Some(Self::watched(inner).recent.now())
    }

    /// The state, with a watcher at work: whatever ends from now on is told.
    fn watched(inner: &Arc<Inner>) -> MutexGuard<'_, State> {
        let mut state = inner.waiters.lock();
        if state.watcher.as_ref().is_none_or(AbortHandle::is_finished) {
            // What a watcher that died with its runtime has not told is unknown.
            state.recent.forget();
            let watcher = Watcher::new(Arc::downgrade(inner), inner.store.news());
            state.watcher = Some(tokio::spawn(watcher.watch()).abort_handle());
        }
        state
    }

    fn hear(&self, news: &[TaskNews]) {
        let mut state = self.lock();
        let mut told = Vec::new();
        for news in news {
            state.recent.hear(news);
            let (task, what) = match news {
                TaskNews::Completed { task, result } => (task, News::completed(result.as_ref())),
                TaskNews::Ended { task } => (task, News::Look),
                _ => continue,
            };
            told.extend(state.waiting.remove(task).map(|waiting| (waiting, what)));
        }
        drop(state);
        for (waiting, news) in told {
            waiting.tell(&news);
        }
    }

    /// Tells those who wait for a task to read it.
    fn look(&self, task: TaskId) {
        let waiting = self.lock().waiting.remove(&task);
        if let Some(waiting) = waiting {
            waiting.tell(&News::Look);
        }
    }

    fn tasks(&self) -> Vec<TaskId> {
        self.lock().waiting.keys().copied().collect()
    }
}

impl Drop for Waiters {
    fn drop(&mut self) {
        if let Some(watcher) = &self.lock().watcher {
            watcher.abort();
        }
    }
}

/// What a wait has to do first.
pub(crate) enum Wait<'a> {
    /// Nothing: it is over.
    Over(News),
    /// Wait for news.
    Begun(Waiting<'a>),
    /// Read the task, and wait for news if it has not ended.
    Unsure(Waiting<'a>),
}

/// One wait for news of a task; forgotten when dropped.
pub(crate) struct Waiting<'a> {
    inner: &'a Inner,
    task: TaskId,
    news: oneshot::Receiver<News>,
}

impl<'a> Waiting<'a> {
    /// Begins to wait. Read the task afterwards: what happened before is not told.
    pub(crate) fn new(inner: &'a Arc<Inner>, task: TaskId) -> Self {
        Self::add(&mut Waiters::watched(inner), inner, task)
    }

    /// Begins to wait for a task that had not ended at a moment.
    pub(crate) fn since(inner: &'a Arc<Inner>, task: TaskId, moment: Moment) -> Wait<'a> {
        let mut state = Waiters::watched(inner);
        match state.recent.since(task, moment) {
            Since::Ended(news) => Wait::Over(news),
            Since::Untold => Wait::Begun(Self::add(&mut state, inner, task)),
            Since::Unknown => Wait::Unsure(Self::add(&mut state, inner, task)),
        }
    }

    fn add(state: &mut State, inner: &'a Inner, task: TaskId) -> Self {
        let (sender, news) = oneshot::channel();
        match state.waiting.entry(task) {
            Entry::Occupied(mut here) => here.get_mut().others.push(sender),
            Entry::Vacant(vacant) => drop(vacant.insert(WaitingHere { first: sender, others: Vec::new() })),
        }
        Self { inner, task, news }
    }

    pub(crate) async fn news(mut self) -> News {
        (&mut self.news).await.unwrap_or(News::Look)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.news.is_terminated() {
            return;
        }
        self.news.close();
        let mut state = self.inner.waiters.lock();
        if let Some(present) = state.waiting.remove(&self.task).and_then(WaitingHere::present) {
            state.waiting.insert(self.task, present);
        }
    }
}

/// Hears what ends, until the engine or the store is gone.
struct Watcher {
    inner: Weak<Inner>,
    news: NewsReceiver,
    /// Others may have ended something since it was last read.
    missed: bool,
    /// Keeps the next reading off.
    rest: Option<Pin<Box<Sleep>>>,
}

impl Watcher {
    fn new(inner: Weak<Inner>, news: NewsReceiver) -> Self {
        Self { inner, news, missed: false, rest: None }
    }

    async fn watch(mut self) {
        loop {
            let heard = tokio::select! {
                biased;
                heard = self.news.next() => heard,
                () = rested(&mut self.rest), if self.missed => {
                    self.read_all().await;
                    continue;
                }
            };
            let Some(inner) = self.inner.upgrade() else { return };
            match heard {
                Some(Heard::News(news)) => inner.waiters.hear(&news),
                Some(Heard::Missed) => {
                    inner.waiters.lock().recent.forget();
                    self.missed = true;
                }
                None => return inner.waiters.tasks().into_iter().for_each(|task| inner.waiters.look(task)),
            }
        }
    }

    /// Reads what is waited for, and rests after it, so that reading takes a tenth of the time at the most.
    async fn read_all(&mut self) {
        let Some(inner) = self.inner.upgrade() else { return };
        self.missed = false;
        let began = inner.clock.steady();
        for task in inner.waiters.tasks() {
            if has_ended(&*inner.store, task).await {
                inner.waiters.look(task);
            }
            tokio::task::coop::consume_budget().await;
        }
        let took = inner.clock.steady().saturating_sub(began);
        let interval = if inner.is_running() { limits::WAIT_INTERVAL_RUNNING } else { limits::WAIT_INTERVAL };
        self.rest = Some(Box::pin(tokio::time::sleep(interval.max(took * 10))));
    }
}

async fn rested(rest: &mut Option<Pin<Box<Sleep>>>) {
    if let Some(sleep) = rest {
        sleep.await;
    }
    *rest = None;
}

/// A task that cannot be read is told of too: its waiter gets the error.
async fn has_ended(store: &dyn Store, task: TaskId) -> bool {
    match store.task(task).await {
        Ok(Some(record)) => record.state.is_ended(),
        Ok(None) | Err(_) => true,
    }
}
