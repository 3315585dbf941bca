//! Handing out due tasks.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use rusqlite::params;

use crate::error::{Error, Result};
use crate::event::Change;
use crate::limits;
use crate::outcome::{Claimed, Outcome};
use crate::queue::{QueueChoice, QueueMode, QueueTurn};
use crate::rules::attempt::expiry_at_start;
use crate::rules::order::Place;
use crate::sqlite::fresh_tasks::FreshTask;
use crate::sqlite::heads::{Chosen, Heads};
use crate::sqlite::index::LaneCursor;
use crate::sqlite::leases::Leased;
use crate::sqlite::transaction::{Held, LiveTask, Transaction, Verb, id_values};
use crate::task::{ClaimedTask, Lease, SessionId, TaskId, TaskState};
use crate::timestamp::Timestamp;
use crate::write::{Claim, KindSelection, QueueSelection};

/// The smallest number of places read from a lane at once.
const PIECE: usize = 16;

/// The lanes that a claim may take from, their heads in the order in which they are taken.
pub(in crate::sqlite) struct Candidates {
    heads: Heads,
    lanes: Vec<CandidateLane>,
    /// The lane that gave the last one, if its next head is not among the heads yet: it may not be wanted.
    gave: Option<usize>,
    left: QueuesLeft,
    piece: usize,
}

struct CandidateLane {
    cursor: LaneCursor,
    queue: i64,
    line: i64,
}

/// How many more may be taken from each queue.
#[derive(Default)]
struct QueuesLeft {
    /// Of those that are limited: by the claim, by their concurrency, or both.
    limited: HashMap<i64, usize>,
    /// Whether nothing may be taken from the others.
    only: bool,
}

/// Where a claim goes on that has to look for its lanes again.
struct Resumed {
    left: QueuesLeft,
    choice: QueueChoice,
    /// Up to where each line has been looked at.
    passed: HashMap<i64, Place>,
}

/// The line in which a queue's tasks stand: in strict mode that of all queues of its weight, else its own.
fn line(mode: QueueMode, queue: i64, weight: u32) -> i64 {
    if mode == QueueMode::Strict { i64::from(weight) } else { queue }
}

