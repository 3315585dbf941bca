//! Claims due tasks.

use std::collections::BTreeMap;

use bytes::Bytes;
use rusqlite::params;

use crate::api::error::{Error, Result};
use crate::api::event::Change;
use crate::api::outcome::{Claimed, Outcome};
use crate::api::queue::{QueueMode, QueueTurn};
use crate::api::task::{ClaimedTask, Lease, SessionId, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::api::write::Claim;
use crate::bounds;
use crate::rules::attempt::expiry_at_start;
use crate::rules::order::SortKey;
use crate::sqlite::commit::transaction::{LiveTask, RunningAttempt, Transaction, VerbResult, id_values};
use crate::sqlite::row_cache::waiting_tasks::WaitingTask;
use crate::sqlite::verbs::attempts::candidates::{Candidate, Candidates, Resumed};
use crate::sqlite::verbs::attempts::leases::Leased;

impl Transaction<'_> {
    /// Claims due tasks for a session.
    ///
    /// Renews the session and sweeps first, so that a claim never returns an expired task. The
    /// outcome also has the next time at which another claim may find a task.
    pub(in crate::sqlite) fn claim(&mut self, claim: &Claim) -> VerbResult<Outcome> {
        self.renew(claim.session)?;
        self.sweep_now()?;
        let (tasks, turn) = self.take(claim)?;
        self.refresh_affinity_lists()?;
        let cancel = self.cancel_requests(claim.session)?;
        let (mode, configuration) = (self.mode_of(claim), self.cache.queues.configuration());
        let next_token = self.next_token(Some(claim))?;
        let next_aged = self.next_aged(claim, tasks.len())?;
        let next_due = [self.next_due()?, next_token, next_aged].into_iter().flatten().min();
        let groups_share = self.cache.limits.fair_shares.are_shared();
        Ok(Outcome::Claimed(Claimed {
            tasks,
            cancel,
            next_due,
            next_token,
            next_aged,
            mode,
            groups_share,
            turn,
            configuration,
            work_seen: self.work_before + self.hint.work,
        }))
    }

    /// Returns the mode in which a claim chooses among queues.
    pub(super) fn mode_of(&self, claim: &Claim) -> QueueMode {
        claim.choice.mode.unwrap_or(self.cache.queues.mode())
    }

    /// Takes the tasks of a claim.
    fn take(&mut self, claim: &Claim) -> Result<(Vec<ClaimedTask>, QueueTurn)> {
        let limit = claim.limit.min(bounds::CLAIM);
        let mut candidates = self.candidates(claim, limit)?;
        // A sweep is bounded, so it may leave expired tasks in the lists. Each task is then checked
        // before the next one is chosen.
        if self.cache.index.expired(self.connection, self.now.as_microseconds(), 1)?.is_empty() {
            let tasks = self.take_together(claim, limit, &mut candidates)?;
            Ok((tasks, candidates.order.choice(&claim.choice).turn))
        } else {
            self.take_one_by_one(claim, limit, candidates)
        }
    }

    /// Takes tasks one after another, and ends those that have expired.
    fn take_one_by_one(
        &mut self,
        claim: &Claim,
        limit: usize,
        mut candidates: Candidates,
    ) -> Result<(Vec<ClaimedTask>, QueueTurn)> {
        let (mut tasks, mut passed, mut choice) = (Vec::new(), rustc_hash::FxHashMap::default(), claim.choice.clone());
        while tasks.len() < limit {
            let Some(candidate) = self.next_candidate(&mut candidates)? else { break };
            if !candidates.are_shared {
                passed.insert(candidates.sources[candidate.source].turn, candidate.sort_key);
            }
            let next_task = self.cache.next_task;
            if self.expire_if_due(candidate.sort_key.task)? {
                if self.cache.next_task > next_task {
                    // The end has submitted a new task, which may come before the heads that were
                    // read.
                    choice = candidates.order.choice(&choice);
                    let resumed =
                        Resumed { remaining: candidates.remaining, choice: choice.clone(), passed: passed.clone() };
                    candidates = self.resumed_candidates(claim, limit, resumed)?;
                }
                continue;
            }
            self.take_candidate(claim, &mut candidates, candidate)?;
            if !candidate.is_of_group {
                self.cache.index.remove_ready_to_start(self.connection, candidate.list, candidate.sort_key)?;
            }
            tasks.extend(self.start(claim.session, &[candidate.sort_key])?);
        }
        Ok((tasks, candidates.order.choice(&choice).turn))
    }

    /// Chooses all tasks of a claim, and starts them with as few statements as possible.
    fn take_together(&mut self, claim: &Claim, limit: usize, candidates: &mut Candidates) -> Result<Vec<ClaimedTask>> {
        let mut taken: BTreeMap<i64, SortKey> = BTreeMap::new();
        let mut sort_keys = Vec::new();
        while sort_keys.len() < limit {
            let Some(candidate) = self.next_candidate(candidates)? else { break };
            self.take_candidate(claim, candidates, candidate)?;
            if !candidate.is_of_group {
                taken.insert(candidate.list, candidate.sort_key);
            }
            sort_keys.push(candidate.sort_key);
        }
        if sort_keys.is_empty() {
            return Ok(Vec::new());
        }
        let tasks = self.start(claim.session, &sort_keys)?;
        for (list, sort_key) in taken {
            self.cache.index.remove_ready_up_to(self.connection, list, sort_key)?;
        }
        Ok(tasks)
    }

    /// Records that a candidate was taken. A task of a group or an affinity key leaves its list at
    /// once, because its start may block the group and changes the session that the key prefers.
    fn take_candidate(&mut self, claim: &Claim, candidates: &mut Candidates, candidate: Candidate) -> Result<()> {
        candidates.took(candidate.source);
        let is_blocked =
            candidate.is_of_group && self.start_from_list(claim.session, candidate.list, candidate.sort_key)?;
        if candidates.are_shared {
            if !candidate.is_of_group {
                self.charge(candidate.list)?;
            }
            self.refresh_shares(candidates, candidate)?;
        }
        if is_blocked {
            self.refresh_groups(candidates)?;
        }
        Ok(())
    }

    /// Ends a waiting task if it has expired. Returns true if it has.
    fn expire_if_due(&mut self, id: TaskId) -> Result<bool> {
        let task = self.live(id)?;
        let Some(task) = task.filter(|task| task.expires_at.is_some_and(|at| at <= self.now.as_microseconds())) else {
            return Ok(false);
        };
        self.end_unheld(&task, TaskState::Expired)?;
        Ok(true)
    }

    /// Starts an attempt of each task with these sort keys. The caller removes them from their
    /// lists.
    pub(in crate::sqlite::verbs) fn start(
        &mut self,
        session: SessionId,
        sort_keys: &[SortKey],
    ) -> Result<Vec<ClaimedTask>> {
        let cached: Vec<_> =
            sort_keys.iter().map(|sort_key| self.cache.index.take_waiting_row(sort_key.task)).collect();
        let unknown =
            sort_keys.iter().zip(&cached).filter(|(_, cached)| cached.is_none()).map(|(sort_key, _)| sort_key.task);
        let mut read = self.read_waiting(unknown)?.into_iter();
        let started: Vec<_> = cached.into_iter().filter_map(|cached| cached.or_else(|| read.next())).collect();
        self.lease(session, started.iter().map(|started| leased(&started.task)))?;
        let mut tasks = Vec::with_capacity(started.len());
        for started in started {
            tasks.extend(self.started(session, started)?);
        }
        if tasks.len() == sort_keys.len() {
            return Ok(tasks);
        }
        Err(Error::corrupt("a ready list names a task that does not exist; restore a backup"))
    }

    /// Reads the rows of waiting tasks that are not cached.
    fn read_waiting(&self, tasks: impl Iterator<Item = TaskId>) -> Result<Vec<WaitingTask>> {
        let ids = id_values(tasks);
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/attempts/waiting_tasks.sql"))?;
        let mut rows = statement.query([&ids])?;
        let mut tasks = Vec::with_capacity(ids.len());
        while let Some(row) = rows.next()? {
            tasks.push(WaitingTask {
                task: Box::new(LiveTask::from_row(row)?),
                submitted_at: Timestamp::from_microseconds(row.get(17)?),
                payload: Bytes::copy_from_slice(row.get_ref(18)?.as_blob().map_err(rusqlite::Error::from)?),
            });
        }
        Ok(tasks)
    }

    /// Returns a started task as the worker gets it.
    fn started(&mut self, session: SessionId, started: WaitingTask) -> Result<Option<ClaimedTask>> {
        let WaitingTask { mut task, submitted_at, payload } = started;
        let running =
            RunningAttempt { session: session.0, claim: leased(&task).claim, started_at: self.now.as_microseconds() };
        task.running = Some(running);
        if task.expires_at.is_some() || task.options.ttl.is_some() || task.options.deadline.is_some() {
            self.start_time_to_live(&mut task)?;
        }
        let checkpoint = self.checkpoint_of(&task)?;
        let instance = self.claimed_instance(&task)?;
        let Some(sub_queue) = self.cache.names.sub_queue(task.sub_queue) else { return Ok(None) };
        let claimed = ClaimedTask {
            lease: Lease { task: task.id, session, claim: running.claim },
            kind: sub_queue.kind_name.clone(),
            queue: sub_queue.queue_name.clone(),
            group: sub_queue.group_name.clone(),
            weight: self.cache.queues.weight(sub_queue.queue),
            payload,
            priority: task.priority,
            attempt: task.attempts.saturating_add(1),
            submitted_at,
            run_at: Timestamp::from_microseconds(task.run_at),
            timeout: task.options.timeout,
            heartbeat_timeout: task.options.heartbeat_timeout,
            deadline: task.options.deadline,
            retention: task.options.retention,
            retry: task.options.retry,
            scheduled_at: task.options.scheduled_at,
            tags: task.options.tags.clone(),
            ttl: task.options.ttl,
            parent: task.options.parent,
            report: task.options.report,
            checkpoint,
            expected_io: task.options.expected_io,
            items: task.options.item_count(),
            instance,
        };
        self.count_start(task.sub_queue);
        self.log(task.id, task.sub_queue, Change::Started { attempt: claimed.attempt });
        self.cache.running_rows.insert(task);
        Ok(Some(claimed))
    }

    /// Removes the expiry that counted from submission, and sets the one that counts from the first
    /// attempt.
    fn start_time_to_live(&mut self, task: &mut LiveTask) -> Result<()> {
        let before = task.expires_at;
        if let Some(at) = before {
            self.cache.index.remove_expiry(self.connection, at, task.id.0)?;
        }
        let (ttl, deadline) = (task.options.ttl, task.options.deadline);
        let after = expiry_at_start(ttl, deadline, before.map(Timestamp::from_microseconds), self.now);
        task.expires_at = after.map(Timestamp::as_microseconds);
        if task.expires_at != before {
            self.connection
                .prepare_cached("UPDATE task SET expires_at = ? WHERE id = ?")?
                .execute(params![task.expires_at, task.id.0])?;
        }
        Ok(())
    }
}

/// Returns a waiting task as an entry of a new lease.
fn leased(task: &LiveTask) -> Leased {
    Leased { task: task.id, claim: task.claims.saturating_add(1), expires_at: task.expires_at }
}
