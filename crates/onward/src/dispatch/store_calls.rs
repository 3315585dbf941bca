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
use super::throughput::Mark;
use super::write_batch::{Batch, Part};
use crate::bounds;
use crate::error::Result;

/// Calls that have not answered.
#[derive(Default)]
pub(super) struct Calls {
    under_way: FuturesOrdered<BoxFuture<'static, Answered>>,
    /// How many tasks they claim at the most.
    claiming: usize,
    /// How many writes they carry.
    writing: usize,
}

/// A call and what the store answered.
pub(super) struct Answered {
    call: Call,
    answer: onward_store::Result<Vec<Outcome>>,
}

/// What a call is about, and how it stood when it began.
struct Call {
    parts: Vec<Part>,
    began: Duration,
    /// For the pace of handlers.
    ends: Mark,
    /// For the pace of turns.
    turns: Mark,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
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
    pub(super) async fn next(&mut self) -> Option<Answered> {
        let answered = self.under_way.next().await?;
        self.claiming -= claimed_by(&answered.call);
        self.writing -= answered.call.parts.len();
        Some(answered)
    }

    fn begin(&mut self, call: Call, answer: impl Future<Output = onward_store::Result<Vec<Outcome>>> + Send + 'static) {
        self.claiming += claimed_by(&call);
        self.writing += call.parts.len();
        self.under_way.push_back(async move { Answered { answer: answer.await, call } }.boxed());
    }
}

/// How many tasks a call claims at the most.
fn claimed_by(call: &Call) -> usize {
    call.parts.iter().map(|part| if let Part::Claim { limit } = part { *limit } else { 0 }).sum()
}

impl Dispatcher {
    /// Whether this engine makes several calls at once. One that plays orchestrations does not: the
    /// end of an activity shall be in one commit with the claim of whoever waits for it.
    fn makes_several(&self) -> bool {
        self.run.orchestrations.is_empty()
    }

    /// How many tasks a claim may ask for. What depends on whose turn it is waits for the claim
    /// before, which says that.
    pub(super) fn claimable(&self) -> usize {
        match (self.choosing.takes_turns(), self.calls.claiming()) {
            (false, _) if self.makes_several() => self.run.inner.store.claim_size(),
            (false, _) | (true, 0) => onward_store::bounds::CLAIM,
            (true, _) => 0,
        }
    }

    /// Whether a call may begin: the first, or beside others one that ends attempts and claims
    /// tasks, if nothing else is to be done.
    pub(super) fn may_call(&self) -> bool {
        self.calls.is_empty()
            || self.calls.under_way.len() < bounds::CALLS
                && self.makes_several()
                && !self.stopping.is_stopping()
                && self.session.is_some()
                && self.retired.is_empty()
                && !self.preempting.claims
                && !self.agenda.must_renew(self.now())
                && !self.agenda.is_due(&*self.run.inner.clock)
    }

    /// Hands a batch to the store.
    pub(super) fn begin_call(&mut self, batch: Batch) {
        let began = self.now();
        let floor = self.run.floor.state();
        let time = self.time_of_each_slot(floor, began);
        let call = Call {
            parts: batch.parts,
            began,
            ends: Mark { at: began, time, ended: floor.counts.ended },
            turns: Mark { at: began, time: began, ended: self.run.stage.played() },
        };
        let writes = batch.writes;
        self.run.inner.telemetry.commit_writes.record(f64::from(u32::try_from(writes.len()).unwrap_or(u32::MAX)));
        let store = Arc::clone(&self.run.inner.store);
        self.expect(&call.parts);
        self.calls.begin(call, async move { store.apply(writes).await });
    }

    /// What is claimed is no longer to be looked for; what is noticed until the answer comes is.
    fn expect(&mut self, parts: &[Part]) {
        for part in parts {
            match part {
                Part::Claim { .. } => self.agenda.look = false,
                Part::ClaimTurns { .. } => self.looks_for_turns = false,
                _ => {}
            }
        }
    }

    /// Hears the answers that have come.
    pub(super) fn hear(&mut self) -> Result<()> {
        while let Some(answered) = self.calls.next().now_or_never().flatten() {
            self.hear_answer(answered)?;
        }
        Ok(())
    }

    pub(super) fn hear_answer(&mut self, Answered { call, answer }: Answered) -> Result<()> {
        let Call { parts, began, ends, turns } = call;
        let took = self.now().saturating_sub(began);
        self.run.inner.telemetry.commit_seconds.record(took);
        self.ends.note(ends, took);
        self.turns.note(turns, took);
        match answer {
            Ok(outcomes) => {
                self.agenda.store_answered();
                let (look, looks_for_turns) = (self.agenda.look, self.looks_for_turns);
                self.settle(parts, outcomes, began);
                self.agenda.look |= look;
                self.looks_for_turns |= looks_for_turns;
                Ok(())
            }
            Err(error) => self.keep_unwritten(parts, error),
        }
    }
}
