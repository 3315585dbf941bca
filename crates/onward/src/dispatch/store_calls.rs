//! The calls of the store that are under way.
//!
//! One call after the other would leave every second commit of a busy store without the dispatcher:
//! what ends while a call is under way would wait for its answer, and then for the commit that has
//! begun meanwhile. So calls that only end attempts and claim tasks may be under way together. They
//! are answered in the order in which they were made, so that what a later one says replaces what
//! an earlier one said.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt as _, StreamExt as _};
use onward_store::Outcome;

use super::dispatcher::Dispatcher;
use super::throughput::ThroughputSample;
use super::write_batch::{PendingWrite, WriteBatch};
use crate::bounds;
use crate::error::Result;

/// Calls that have not answered.
#[derive(Default)]
pub(super) struct StoreCalls {
    in_flight: FuturesOrdered<BoxFuture<'static, CallReply>>,
    /// How many tasks they claim at the most.
    claiming: usize,
    /// How many writes they carry.
    writing: usize,
}

/// A call and what the store answered.
pub(super) struct CallReply {
    call: StoreCall,
    result: onward_store::Result<Vec<Outcome>>,
}

/// What a call is about, and how it stood when it began.
struct StoreCall {
    pending: Vec<PendingWrite>,
    began: Duration,
    /// For the throughput of handlers.
    ends: ThroughputSample,
    /// For the throughput of turns.
    turns: ThroughputSample,
}

impl StoreCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// How many tasks may come by them.
    pub(super) fn claiming(&self) -> usize {
        self.claiming
    }

    /// How many writes are not durable yet.
    pub(super) fn writing(&self) -> usize {
        self.writing
    }

    /// Waits for the next answer; `None` if there is no call. Cancel-safe.
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

/// How many tasks a call claims at the most.
fn claimed_by(call: &StoreCall) -> usize {
    call.pending.iter().map(|write| if let PendingWrite::Claim { limit } = write { *limit } else { 0 }).sum()
}

impl Dispatcher {
    /// Whether this engine makes several calls at once. One that runs orchestrations does not: the
    /// end of an activity shall be in one commit with the claim of whoever waits for it.
    fn allows_concurrent_calls(&self) -> bool {
        self.run.orchestrations.is_empty()
    }

    /// How many tasks a claim may ask for. What depends on whose turn it is waits for the claim
    /// before, which says that.
    pub(super) fn claimable(&self) -> usize {
        match (self.last_claim.is_fair(), self.calls.claiming()) {
            (false, _) if self.allows_concurrent_calls() => self.run.inner.store.claim_size(),
            (false, _) | (true, 0) => onward_store::bounds::CLAIM,
            (true, _) => 0,
        }
    }

    /// Whether a call may begin: the first, or beside others one that ends attempts and claims
    /// tasks, if nothing else is to be done.
    pub(super) fn may_call(&self) -> bool {
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

    /// Hands a batch to the store.
    pub(super) fn begin_call(&mut self, batch: WriteBatch) {
        let began = self.now();
        let occupancy = self.run.state.occupancy();
        let time = self.time_of_each_slot(occupancy, began);
        let call = StoreCall {
            pending: batch.pending,
            began,
            ends: ThroughputSample { at: began, time, ended: occupancy.counts.ended },
            turns: ThroughputSample { at: began, time: began, ended: self.run.instances.executed() },
        };
        let writes = batch.writes;
        self.run.inner.telemetry.commit_writes.record(f64::from(u32::try_from(writes.len()).unwrap_or(u32::MAX)));
        let store = Arc::clone(&self.run.inner.store);
        self.clear_expected(&call.pending);
        self.calls.begin(call, async move { store.apply(writes).await });
    }

    /// What is claimed is no longer to be looked for; what is noticed until the answer comes is.
    fn clear_expected(&mut self, pending: &[PendingWrite]) {
        for write in pending {
            match write {
                PendingWrite::Claim { .. } => self.deadlines.may_claim = false,
                PendingWrite::ClaimTurns { .. } => self.may_claim_turns = false,
                _ => {}
            }
        }
    }

    /// Hears the answers that have come.
    pub(super) fn apply_replies(&mut self) -> Result<()> {
        while let Some(reply) = self.calls.next().now_or_never().flatten() {
            self.apply_reply(reply)?;
        }
        Ok(())
    }

    pub(super) fn apply_reply(&mut self, CallReply { call, result }: CallReply) -> Result<()> {
        let StoreCall { pending, began, ends, turns } = call;
        let took = self.now().saturating_sub(began);
        self.run.inner.telemetry.commit_seconds.record(took);
        self.ends.note(ends, took);
        self.turns.note(turns, took);
        match result {
            Ok(outcomes) => {
                self.deadlines.store_replied();
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
