//! Speculative planning: calls are decided, as far as possible, while the server writes the
//! transaction before theirs.
//!
//! They are decided over the row cache as it will be if that transaction commits and no other
//! writer does, and for the time that the server's clock is about to show. Their own transaction
//! verifies this at its beginning, under the lock. If it does not hold, the plan is dropped, and
//! everything sent of it is rolled back.

use crate::api::error::Result;
use crate::api::write::Write;
use crate::bounds;
use crate::model::Now;
use crate::postgres::commit::begin::{TransactionStart, requests_before_claims};
use crate::postgres::commit::server_numbers::ServerNumbers;
use crate::postgres::commit::writer_state::WriterState;
use crate::postgres::shared::Shared;
use crate::postgres::speculation::eager_writes::EagerWrites;
use crate::postgres::working_set::change_set::ChangeSet;
use crate::postgres::working_set::contents::WorkingSet;
use crate::postgres::working_set::counters::Counters;
use crate::postgres::working_set::decision::{Decision, SentTasks};

/// Calls whose first writes are decided speculatively.
#[derive(Debug)]
pub(in crate::postgres) struct Plan {
    /// The number of the transaction that must be the last one for the plan to hold, and the
    /// store's counters after it.
    write: i64,
    counters: Counters,
    working_set: WorkingSet,
    /// The time at which the calls are decided.
    now: Now,
    decision: Box<Decision>,
    /// The rows of tasks that are final, by step.
    rows: Vec<ChangeSet>,
    /// The tasks of these rows.
    written: SentTasks,
}

/// The premises of a plan and its state, once its rows are sent.
#[derive(Debug)]
pub(in crate::postgres) struct SentPlan {
    write: i64,
    counters: Counters,
    pub(in crate::postgres) start: TransactionStart,
    pub(in crate::postgres) decision: Box<Decision>,
}

impl Plan {
    /// Begins a plan for a writer that will have the state `after`. Returns `None` if that state is
    /// too little to decide anything, or if other writers are expected to commit.
    pub(in crate::postgres) fn begin(shared: &Shared, after: &WriterState) -> Result<Option<Box<Self>>> {
        let (Some((write, counters)), Some((_, items)), Some(time)) = (after.write, &after.items, after.time) else {
            return Ok(None);
        };
        if !after.is_alone() {
            return Ok(None);
        }
        let work_before = shared.hints.get().work;
        // The server's clock never goes back, so the plan must not be earlier than the transaction
        // before it.
        let about = shared.about_now();
        let now = if about.wall < time.wall { time } else { about };
        let working_set =
            WorkingSet::new(counters, after.latest_day.clone(), shared.options.payload_limit, items.clone())?;
        let working_set = working_set.with_work_before(work_before);
        let decision = Box::new(working_set.decision(now));
        let (rows, written) = (Vec::new(), SentTasks::default());
        Ok(Some(Box::new(Self { write, counters, working_set, now, decision, rows, written })))
    }

    /// Returns true if the plan was made for a writer in this state.
    pub(super) fn is_after(&self, after: &WriterState) -> bool {
        after.write == Some((self.write, self.counters))
    }

    /// Accepts a call after the others. Returns false if the row cache lacks a row that the call is
    /// certain to read before its first claim. The call cannot be planned then.
    pub(in crate::postgres) fn accept(&mut self, after: &WriterState, call: &[Write]) -> bool {
        let requests = requests_before_claims(call);
        if !requests.iter().all(|request| after.row_cache.covers(request)) {
            return false;
        }
        self.working_set.record_loads();
        after.row_cache.copy_to(&requests, &mut self.working_set);
        self.decision.resume_over(&mut self.working_set)
    }

    /// Decides a few more writes, up to the first claim, whose waiting tasks are not loaded.
    /// Returns true if there is more to plan, and `None` if a write has read something that is not
    /// loaded. The whole plan is void then.
    pub(in crate::postgres) fn advance(&mut self, calls: &[&[Write]]) -> Result<Option<bool>> {
        if self.decision.is_over(calls) || self.decision.claims_next(calls) {
            return Ok(Some(false));
        }
        self.decision.advance(calls, bounds::DECIDED_AT_ONCE)?;
        if self.working_set.has_requests() {
            return Ok(None);
        }
        // New tasks are not final: a later claim of the batch can start them.
        self.rows.extend(self.decision.settled(&self.working_set, &mut self.written, false)?);
        Ok(Some(true))
    }

    /// Adds the rows that are final to the next requests.
    pub(in crate::postgres) fn send_by(self, eager_writes: &mut EagerWrites<'_>) -> Box<SentPlan> {
        let Self { write, counters, working_set, now, decision, rows, written } = self;
        eager_writes.adopt(rows, written);
        Box::new(SentPlan {
            write,
            counters,
            start: TransactionStart { now, working_set, is_unflushed: false },
            decision,
        })
    }
}

impl SentPlan {
    /// Returns true if the premises hold: the plan's transaction is the last one, the counters are
    /// the same, and the plan's time is recent.
    ///
    /// Leases depend on the time, so a plan that is too old would grant leases that are too short.
    pub(in crate::postgres) fn holds_for(&self, write: i64, server_numbers: &ServerNumbers) -> bool {
        let (then, now) = (self.start.now.wall, server_numbers.now.wall);
        (write, server_numbers.counters) == (self.write, self.counters)
            && then <= now
            && now - then <= bounds::DECIDED_AHEAD
    }
}
