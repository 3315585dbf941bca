//! Application state, keyed by type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A map with one value per type. It is cheap to clone because the values are shared.
#[derive(Clone, Default)]
pub(crate) struct AppState(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl fmt::Debug for AppState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateMap").field("types", &self.0.len()).finish()
    }
}

impl AppState {
    /// Inserts `value` and replaces a value of the same type.
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// Returns true if there is a value of a type.
    pub(crate) fn has(&self, of: TypeId) -> bool {
        self.0.contains_key(&of)
    }

    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.get(&TypeId::of::<T>())?).downcast().ok()
    }
}
