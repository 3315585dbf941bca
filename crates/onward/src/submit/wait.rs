//! Waits for the ends of tasks.

use std::collections::hash_map::Entry;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use onward_store::{
    Notification, NotificationReceiver, NumberMap, Store, StoreReads, TaskId, TaskNotification, TaskRecord,
};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Sleep;

use super::recent_ends::{FeedPosition, RecentEnds, Since};
use crate::bounds;
use crate::engine::{Engine, Inner};
use crate::error::Result;

/// A notification for a waiter.
#[derive(Debug, Clone)]
pub(crate) enum EndNotice {
    /// The task completed with this result, durably.
    Completed(Option<Bytes>),
    /// The task changed: the waiter reads it.
    ReadTask,
}

impl EndNotice {
    /// Returns the notification of a completion. A large result is read from the store again
    /// instead of being kept.
    pub(crate) fn completed(result: Option<&Bytes>) -> Self {
        match result {
            Some(result) if result.len() > bounds::NOTIFIED_RESULT_BYTES => Self::ReadTask,
            result => Self::Completed(result.cloned()),
        }
    }
}

/// All waiters and handles of this process. One watcher receives the ends of tasks from the store
/// and notifies them. After a hint that other processes may have ended tasks, it reads the tasks
/// that are awaited.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    tasks: NumberMap<TaskId, WaitState>,
    recent: RecentEnds,
    /// The number of times that a notification may have been missed.
    missed: u64,
    watcher: Option<AbortHandle>,
}

/// The waiters and handles of one task.
#[derive(Debug, Default)]
struct WaitState {
    waiting: Option<TaskWaiters>,
    handles: usize,
    /// The notification that arrived for the handles before a waiter existed.
    notified: Option<EndNotice>,
    /// The value of `missed` when the handle knew that the task had not ended.
    verified_at: u64,
}

impl WaitState {
    fn add(&mut self, waiter: oneshot::Sender<EndNotice>) {
        match &mut self.waiting {
            Some(waiting) => waiting.others.push(waiter),
            None => self.waiting = Some(TaskWaiters { first: waiter, others: Vec::new() }),
        }
    }

    fn is_over(&self) -> bool {
        self.handles == 0 && self.waiting.is_none()
    }
}

/// The waiters of one task; nearly always there is one.
#[derive(Debug)]
struct TaskWaiters {
    first: oneshot::Sender<EndNotice>,
    others: Vec<oneshot::Sender<EndNotice>>,
}

impl TaskWaiters {
    fn notify(self, notification: &EndNotice) {
        for waiter in std::iter::once(self.first).chain(self.others) {
            // A waiter that was dropped needs no notification.
            let _ = waiter.send(notification.clone());
        }
    }

    /// Removes the waiters that were dropped, and returns `None` if all were.
    fn without_closed(self) -> Option<Self> {
        let mut without_closed = std::iter::once(self.first).chain(self.others).filter(|waiter| !waiter.is_closed());
        let first = without_closed.next()?;
        Some(Self { first, others: without_closed.collect() })
    }
}

impl State {
    fn missed(&mut self) {
        self.recent.forget();
        self.missed += 1;
    }

