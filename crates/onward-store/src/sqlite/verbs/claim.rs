//! Handing out due tasks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use bytes::Bytes;
use rusqlite::{Row, params};

use crate::error::Result;
use crate::event::Change;
use crate::limits;
use crate::outcome::{Claimed, Outcome};
use crate::rules::attempt::expiry_at_start;
use crate::sqlite::index::{LaneCursor, task_at};
use crate::sqlite::options_column::TaskOptions;
use crate::sqlite::transaction::{Transaction, Verb};
use crate::task::{ClaimedTask, Lease, Priority, TaskId, TaskState};
use crate::timestamp::Timestamp;
use crate::write::{Claim, KindSelection, QueueSelection};

/// The smallest number of positions read from a lane at once.
const PIECE: usize = 16;

/// The lanes that a claim may take from, their heads in the order in which they are taken.
pub(in crate::sqlite) struct Candidates {
    heads: BinaryHeap<Reverse<(i64, usize)>>,
    lanes: Vec<CandidateLane>,
    /// How many more may be taken from each queue that has a limit.
    left: HashMap<i64, usize>,
    piece: usize,
}

struct CandidateLane {
    cursor: LaneCursor,
    queue: i64,
}

/// A waiting task, read to be claimed.
struct WaitingTask {
    lane: i64,
    priority: Priority,
    claims: u32,
    attempts: u32,
    submitted_at: Timestamp,
    expires_at: Option<i64>,
    options: TaskOptions,
    payload: Bytes,
}