impl Transaction<'_> {
    pub(in crate::sqlite) fn claim(&mut self, claim: &Claim) -> Verb<Outcome> {
        self.renew(claim.session)?;
        self.sweep_now()?;
        let (tasks, turn) = self.take(claim)?;
        let cancel = self.cancel_requests(claim.session)?;
        let (mode, configuration) = (self.mode_of(claim), self.cache.queues.configuration());
        Ok(Outcome::Claimed(Claimed { tasks, cancel, next_due: self.next_due()?, mode, turn, configuration }))
    }

    fn mode_of(&self, claim: &Claim) -> QueueMode {
        claim.choice.mode.unwrap_or(self.cache.queues.mode())
    }

    fn take(&mut self, claim: &Claim) -> Result<(Vec<ClaimedTask>, QueueTurn)> {
        let limit = claim.limit.min(limits::CLAIM);
        let mut candidates = self.candidates(claim, limit)?;
        // A sweep leaves expired tasks behind where there are very many; then each task is looked at before the next is chosen.
        if self.cache.index.expired(self.connection, self.now.as_microseconds(), 1)?.is_empty() {
            let tasks = self.take_together(claim, limit, &mut candidates)?;
            Ok((tasks, candidates.heads.choice(&claim.choice).turn))
        } else {
            self.take_one_by_one(claim, limit, candidates)
        }
    }

    fn take_one_by_one(
        &mut self,
        claim: &Claim,
        limit: usize,
        mut candidates: Candidates,
    ) -> Result<(Vec<ClaimedTask>, QueueTurn)> {
        let (mut tasks, mut passed, mut choice) = (Vec::new(), HashMap::new(), claim.choice.clone());
        while tasks.len() < limit {
            let Some((lane, place)) = self.next_candidate(&mut candidates)? else { break };
            passed.insert(candidates.lanes[lane].line, place);
            let next_task = self.cache.next_task;
            if self.expire_if_due(place.task)? {
                if self.cache.next_task > next_task {
                    // What followed the expired task may stand before what the candidates have in store.
                    choice = candidates.heads.choice(&choice);
                    let resumed = Resumed { left: candidates.left, choice: choice.clone(), passed: passed.clone() };
                    candidates = self.resumed_candidates(claim, limit, resumed)?;
                }
                continue;
            }
            candidates.took(lane);
            self.cache.index.remove_ready(self.connection, candidates.lanes[lane].cursor.lane, place)?;
            tasks.extend(self.start(claim, &[place])?);
        }
        Ok((tasks, candidates.heads.choice(&choice).turn))
    }

    fn take_together(&mut self, claim: &Claim, limit: usize, candidates: &mut Candidates) -> Result<Vec<ClaimedTask>> {
        let mut taken: BTreeMap<i64, Place> = BTreeMap::new();
        let mut places = Vec::new();
        while places.len() < limit {
            let Some((lane, place)) = self.next_candidate(candidates)? else { break };
            taken.insert(candidates.lanes[lane].cursor.lane, place);
            candidates.took(lane);
            places.push(place);
        }
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let tasks = self.start(claim, &places)?;
        for (lane, place) in taken {
            self.cache.index.remove_ready_up_to(self.connection, lane, place)?;
        }
        Ok(tasks)
    }

    /// The lanes that a claim may take from.
    pub(in crate::sqlite) fn candidates(&mut self, claim: &Claim, limit: usize) -> Result<Candidates> {
        let left = self.queues_left(&claim.queues);
        let resumed = Resumed { left, choice: claim.choice.clone(), passed: HashMap::new() };
        self.resumed_candidates(claim, limit, resumed)
    }

    fn resumed_candidates(&mut self, claim: &Claim, limit: usize, resumed: Resumed) -> Result<Candidates> {
        let Resumed { left, choice, passed } = resumed;
        let mode = self.mode_of(claim);
        let (mut lanes, mut chosen) = (Vec::new(), Vec::new());
        for (number, lane) in self.cache.names.lanes() {
            let kind_selected = match &claim.kinds {
                KindSelection::All => true,
                KindSelection::Only(kinds) => kinds.contains(&lane.kind_name),
            };
            if kind_selected && left.any_of(lane.queue) && !self.cache.pauses.holds(&lane.queue_name, &lane.kind_name) {
                let weight = self.cache.queues.weight(lane.queue);
                let line = line(mode, lane.queue, weight);
                let cursor = LaneCursor::behind(number, passed.get(&line).copied());
                lanes.push(CandidateLane { cursor, queue: lane.queue, line });
                chosen.push(Chosen { queue: lane.queue, name: &lane.queue_name, weight });
            }
        }
        let heads = Heads::new(mode, &choice, &chosen);
        let piece = if lanes.len() == 1 { limit.max(1) } else { PIECE.max(limit / lanes.len().max(1)) };
        let mut candidates = Candidates { heads, lanes, gave: None, left, piece };
        for lane in 0..candidates.lanes.len() {
            self.add_head(&mut candidates, lane)?;
        }
        (0..candidates.lanes.len()).for_each(|lane| candidates.heads.settle(lane));
        Ok(candidates)
    }

    /// What may be taken from each queue.
    fn queues_left(&self, queues: &QueueSelection) -> QueuesLeft {
        let mut left = QueuesLeft::default();
        if let QueueSelection::Only(queues) = queues {
            left.only = true;
            for (queue, limit) in queues {
                if let Some(number) = self.cache.names.queue(queue) {
                    let asked = left.limited.entry(number).or_insert(0);
                    *asked = asked.saturating_add(*limit);
                }
            }
        }
        for (queue, room) in self.cache.queues.rooms() {
            left.at_most(queue, room);
        }
        left
    }

    fn add_head(&mut self, candidates: &mut Candidates, lane: usize) -> Result<()> {
        let piece = candidates.piece;
        let cursor = &mut candidates.lanes[lane].cursor;
        if let Some(place) = cursor.peek(self.connection, &mut self.cache.index, piece)? {
            candidates.heads.push(lane, place);
        }
        Ok(())
    }

    /// The next task of all lanes whose queue may still give one: the lane and the task's place.
    pub(in crate::sqlite) fn next_candidate(&mut self, candidates: &mut Candidates) -> Result<Option<(usize, Place)>> {
        if let Some(lane) = candidates.gave.take() {
            self.add_head(candidates, lane)?;
        }
        while let Some((place, lane)) = candidates.heads.pop() {
            if !candidates.left.any_of(candidates.lanes[lane].queue) {
                continue;
            }
            candidates.lanes[lane].cursor.advance();
            if candidates.heads.take_turns() {
                self.add_head(candidates, lane)?;
                candidates.heads.settle(lane);
            } else {
                candidates.gave = Some(lane);
            }
            return Ok(Some((lane, place)));
        }
        Ok(None)
    }

    /// Ends a waiting task that has expired; answers whether it has.
    fn expire_if_due(&mut self, id: TaskId) -> Result<bool> {
        let task = self.live(id)?;
        let Some(task) = task.filter(|task| task.expires_at.is_some_and(|at| at <= self.now.as_microseconds())) else {
            return Ok(false);
        };
        self.end_unheld(&task, TaskState::Expired)?;
        Ok(true)
    }

    /// Starts an attempt of each of the waiting tasks at these places. The caller takes them out of their lanes.
    fn start(&mut self, claim: &Claim, places: &[Place]) -> Result<Vec<ClaimedTask>> {
        let fresh: Vec<_> = places.iter().map(|place| self.cache.index.take_fresh(place.task)).collect();
        let unknown = places.iter().zip(&fresh).filter(|(_, fresh)| fresh.is_none()).map(|(place, _)| place.task);
        let mut read = self.read_waiting(unknown)?.into_iter();
        let started: Vec<_> = fresh.into_iter().filter_map(|fresh| fresh.or_else(|| read.next())).collect();
        self.lease(claim.session, started.iter().map(|started| leased(&started.task)))?;
        let started = started.into_iter().map(|started| self.started(claim.session, started));
        let tasks = started.filter_map(Result::transpose).collect::<Result<Vec<_>>>()?;
        if tasks.len() == places.len() {
            return Ok(tasks);
        }
        Err(Error::corrupt("a line of due tasks names one that does not exist; restore a backup"))
    }

    fn read_waiting(&self, tasks: impl Iterator<Item = TaskId>) -> Result<Vec<FreshTask>> {
        let ids = id_values(tasks);
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut statement = self.connection.prepare_cached(include_str!("../sql/waiting_tasks.sql"))?;
        let mut rows = statement.query([&ids])?;
        let mut tasks = Vec::with_capacity(ids.len());
        while let Some(row) = rows.next()? {
            tasks.push(FreshTask {
                task: Box::new(LiveTask::from_row(row)?),
                submitted_at: Timestamp::from_microseconds(row.get(17)?),
                payload: Bytes::copy_from_slice(row.get_ref(18)?.as_blob().map_err(rusqlite::Error::from)?),
            });
        }
        Ok(tasks)
    }

    fn started(&mut self, session: SessionId, started: FreshTask) -> Result<Option<ClaimedTask>> {
        let FreshTask { mut task, submitted_at, payload } = started;
        let held = Held { session: session.0, claim: leased(&task).claim, started_at: self.now.as_microseconds() };
        task.held = Some(held);
        if task.expires_at.is_some() || task.options.ttl.is_some() {
            self.start_time_to_live(&mut task)?;
        }
        let memo = self.memo_of(&task)?;
        let Some(lane) = self.cache.names.lane(task.lane) else { return Ok(None) };
        let claimed = ClaimedTask {
            lease: Lease { task: task.id, session, claim: held.claim },
            kind: lane.kind_name.clone(),
            queue: lane.queue_name.clone(),
            weight: self.cache.queues.weight(lane.queue),
            payload,
            priority: task.priority,
            attempt: task.attempts.saturating_add(1),
            submitted_at,
            run_at: Timestamp::from_microseconds(task.run_at),
            timeout: task.options.timeout,
            deadline: task.options.deadline,
            retry: task.options.retry,
            ttl: task.options.ttl,
            parent: task.options.parent,
            memo,
        };
        self.count_running(task.lane, 1);
        self.log(task.id, task.lane, Change::Started { attempt: claimed.attempt });
        self.cache.held.insert(task);
        Ok(Some(claimed))
    }

    /// A start ends a time to live that counts from submission and begins one that counts from the first attempt.
    fn start_time_to_live(&mut self, task: &mut LiveTask) -> Result<()> {
        let before = task.expires_at;
        if let Some(at) = before {
            self.cache.index.remove_expiry(self.connection, at, task.id.0)?;
        }
        let after = expiry_at_start(task.options.ttl, before.map(Timestamp::from_microseconds), self.now);
        task.expires_at = after.map(Timestamp::as_microseconds);
        if task.expires_at != before {
            self.connection
                .prepare_cached("UPDATE task SET expires_at = ? WHERE id = ?")?
                .execute(params![task.expires_at, task.id.0])?;
        }
        Ok(())
    }
}

/// A waiting task as it is leased.
fn leased(task: &LiveTask) -> Leased {
    Leased { task: task.id, claim: task.claims.saturating_add(1), expires_at: task.expires_at }
}

impl Candidates {
    fn took(&mut self, lane: usize) {
        self.heads.took();
        if self.left.took(self.lanes[lane].queue) == Some(0) {
            self.heads.close(lane);
        }
    }
}

impl QueuesLeft {
    /// Whether a queue may still give a task.
    fn any_of(&self, queue: i64) -> bool {
        self.limited.get(&queue).map_or(!self.only, |left| *left > 0)
    }

    fn at_most(&mut self, queue: i64, room: usize) {
        if let Some(left) = self.limited.get_mut(&queue) {
            *left = room.min(*left);
        } else if !self.only {
            self.limited.insert(queue, room);
        }
    }

    /// Notes that a queue gave a task; answers how many more it may give, if that is limited.
    fn took(&mut self, queue: i64) -> Option<usize> {
        let left = self.limited.get_mut(&queue)?;
        *left = left.saturating_sub(1);
        Some(*left)
    }
}
