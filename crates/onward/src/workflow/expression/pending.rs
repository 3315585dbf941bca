//! Reasons why a part of an expression has no value, collected while the other parts are evaluated.

use std::collections::BTreeSet;

use super::error::{EvaluationError, FailureCause, Needed, Unfinished};

/// The needs and the first failure of parts that were evaluated one after the other.
///
/// A need goes before a failure: once the value is read, an earlier part may fail, or decide. So
/// the error of an expression does not depend on what was in memory.
#[derive(Default)]
pub(super) struct Pending {
    needed: BTreeSet<Needed>,
    failure: Option<Box<EvaluationError>>,
}

impl Pending {
    /// Adds a value that has to be read.
    pub(super) fn need(&mut self, needed: Needed) {
        self.needed.insert(needed);
    }

    /// Records a part whose value is required: its failure ends the evaluation.
    pub(super) fn take<T>(&mut self, part: Result<T, Unfinished>) -> Result<Option<T>, Unfinished> {
        match part {
            Ok(value) => Ok(Some(value)),
            Err(Unfinished::Needs(needed)) => {
                self.needed.extend(*needed);
                Ok(None)
            }
            Err(failed) => Err(self.needs().unwrap_or(failed)),
        }
    }

    /// Records a part whose failure matters only if no other part decides. A bound that is reached
    /// ends the evaluation.
    pub(super) fn put_off<T>(&mut self, part: Result<T, Unfinished>) -> Result<Option<T>, Unfinished> {
        match part {
            Err(Unfinished::Failed(error)) if error.cause == FailureCause::Value => {
                self.failure.get_or_insert(error);
                Ok(None)
            }
            part => self.take(part),
        }
    }

    /// Returns the needs that remain, or the first failure.
    pub(super) fn end(mut self) -> Result<(), Unfinished> {
        match self.needs() {
            Some(needs) => Err(needs),
            None => self.failure.map_or(Ok(()), |error| Err(Unfinished::Failed(error))),
        }
    }

    fn needs(&mut self) -> Option<Unfinished> {
        let needed = std::mem::take(&mut self.needed);
        (!needed.is_empty()).then(|| Unfinished::Needs(Box::new(needed)))
    }
}
