//! Tasks that are collected, and bundles of them.

use crate::api::event::Change;
use crate::api::news::TaskNews;
use crate::api::outcome::Refusal;
use crate::api::reason::WaitReason;
use crate::api::task::{NewTask, TaskId, TaskState};
use crate::model::batches::index::batch_key_of;
use crate::model::dependencies::dependents::UnsettledEnd;
use crate::model::state::State;
use crate::model::tasks::task::Task;
use crate::rules::aggregate::{self, Collection};

impl State {
    /// A task that was to be collected has ended or was removed: it leaves what is being collected,
    /// or its bundle, unless it ended with that.
    pub(in crate::model) fn leave_bundle(&mut self, id: TaskId, new: &NewTask, is_removed: bool) {
        let Some(bundle) = self.bundles.bundle_of(id) else { return self.leave_collection(id, new) };
        let is_live = self.live_state(bundle).is_some();
        if is_live || is_removed {
            self.bundles.forget(id);
        }
        if is_live && !self.is_running(bundle) && !self.bundles.has_members(bundle) {
            let now = self.now.wall;
            self.tasks.change(bundle, |task| task.push_error_between(now, aggregate::EMPTIED.to_owned()));
            self.end(bundle, TaskState::Cancelled);
        }
    }

    fn live_state(&self, id: TaskId) -> Option<TaskState> {
        self.tasks.get(id).map(|task| task.state).filter(|state| !state.is_ended())
    }

    fn is_running(&self, id: TaskId) -> bool {
        self.live_state(id) == Some(TaskState::Running)
    }

    /// Where a task stands; a member runs while its bundle does.
    pub(in crate::model) fn standing_of(&self, task: &Task) -> TaskState {
        let bundle = self.bundles.bundle_of(task.id).filter(|_| !task.state.is_ended());
        if bundle.is_some_and(|bundle| self.is_running(bundle)) { TaskState::Running } else { task.state }
    }

    /// The bundle of a member, if that has not ended.
    pub(in crate::model) fn live_bundle_of(&self, member: TaskId) -> Option<&Task> {
        let bundle = self.tasks.get(self.bundles.bundle_of(member)?)?;
        (!bundle.state.is_ended()).then_some(bundle)
    }

    fn marked(&self, bundle: TaskId) -> Vec<TaskId> {
        let is_marked =
            |id: &TaskId| self.tasks.get(*id).is_some_and(|member| member.cancel_requested && !member.state.is_ended());
        self.bundles.members_of(bundle).into_iter().filter(is_marked).collect()
    }

    /// Whether somebody wants members of a bundle cancelled.
    pub(in crate::model) fn has_marked(&self, bundle: TaskId) -> bool {
        !self.marked(bundle).is_empty()
    }

    /// A bundle waits again: members that somebody wanted cancelled while it ran are taken out of
    /// it.
    pub(in crate::model) fn let_go(&mut self, bundle: TaskId) {
        for member in self.marked(bundle) {
            self.end(member, TaskState::Cancelled);
        }
    }

    /// Whether the time to live of a member is over for good; then it is forgotten.
    pub(in crate::model) fn outlives(&mut self, member: TaskId) -> bool {
        let started =
            self.live_bundle_of(member).is_some_and(|bundle| aggregate::has_started(bundle.state, bundle.attempts));
        if started {
            self.tasks.change(member, |task| task.expires_at = None);
        }
        started
    }

    /// The next member that is to end with a bundle that is over.
    pub(in crate::model) fn next_member(&self, over: UnsettledEnd) -> Option<TaskId> {
        self.bundles.member_from(over.task, over.next_member)
    }

    /// Ends a member with its bundle.
    pub(in crate::model) fn end_member(&mut self, member: TaskId, over: UnsettledEnd) {
        if self.live_state(member).is_none() {
            return;
        }
        let last_error = self.tasks.get(over.task).and_then(|bundle| bundle.errors.last());
        let last_error = last_error.map(|error| error.message.as_str());
        if let Some(error) = aggregate::error(over.task, over.ended, last_error) {
            let now = self.now.wall;
            self.tasks.change(member, |task| task.push_error_between(now, error));
        }
        self.end(member, aggregate::end_of_member(over.ended));
    }

    /// The members that wait again with a bundle that is tried again after its end: those that have
    /// ended.
    pub(in crate::model) fn members_to_retry(&self, bundle: &Task) -> Result<Vec<TaskId>, Refusal> {
        let members = self.bundles.members_of(bundle.id);
        if bundle.members > 0 && members.is_empty() {
            return Err(aggregate::without_members(bundle.id));
        }
        let ended: Vec<TaskId> = members.into_iter().filter(|member| self.live_state(*member).is_none()).collect();
        for member in &ended {
            let taken = self.tasks.get(*member).and_then(|member| self.keys.active(&member.new));
            if let Some(by) = taken {
                return Err(Refusal::KeyTaken { task: *member, by });
            }
        }
        Ok(ended)
    }

    /// Has what ended with a bundle wait with it again.
    pub(in crate::model) fn retry_members(&mut self, bundle: TaskId, members: Vec<TaskId>) {
        self.waits.keep_members(bundle);
        for member in members {
            let Some(new) = self.tasks.get(member).map(|task| task.new.clone()) else { continue };
            self.make_names(Some(&new.queue), None);
            self.keys.take(member, &new);
            self.start_anew(member);
            self.log(member, Change::Retried);
            self.news.push(TaskNews::Retried { task: member });
        }
    }

    /// What a task waits for that is collected with others, or was handed over with them.
    pub(in crate::model) fn why_aggregated(&self, task: &Task) -> Option<WaitReason> {
        task.new.aggregate.filter(|_| task.state == TaskState::Blocked)?;
        if let Some(bundle) = self.bundles.bundle_of(task.id) {
            return Some(WaitReason::InBundle { bundle });
        }
        let (collection, _) = self.bundles.collections.get(&batch_key_of(&task.new))?;
        let Collection { members, size, ripe_at, .. } = *collection;
        Some(WaitReason::Collecting { members, size, ripe_at })
    }
}
