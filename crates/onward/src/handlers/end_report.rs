//! Reports the result of writing an attempt's end to its handler's program.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::context::Context;

/// The result of writing the end of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReport {
    /// The end is durable, at the store's durability level.
    Durable,
    /// The lease was lost before the end was written: the store dropped the end, and another
    /// attempt may run.
    Stale,
    /// The store refused the end for this reason, for example because the result is too large. The
    /// task fails permanently with the same text.
    Refused(String),
}

type Function = Box<dyn FnOnce(EndReport) + Send>;

/// The function that receives the report of one attempt.
#[derive(Default)]
pub(crate) struct EndListener(Mutex<Option<Function>>);

impl EndListener {
    fn set(&self, function: Function) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(function);
    }

    /// Calls the function, if there is one. Later reports of the attempt are dropped.
    pub(crate) fn report(&self, report: impl FnOnce() -> EndReport) {
        let function = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(function) = function {
            function(report());
        }
    }
}

impl fmt::Debug for EndListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndListener").finish_non_exhaustive()
    }
}

/// Handlers that run elsewhere.
impl Context {
    /// Calls a function once the end of this attempt is durable or was dropped. A later call
    /// replaces the function. Use it to acknowledge an end to a process that runs the work for this
    /// handler.
    ///
    /// The engine calls it between two commits, so it must neither block nor panic. It is not
    /// called if the process dies, or if the engine gives the attempt up because the store fails.
    pub fn on_end(&self, function: impl FnOnce(EndReport) + Send + 'static) {
        self.attempt.end_listener.set(Box::new(function));
    }
}
