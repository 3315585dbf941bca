//! Which tasks wait for which, and what follows when one of them is over.
//!
//! An edge is a row of `dependency`. A task that others depend on has [`DEPENDENTS`] among the
//! links of its row, so that the end of any other asks for nothing. A task that is over stands in
//! line in [`Transaction::over`] until its dependents were told, which the write does last; what it
//! leaves is kept in `over` for the next sweeps.

use std::collections::VecDeque;

use rusqlite::params;

use crate::api::dependency::{Dependencies, Dependency};
use crate::api::error::Result;
use crate::api::event::Change;
use crate::api::outcome::Refusal;
use crate::api::task::{TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules;
use crate::rules::dependencies::{self, Dependent, Ended, Standing};
use crate::sqlite::columns::links::{AWAITED, BUNDLE, CHILDREN, DEPENDENTS, MEMO};
use crate::sqlite::commit::prepared_statements;
use crate::sqlite::commit::transaction::{LiveTask, Transaction, Verb};

/// A task that is over and whose dependents are to be told.
#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) struct Over {
    /// Its place in line, if it is kept in the table.
    number: Option<i64>,
    task: TaskId,
    ended: Ended,
    /// The highest number that a task had by then: later ones depend on what it does when it is
    /// tried again.
    up_to: i64,
    /// Which of its children is the next to be cancelled, if they are.
    next_child: i64,
    /// Which of its members is the next to end, if it is a bundle and some may be left.
    next_member: Option<i64>,
}

/// A task that depends on one that is over.
struct Waits {
    task: TaskId,
    /// Whether it depends on others that are not.
    for_others: bool,
}