impl Transaction<'_> {
    pub(in crate::sqlite) fn claim(&mut self, claim: &Claim) -> Verb<Outcome> {
        self.renew(claim.session)?;
        self.sweep()?;
        let tasks = self.take(claim)?;
        let cancel = self.cancel_requests(claim.session)?;
        Ok(Outcome::Claimed(Claimed { tasks, cancel, next_due: self.next_due()? }))
    }

    fn take(&mut self, claim: &Claim) -> Result<Vec<ClaimedTask>> {
        let limit = claim.limit.min(limits::CLAIM);
        let mut tasks = Vec::new();
        let mut candidates = self.candidates(claim, limit)?;
        let mut taken: BTreeMap<i64, i64> = BTreeMap::new();
        while tasks.len() < limit {
            let Some((lane, position)) = self.next_candidate(&mut candidates)? else { break };
            if let Some(task) = self.start(claim, TaskId(task_at(position)))? {
                candidates.took(lane);
                tasks.push(task);
            }
            taken.insert(candidates.lanes[lane].cursor.lane, position);
        }
        for (lane, position) in taken {
            self.cache.index.remove_ready_up_to(self.connection, lane, position)?;
        }
        Ok(tasks)
    }

    /// The lanes that a claim may take from.
    pub(in crate::sqlite) fn candidates(&mut self, claim: &Claim, limit: usize) -> Result<Candidates> {
        let left = self.queue_limits(&claim.queues);
        let mut lanes = Vec::new();
        for (number, lane) in self.cache.names.lanes() {
            let kind_selected = match &claim.kinds {
                KindSelection::All => true,
                KindSelection::Only(kinds) => kinds.contains(&lane.kind_name),
            };
            let queue_selected = left.as_ref().is_none_or(|left| left.contains_key(&lane.queue));
            if kind_selected && queue_selected && !self.cache.pauses.holds(&lane.queue_name, &lane.kind_name) {
                lanes.push(CandidateLane { cursor: LaneCursor::new(number), queue: lane.queue });
            }
        }
        let piece = if lanes.len() == 1 { limit.max(1) } else { PIECE.max(limit / lanes.len().max(1)) };
        let mut candidates = Candidates { heads: BinaryHeap::new(), lanes, left: left.unwrap_or_default(), piece };
        for lane in 0..candidates.lanes.len() {
            self.add_head(&mut candidates, lane)?;
        }
        Ok(candidates)
    }

    /// What may be taken from each queue; `None` if every queue may give any number.
    fn queue_limits(&self, queues: &QueueSelection) -> Option<HashMap<i64, usize>> {
        let QueueSelection::Only(queues) = queues else { return None };
        let mut left = HashMap::new();
        for (queue, limit) in queues {
            if let Some(number) = self.cache.names.queue(queue) {
                *left.entry(number).or_insert(0) += *limit;
            }
        }
        Some(left)
    }

    fn add_head(&mut self, candidates: &mut Candidates, lane: usize) -> Result<()> {
        let piece = candidates.piece;
        let cursor = &mut candidates.lanes[lane].cursor;
        if let Some(position) = cursor.peek(self.connection, &mut self.cache.index, piece)? {
            candidates.heads.push(Reverse((position, lane)));
        }
        Ok(())
    }

    /// The next task of all lanes whose queue may still give one: the lane and the task's position.
    pub(in crate::sqlite) fn next_candidate(&mut self, candidates: &mut Candidates) -> Result<Option<(usize, i64)>> {
        while let Some(Reverse((position, lane))) = candidates.heads.pop() {
            let queue = candidates.lanes[lane].queue;
            if candidates.left.get(&queue) == Some(&0) {
                continue;
            }
            candidates.lanes[lane].cursor.advance();
            self.add_head(candidates, lane)?;
            return Ok(Some((lane, position)));
        }
        Ok(None)
    }

    /// Starts an attempt, unless the task has expired, which ends it. The caller takes it out of its lane.
    fn start(&mut self, claim: &Claim, id: TaskId) -> Result<Option<ClaimedTask>> {
        let row = self
            .connection
            .prepare_cached(include_str!("../sql/waiting_task.sql"))?
            .query_row([id.0], WaitingTask::read)?;
        if row.expires_at.is_some_and(|at| at <= self.now.as_microseconds()) {
            if let Some(task) = self.live(id)? {
                self.end_unheld(&task, TaskState::Expired)?;
            }
            return Ok(None);
        }
        if row.expires_at.is_some() || row.options.ttl.is_some() {
            self.start_time_to_live(id, &row)?;
        }
        let lease = Lease { task: id, session: claim.session, claim: row.claims.saturating_add(1) };
        let attempt = row.attempts.saturating_add(1);
        self.connection
            .prepare_cached("INSERT INTO lease (task, session, claim, started_at) VALUES (?, ?, ?, ?)")?
            .execute(params![id.0, claim.session.0, lease.claim, self.now.as_microseconds()])?;
        self.log(id, row.lane, Change::Started { attempt });
        Ok(self.cache.names.lane(row.lane).map(|lane| ClaimedTask {
            lease,
            kind: lane.kind_name.clone(),
            queue: lane.queue_name.clone(),
            payload: row.payload,
            priority: row.priority,
            attempt,
            submitted_at: row.submitted_at,
            timeout: row.options.timeout,
            deadline: row.options.deadline,
            retry: row.options.retry,
        }))
    }

    /// A start ends a time to live that counts from submission and begins one that counts from the first attempt.
    fn start_time_to_live(&mut self, id: TaskId, row: &WaitingTask) -> Result<()> {
        let before = row.expires_at;
        if let Some(at) = before {
            self.cache.index.remove_expiry(self.connection, at, id.0)?;
        }
        let after = expiry_at_start(row.options.ttl, before.map(Timestamp::from_microseconds), self.now);
        let after = after.map(Timestamp::as_microseconds);
        if after != before {
            self.connection
                .prepare_cached("UPDATE task SET expires_at = ? WHERE id = ?")?
                .execute(params![after, id.0])?;
        }
        Ok(())
    }
}

impl Candidates {
    fn took(&mut self, lane: usize) {
        if let Some(left) = self.left.get_mut(&self.lanes[lane].queue) {
            *left = left.saturating_sub(1);
        }
    }
}

impl WaitingTask {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            lane: row.get(0)?,
            priority: Priority(row.get(1)?),
            claims: row.get(2)?,
            attempts: row.get(3)?,
            submitted_at: Timestamp::from_microseconds(row.get(4)?),
            expires_at: row.get(5)?,
            options: row.get(6)?,
            payload: Bytes::copy_from_slice(row.get_ref(7)?.as_blob()?),
        })
    }
}
