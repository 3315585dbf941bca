//! Functions that are called when a change is durable.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use onward_store::{Change, Name, TaskId};
use tokio::sync::Notify;

use crate::bounds;
use crate::engine::{InHandler, Inner};
use crate::handlers::Attempt;

/// A durable change of a task that this engine made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transition {
    /// The task.
    pub task: TaskId,
    /// The kind.
    pub kind: Name,
    /// The queue that the task is in.
    pub queue: Name,
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// The change.
    pub change: Change,
    /// The number of transitions that were dropped before this one because the hook was too slow;
    /// zero as long as it keeps up.
    pub missed: u64,
}

type HookFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A function that is called after a commit.
#[derive(Clone)]
pub(crate) struct Hook(Arc<dyn Fn(Transition) -> HookFuture + Send + Sync>);

impl Hook {
    pub(crate) fn new<F, Fut>(function: F) -> Self
    where
        F: Fn(Transition) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self(Arc::new(move |transition| Box::pin(function(transition))))
    }

    /// Calls the function and awaits its future. A panic in it is logged.
    async fn call(&self, transition: Transition) {
        let (task, kind) = (transition.task.0, transition.kind.clone());
        let called = catch_unwind(AssertUnwindSafe(|| (self.0)(transition)));
        let ended = match called {
            Ok(future) => AssertUnwindSafe(future).catch_unwind().await.is_ok(),
            Err(_) => false,
        };
        if !ended {
            tracing::error!(task, kind = kind.as_str(), "a hook panicked after a commit");
        }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").finish_non_exhaustive()
    }
}

/// The hooks of one run, each with its queue of transitions.
#[derive(Debug, Default)]
pub(crate) struct Hooks(Vec<Arc<HookQueue>>);

#[derive(Debug)]
struct HookQueue {
    hook: Hook,
    queue: Mutex<PendingTransitions>,
    added: Notify,
}

#[derive(Debug, Default)]
struct PendingTransitions {
    transitions: VecDeque<Transition>,
    missed: u64,
    is_closed: bool,
}

impl Hooks {
    pub(crate) fn new(hooks: &[Hook]) -> Self {
        let queue = |hook: &Hook| HookQueue { hook: hook.clone(), queue: Mutex::default(), added: Notify::new() };
        Self(hooks.iter().map(|hook| Arc::new(queue(hook))).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Queues a change of an attempt for every hook. It never waits.
    pub(crate) fn notify(&self, attempt: &Attempt, change: Change) {
        for queue in &self.0 {
            let task = &attempt.task;
            queue.notify(Transition {
                task: attempt.id(),
                kind: task.kind.clone(),
                queue: task.queue.clone(),
                attempt: task.attempt,
                change,
                missed: 0,
            });
        }
    }

    /// Calls the hooks, each in its own task, until they are closed and their queues are empty.
    pub(crate) fn start(&self, inner: &Arc<Inner>) -> tokio::task::JoinSet<()> {
        self.0.iter().map(|queue| InHandler::call(inner, || Box::pin(Arc::clone(queue).run()))).collect()
    }

    /// Closes the queues: the hooks end when they have received everything.
    pub(crate) fn close(&self) {
        for queue in &self.0 {
            queue.lock().is_closed = true;
            queue.added.notify_one();
        }
    }
}

impl HookQueue {
    fn lock(&self) -> MutexGuard<'_, PendingTransitions> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self, transition: Transition) {
        self.lock().add(transition);
        self.added.notify_one();
    }

    async fn run(self: Arc<Self>) {
        loop {
            let (transition, is_closed) = self.lock().take();
            match transition {
                Some(transition) => self.hook.call(transition).await,
                None if is_closed => return,
                None => self.added.notified().await,
            }
        }
    }
}

impl PendingTransitions {
    fn add(&mut self, transition: Transition) {
        if self.transitions.len() >= bounds::HOOK_QUEUE {
            self.missed += 1;
            return;
        }
        self.transitions.push_back(Transition { missed: std::mem::take(&mut self.missed), ..transition });
    }

    fn take(&mut self) -> (Option<Transition>, bool) {
        (self.transitions.pop_front(), self.is_closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transition(task: i64) -> Transition {
        let name = || Name::new("any").unwrap();
        let change = Change::Completed;
        Transition { task: TaskId(task), kind: name(), queue: name(), attempt: 1, change, missed: 0 }
    }

    #[test]
    fn what_is_left_out_is_counted_with_what_comes_next() {
        let mut queue = PendingTransitions::default();
        (0..bounds::HOOK_QUEUE as i64 + 2).for_each(|task| queue.add(transition(task)));
        assert_eq!(queue.transitions.len(), bounds::HOOK_QUEUE);
        queue.take();
        queue.add(transition(-1));
        assert_eq!(queue.transitions.back().map(|last| (last.task, last.missed)), Some((TaskId(-1), 2)));
    }
}
