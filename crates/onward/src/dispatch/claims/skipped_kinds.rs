//! Kinds that an engine leaves to other engines for a while.

use std::sync::{Mutex, MutexGuard, PoisonError};

use onward_store::{KindSelection, Name};

/// The kinds that claims leave out. A change makes the dispatcher claim again.
#[derive(Debug, Default)]
pub(crate) struct SkippedKinds(Mutex<Skipped>);

#[derive(Debug, Default)]
struct Skipped {
    kinds: Vec<Name>,
    is_changed: bool,
}

impl SkippedKinds {
    fn lock(&self) -> MutexGuard<'_, Skipped> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the kinds.
    pub(crate) fn set(&self, kinds: Vec<Name>) {
        *self.lock() = Skipped { kinds, is_changed: true };
    }

    /// Returns true if the kinds were replaced since the last call.
    pub(crate) fn take_change(&self) -> bool {
        std::mem::take(&mut self.lock().is_changed)
    }

    /// Removes the kinds from a selection. A selection by prefixes keeps them.
    pub(crate) fn remove_from(&self, selection: KindSelection) -> KindSelection {
        let skipped = self.lock();
        match selection {
            KindSelection::Only(mut kinds) if !skipped.kinds.is_empty() => {
                kinds.retain(|kind| !skipped.kinds.contains(kind));
                KindSelection::Only(kinds)
            }
            selection => selection,
        }
    }
}
