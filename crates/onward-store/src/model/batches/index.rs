//! What is collected, and which task is a member of which bundle.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::name::Name;
use crate::api::task::{NewTask, TaskId};
use crate::rules::aggregate::Collection;

/// Queue, kind and group: what is collected together.
pub(crate) type BatchKey = (Name, Name, Option<Name>);

/// What is being collected, and who is a member of which bundle.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batches {
    pub(crate) collections: BTreeMap<BatchKey, (Collection, BTreeSet<TaskId>)>,
    pub(crate) bundle_of: BTreeMap<TaskId, TaskId>,
    /// A bundle and a member, live or ended.
    pub(crate) members: BTreeSet<(TaskId, TaskId)>,
}

impl Batches {
    pub(in crate::model) fn bundle_of(&self, member: TaskId) -> Option<TaskId> {
        self.bundle_of.get(&member).copied()
    }

    pub(crate) fn adopt(&mut self, bundle: TaskId, member: TaskId) {
        self.bundle_of.insert(member, bundle);
        self.members.insert((bundle, member));
    }

    /// A task is a member of its bundle no more.
    pub(in crate::model) fn forget(&mut self, member: TaskId) {
        if let Some(bundle) = self.bundle_of.remove(&member) {
            self.members.remove(&(bundle, member));
        }
    }

    /// The first member of a bundle from a number on.
    pub(super) fn member_from(&self, bundle: TaskId, from: TaskId) -> Option<TaskId> {
        let next = self.members.range((bundle, from)..).next();
        next.filter(|(of, _)| *of == bundle).map(|(_, member)| *member)
    }

    pub(super) fn members_of(&self, bundle: TaskId) -> Vec<TaskId> {
        let of = self.members.range((bundle, TaskId(i64::MIN))..=(bundle, TaskId(i64::MAX)));
        of.map(|(_, member)| *member).collect()
    }

    pub(in crate::model) fn has_members(&self, bundle: TaskId) -> bool {
        self.member_from(bundle, TaskId(i64::MIN)).is_some()
    }
}

pub(in crate::model) fn batch_key_of(new: &NewTask) -> BatchKey {
    (new.queue.clone(), new.kind.clone(), new.group.clone())
}
