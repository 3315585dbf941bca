//! The names of queues, kinds and groups in the store.

use std::collections::BTreeSet;

use crate::api::name::Name;
use crate::api::outcome::Refusal;
use crate::bounds;
use crate::model::state::State;

impl State {
    /// Rejects a new queue or kind beyond its bound.
    pub(in crate::model) fn check_names(&self, queue: Option<&Name>, kind: Option<&Name>) -> Result<(), Refusal> {
        let full = |existing: &BTreeSet<Name>, name: Option<&Name>, limit| {
            existing.len() >= limit && name.is_some_and(|name| !existing.contains(name))
        };
        if full(&self.queues, queue, bounds::QUEUES) {
            return Err(too_many("queue", bounds::QUEUES, "delete queues that are no longer needed"));
        }
        if full(&self.kinds, kind, bounds::KINDS) {
            return Err(too_many("kind", bounds::KINDS, "put what varies into the payload instead of the kind"));
        }
        Ok(())
    }

    /// Rejects a new group beyond its bound.
    pub(in crate::model) fn check_group(&self, group: Option<&Name>) -> Result<(), Refusal> {
        if self.groups.len() >= bounds::GROUPS && group.is_some_and(|group| !self.groups.contains(group)) {
            return Err(too_many("group", bounds::GROUPS, "let several share one"));
        }
        Ok(())
    }

    /// Registers a queue and a kind, unless they exist.
    pub(in crate::model) fn register_names(&mut self, queue: Option<&Name>, kind: Option<&Name>) {
        self.queues.extend(queue.cloned());
        self.kinds.extend(kind.cloned());
    }
}

/// Returns the refusal for a new name beyond a bound.
fn too_many(what: &str, limit: usize, remedy: &str) -> Refusal {
    Refusal::Invalid(format!(
        "the store holds {limit} {what}s, which is the limit, and this one would be new; {remedy}"
    ))
}
