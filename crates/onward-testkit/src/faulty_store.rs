//! A store that fails on purpose.

use std::future::pending;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onward_store::{Error, Outcome, Read, ReadReply, Store, StoreFuture, Write};
use tokio::sync::Notify;

/// The time that a call with [`Fault::Timeout`] takes, by the store's clock. A SQLite store waits
/// as long for another process. It is longer than the usual lease.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The error of a failing call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An error of the disk or the database, at once.
    Io,
    /// Another process holds the store; at once.
    Busy,
    /// The disk is full; at once.
    Full,
    /// Another process holds the store; after [`TIMEOUT`].
    Timeout,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 4] = [Self::Io, Self::Busy, Self::Full, Self::Timeout];

    fn error(self) -> Error {
        let text = "a fault that the test planned";
        match self {
            Self::Io => Error::io(text),
            Self::Busy | Self::Timeout => Error::busy(text),
            Self::Full => Error::full(text),
        }
    }
}

/// The side of the change on which a fault lies. The caller gets an error in both cases and cannot
/// distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The writes did not take effect.
    Before,
    /// The writes took effect, and the reply was lost.
    After,
}

/// A store whose n-th [`apply`](onward_store::Store::apply), or whose n-th read of tasks and
/// orchestrations, fails, once or from then on. Without a plan it passes everything through.
///
/// Calls and reads are counted separately, from 1, when they are made. Reads are
/// [`task`](onward_store::StoreReads::task), [`tasks`](onward_store::StoreReads::tasks),
/// [`instance`](onward_store::StoreReads::instance) and
/// [`instance_history`](onward_store::StoreReads::instance_history). Other reads are neither
/// counted nor failed. To fail each operation of a scenario in turn, run it with n = 1, 2, 3 …
/// until [`calls`](Self::calls) (or [`reads`](Self::reads)) stays below n.
#[derive(Debug)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Mutex<Plan>,
    called: Notify,
}

#[derive(Debug, Default)]
struct Plan {
    calls: u64,
    fails: Option<(RangeInclusive<u64>, Side, Fault)>,
    reads: u64,
    fails_reads: Option<(RangeInclusive<u64>, Fault)>,
    /// The writes to apply just before the next read of the queues.
    slipped_in: Vec<Write>,
}

impl FaultyStore {
    /// Returns a store that passes everything through until a fault is planned.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, plan: Mutex::default(), called: Notify::new() }
    }

    /// Fails the call with this number, once. Replaces an earlier plan.
    pub fn fail_once(&self, number: u64, side: Side, fault: Fault) {
        self.plan(|plan| plan.fails = Some((number..=number, side, fault)));
    }

    /// Fails every call from this number on. Replaces an earlier plan.
    pub fn fail_from(&self, number: u64, side: Side, fault: Fault) {
        self.plan(|plan| plan.fails = Some((number..=u64::MAX, side, fault)));
    }

    /// Fails the read with this number, once. Replaces an earlier plan for reads.
    pub fn fail_read_once(&self, number: u64, fault: Fault) {
        self.plan(|plan| plan.fails_reads = Some((number..=number, fault)));
    }

    /// Fails every read from this number on. Replaces an earlier plan for reads.
    pub fn fail_reads_from(&self, number: u64, fault: Fault) {
        self.plan(|plan| plan.fails_reads = Some((number..=u64::MAX, fault)));
    }

    /// Removes every planned fault.
    pub fn heal(&self) {
        self.plan(|plan| (plan.fails, plan.fails_reads) = (None, None));
    }

    /// Applies these writes just before the next read of the queues, as another process might.
    pub fn slip_in(&self, writes: Vec<Write>) {
        self.plan(|plan| plan.slipped_in = writes);
    }

    /// Returns the number of calls of [`apply`](onward_store::Store::apply).
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.plan(|plan| plan.calls)
    }

    /// Returns the number of reads of tasks and orchestrations.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.plan(|plan| plan.reads)
    }

    /// Waits until there have been `number` calls.
    pub async fn called(&self, number: u64) {
        loop {
            let called = self.called.notified();
            if self.calls() >= number {
                return;
            }
            called.await;
        }
    }

    fn next(&self) -> Option<(Side, Fault)> {
        let next = self.plan_next();
        self.called.notify_waiters();
        next
    }

    fn plan_next(&self) -> Option<(Side, Fault)> {
        self.plan(|plan| {
            plan.calls += 1;
            let (numbers, side, fault) = plan.fails.as_ref()?;
            numbers.contains(&plan.calls).then_some((*side, *fault))
        })
    }

    /// Returns the error planned in place of the next read.
    fn planned_read_fault(&self) -> Option<Fault> {
        self.plan(|plan| {
            plan.reads += 1;
            let (numbers, fault) = plan.fails_reads.as_ref()?;
            numbers.contains(&plan.reads).then_some(*fault)
        })
    }

    /// Returns the error of a fault, after the time that the fault takes.
    async fn error(&self, fault: Fault) -> Error {
        if fault == Fault::Timeout {
            let clock = self.inner.clock();
            let end = clock.steady().saturating_add(TIMEOUT);
            let mut moved = clock.moved();
            while clock.steady() < end {
                match &mut moved {
                    Some(moved) => drop(moved.changed().await),
                    None => drop(tokio::time::timeout(end.saturating_sub(clock.steady()), pending::<()>()).await),
                }
            }
        }
        fault.error()
    }

    fn plan<T>(&self, change: impl FnOnce(&mut Plan) -> T) -> T {
        change(&mut self.plan.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl onward_store::StoreDecorator for FaultyStore {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        let next = self.next();
        if let Some((Side::Before, fault)) = next {
            return Box::pin(async move { Err(self.error(fault).await) });
        }
        let answer = self.inner.apply(writes);
        Box::pin(async move {
            let outcomes = answer.await?;
            match next {
                Some((_, fault)) => Err(self.error(fault).await),
                None => Ok(outcomes),
            }
        })
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        let is_of_task = matches!(
            read,
            Read::Task { .. } | Read::Tasks { .. } | Read::Instance { .. } | Read::InstanceHistory { .. }
        );
        let fault = if is_of_task { self.planned_read_fault() } else { None };
        let slipped_in = match read {
            Read::Queues {} => self.plan(|plan| std::mem::take(&mut plan.slipped_in)),
            _ => Vec::new(),
        };
        Box::pin(async move {
            if let Some(fault) = fault {
                return Err(self.error(fault).await);
            }
            if !slipped_in.is_empty() {
                self.inner.apply(slipped_in).await?;
            }
            self.inner.read(read).await
        })
    }
}