    /// Takes the waiters of a task, and leaves the notification for its handles.
    fn take(&mut self, task: TaskId, notification: Option<&EndNotice>) -> Option<TaskWaiters> {
        let Entry::Occupied(mut wait_state) = self.tasks.entry(task) else { return None };
        if let Some(notification) = notification {
            wait_state.get_mut().notified = Some(notification.clone());
        }
        let waiting = wait_state.get_mut().waiting.take();
        if wait_state.get().is_over() {
            wait_state.remove();
        }
        waiting
    }
}

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the present position in the feed, from which a handle finds later notifications.
    pub(crate) fn position(inner: &Arc<Inner>) -> Option<FeedPosition> {
        tokio::runtime::Handle::try_current().ok()?;
        Some(Self::watched(inner).recent.position())
    }

    /// Returns the state with a running watcher: every later end is received.
    fn watched(inner: &Arc<Inner>) -> MutexGuard<'_, State> {
        let mut state = inner.waiters.lock();
        if state.watcher.as_ref().is_none_or(AbortHandle::is_finished) {
            // A watcher that died with its runtime may have missed notifications.
            state.missed();
            let watcher = Watcher::new(Arc::downgrade(inner), inner.store.notifications());
            state.watcher = Some(tokio::spawn(watcher.watch()).abort_handle());
        }
        state
    }

    /// Remembers the end of a task for a handle. The task had not ended at `position`. Returns
    /// false if too much has been forgotten since.
    pub(crate) fn add_handle(&self, task: TaskId, position: FeedPosition) -> bool {
        let mut state = self.lock();
        let notified = match state.recent.since(task, position) {
            Since::Ended(notification) => Some(notification),
            Since::NotNotified => None,
            Since::Unknown => return false,
        };
        let verified_at = state.missed;
        let wait_state = state.tasks.entry(task).or_default();
        wait_state.handles += 1;
        (wait_state.notified, wait_state.verified_at) = (notified, verified_at);
        true
    }

    /// Forgets a handle that [`add_handle`](Self::add_handle) remembered.
    pub(crate) fn remove_handle(&self, task: TaskId) {
        let mut state = self.lock();
        if let Entry::Occupied(mut wait_state) = state.tasks.entry(task) {
            wait_state.get_mut().handles -= 1;
            if wait_state.get().is_over() {
                wait_state.remove();
            }
        }
    }

    fn record(&self, notifications: &[TaskNotification]) {
        let mut state = self.lock();
        let mut notified = Vec::new();
        for notification in notifications {
            state.recent.record(notification);
            let (task, what) = match notification {
                TaskNotification::Completed { task, result } => (task, EndNotice::completed(result.as_ref())),
                TaskNotification::Ended { task } => (task, EndNotice::ReadTask),
                TaskNotification::Retried { task } => {
                    state.tasks.entry(*task).and_modify(|wait_state| wait_state.notified = None);
                    continue;
                }
                // A variant that this version does not know.
                _ => {
                    state.missed();
                    continue;
                }
            };
            notified.extend(state.take(*task, Some(&what)).map(|waiting| (waiting, what)));
        }
        drop(state);
        for (waiting, notification) in notified {
            waiting.notify(&notification);
        }
    }

    /// Notifies the waiters of a task to read it.
    fn notify_to_read(&self, task: TaskId) {
        let waiting = self.lock().take(task, None);
        if let Some(waiting) = waiting {
            waiting.notify(&EndNotice::ReadTask);
        }
    }

    /// Returns the tasks that have a waiter now.
    fn awaited(&self) -> Vec<TaskId> {
        self.lock().tasks.iter().filter(|(_, wait_state)| wait_state.waiting.is_some()).map(|(task, _)| *task).collect()
    }
}

impl Drop for Waiters {
    fn drop(&mut self) {
        if let Some(watcher) = &self.lock().watcher {
            watcher.abort();
        }
    }
}

/// The state of a wait when it begins.
pub(crate) enum Wait<'a> {
    /// The task has ended.
    Over(EndNotice),
    /// The caller waits for a notification.
    Begun(Waiting<'a>),
    /// The caller reads the task, and waits for a notification if it has not ended.
    Unverified(Waiting<'a>),
}

/// One wait for a notification of a task. It is forgotten when dropped.
pub(crate) struct Waiting<'a> {
    inner: &'a Inner,
    task: TaskId,
    notification: oneshot::Receiver<EndNotice>,
}

impl<'a> Waiting<'a> {
    /// Begins to wait. The caller reads the task afterwards, because an earlier end is not
    /// notified.
    pub(crate) fn new(inner: &'a Arc<Inner>, task: TaskId) -> Self {
        Self::add(Waiters::watched(inner).tasks.entry(task).or_default(), inner, task)
    }

