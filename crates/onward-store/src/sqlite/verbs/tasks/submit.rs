//! Submits tasks.

use rusqlite::{OptionalExtension, params};

use crate::api::error::Result;
use crate::api::event::Change;
use crate::api::orchestration::Hold;
use crate::api::outcome::{Outcome, Refusal, Submitted};
use crate::api::task::{NewTask, Priority, TaskId, TaskState, UniqueKey};
use crate::api::timestamp::Timestamp;
use crate::rules;
use crate::rules::attempt::expiry_at_submission;
use crate::rules::dependencies::InitialState;
use crate::rules::duplicate::{Decision, KeyHolder, decide};
use crate::sqlite::columns::task_options::TaskOptions;
use crate::sqlite::commit::transaction::{LiveTask, Transaction, VerbResult, in_all};
use crate::sqlite::ready::index::Entry;
use crate::sqlite::row_cache::waiting_tasks::{PlainTask, WaitingTask};

impl Transaction<'_> {
    /// Submits a task. If its unique key is taken, the policy for duplicates decides.
    pub(in crate::sqlite) fn submit(&mut self, task: &NewTask) -> VerbResult<Submitted> {
        self.check_submit(task)?;
        if !task.depends_on.is_empty() {
            self.check_dependencies(&task.depends_on)?;
        }
        self.check_parent(task)?;
        let Some(unique) = &task.unique else {
            return Ok(Submitted::Inserted { id: self.insert(task)? });
        };
        let holder = self.key_holder(task, unique)?;
        Ok(match decide(holder, unique.on_duplicate, task.priority) {
            Decision::Insert => Submitted::Inserted { id: self.insert(task)? },
            Decision::Keep(id) => Submitted::Duplicate { id },
            Decision::Raise(id) => self.raise_priority(id, task)?,
            Decision::Follow(id) => self.follow(id, task)?,
            Decision::Supersede(old) => self.supersede(old, task)?,
            Decision::Reject(id) => Submitted::Rejected { id },
            Decision::TakeOver(from) => {
                self.forget_retained_key(from)?;
                Submitted::Inserted { id: self.insert(task)? }
            }
            Decision::Start(unstarted) => Submitted::Inserted { id: self.start_with_kept(unstarted, task)? },
            Decision::Refuse(task, by) => return Err(Refusal::KeyTaken { task, by }.into()),
        })
    }

    /// Submits several tasks. Nearly every refusal comes before the first write; the caller undoes
    /// the others.
    pub(in crate::sqlite) fn submit_all(&mut self, tasks: &[NewTask]) -> VerbResult<Vec<Submitted>> {
        rules::all::check_size(tasks.len())?;
        for (index, task) in tasks.iter().enumerate() {
            self.check_submit(task).map_err(|stop| in_all(index, stop))?;
        }
        let mut outcomes = Vec::with_capacity(tasks.len());
        for (index, task) in tasks.iter().enumerate() {
            let submitted = self.submit_in_all(task, &outcomes).map_err(|stop| in_all(index, stop))?;
            outcomes.push(Outcome::Submitted(submitted));
        }
        let submitted = |outcome| if let Outcome::Submitted(submitted) = outcome { Some(submitted) } else { None };
        Ok(outcomes.into_iter().filter_map(submitted).collect())
    }

    /// Submits a task of a list, which may depend on earlier tasks of the list.
    fn submit_in_all(&mut self, task: &NewTask, before: &[Outcome]) -> VerbResult<Submitted> {
        match rules::dependencies::resolved(task, before)? {
            Some(resolved) => self.submit(&resolved),
            None => self.submit(task),
        }
    }

    /// Rejects a task for its own fields or for a lack of room for names, before anything is
    /// written.
    pub(in crate::sqlite) fn check_submit(&mut self, task: &NewTask) -> VerbResult<()> {
        if let Err(error) = task.check(self.payload_limit) {
            return Err(Refusal::Invalid(error.to_string()).into());
        }
        let refusal = self.cache.names.refusal(Some(&task.queue), Some(&task.kind));
        match refusal.or_else(|| self.cache.names.group_refusal(task.group.as_ref())) {
            Some(text) => Err(Refusal::Invalid(text).into()),
            None => Ok(()),
        }
    }

    /// Inserts a task. Its key, if it has one, is free.
    pub(in crate::sqlite) fn insert(&mut self, task: &NewTask) -> Result<TaskId> {
        self.insert_with(task, TaskOptions::of(task))
    }

    /// Inserts a task with options that no submitter can set.
    pub(in crate::sqlite::verbs) fn insert_with(&mut self, task: &NewTask, options: TaskOptions) -> Result<TaskId> {
        let initial_state = self.initial_state(&task.depends_on)?;
        let blocked = initial_state != InitialState::Free || task.aggregate.is_some();
        let sub_queue = self.ensure_sub_queue(task)?;
        let id = self.cache.next_task;
        let run_at = rules::due::run_at(task.when, self.now);
        let scheduled = rules::due::state(run_at, self.now) == TaskState::Scheduled;
        let expires_at = expiry_at_submission(task.ttl, task.deadline, self.now).map(Timestamp::as_microseconds);
        let run_at = run_at.as_microseconds();
        let key = task.unique.as_ref().map(|unique| unique.key.as_str());
        let now = self.now.as_microseconds();
        if run_at == now && !blocked && expires_at.is_none() && key.is_none() && options == TaskOptions::default() {
            return self.insert_plain(sub_queue, task);
        }
        let payload = &task.payload[..];
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/tasks/insert_task.sql"))?;
        // The codes of the column `scheduled`: 0 due, 1 not due yet, 2 blocked.
        let waits = if blocked { 2 } else { i64::from(scheduled) };
        statement.execute(params![
            id,
            sub_queue,
            task.priority.0,
            waits,
            run_at,
            now,
            expires_at,
            options,
            key,
            payload
        ])?;
        drop(statement);
        if task.orchestration {
            self.connection.prepare_cached("INSERT INTO instance (task) VALUES (?)")?.execute([id])?;
        }
        self.cache.next_task += 1;
        self.cache.tags.add(TaskId(id), &task.tags);
        let scheduled = scheduled && !blocked;
        let affinity_key = task.affinity.as_ref();
        let entry = Entry {
            id,
            list: sub_queue,
            priority: task.priority,
            scheduled,
            blocked,
            run_at,
            expires_at,
            key: None,
            affinity_key,
        };
        self.enter_list(&entry)?;
        if let Some(key) = key {
            let kind = self.kind_of(sub_queue);
            self.cache.index.take_key(self.connection, kind, key, id)?;
        }
        if task.aggregate.is_none() {
            let live = LiveTask { expires_at, options, key: key.map(str::to_owned), ..LiveTask::new(&entry) };
            let (submitted_at, payload) = (self.now, task.payload.clone());
            self.cache.index.cache_waiting(WaitingTask { task: Box::new(live), submitted_at, payload });
        }
        self.apply_initial_state(TaskId(id), &initial_state)?;
        self.join_family(TaskId(id), task)?;
        self.hint.work += 1;
        if let Some(aggregate) = task.aggregate {
            self.add_new_to_batch(TaskId(id), sub_queue, aggregate, task)?;
        }
        if expires_at.is_some_and(|at| at <= now) {
            self.expire_new(TaskId(id))?;
        }
        Ok(TaskId(id))
    }

    /// Ends a new task whose deadline has passed already.
    fn expire_new(&mut self, id: TaskId) -> Result<()> {
        match self.live(id)? {
            Some(live) => self.end_unheld(&live, TaskState::Expired),
            None => Ok(()),
        }
    }

    /// Inserts a task without options that is due now, as most tasks are.
    fn insert_plain(&mut self, sub_queue: i64, task: &NewTask) -> Result<TaskId> {
        let (id, priority, now) = (TaskId(self.cache.next_task), task.priority, self.now);
        // The statement has the constants in its text, because binding a value costs about as much
        // as storing it.
        self.connection.prepare_cached(include_str!("../../sql/tasks/insert_plain_task.sql"))?.execute(params![
            id.0,
            sub_queue,
            priority.0,
            now.as_microseconds(),
            &task.payload[..]
        ])?;
        self.cache.next_task += 1;
        self.enter_list(&Entry::plain(id, sub_queue, priority, now))?;
        let payload = task.payload.clone();
        self.cache.index.cache_plain(id.0, PlainTask { sub_queue, submitted_at: now, payload, priority });
        self.hint.work += 1;
        Ok(id)
    }

    /// Returns the number of a task's sub-queue, and adds the sub-queue if it is missing.
    fn ensure_sub_queue(&mut self, task: &NewTask) -> Result<i64> {
        let NewTask { queue, kind, group, orchestration, .. } = task;
        self.cache.names.ensure_sub_queue(self.connection, queue, kind, group.as_ref(), *orchestration)
    }

    /// Returns the number of a sub-queue's kind.
    pub(in crate::sqlite::verbs) fn kind_of(&self, sub_queue: i64) -> i64 {
        self.cache.names.sub_queue(sub_queue).map_or(0, |sub_queue| sub_queue.kind)
    }

    /// Returns the holder of a unique key: a live task, or an ended one that retains it.
    fn key_holder(&mut self, task: &NewTask, unique: &UniqueKey) -> Result<Option<KeyHolder>> {
        let Some(kind) = self.cache.names.kind(&task.kind) else { return Ok(None) };
        if let Some(id) = self.cache.index.key_owner(self.connection, kind, &unique.key)? {
            let Some(live) = self.live(TaskId(id))? else { return Ok(None) };
            let running = self.standing_of(&live)? == TaskState::Running;
            let is_kept_for_it = task.orchestration && live.options.orchestration;
            let unstarted = is_kept_for_it && self.instance(live.id)?.hold == Hold::Unstarted;
            return Ok(Some(KeyHolder { id: live.id, priority: live.priority, running, ended: false, unstarted }));
        }
        if !self.cache.retained_keys {
            return Ok(None);
        }
        let kept: Option<(i64, i64)> = self
            .connection
            .prepare_cached("SELECT task, until FROM retained_key WHERE kind = ? AND key = ?")?
            .query_row(params![kind, unique.key], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((id, until)) = kept.map(|(id, until)| (TaskId(id), Timestamp::from_microseconds(until))) else {
            return Ok(None);
        };
        if rules::key::is_kept(until, self.now) {
            let priority = task.priority;
            return Ok(Some(KeyHolder { id, priority, running: false, ended: true, unstarted: false }));
        }
        // The retained key has expired. It is deleted, so that it does not return if the clock is
        // set back.
        self.forget_retained_key(id)?;
        Ok(None)
    }

    /// Raises the priority of a task, and of the batch of which it is an item.
    fn raise_priority(&mut self, id: TaskId, task: &NewTask) -> VerbResult<Submitted> {
        if let Some(live) = self.live(id)? {
            self.raise_to(&live, task.priority)?;
            if let Some(batch) = self.live_batch_of(&live)?.filter(|batch| batch.priority < task.priority) {
                self.raise_to(&batch, task.priority)?;
            }
        }
        Ok(Submitted::PriorityRaised { id })
    }

    /// Raises the priority of a task, which moves forward in its list.
    fn raise_to(&mut self, task: &LiveTask, priority: Priority) -> Result<()> {
        self.leave_list(&task.entry())?;
        self.connection
            .prepare_cached("UPDATE task SET priority = ? WHERE id = ?")?
            .execute(params![priority.0, task.id.0])?;
        self.enter_list(&Entry { priority, ..task.entry() })?;
        self.log(task.id, task.sub_queue, Change::PriorityRaised);
        self.hint.work += 1;
        Ok(())
    }

    /// Stores a task until the running task with its key ends (`requeue`).
    fn follow(&mut self, id: TaskId, task: &NewTask) -> VerbResult<Submitted> {
        self.ensure_sub_queue(task)?;
        let without_payload = NewTask { payload: bytes::Bytes::new(), ..task.clone() };
        let text = serde_json::to_string(&without_payload).map_err(|error| {
            crate::api::error::Error::io("a task that is to follow cannot be written").caused_by(error)
        })?;
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO successor (task, new_task, payload) VALUES (?, ?, ?)")?
            .execute(params![id.0, text, &task.payload[..]])?;
        self.cache.successors = true;
        Ok(Submitted::Requeued { id })
    }

    /// Submits the task that was stored until `task` ends.
    pub(in crate::sqlite::verbs) fn submit_successor(&mut self, task: TaskId) -> Result<()> {
        if !self.cache.successors {
            return Ok(());
        }
        let follower: Option<(String, Vec<u8>)> = self
            .connection
            .prepare_cached("DELETE FROM successor WHERE task = ? RETURNING new_task, payload")?
            .query_row([task.0], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((text, payload)) = follower else { return Ok(()) };
        let mut follower: NewTask = serde_json::from_str(&text).map_err(|error| {
            crate::api::error::Error::corrupt("a task that is to follow another cannot be read; restore a backup")
                .caused_by(error)
        })?;
        follower.payload = payload.into();
        self.forget_retained_key(task)?;
        self.insert(&follower).map(|_| ())
    }

    /// Replaces a task with a new one: cancels a waiting task, and requests the cancellation of a
    /// running one.
    fn supersede(&mut self, old: TaskId, task: &NewTask) -> VerbResult<Submitted> {
        // The new task replaces a task that was stored for the end of the old one.
        self.connection.prepare_cached("DELETE FROM successor WHERE task = ?")?.execute([old.0])?;
        if let Some(live) = self.live(old)? {
            if self.standing_of(&live)? == TaskState::Running {
                self.request_cancel(&live, 2)?;
            } else {
                self.end_unheld(&live, TaskState::Cancelled)?;
                self.forget_retained_key(old)?;
            }
        }
        let id = self.insert(task)?;
        Ok(Submitted::Superseded { id, old })
    }
}
