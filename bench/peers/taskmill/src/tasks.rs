//! The tasks and their handlers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use bench_protocol::{BackoffName, Row};
use serde::{Deserialize, Serialize};
use taskmill::{
    BackoffStrategy, Domain, DomainKey, DomainTaskContext, RetryPolicy, Scheduler, SchedulerBuilder, TaskError,
    TaskStore, TypedExecutor, TypedTask,
};

/// The poll interval of taskmill's benchmark suite.
pub(crate) const SUITE_POLL: Duration = Duration::from_millis(10);

/// The interval of progress reports of taskmill's benchmark suite, in the row with reports.
const SUITE_PROGRESS: Duration = Duration::from_millis(100);

/// The domain of all tasks.
pub(crate) struct Bench;

impl DomainKey for Bench {
    const NAME: &'static str = "bench";
}

/// A task without a payload.
#[derive(Serialize, Deserialize)]
pub(crate) struct Empty;

impl TypedTask for Empty {
    type Domain = Bench;
    const TASK_TYPE: &'static str = "test";
}

/// The behaviour of the handler of [`Empty`].
#[derive(Clone, Copy)]
pub(crate) enum Ending {
    Completes,
    /// Completes after its bytes, chunk by chunk.
    CompletesWithBytes,
    /// Reports its bytes, and then runs until it is asked to stop.
    HoldsWithBytes,
    FailsForGood,
    FailsRetryably,
}

/// A handler that counts its calls.
pub(crate) struct Handler {
    pub(crate) ending: Ending,
    pub(crate) attempts: Arc<AtomicU64>,
}

impl TypedExecutor<Empty> for Handler {
    async fn execute<'a>(&'a self, _payload: Empty, context: DomainTaskContext<'a, Bench>) -> Result<(), TaskError> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        match self.ending {
            Ending::Completes => Ok(()),
            Ending::CompletesWithBytes => {
                report(&context);
                Ok(())
            }
            Ending::HoldsWithBytes => {
                report(&context);
                context.token().cancelled().await;
                Ok(())
            }
            Ending::FailsForGood => Err(TaskError::permanent("bench: permanent failure")),
            Ending::FailsRetryably => Err(TaskError::retryable("bench: transient failure")),
        }
    }
}

fn report(context: &DomainTaskContext<'_, Bench>) {
    context.set_bytes_total(bench_protocol::BYTES_TOTAL);
    for _ in 0..bench_protocol::BYTES_TOTAL / bench_protocol::BYTES_CHUNK {
        context.add_bytes(bench_protocol::BYTES_CHUNK);
    }
}

/// Returns a scheduler on a database in memory, as taskmill's suite builds one.
pub(crate) async fn scheduler_in_memory(row: &Row, handler: Handler, settings: &str) -> Result<Scheduler> {
    let mut domain = Domain::<Bench>::new().task::<Empty>(handler);
    if let Some(name) = row.backoff {
        domain = domain.default_retry(RetryPolicy { strategy: strategy(name, true), max_retries: 2 });
    }
    let builder =
        Scheduler::builder().store(TaskStore::open_memory().await?).domain(domain).max_concurrency(row.slots.max(1));
    let groups = (0..row.groups).map(|group| format!("grp-{group}"));
    let builder =
        groups.fold(builder, |builder, group| builder.group_concurrency(group, bench_protocol::GROUP_LIMIT as usize));
    let builder = if row.workload == "permanent_failure" { builder.max_retries(0) } else { builder };
    let builder = if row.workload == "byte_reporting" { builder.progress_interval(SUITE_PROGRESS) } else { builder };
    Ok(polling(builder, settings).build().await?)
}

/// Sets the poll interval of taskmill's suite unless the settings are `default`.
pub(crate) fn polling(builder: SchedulerBuilder, settings: &str) -> SchedulerBuilder {
    if settings == "default" { builder } else { builder.poll_interval(SUITE_POLL) }
}

/// Returns a back-off of taskmill's suite. It has taskmill's delays for the computation, and none
/// (`immediate`) for running.
pub(crate) fn strategy(name: BackoffName, immediate: bool) -> BackoffStrategy {
    let time = |milliseconds| Duration::from_millis(if immediate { 0 } else { milliseconds });
    match name {
        BackoffName::Constant => BackoffStrategy::Constant { delay: time(100) },
        BackoffName::Linear => BackoffStrategy::Linear { initial: time(100), increment: time(50), max: time(30_000) },
        BackoffName::Exponential => {
            BackoffStrategy::Exponential { initial: time(100), max: time(60_000), multiplier: 2.0 }
        }
        BackoffName::ExponentialJitter => {
            BackoffStrategy::ExponentialJitter { initial: time(100), max: time(60_000), multiplier: 2.0 }
        }
    }
}
