//! Who waits for which task.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use onward_store::{Changes, Hint, Store, TaskId};
use tokio::sync::{Notify, oneshot};

use crate::engine::Inner;
use crate::limits;

/// What a waiter is told.
#[derive(Debug, Clone)]
pub(crate) enum News {
    /// The task completed here with this result, and that is durable.
    Completed(Option<Bytes>),
    /// Something happened to the task: read it.
    Look,
}

/// Everybody who waits in this process. Ends of this engine's own attempts are told by a look-up; for those of others one watcher,
/// which lives while anybody waits, reads what is waited for after a hint.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    state: Mutex<State>,
    /// How many tasks are waited for, to be read without the lock.
    count: AtomicUsize,
    emptied: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<TaskId, Vec<oneshot::Sender<News>>>,
    is_watched: bool,
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells those who wait for a task that it completed.
    pub(crate) fn completed(&self, task: TaskId, result: Option<Bytes>) {
        self.tell(task, News::Completed(result));
    }

    /// Tells those who wait for a task to read it.
    pub(crate) fn look(&self, task: TaskId) {
        self.tell(task, News::Look);
    }

    fn tell(&self, task: TaskId, news: News) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut state = self.lock();
        let waiting = state.waiting.remove(&task).unwrap_or_default();
        self.counted(&state);
        drop(state);
        for waiter in waiting {
            // One who has gone away need not be told.
            let _ = waiter.send(news.clone());
        }
    }

    fn counted(&self, state: &State) {
        self.count.store(state.waiting.len(), Ordering::SeqCst);
        if state.waiting.is_empty() {
            self.emptied.notify_one();
        }
    }

    fn tasks(&self) -> Vec<TaskId> {
        self.lock().waiting.keys().copied().collect()
    }

    /// Whether the watcher may go: nobody waits.
    fn dismiss_watcher(&self) -> bool {
        let mut state = self.lock();
        state.is_watched = !state.waiting.is_empty();
        !state.is_watched
    }
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
        let (sender, news) = oneshot::channel();
        let mut state = inner.waiters.lock();
        state.waiting.entry(task).or_default().push(sender);
        inner.waiters.counted(&state);
        if !std::mem::replace(&mut state.is_watched, true) {
            // What changes from here on is told to the watcher, however late it starts.
            let mut changes = inner.store.changes();
            let seen = changes.hint();
            tokio::spawn(watch(Arc::clone(inner), changes, seen));
        }
        drop(state);
        Self { inner, task, news }
    }

    pub(crate) async fn news(mut self) -> News {
        (&mut self.news).await.unwrap_or(News::Look)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.news.close();
        let waiters = &self.inner.waiters;
        let mut state = waiters.lock();
        if let Some(waiting) = state.waiting.get_mut(&self.task) {
            waiting.retain(|waiter| !waiter.is_closed());
            if waiting.is_empty() {
                state.waiting.remove(&self.task);
                waiters.counted(&state);
            }
        }
    }
}

/// Reads what is waited for whenever a hint says that tasks may have ended, until nobody waits.
async fn watch(inner: Arc<Inner>, mut changes: Changes, mut seen: Hint) {
    while !inner.waiters.dismiss_watcher() {
        tokio::select! {
            () = inner.waiters.emptied.notified() => {}
            hint = changes.changed() => {
                let Some(hint) = hint else { return tell_all(&inner.waiters) };
                if has_transitions(&mut seen, hint) {
                    let took = read_all(&inner).await;
                    tokio::time::sleep(rest(inner.is_running(), took)).await;
                }
            }
        }
    }
}

fn has_transitions(seen: &mut Hint, hint: Hint) -> bool {
    let before = std::mem::replace(seen, hint);
    before.transitions != hint.transitions
}

/// How long the watcher rests after it read for `took`: so that reading takes a tenth of the time at the most.
fn rest(is_running: bool, took: Duration) -> Duration {
    let interval = if is_running { limits::WAIT_INTERVAL_RUNNING } else { limits::WAIT_INTERVAL };
    interval.max(took * 10)
}

async fn read_all(inner: &Inner) -> Duration {
    let began = inner.clock.steady();
    for task in inner.waiters.tasks() {
        if has_ended(&*inner.store, task).await {
            inner.waiters.look(task);
        }
    }
    inner.clock.steady().saturating_sub(began)
}

/// A task that cannot be read is told of too: its waiter gets the error.
async fn has_ended(store: &dyn Store, task: TaskId) -> bool {
    match store.task(task).await {
        Ok(Some(record)) => record.state.is_ended(),
        Ok(None) | Err(_) => true,
    }
}

fn tell_all(waiters: &Waiters) {
    for task in waiters.tasks() {
        waiters.look(task);
    }
}
