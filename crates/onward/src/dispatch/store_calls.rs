//! The store calls in flight.
//!
//! With one call at a time, every second commit of a busy store would be without the dispatcher: an
//! end during a call would wait for its reply, and then for the commit that has begun in the
//! meantime. Calls that only end attempts and claim tasks may therefore be in flight together.
//! Their replies are applied in the order of the calls, so that a later report replaces an earlier
//! one.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt as _, StreamExt as _};
use onward_store::Outcome;

use super::claims::throughput::ThroughputSample;
use super::deadlines::CallStart;
use super::dispatcher::Dispatcher;
use super::write_batch::{PendingWrite, WriteBatch};
use crate::bounds;
use crate::error::Result;

/// The calls without a reply.
#[derive(Default)]
pub(super) struct StoreCalls {
    in_flight: FuturesOrdered<BoxFuture<'static, CallReply>>,
    /// The largest number of tasks that they may claim.
    claiming: usize,
    /// The number of writes that they carry.
    writing: usize,
}

/// A call and the store's reply.
pub(super) struct CallReply {
    call: StoreCall,
    result: onward_store::Result<Vec<Outcome>>,
}

/// The contents of a call, and the counters at its beginning.
struct StoreCall {
    pending: Vec<PendingWrite>,
    began: CallStart,
    /// For the throughput of handlers.
    ends: ThroughputSample,
    /// For the throughput of turns.
    turns: ThroughputSample,
}

impl StoreCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Returns the largest number of tasks that they may claim.
    pub(super) fn claiming(&self) -> usize {
        self.claiming
    }

    /// Returns the number of writes that are not durable yet.
    pub(super) fn writing(&self) -> usize {
        self.writing
    }

    /// Waits for the next reply, or returns `None` if there is no call. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<CallReply> {
        let reply = self.in_flight.next().await?;
        self.claiming -= claimed_by(&reply.call);
        self.writing -= reply.call.pending.len();
        Some(reply)
    }

    fn begin(
        &mut self,
        call: StoreCall,
        result: impl Future<Output = onward_store::Result<Vec<Outcome>>> + Send + 'static,
    ) {
        self.claiming += claimed_by(&call);
        self.writing += call.pending.len();
        self.in_flight.push_back(async move { CallReply { result: result.await, call } }.boxed());
    }
}

/// Returns the largest number of tasks that a call may claim.
fn claimed_by(call: &StoreCall) -> usize {
    call.pending.iter().map(|write| if let PendingWrite::Claim { limit } = write { *limit } else { 0 }).sum()
}

impl Dispatcher {
    /// Returns true if this engine makes several calls at once. An engine with orchestrations does
    /// not: the end of an activity shares a commit with the claim of the orchestration that waits
    /// for it.
    fn allows_concurrent_calls(&self) -> bool {
        !self.run.has_turns()
    }

    /// Returns the largest size of a claim. If queues or groups take turns, a claim waits for the
    /// reply to the claim before it, which reports whose turn is next.
    pub(super) fn claimable(&self) -> usize {
        match (self.last_claim.is_fair(), self.calls.claiming()) {
            // The store knows how many tasks a claim should leave to the calls beside it.
            (false, _) if self.allows_concurrent_calls() => self.run.inner.store.claim_size(),
            (false, _) | (true, 0) => onward_store::bounds::CLAIM,
            (true, _) => 0,
        }
    }

    /// Returns true if a call may begin: the first, or a further one that only ends attempts and
    /// claims tasks.
    pub(super) fn may_call(&self) -> bool {
        // Everything else (sessions, sweeps, renewals, preemption, a stop) depends on the replies
        // to the calls before it.
        self.calls.is_empty()
            || self.calls.in_flight.len() < bounds::STORE_CALLS
                && self.allows_concurrent_calls()
                && !self.shutdown.is_stopping()
                && self.session.is_some()
                && self.retired.is_empty()
                && !self.preemption.must_claim
                && !self.deadlines.must_renew(self.now())
                && !self.deadlines.is_due(&*self.run.inner.clock)
    }

    /// Sends a batch to the store.
    pub(super) fn begin_call(&mut self, batch: WriteBatch) {
        let began = CallStart::now(&*self.run.inner.clock);
        let occupancy = self.run.state.occupancy();
        let time = self.time_of_each_slot(occupancy, began.steady);
        let call = StoreCall {
            pending: batch.pending,
            began,
            ends: ThroughputSample { at: began.steady, time, ended: occupancy.counts.ended },
            turns: ThroughputSample { at: began.steady, time: began.steady, ended: self.run.instances.executed() },
        };
        let writes = batch.writes;
        self.run.inner.telemetry.commit_writes.record(f64::from(u32::try_from(writes.len()).unwrap_or(u32::MAX)));
        let store = Arc::clone(&self.run.inner.store);
        // Now and not with the reply, because an event in between may set the flags again.
        self.clear_expected(&call.pending);
        self.calls.begin(call, async move { store.apply(writes).await });
    }

    /// Clears the flags of what is being claimed. Events before the reply set them again.
    fn clear_expected(&mut self, pending: &[PendingWrite]) {
        for write in pending {
            match write {
                PendingWrite::Claim { .. } => self.deadlines.may_claim = false,
                PendingWrite::ClaimTurns { .. } => self.may_claim_turns = false,
                _ => {}
            }
        }
    }

    /// Applies the replies that have arrived.
    pub(super) fn apply_replies(&mut self) -> Result<()> {
        while let Some(reply) = self.calls.next().now_or_never().flatten() {
            self.apply_reply(reply)?;
        }
        Ok(())
    }

    pub(super) fn apply_reply(&mut self, CallReply { call, result }: CallReply) -> Result<()> {
        let StoreCall { pending, began, ends, turns } = call;
        let took = self.now().saturating_sub(began.steady);
        self.run.inner.telemetry.commit_seconds.record(took);
        self.ends.note(ends, took);
        self.turns.note(turns, took);
        match result {
            Ok(outcomes) => {
                self.deadlines.store_replied();
                // Flags that were set since the call began must survive its outcomes.
                let (may_claim, may_claim_turns) = (self.deadlines.may_claim, self.may_claim_turns);
                self.apply_outcomes(pending, outcomes, began);
                self.deadlines.may_claim |= may_claim;
                self.may_claim_turns |= may_claim_turns;
                Ok(())
            }
            Err(error) => self.keep_unwritten(pending, error),
        }
    }
}
