//! Handles that do not keep an engine open, and a warning about handles that keep it open by
//! mistake.
//!
//! An engine owns its handlers. A handler that owns a handle of its engine forms a reference cycle:
//! the engine and its store stay open for as long as the process lives. The engine cannot see which
//! handles its handlers own, but it can see their use. A handle that was made outside of a handler,
//! and is cloned or writes inside one, is held by a handler.

use std::cell::Cell;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use super::inner::{Engine, Inner};

thread_local! {
    /// The address of the engine whose handler runs on this thread, or zero.
    static CURRENT_HANDLER_ENGINE: Cell<usize> = const { Cell::new(0) };
}

/// A handle that does not keep its engine open, for handlers, their state, hooks and everything
/// else that the engine owns.
///
/// A handler that gets a [`Context`](crate::Context) needs none:
/// [`Context::engine`](crate::Context::engine) returns its engine.
///
/// ```
/// # use onward::prelude::*;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder().memory().open().await?;
/// let weak = engine.downgrade();
/// engine.after_commit(move |transition| {
///     let engine = weak.upgrade();
///     async move {
///         if let (Some(engine), "order") = (engine, transition.kind.as_str()) {
///             engine.submit_task(NewTask::new("invoice").expect("a name")).await.ok();
///         }
///     }
/// });
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct WeakEngine(Weak<Inner>);

impl WeakEngine {
    /// Returns a handle that keeps the engine open, or `None` if the last one was dropped.
    #[must_use]
    pub fn upgrade(&self) -> Option<Engine> {
        self.0.upgrade().map(Engine::of)
    }
}

impl fmt::Debug for WeakEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakEngine").field("is_open", &(self.0.strong_count() > 0)).finish()
    }
}

impl Engine {
    /// Returns a handle that does not keep the engine open.
    ///
    /// A handler that owns an `Engine` keeps the engine and its store open for as long as the
    /// process lives. The engine logs a warning when the last handle outside of handlers is dropped
    /// while such handles remain.
    #[must_use]
    pub fn downgrade(&self) -> WeakEngine {
        WeakEngine(Arc::downgrade(&self.inner))
    }
}

/// The handles of one engine that its handlers hold.
#[derive(Debug, Default)]
pub(crate) struct HeldHandles {
    count: AtomicUsize,
    has_warned: AtomicBool,
}

/// The origin of one handle, and whether a handler holds it.
#[derive(Debug, Default)]
pub(crate) struct HandleOrigin {
    is_made_in_handler: bool,
    is_held: AtomicBool,
}

fn address(inner: &Arc<Inner>) -> usize {
    Arc::as_ptr(inner).addr()
}

impl HandleOrigin {
    pub(crate) fn new(inner: &Arc<Inner>) -> Self {
        Self { is_made_in_handler: CURRENT_HANDLER_ENGINE.get() == address(inner), is_held: AtomicBool::default() }
    }

    /// Records that a handle is cloned or writes. If that happens in a handler and the handle was
    /// made elsewhere, a handler holds it.
    pub(crate) fn note_use(&self, inner: &Arc<Inner>) {
        if CURRENT_HANDLER_ENGINE.get() == address(inner)
            && !self.is_made_in_handler
            && !self.is_held.swap(true, Ordering::Relaxed)
        {
            inner.held_handles.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records that a handle is dropped, and warns if handlers hold all that remain.
    pub(crate) fn note_drop(&self, inner: &Arc<Inner>) {
        let held = &inner.held_handles;
        let remaining = held.count.load(Ordering::Relaxed);
        if remaining == 0 {
            return;
        }
        if self.is_held.load(Ordering::Relaxed) {
            held.count.fetch_sub(1, Ordering::Relaxed);
        // The handle that is being dropped still counts, hence `remaining + 1`.
        } else if Arc::strong_count(inner) == remaining + 1 && !held.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                engine = inner.settings.name,
                handles = remaining,
                "the last handle of an engine outside of its handlers was dropped, and the handles in its handlers keep it and its store \
                 open; use `context.engine()` in handlers, or keep `engine.downgrade()` there"
            );
        }
    }
}

/// The future of a handler. It marks its thread, so that handles used inside a handler are
/// recognized.
pub(crate) struct InHandler<F> {
    engine: usize,
    future: F,
}

impl<F> InHandler<F> {
    /// Calls a handler of an engine.
    pub(crate) fn call(inner: &Arc<Inner>, handler: impl FnOnce() -> F) -> Self {
        let engine = address(inner);
        let _scope = HandlerScope::new(engine);
        Self { engine, future: handler() }
    }
}

impl<F: Future + Unpin> Future for InHandler<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _scope = HandlerScope::new(self.engine);
        Pin::new(&mut self.future).poll(context)
    }
}

/// A guard that restores the previous engine of the thread when it is dropped, even after a panic.
struct HandlerScope(usize);

impl HandlerScope {
    fn new(engine: usize) -> Self {
        Self(CURRENT_HANDLER_ENGINE.replace(engine))
    }
}

impl Drop for HandlerScope {
    fn drop(&mut self) {
        CURRENT_HANDLER_ENGINE.set(self.0);
    }
}