    /// Begins to wait for a task that has a handle.
    pub(crate) fn with_handle(inner: &'a Arc<Inner>, task: TaskId) -> Wait<'a> {
        let mut state = Waiters::watched(inner);
        let missed = state.missed;
        let wait_state = state.tasks.entry(task).or_default();
        match &wait_state.notified {
            Some(notification) => Wait::Over(notification.clone()),
            None if wait_state.verified_at == missed => Wait::Begun(Self::add(wait_state, inner, task)),
            None => Wait::Unverified(Self::add(wait_state, inner, task)),
        }
    }

    fn add(wait_state: &mut WaitState, inner: &'a Inner, task: TaskId) -> Self {
        let (sender, notification) = oneshot::channel();
        wait_state.add(sender);
        Self { inner, task, notification }
    }

    pub(crate) async fn notification(mut self) -> EndNotice {
        (&mut self.notification).await.unwrap_or(EndNotice::ReadTask)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.notification.is_terminated() {
            return;
        }
        self.notification.close();
        let mut state = self.inner.waiters.lock();
        if let Entry::Occupied(mut wait_state) = state.tasks.entry(self.task) {
            let waiting = wait_state.get_mut().waiting.take();
            wait_state.get_mut().waiting = waiting.and_then(TaskWaiters::without_closed);
            if wait_state.get().is_over() {
                wait_state.remove();
            }
        }
    }
}

/// A watcher that receives ends of tasks until the engine or the store is gone.
struct Watcher {
    inner: Weak<Inner>,
    notifications: NotificationReceiver,
    /// True if other processes may have ended tasks since the last read.
    missed: bool,
    /// Delays the next read.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Watcher {
    fn new(inner: Weak<Inner>, notifications: NotificationReceiver) -> Self {
        Self { inner, notifications, missed: false, pause: None }
    }

    async fn watch(mut self) {
        loop {
            let received = tokio::select! {
                biased;
                received = self.notifications.next() => received,
                () = pause_over(&mut self.pause), if self.missed => {
                    self.read_all().await;
                    continue;
                }
            };
            let Some(inner) = self.inner.upgrade() else { return };
            match received {
                Some(Notification::Tasks(notifications)) => inner.waiters.record(&notifications),
                Some(Notification::Missed) => {
                    inner.waiters.lock().missed();
                    self.missed = true;
                }
                None => return inner.waiters.awaited().into_iter().for_each(|task| inner.waiters.notify_to_read(task)),
            }
        }
    }

    /// Reads the awaited tasks, and then pauses so that reading takes at most a tenth of the time.
    async fn read_all(&mut self) {
        let Some(inner) = self.inner.upgrade() else { return };
        self.missed = false;
        let began = inner.clock.steady();
        for task in inner.waiters.awaited() {
            if has_ended(&*inner.store, task).await {
                inner.waiters.notify_to_read(task);
            }
            tokio::task::coop::consume_budget().await;
        }
        let took = inner.clock.steady().saturating_sub(began);
        let interval = if inner.is_running() { bounds::WAIT_INTERVAL_RUNNING } else { bounds::WAIT_INTERVAL };
        self.pause = Some(Box::pin(tokio::time::sleep(interval.max(took * 10))));
    }
}

async fn pause_over(pause: &mut Option<Pin<Box<Sleep>>>) {
    if let Some(sleep) = pause {
        sleep.await;
    }
    *pause = None;
}

/// Returns true if a task has ended, or cannot be read: then its waiter gets the error.
async fn has_ended(store: &dyn Store, task: TaskId) -> bool {
    match store.task(task).await {
        Ok(Some(record)) => record.state.is_ended(),
        Ok(None) | Err(_) => true,
    }
}

/// Waiting.
impl Engine {
    /// Waits until a task has ended, wherever it runs. Cancel-safe. Thousands of waits may exist at
    /// once, and none of them polls.
    ///
    /// # Errors
    /// [`is_not_found`](crate::Error::is_not_found) if there is no such task; the store's error if
    /// it could not be read.
    pub async fn wait(&self, task: TaskId) -> Result<TaskRecord> {
        loop {
            // The wait must begin before the read: an end in between would be missed.
            let waiting = Waiting::new(&self.inner, task);
            let record = self.record(task).await?;
            if record.state.is_ended() {
                return Ok(record);
            }
            waiting.notification().await;
        }
    }
}
