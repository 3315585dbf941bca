//! The calls of the next transaction: they are collected, and decided as far as that can be, while
//! the server writes the one before it.

use std::future::Future;
use std::pin::Pin;

use tokio::sync::mpsc;

use crate::api::error::Result;
use crate::api::store::Durability;
use crate::api::write::Write;
use crate::bounds;
use crate::postgres::commit::outcome::SyncMode;
use crate::postgres::commit::writer::Call;
use crate::postgres::commit::writer_state::WriterState;
use crate::postgres::shared::Shared;
use crate::postgres::speculation::plan::Plan;
use crate::postgres::working_set::applied::claimed_by;

/// How many writes one transaction takes in, unless a single call has more.
const WRITES: usize = 4096;

/// After how many bytes of payloads and results a transaction takes no further call in: the server
/// takes a gigabyte in one statement.
const BYTES: usize = 64 * 1024 * 1024;

/// Calls, and what is decided of them.
#[derive(Debug)]
pub(in crate::postgres) struct BatchBuilder {
    arriving: mpsc::Receiver<Call>,
    batch: CallBatch,
    /// One that could not be decided together with the batch; it begins the next one.
    deferred: Option<Call>,
    plan: Planning,
}

/// What can be decided of the batch before its transaction begins.
#[derive(Debug, Default)]
enum Planning {
    /// It has not been looked at.
    #[default]
    Untried,
    /// Nothing.
    Impossible,
    Planned(Box<Plan>),
}

#[derive(Debug, Default)]
struct CallBatch {
    calls: Vec<Call>,
    writes: usize,
    bytes: usize,
}

impl CallBatch {
    /// Calls that come together may go in any order. Those that begin with a claim go last: what
    /// stands before a claim can be decided ahead.
    fn push(&mut self, call: Call) {
        self.writes += call.writes.len();
        self.bytes += bytes_of(&call.writes);
        let last_of_others = self.calls.iter().rposition(|other| !begins_with_claim(other));
        let before_claims = last_of_others.map_or(0, |at| at + 1);
        let at = if begins_with_claim(&call) { self.calls.len() } else { before_claims };
        self.calls.insert(at, call);
    }

    fn is_full(&self) -> bool {
        self.calls.len() >= bounds::COMMIT || self.writes >= WRITES || self.bytes >= BYTES
    }

    fn writes(&self) -> Vec<&[Write]> {
        self.calls.iter().map(|call| call.writes.as_slice()).collect()
    }
}

impl BatchBuilder {
    pub(in crate::postgres) fn new(arriving: mpsc::Receiver<Call>) -> Self {
        Self { arriving, batch: CallBatch::default(), deferred: None, plan: Planning::Untried }
    }

    /// The next calls, and what is decided of them; `None` if none will come. Waits for the first.
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
        // What is decided ahead is decided with exactly these calls.
        while plan.is_none()
            && !self.batch.is_full()
            && let Some(call) = self.deferred.take().or_else(|| self.arriving.try_recv().ok())
        {
            self.batch.push(call);
        }
        Some((std::mem::take(&mut self.batch).calls, plan))
    }

    /// What was decided ahead counts on a transaction that has not happened.
    pub(in crate::postgres) fn forget_plan(&mut self) {
        self.plan = Planning::Untried;
    }

    /// How a transaction is committed. It waits for the disk within the commit where nothing else
    /// is to be done meanwhile, and nobody else would wait for that long; else the next
    /// transaction, or that of another node, need not wait for it.
    pub(in crate::postgres) fn mode(&self, shared: &Shared, holds_up_others: bool) -> SyncMode {
        if shared.options.durability != Durability::Full {
            return SyncMode::Never;
        }
        let is_empty = self.batch.calls.is_empty() && self.deferred.is_none() && self.arriving.is_empty();
        if !holds_up_others && is_empty && shared.is_flushed() { SyncMode::InCommit } else { SyncMode::AfterCommit }
    }

    /// Waits for what the server says of a transaction, and sees to the next one meanwhile, as it
    /// is to be `after` that. Nothing of it is sent.
    pub(in crate::postgres) async fn prepare_until<T>(
        &mut self,
        shared: &Shared,
        after: &WriterState,
        mut reply: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        loop {
            tokio::select! {
                biased;
                it = &mut reply => return it,
                () = self.prepare(shared, after) => {}
            }
        }
    }

    /// Takes a call, or decides a few writes. Waits while there is nothing to be done. Cancel-safe.
    async fn prepare(&mut self, shared: &Shared, after: &WriterState) {
        if self.batch.calls.is_empty()
            && let Some(call) = self.deferred.take()
        {
            self.batch.push(call);
        }
        if let Planning::Planned(plan) = &self.plan
            && !plan.is_after(after)
        {
            // Another transaction has come between.
            self.plan = Planning::Untried;
        }
        if self.advance(shared, after) {
            // Between two steps what the server says is heard.
            return tokio::task::yield_now().await;
        }
        if self.deferred.is_some() || self.batch.is_full() {
            return std::future::pending().await;
        }
        match self.arriving.recv().await {
            Some(call) => self.add(after, call),
            None => std::future::pending().await,
        }
    }

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

    /// Decides a few writes of what is there, if they are many. Answers whether it did.
    fn advance(&mut self, shared: &Shared, after: &WriterState) -> bool {
        // What is wrong with a call shows, and is told, when it is decided in its transaction.
        let decided = self.try_to_advance(shared, after).unwrap_or(None);
        if decided.is_none() {
            self.plan = Planning::Impossible;
        }
        decided == Some(true)
    }

    /// `None` if nothing of the batch can be decided ahead.
    fn try_to_advance(&mut self, shared: &Shared, after: &WriterState) -> Result<Option<bool>> {
        let calls = self.batch.writes();
        match &mut self.plan {
            Planning::Impossible => Ok(None),
            Planning::Planned(plan) => plan.advance(&calls),
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

fn begins_with_claim(call: &Call) -> bool {
    call.writes.first().is_some_and(|write| claimed_by(std::slice::from_ref(write)) > 0)
}

fn bytes_of(writes: &[Write]) -> usize {
    let one = |write: &Write| match write {
        Write::Submit(new) => new.payload.len(),
        Write::Complete { result, .. } => result.as_ref().map_or(0, bytes::Bytes::len),
        Write::All(writes) => bytes_of(writes),
        _ => 0,
    };
    writes.iter().map(one).sum()
}
