//! Why a task does not run.

use std::time::Duration;

use super::flow::scopes;
use super::state::State;
use super::task::Task;
use crate::flow::LimitScope;
use crate::limits;
use crate::reason::WaitReason;
use crate::rules;
use crate::rules::why::{LimitUse, WaitFacts, reasons};
use crate::task::{TaskId, TaskState};
use crate::write::Scope;

impl State {
    pub(super) fn why(&self, id: TaskId, steady: Duration) -> Option<Vec<WaitReason>> {
        let task = self.tasks.get(id)?;
        let scopes = pause_scopes(task);
        let facts = WaitFacts {
            task: id,
            state: task.state,
            run_at: task.run_at,
            blocked_by: self.waits.open_of(id),
            awaited: task.awaited.map(|awaited| (task.claims, awaited.until)),
            pauses: scopes
                .into_iter()
                .filter_map(|scope| self.pauses.get(&scope).map(|until| (scope, *until)))
                .collect(),
            limits: self.limit_uses(task),
            ahead: self.ahead_of(task),
            has_sessions: !self.sessions.is_empty(),
        };
        Some(reasons(&facts, steady))
    }

    fn limit_uses(&self, task: &Task) -> Vec<LimitUse> {
        let usage = |scope: LimitScope| LimitUse {
            limit: self.limit_for(&scope),
            running: self.running_in(&scope),
            bucket: self.bucket(&scope),
            scope: self.set_on(scope),
        };
        scopes(task).into_iter().map(usage).filter(|usage| !usage.limit.is_none()).collect()
    }

    /// On what the limit of a scope was set.
    fn set_on(&self, scope: LimitScope) -> LimitScope {
        let LimitScope::Group(group) = &scope else { return scope };
        rules::flow::limit_of_group(&self.limits, group).map_or(scope.clone(), |(set_on, _)| set_on.clone())
    }

    fn ahead_of(&self, task: &Task) -> u64 {
        if task.state != TaskState::Waiting {
            return 0;
        }
        let line = |task: &Task| (task.new.queue.clone(), task.new.kind.clone(), task.new.group.clone());
        let is_ahead =
            |one: &&Task| one.state == TaskState::Waiting && one.place() < task.place() && line(one) == line(task);
        (self.tasks.iter().filter(is_ahead).count() as u64).min(limits::AHEAD)
    }
}

fn pause_scopes(task: &Task) -> Vec<Scope> {
    let mut scopes = vec![Scope::All, Scope::Queue(task.new.queue.clone()), Scope::Kind(task.new.kind.clone())];
    scopes.extend(task.new.group.clone().map(Scope::Group));
    scopes
}
