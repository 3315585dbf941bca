//! Decisions of the program about failed attempts.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use onward_store::AfterFailure;
use onward_store::rules::retry::LONGEST_DELAY;

use super::context::Context;
use super::failure::Failure;

/// The decision about a task whose attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The task is retried after this time, at most a year; the attempt counts.
    Retry {
        /// The delay; zero for at once.
        after: Duration,
    },
    /// The task is retried after this time, at most a year; the attempt does not count.
    NotCounted {
        /// The delay; zero for at once.
        after: Duration,
    },
    /// The task becomes a dead letter.
    Dead,
    /// The task has failed permanently.
    Fail,
}

impl From<AfterFailure> for Verdict {
    fn from(next: AfterFailure) -> Self {
        match next {
            AfterFailure::Retry { after, uses_attempt: true, .. } => Self::Retry { after },
            AfterFailure::Retry { after, uses_attempt: false, .. } => Self::NotCounted { after },
            AfterFailure::Dead => Self::Dead,
            AfterFailure::Fail => Self::Fail,
        }
    }
}

impl From<Verdict> for AfterFailure {
    fn from(verdict: Verdict) -> Self {
        let retry = |after: Duration, uses_attempt| {
            let after = after.min(LONGEST_DELAY);
            Self::Retry { after, uses_attempt, hold: after.is_zero() }
        };
        match verdict {
            Verdict::Retry { after } => retry(after, true),
            Verdict::NotCounted { after } => retry(after, false),
            Verdict::Dead => Self::Dead,
            Verdict::Fail => Self::Fail,
        }
    }
}

/// An attempt that failed, as a failure policy sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct FailedAttempt<'a> {
    /// The attempt: its task, kind, payload and number.
    pub context: &'a Context,
    /// The failure that the handler returned, or the engine's failure for a panic or a timeout.
    pub failure: &'a Failure,
    /// The verdict of the retry policy.
    pub verdict: Verdict,
}

/// The function that decides.
#[derive(Clone)]
pub(crate) struct FailurePolicy(Arc<dyn Fn(&FailedAttempt<'_>) -> Verdict + Send + Sync>);

impl FailurePolicy {
    pub(crate) fn new(decide: impl Fn(&FailedAttempt<'_>) -> Verdict + Send + Sync + 'static) -> Self {
        Self(Arc::new(decide))
    }

    /// Returns its verdict, or that of the retry policy if it panics.
    pub(crate) fn decide(&self, failed: FailedAttempt<'_>) -> Verdict {
        catch_unwind(AssertUnwindSafe(|| (self.0)(&failed))).unwrap_or_else(|_| {
            let (task, kind) = (failed.context.id().0, failed.context.kind().as_str());
            tracing::error!(task, kind, "the failure policy panicked; the retry policy applies");
            failed.verdict
        })
    }
}

impl fmt::Debug for FailurePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailurePolicy").finish_non_exhaustive()
    }
}
