//! A store that adds the records of a request to its changes.

use std::sync::Arc;

use onward_store::{Outcome, Refusal, Store, StoreDecorator, StoreFuture, Write};

use super::scope::ChangeScope;

/// A store in front of another one. A write of a request becomes a [`Write::All`] of the write and
/// its records, so that neither exists without the other. Other writes are passed on.
#[derive(Debug)]
pub(crate) struct RecordingStore {
    inner: Arc<dyn Store>,
}

impl RecordingStore {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner }
    }
}

impl StoreDecorator for RecordingStore {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        match ChangeScope::current() {
            None => self.inner.apply(writes),
            Some(scope) => Box::pin(async move {
                let now = self.inner.clock().now();
                let mut shapes = Vec::with_capacity(writes.len());
                let mut recorded = Vec::with_capacity(writes.len());
                for write in writes {
                    let (write, shape) = with_records(&scope, write, now)?;
                    recorded.push(write);
                    shapes.push(shape);
                }
                // Each write becomes one `All`, so there is one outcome for each, in the same
                // order.
                let outcomes = self.inner.apply(recorded).await?;
                Ok(outcomes.into_iter().zip(shapes).map(|(outcome, shape)| shape.outcome(outcome, &scope)).collect())
            }),
        }
    }
}

/// The form of a write before its records were added.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// The number of writes before the records.
    writes: usize,
    /// True if the write was an `All` already.
    is_all: bool,
}

fn with_records(
    scope: &ChangeScope,
    write: Write,
    now: onward_store::Timestamp,
) -> Result<(Write, Shape), onward_store::Error> {
    let (mut writes, is_all) = match write {
        Write::All(writes) => (writes, true),
        write => (vec![write], false),
    };
    let shape = Shape { writes: writes.len(), is_all };
    let records = scope.records_for(&mut writes, now)?;
    writes.extend(records);
    Ok((Write::All(writes), shape))
}

impl Shape {
    /// Returns the outcome that the write would have had without its records.
    fn outcome(self, outcome: Outcome, scope: &ChangeScope) -> Outcome {
        match outcome {
            Outcome::All(mut outcomes) => {
                outcomes.truncate(self.writes);
                match outcomes.pop() {
                    Some(only) if !self.is_all => only,
                    last => Outcome::All(outcomes.into_iter().chain(last).collect()),
                }
            }
            Outcome::Refused(Refusal::InAll { index, refusal }) => {
                if index >= self.writes && matches!(*refusal, Refusal::DocumentChanged { .. }) {
                    scope.note_repeated();
                }
                let is_own = self.is_all && index < self.writes;
                Outcome::Refused(if is_own { Refusal::InAll { index, refusal } } else { *refusal })
            }
            outcome => outcome,
        }
    }
}