impl Transaction<'_> {
    /// Refuses dependencies that are not tasks of the store.
    pub(in crate::sqlite) fn check_dependencies(&mut self, dependencies: &Dependencies) -> Verb<()> {
        self.flush_completions()?;
        for dependency in &dependencies.tasks {
            match *dependency {
                Dependency::Task(task) => {
                    if self.dependent(task)? == Dependent::Settled(task, None) {
                        return Err(Refusal::DependencyNotFound(task).into());
                    }
                }
                Dependency::Member(position) => return Err(dependencies::no_member(position).into()),
            }
        }
        Ok(())
    }

    /// Where a new task stands.
    pub(in crate::sqlite) fn standing(&mut self, dependencies: &Dependencies) -> Result<Standing> {
        if dependencies.is_empty() {
            return Ok(Standing::Free);
        }
        self.flush_completions()?;
        let mut found = Vec::with_capacity(dependencies.tasks.len());
        for dependency in &dependencies.tasks {
            if let Dependency::Task(task) = *dependency {
                found.push(self.dependent(task)?);
            }
        }
        Ok(dependencies::at_submission(&found, dependencies.on_failure))
    }

    fn dependent(&self, task: TaskId) -> Result<Dependent> {
        let is_known = self.cache.running_rows.get(task).is_some() || self.cache.index.has_waiting_row(task);
        if is_known || self.is_live(task)? {
            return Ok(Dependent::On(task));
        }
        Ok(Dependent::Settled(task, self.ended_state(task)?))
    }

    pub(in crate::sqlite) fn is_live(&self, task: TaskId) -> Result<bool> {
        let mut statement = self.connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM task WHERE id = ?)")?;
        Ok(statement.query_row([task.0], |row| row.get(0))?)
    }

    /// Acts on where a task stands that was just inserted as blocked.
    pub(in crate::sqlite) fn stand(&mut self, id: TaskId, standing: &Standing) -> Result<()> {
        match standing {
            Standing::Free => Ok(()),
            Standing::Blocked(open) => open.iter().try_for_each(|task| self.add_dependency(*task, id)),
            Standing::Ends(state, dependency, ended) => {
                let Some(live) = self.live(id)? else { return Ok(()) };
                self.end_dependent(&live, *state, *dependency, *ended)
            }
        }
    }

    /// Has a blocked task wait for a live one.
    pub(in crate::sqlite) fn add_dependency(&mut self, task: TaskId, dependent: TaskId) -> Result<()> {
        self.connection.prepare_cached(prepared_statements::ADD_DEPENDENCY)?.execute([task.0, dependent.0])?;
        self.add_link(task, DEPENDENTS)
    }

    /// Marks the row of a live task, and what is remembered of it.
    pub(in crate::sqlite) fn add_link(&mut self, task: TaskId, link: u8) -> Result<()> {
        let mut is_marked = false;
        let mut mark = |task: &mut LiveTask| {
            is_marked |= task.links & link != 0;
            task.links |= link;
        };
        self.cache.running_rows.get_mut(task).map(&mut mark);
        self.cache.index.waiting_row_mut(task).map(&mut mark);
        self.cache.index.idle_row_mut(task).map(&mut mark);
        if !is_marked {
            self.connection.prepare_cached(prepared_statements::ADD_LINK)?.execute(params![link, task.0])?;
        }
        Ok(())
    }

    /// A task is over: it waits for nothing, and its dependents are to be told.
    pub(in crate::sqlite) fn settle_links(&mut self, task: &LiveTask, ended: Ended) -> Result<()> {
        if task.blocked {
            self.connection.prepare_cached("DELETE FROM dependency WHERE dependent = ?")?.execute([task.id.0])?;
        }
        if task.links & MEMO != 0 {
            self.connection.prepare_cached("DELETE FROM memo WHERE task = ?")?.execute([task.id.0])?;
        }
        if task.links & AWAITED != 0 {
            self.forget_awaited(task.id)?;
        }
        self.forget_move(task)?;
        let leaves_children = task.links & CHILDREN != 0 && rules::children::follow(ended, task.options.orchestration);
        if task.links & (DEPENDENTS | BUNDLE) != 0 || leaves_children {
            let next_child = if leaves_children { 0 } else { i64::MAX };
            let next_member = (task.links & BUNDLE != 0).then_some(0);
            self.over.push_back(Over { next_child, next_member, ..self.over_now(task.id, ended) });
        }
        Ok(())
    }

    /// Has the dependents of a completed task told that it is over.
    pub(in crate::sqlite) fn tell_dependents(&mut self, task: TaskId) {
        let over = self.over_now(task, Some(TaskState::Completed));
        self.over.push_back(over);
    }

    /// A task that is over and has neither members nor children that follow.
    fn over_now(&self, task: TaskId, ended: Ended) -> Over {
        let up_to = self.cache.next_task - 1;
        Over { number: None, task, ended, up_to, next_child: i64::MAX, next_member: None }
    }

    /// Tells dependents of tasks that are over, in the order of the ends; what is left is for the
    /// next sweep.
    pub(in crate::sqlite) fn settle_dependents(&mut self) -> Result<()> {
        if self.over.is_empty() && !self.cache.is_unsettled {
            return Ok(());
        }
        let mut line = self.read_over()?;
        // Those that were not read come before the new ones.
        let is_whole = line.len() < bounds::CASCADE;
        for _ in 0..bounds::CASCADE {
            if is_whole {
                line.append(&mut self.over);
            }
            let Some(front) = line.front_mut() else { break };
            if !self.settle_next(front)? {
                self.forget_over(*front)?;
                line.pop_front();
            }
        }
        self.note_progress(line.front())?;
        line.append(&mut self.over);
        self.cache.is_unsettled = !is_whole || !line.is_empty();
        line.into_iter().filter(|over| over.number.is_none()).try_for_each(|over| self.keep_over(over))
    }

    fn read_over(&self) -> Result<VecDeque<Over>> {
        if !self.cache.is_unsettled {
            return Ok(VecDeque::new());
        }
        let mut statement = self.connection.prepare_cached(
            "SELECT number, task, state, up_to, next_child, next_member FROM over ORDER BY number LIMIT ?",
        )?;
        let rows = statement.query_map([bounds::CASCADE.cast_signed()], |row| {
            let ended = TaskState::from_code(row.get(2)?);
            Ok(Over {
                number: row.get(0)?,
                task: TaskId(row.get(1)?),
                ended,
                up_to: row.get(3)?,
                next_child: row.get(4)?,
                next_member: Some(row.get(5)?).filter(|next| *next < i64::MAX),
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn keep_over(&self, over: Over) -> Result<()> {
        let code = over.ended.map_or(0, TaskState::code);
        self.connection
            .prepare_cached("INSERT INTO over (task, state, up_to, next_child, next_member) VALUES (?, ?, ?, ?, ?)")?
            .execute(params![over.task.0, code, over.up_to, over.next_child, over.next_member.unwrap_or(i64::MAX)])?;
        Ok(())
    }

    fn note_progress(&self, over: Option<&Over>) -> Result<()> {
        if let Some(Over { number: Some(number), next_child, next_member, .. }) = over {
            self.connection
                .prepare_cached("UPDATE over SET next_child = ?, next_member = ? WHERE number = ?")?
                .execute([*next_child, next_member.unwrap_or(i64::MAX), *number])?;
        }
        Ok(())
    }

    fn forget_over(&self, over: Over) -> Result<()> {
        if let Some(number) = over.number {
            self.connection.prepare_cached("DELETE FROM over WHERE number = ?")?.execute([number])?;
        }
        Ok(())
    }

    /// Tells the first of a task's dependents, ends the next of its members, or cancels the next of
    /// its children; answers whether there may be more of any.
    fn settle_next(&mut self, over: &mut Over) -> Result<bool> {
        let mut dependents = self.first_dependents(*over)?.into_iter();
        if let Some(dependent) = dependents.next() {
            self.connection
                .prepare_cached(prepared_statements::DROP_DEPENDENCY)?
                .execute([over.task.0, dependent.task.0])?;
            self.settle_dependent(*over, &dependent)?;
            let has_more = dependents.next().is_some() || over.next_member.is_some();
            return Ok(has_more || rules::children::are_cancelled(over.ended));
        }
        if let Some(from) = over.next_member {
            over.next_member = self.end_next_member(over.task, over.ended, from)?;
            return Ok(true);
        }
        let child = self.cancel_next_child(over.task, over.ended, (over.next_child, over.up_to))?;
        over.next_child = child.map_or(over.next_child, |child| child + 1);
        Ok(child.is_some())
    }

    /// The first of a task's dependents, and the next one to tell whether there are more.
    fn first_dependents(&self, over: Over) -> Result<Vec<Waits>> {
        let mut statement = self.connection.prepare_cached(prepared_statements::FIRST_DEPENDENTS)?;
        let dependents = statement.query_map([over.task.0, over.up_to], |row| {
            Ok(Waits { task: TaskId(row.get(0)?), for_others: row.get(1)? })
        })?;
        Ok(dependents.collect::<rusqlite::Result<_>>()?)
    }

    fn settle_dependent(&mut self, over: Over, dependent: &Waits) -> Result<()> {
        if dependent.for_others && over.ended == Some(TaskState::Completed) {
            return Ok(());
        }
        let Some(task) = self.blocked(dependent.task)? else { return Ok(()) };
        match dependencies::end_of_dependent(over.ended, task.options.on_dependency_failure) {
            Some(state) => self.end_dependent(&task, state, over.task, over.ended),
            None if dependent.for_others => Ok(()),
            None => self.unblock(&task).map(drop),
        }
    }

    fn blocked(&self, task: TaskId) -> Result<Option<LiveTask>> {
        match self.cache.index.waiting_row(task) {
            Some(fresh) => Ok(Some(fresh.clone())),
            None => self.live(task),
        }
    }

    fn end_dependent(&mut self, task: &LiveTask, state: TaskState, dependency: TaskId, ended: Ended) -> Result<()> {
        self.record_error(task, task.attempts, &dependencies::error(dependency, ended))?;
        self.end_unheld(task, state)
    }

    /// What a task waited for is over: it waits for a worker, or for its time.
    pub(in crate::sqlite) fn unblock(&mut self, task: &LiveTask) -> Result<TaskState> {
        if self.stands_aside(task, TaskState::Waiting)? {
            return Ok(TaskState::Blocked);
        }
        let run_at = Timestamp::from_microseconds(task.run_at).max(self.now);
        let scheduled = rules::due::state(run_at, self.now) == TaskState::Scheduled;
        let run_at = run_at.as_microseconds();
        self.connection.prepare_cached(prepared_statements::UNBLOCK)?.execute(params![scheduled, run_at, task.id.0])?;
        let waiting = LiveTask { blocked: false, scheduled, run_at, ..task.clone() };
        self.cache.index.unblock(self.connection, &waiting)?;
        if !scheduled {
            self.enter_list_when_due(task.scheduled_list(), waiting.entry().sort_key())?;
        }
        self.log(task.id, task.sub_queue, Change::Unblocked);
        self.hint.work += 1;
        self.let_go(&waiting)
    }
}
