//! The batch builder: it collects the calls of the next transaction, and plans them speculatively,
//! while the server writes the current one.

use std::future::Future;
use std::pin::Pin;

use tokio::sync::mpsc;

use crate::api::error::Result;
use crate::api::orchestration::AttemptEnd;
use crate::api::store::Durability;
use crate::api::write::Write;
use crate::bounds;
use crate::postgres::commit::outcome::SyncMode;
use crate::postgres::commit::writer::Call;
use crate::postgres::commit::writer_state::WriterState;
use crate::postgres::shared::Shared;
use crate::postgres::speculation::plan::Plan;
use crate::postgres::working_set::applied::claimed_by;

/// The most writes in one transaction, unless a single call has more.
const WRITES: usize = 4096;

/// The size of payloads and results, in bytes, above which a transaction accepts no further call.
/// The server accepts at most a gigabyte in one statement.
const BYTES: usize = 64 * 1024 * 1024;

/// The calls of the next batch, and the plan for them.
#[derive(Debug)]
pub(in crate::postgres) struct BatchBuilder {
    /// The callers' queue.
    arriving: mpsc::Receiver<Call>,
    batch: CallBatch,
    /// A call that could not be planned together with the batch; it begins the next one.
    deferred: Option<Call>,
    plan: Planning,
}

/// The state of the plan for the next batch.
#[derive(Debug, Default)]
enum Planning {
    /// No planning has been tried, or the last plan is void.
    #[default]
    Untried,
    /// No write of the batch can be planned. The batch is decided in its own transaction.
    Impossible,
    /// The first writes of the batch are decided.
    Planned(Box<Plan>),
}

/// A batch under construction, with its size.
#[derive(Debug, Default)]
struct CallBatch {
    calls: Vec<Call>,
    writes: usize,
    bytes: usize,
}

impl CallBatch {
    /// Adds a call. Concurrent calls have no order yet, so calls that begin with a claim go last:
    /// the writes before the first claim can be planned.
    fn push(&mut self, call: Call) {
        self.writes += call.writes.len();
        self.bytes += bytes_of(&call.writes);
        let last_of_others = self.calls.iter().rposition(|other| !begins_with_claim(other));
        let before_claims = last_of_others.map_or(0, |at| at + 1);
        let at = if begins_with_claim(&call) { self.calls.len() } else { before_claims };
        self.calls.insert(at, call);
    }

    /// Returns true if the batch is as large as a transaction may be.
    fn is_full(&self) -> bool {
        self.calls.len() >= bounds::COMMIT || self.writes >= WRITES || self.bytes >= BYTES
    }

    /// Returns the writes of each call.
    fn writes(&self) -> Vec<&[Write]> {
        self.calls.iter().map(|call| call.writes.as_slice()).collect()
    }
}

impl BatchBuilder {
    /// Creates a builder that takes calls from `arriving`.
    pub(in crate::postgres) fn new(arriving: mpsc::Receiver<Call>) -> Self {
        Self { arriving, batch: CallBatch::default(), deferred: None, plan: Planning::Untried }
    }

    /// Returns the next batch and its plan, and waits for its first call. Returns `None` when the
    /// store is dropped.
    pub(in crate::postgres) async fn take(&mut self) -> Option<(Vec<Call>, Option<Box<Plan>>)> {
        if self.batch.calls.is_empty() {
            let first = match self.deferred.take() {
                Some(first) => first,
                None => self.arriving.recv().await?,
            };
            self.batch.push(first);
        }
        let plan = match std::mem::take(&mut self.plan) {
            Planning::Planned(plan) => Some(plan),
            Planning::Untried | Planning::Impossible => None,
        };
        // A plan covers exactly the calls that it was made for, so no further call may join.
        while plan.is_none()
            && !self.batch.is_full()
            && let Some(call) = self.deferred.take().or_else(|| self.arriving.try_recv().ok())
        {
            self.batch.push(call);
        }
        Some((std::mem::take(&mut self.batch).calls, plan))
    }

    /// Drops the plan, which presumed a transaction that has not happened. The calls stay.
    pub(in crate::postgres) fn forget_plan(&mut self) {
        self.plan = Planning::Untried;
    }

