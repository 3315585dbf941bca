//! The reasons why a task does not run.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::api::limit::LimitScope;
use crate::api::reason::WaitReason;
use crate::api::task::{NewTask, TaskId, TaskState};
use crate::api::write::Scope;
use crate::bounds;
use crate::model::limits::limit::scopes;
use crate::model::state::{Now, State};
use crate::model::tasks::task::Task;
use crate::rules;
use crate::rules::why::{LimitUse, OrchestrationFacts, WaitFacts, reasons};

impl State {
    /// Returns the reasons why a task does not run, by the rule [`reasons`]; `None` if it does not
    /// exist.
    pub(crate) fn why(&self, id: TaskId, now: Now) -> Option<Vec<WaitReason>> {
        let (task, steady) = (self.tasks.get(id)?, now.steady);
        let scopes = pause_scopes(task);
        let (ahead, groups_ahead) = (self.ahead_of(task), self.groups_ahead_of(task, steady));
        let reserved = Some(task)
            .filter(|task| task.state == TaskState::Waiting)
            .and_then(|task| self.reservation(task, now.wall));
        let is_next = task.state == TaskState::Waiting && ahead + groups_ahead == 0 && reserved.is_none();
        let facts = WaitFacts {
            task: id,
            kind: task.new.kind.clone(),
            queue: task.new.queue.clone(),
            state: task.state,
            run_at: task.run_at,
            expires_at: task.expires_at,
            deadline: task.new.deadline,
            blocked_by: self.dependencies.open_of(id),
            awaited: task.awaited.map(|awaited| (task.claims, awaited.until)),
            orchestration: self.orchestration_facts(task),
            aggregated: self.why_aggregated(task),
            pauses: scopes
                .into_iter()
                .filter_map(|scope| self.pauses.get(&scope).map(|until| (scope, *until)))
                .collect(),
            limits: self.limit_uses(task),
            contended: if is_next { self.contended_limit(task, now) } else { None },
            reserved,
            ahead,
            groups_ahead,
            sessions: self.workers(steady),
        };
        Some(reasons(&facts, now.wall, steady))
    }

    /// Returns the facts about a live orchestration: its hold, its waits and its open tasks.
    fn orchestration_facts(&self, task: &Task) -> Option<OrchestrationFacts> {
        let instance = task.instance.as_ref().filter(|_| !task.state.is_ended())?;
        let has_begun = instance.length > 0;
        let open = |child: &&Task| child.new.report.is_some() && !child.state.is_ended();
        let tasks = if has_begun {
            self.tasks.children_of(task.id).filter(open).map(|child| child.id).take(bounds::NAMED_TASKS).collect()
        } else {
            Vec::new()
        };
        Some(OrchestrationFacts {
            has_begun,
            version: instance.version,
            hold: instance.hold,
            has_messages: instance.waiting() > 0,
            awaits: instance.awaits.clone(),
            tasks,
            kept_until: task.expires_at,
        })
    }

    /// Returns the limits that apply to a task, each with its current use.
    fn limit_uses(&self, task: &Task) -> Vec<LimitUse> {
        let usage = |scope: LimitScope| LimitUse {
            limit: self.limit_for(&scope),
            running: self.running_in(&scope),
            bucket: self.bucket(&scope),
            scope: self.set_on(scope),
        };
        scopes(task).map(usage).filter(|usage| !usage.limit.is_none()).collect()
    }

    /// Returns the scope on which the limit that applies to `scope` was set.
    fn set_on(&self, scope: LimitScope) -> LimitScope {
        let LimitScope::Group(group) = &scope else { return scope };
        rules::limit::limit_of_group(&self.limits, group).map_or(scope.clone(), |(set_on, _)| set_on.clone())
    }

    /// Returns the number of waiting tasks before a task in its sub-queue, at most
    /// [`bounds::AHEAD`].
    fn ahead_of(&self, task: &Task) -> u64 {
        if task.state != TaskState::Waiting {
            return 0;
        }
        self.tasks.require_ahead_of(task);
        let line = |task: &Task| {
            let NewTask { queue, kind, group, affinity, orchestration, .. } = &task.new;
            (queue.clone(), kind.clone(), group.clone(), affinity.clone(), *orchestration)
        };
        let is_ahead = |one: &&Task| {
            one.state == TaskState::Waiting && one.sort_key() < task.sort_key() && line(one) == line(task)
        };
        (self.tasks.iter().filter(is_ahead).count() as u64).min(bounds::AHEAD)
    }

    /// Returns the number of groups whose fair-share tag is lower, if groups share queues.
    fn groups_ahead_of(&self, task: &Task, steady: Duration) -> u64 {
        if task.state != TaskState::Waiting || !self.are_shared() {
            return 0;
        }
        self.tasks.require_every_sub_queue();
        let is_of_queue = |one: &&Task| {
            let line = |task: &Task| (task.new.queue.clone(), task.new.kind.clone(), task.new.orchestration);
            let is_beside = line(one) == line(task);
            let is_other = one.new.group != task.new.group && one.new.affinity.is_none();
            is_beside && one.state == TaskState::Waiting && is_other
        };
        let ahead =
            self.tasks.iter().filter(is_of_queue).filter(|one| self.fair_share_tag(one) < self.fair_share_tag(task));
        let not_held_back = ahead.filter(|one| !self.is_group_blocked(one, steady));
        let groups: BTreeSet<_> = not_held_back.map(|one| one.new.group.clone()).collect();
        (groups.len() as u64).min(bounds::AHEAD)
    }

    /// Returns whether the group of a task is paused or at its limit.
    pub(in crate::model) fn is_group_blocked(&self, task: &Task, steady: Duration) -> bool {
        task.new.group.clone().is_some_and(|group| {
            self.pauses.contains_key(&Scope::Group(group.clone()))
                || self.headroom_in(&LimitScope::Group(group), steady) == 0
        })
    }
}

/// Returns the scopes whose pause stops a task.
fn pause_scopes(task: &Task) -> Vec<Scope> {
    let mut scopes = vec![Scope::All, Scope::Queue(task.new.queue.clone()), Scope::Kind(task.new.kind.clone())];
    scopes.extend(task.new.group.clone().map(Scope::Group));
    scopes
}
