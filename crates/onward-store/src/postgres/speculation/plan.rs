//! Calls that are decided, as far as that can be, before the transaction begins in which they are
//! written: while the server writes the one before it.
//!
//! They are decided over what the writer will keep if that transaction is committed and nobody else
//! writes, as of the time that the server's clock is about to show. Whether it was so shows at the
//! beginning of their own transaction, under the lock; if not, what was decided is forgotten, and
//! what was sent of it is rolled back.

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

/// Calls of which the first writes are decided.
#[derive(Debug)]
pub(in crate::postgres) struct Plan {
    /// The number of the transaction that is to be the last before theirs, and the numbers that it
    /// gives.
    write: i64,
    counters: Counters,
    working_set: WorkingSet,
    now: Now,
    decision: Box<Decision>,
    /// What is settled of them, as rows.
    rows: Vec<ChangeSet>,
    written: SentTasks,
}

/// Over what calls were decided, and how far, once their rows are sent.
#[derive(Debug)]
pub(in crate::postgres) struct SentPlan {
    write: i64,
    counters: Counters,
    pub(in crate::postgres) start: TransactionStart,
    pub(in crate::postgres) decision: Box<Decision>,
}

impl Plan {
    /// Nothing is decided yet, by a writer that will know so much after its last transaction.
    /// `None` if that is too little to decide anything by.
    pub(in crate::postgres) fn begin(shared: &Shared, after: &WriterState) -> Result<Option<Box<Self>>> {
        let (Some((write, counters)), Some((_, items)), Some(time)) = (after.write, &after.items, after.time) else {
            return Ok(None);
        };
        if !after.is_alone() {
            return Ok(None);
        }
        let about = shared.about_now();
        let now = if about.wall < time.wall { time } else { about };
        let working_set =
            WorkingSet::new(counters, after.latest_day.clone(), shared.options.payload_limit, items.clone())?;
        let decision = Box::new(working_set.decision(now));
        let (rows, written) = (Vec::new(), SentTasks::default());
        Ok(Some(Box::new(Self { write, counters, working_set, now, decision, rows, written })))
    }

    /// Whether it is of a writer that knows this.
    pub(super) fn is_after(&self, after: &WriterState) -> bool {
        after.write == Some((self.write, self.counters))
    }

    /// Takes a call that is to be decided behind the others. Answers whether everything is here
    /// that it will surely look for before it claims anything: else it cannot be decided together
    /// with them.
    pub(in crate::postgres) fn accept(&mut self, after: &WriterState, call: &[Write]) -> bool {
        let requests = requests_before_claims(call);
        if !requests.iter().all(|request| after.row_cache.covers(request)) {
            return false;
        }
        self.working_set.record_loads();
        after.row_cache.copy_to(&requests, &mut self.working_set);
        self.decision.resume_over(&mut self.working_set)
    }

    /// Decides a few more writes of these calls, up to the first that claims: what that looks at is
    /// not here. Answers whether there is more to be decided; `None` where something was looked for
    /// that is not here, so that all of it is to be decided again.
    pub(in crate::postgres) fn advance(&mut self, calls: &[&[Write]]) -> Result<Option<bool>> {
        if self.decision.is_over(calls) || self.decision.claims_next(calls) {
            return Ok(Some(false));
        }
        self.decision.advance(calls, bounds::DECIDED_AT_ONCE)?;
        if self.working_set.has_requests() {
            return Ok(None);
        }
        // New tasks are not settled: a claim that comes yet may begin them.
        self.rows.extend(self.decision.settled(&self.working_set, &mut self.written, false)?);
        Ok(Some(true))
    }

    /// Has the rows of what is settled go with what is asked for next.
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
    /// Whether calls were decided behind the last transaction that has written, over these numbers,
    /// and at a time not long ago.
    pub(in crate::postgres) fn holds_for(&self, write: i64, server_numbers: &ServerNumbers) -> bool {
        let (then, now) = (self.start.now.wall, server_numbers.now.wall);
        (write, server_numbers.counters) == (self.write, self.counters)
            && then <= now
            && now - then <= bounds::DECIDED_AHEAD
    }
}