    /// Returns the point at which a transaction is to wait for the disk.
    ///
    /// The commit itself waits if no other work is pending here and no other node is held up by the
    /// lock. Otherwise the next transaction, here or on another node, starts while the flusher
    /// waits.
    pub(in crate::postgres) fn mode(&self, shared: &Shared, holds_up_others: bool) -> SyncMode {
        if shared.options.durability != Durability::Full {
            return SyncMode::Never;
        }
        let is_empty = self.batch.calls.is_empty() && self.deferred.is_none() && self.arriving.is_empty();
        if !holds_up_others && is_empty && shared.is_flushed() { SyncMode::InCommit } else { SyncMode::AfterCommit }
    }

    /// Waits for the reply to a commit, and prepares the next batch in the meantime. `after` is the
    /// writer's state if the commit succeeds. Nothing of the next batch is sent.
    pub(in crate::postgres) async fn prepare_until<T>(
        &mut self,
        shared: &Shared,
        after: &WriterState,
        mut reply: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        loop {
            tokio::select! {
                // The reply goes first: the server is idle from then on until the next batch is
                // sent.
                biased;
                it = &mut reply => return it,
                () = self.prepare(shared, after) => {}
            }
        }
    }

    /// Accepts a call, or decides a few writes. Waits if there is nothing to do. Cancel-safe.
    async fn prepare(&mut self, shared: &Shared, after: &WriterState) {
        if self.batch.calls.is_empty()
            && let Some(call) = self.deferred.take()
        {
            self.batch.push(call);
        }
        if let Planning::Planned(plan) = &self.plan
            && !plan.is_after(after)
        {
            // The plan presumed another transaction before it. It cannot be kept.
            self.plan = Planning::Untried;
        }
        if self.advance(shared, after) {
            // Planning is split into steps so that the server's reply is noticed between two of
            // them.
            return tokio::task::yield_now().await;
        }
        // A full batch accepts no call, and all that can be planned is planned: only the reply is
        // awaited.
        if self.deferred.is_some() || self.batch.is_full() {
            return std::future::pending().await;
        }
        match self.arriving.recv().await {
            Some(call) => self.add(after, call),
            None => std::future::pending().await,
        }
    }

    /// Adds a call to the batch, or defers it to the next one if the plan cannot include it.
    fn add(&mut self, after: &WriterState, call: Call) {
        let is_accepted = match &mut self.plan {
            Planning::Planned(plan) => plan.accept(after, &call.writes),
            Planning::Untried | Planning::Impossible => true,
        };
        if is_accepted {
            self.batch.push(call);
        } else {
            self.deferred = Some(call);
        }
    }

    /// Plans a few more writes if the batch is large enough. Returns true if it did.
    fn advance(&mut self, shared: &Shared, after: &WriterState) -> bool {
        // An error shows again, and reaches its caller, when the call is decided in its
        // transaction.
        let decided = self.try_to_advance(shared, after).unwrap_or(None);
        if decided.is_none() {
            self.plan = Planning::Impossible;
        }
        decided == Some(true)
    }

    /// Continues the plan, or begins one. Returns `None` if no write of the batch can be planned.
    fn try_to_advance(&mut self, shared: &Shared, after: &WriterState) -> Result<Option<bool>> {
        let calls = self.batch.writes();
        match &mut self.plan {
            Planning::Impossible => Ok(None),
            Planning::Planned(plan) => plan.advance(&calls),
            // A small batch is decided faster than a plan of it is verified.
            Planning::Untried if self.batch.writes < 2 * bounds::DECIDED_AT_ONCE => Ok(Some(false)),
            Planning::Untried => {
                let Some(mut plan) = Plan::begin(shared, after)? else { return Ok(None) };
                if !calls.iter().all(|call| plan.accept(after, call)) {
                    return Ok(None);
                }
                self.plan = Planning::Planned(plan);
                Ok(Some(true))
            }
        }
    }
}

/// Returns true if the first write of a call claims tasks.
fn begins_with_claim(call: &Call) -> bool {
    call.writes.first().is_some_and(|write| claimed_by(std::slice::from_ref(write)) > 0)
}

/// Returns the bytes of payloads and results in writes; the rest of a write is small.
fn bytes_of(writes: &[Write]) -> usize {
    let one = |write: &Write| match write {
        Write::Submit(new) => new.payload.len(),
        Write::Complete { result, .. } => result.as_ref().map_or(0, bytes::Bytes::len),
        Write::EndWithTurn(write) => match &write.end {
            AttemptEnd::Complete { result } => result.as_ref().map_or(0, bytes::Bytes::len),
            AttemptEnd::Fail { .. } | AttemptEnd::ConfirmCancel { .. } => 0,
        },
        Write::All(writes) => bytes_of(writes),
        _ => 0,
    };
    writes.iter().map(one).sum()
}
