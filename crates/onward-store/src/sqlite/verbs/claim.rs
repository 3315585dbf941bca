//! Handing out due tasks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use bytes::Bytes;
use rusqlite::params;

use crate::error::{Error, Result};
use crate::event::Change;
use crate::limits;
use crate::outcome::{Claimed, Outcome};
use crate::rules::attempt::expiry_at_start;
use crate::rules::order::Place;
use crate::sqlite::fresh_tasks::FreshTask;
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
    heads: BinaryHeap<Reverse<(Place, usize)>>,
    lanes: Vec<CandidateLane>,
    /// The lane that gave the last one, whose next head is not among the heads yet: it may not be wanted.
    gave: Option<usize>,
    /// How many more may be taken from each queue; `None` for any number from every queue.
    left: Option<HashMap<i64, usize>>,
    piece: usize,
}

struct CandidateLane {
    cursor: LaneCursor,
    queue: i64,
}

impl Transaction<'_> {
    pub(in crate::sqlite) fn claim(&mut self, claim: &Claim) -> Verb<Outcome> {
        self.renew(claim.session)?;
        self.sweep_now()?;
        let tasks = self.take(claim)?;
        let cancel = self.cancel_requests(claim.session)?;
        Ok(Outcome::Claimed(Claimed { tasks, cancel, next_due: self.next_due()? }))
    }

    fn take(&mut self, claim: &Claim) -> Result<Vec<ClaimedTask>> {
        let limit = claim.limit.min(limits::CLAIM);
        let left = self.queue_limits(&claim.queues);
        let mut candidates = self.candidates(claim, left, limit, None)?;
        // A sweep leaves expired tasks behind where there are very many; then each task is looked at before the next is chosen.
        if self.cache.index.expired(self.connection, self.now.as_microseconds(), 1)?.is_empty() {
            self.take_together(claim, limit, &mut candidates)
        } else {
            self.take_one_by_one(claim, limit, candidates)
        }
    }

    fn take_one_by_one(&mut self, claim: &Claim, limit: usize, mut candidates: Candidates) -> Result<Vec<ClaimedTask>> {
        let mut tasks = Vec::new();
        while tasks.len() < limit {
            let Some((lane, place)) = self.next_candidate(&mut candidates)? else { break };
            let next_task = self.cache.next_task;
            if self.expire_if_due(place.task)? {
                if self.cache.next_task > next_task {
                    // What followed the expired task may stand before what the candidates have in store.
                    candidates = self.candidates(claim, candidates.left, limit, Some(place))?;
                }
                continue;
            }
            candidates.took(lane);
            self.cache.index.remove_ready(self.connection, candidates.lanes[lane].cursor.lane, place)?;
            tasks.extend(self.start(claim, &[place])?);
        }
        Ok(tasks)
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

    /// The lanes that a claim may take from, and how many from each queue, where that is limited.
    pub(in crate::sqlite) fn candidates(
        &mut self,
        claim: &Claim,
        left: Option<HashMap<i64, usize>>,
        limit: usize,
        behind: Option<Place>,
    ) -> Result<Candidates> {
        let mut lanes = Vec::new();
        for (number, lane) in self.cache.names.lanes() {
            let kind_selected = match &claim.kinds {
                KindSelection::All => true,
                KindSelection::Only(kinds) => kinds.contains(&lane.kind_name),
            };
            let queue_selected = left.as_ref().is_none_or(|left| left.contains_key(&lane.queue));
            if kind_selected && queue_selected && !self.cache.pauses.holds(&lane.queue_name, &lane.kind_name) {
                lanes.push(CandidateLane { cursor: LaneCursor::behind(number, behind), queue: lane.queue });
            }
        }
        let piece = if lanes.len() == 1 { limit.max(1) } else { PIECE.max(limit / lanes.len().max(1)) };
        let mut candidates = Candidates { heads: BinaryHeap::new(), lanes, gave: None, left, piece };
        for lane in 0..candidates.lanes.len() {
            self.add_head(&mut candidates, lane)?;
        }
        Ok(candidates)
    }

    /// What may be taken from each queue; `None` if every queue may give any number.
    pub(in crate::sqlite) fn queue_limits(&self, queues: &QueueSelection) -> Option<HashMap<i64, usize>> {
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
        if let Some(place) = cursor.peek(self.connection, &mut self.cache.index, piece)? {
            candidates.heads.push(Reverse((place, lane)));
        }
        Ok(())
    }

    /// The next task of all lanes whose queue may still give one: the lane and the task's place.
    pub(in crate::sqlite) fn next_candidate(&mut self, candidates: &mut Candidates) -> Result<Option<(usize, Place)>> {
        if let Some(lane) = candidates.gave.take() {
            self.add_head(candidates, lane)?;
        }
        while let Some(Reverse((place, lane))) = candidates.heads.pop() {
            let queue = candidates.lanes[lane].queue;
            if candidates.left.as_ref().is_some_and(|left| left.get(&queue) == Some(&0)) {
                continue;
            }
            candidates.lanes[lane].cursor.advance();
            candidates.gave = Some(lane);
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
                submitted_at: Timestamp::from_microseconds(row.get(16)?),
                payload: Bytes::copy_from_slice(row.get_ref(17)?.as_blob().map_err(rusqlite::Error::from)?),
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
        let Some(lane) = self.cache.names.lane(task.lane) else { return Ok(None) };
        let claimed = ClaimedTask {
            lease: Lease { task: task.id, session, claim: held.claim },
            kind: lane.kind_name.clone(),
            queue: lane.queue_name.clone(),
            payload,
            priority: task.priority,
            attempt: task.attempts.saturating_add(1),
            submitted_at,
            run_at: Timestamp::from_microseconds(task.run_at),
            timeout: task.options.timeout,
            deadline: task.options.deadline,
            retry: task.options.retry,
        };
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
        let queue = self.lanes[lane].queue;
        if let Some(left) = self.left.as_mut().and_then(|left| left.get_mut(&queue)) {
            *left = left.saturating_sub(1);
        }
    }
}
