//! Submits tasks and runs them to their end, timed from the first submit to the last observed end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, bail};
use bench_protocol::{Measurement, Request, Row, group_of, key_prefix, microseconds_per, now};
use taskmill::{Priority, Scheduler, SchedulerEvent, TaskSubmission};
use tokio::sync::broadcast::Receiver;
use tokio_util::sync::CancellationToken;

use crate::dependencies;
use crate::tasks::{Ending, Handler, scheduler_in_memory};

const PRIORITIES: [Priority; 5] =
    [Priority::IDLE, Priority::BACKGROUND, Priority::NORMAL, Priority::HIGH, Priority::REALTIME];

pub(crate) async fn to_the_end(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let attempts = Arc::new(AtomicU64::new(0));
    let (ending, ends) = ending_of(&row.workload);
    let handler = Handler { ending, attempts: attempts.clone() };
    let scheduler = scheduler_in_memory(row, handler, &request.settings).await?;

    let start = now();
    if dependencies::are_in(&row.workload) {
        dependencies::submit(&scheduler, row).await?;
    } else {
        submit_all(&scheduler, row).await?;
    }
    let mut events = scheduler.subscribe();
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (scheduler, stop) = (scheduler.clone(), stop.clone());
        async move { scheduler.run(stop).await }
    });
    for _ in 0..row.count {
        next_end(&mut events, ending).await?;
    }
    let mut elapsed = start.elapsed();

    let left = scheduler.store().pending_count().await? + scheduler.store().running_count().await?;
    stop.cancel();
    running.await?;
    if row.workload == "group_dispatch" {
        // taskmill's suite also times the shutdown, only in this row.
        elapsed = start.elapsed();
    }
    let mut measurement = Measurement::of(microseconds_per(elapsed, row.count))
        .observed(ends, row.count as u64 - u64::try_from(left)?)
        .observed("attempts", attempts.load(Ordering::Relaxed));
    measurement.lost = u64::try_from(left)?;
    Ok(measurement)
}

fn ending_of(workload: &str) -> (Ending, &'static str) {
    match workload {
        "permanent_failure" => (Ending::FailsForGood, "failed"),
        "dead_letter" => (Ending::FailsRetryably, "dead"),
        "byte_reporting" => (Ending::CompletesWithBytes, "completed"),
        _ => (Ending::Completes, "completed"),
    }
}

pub(crate) async fn submit_all(scheduler: &Scheduler, row: &Row) -> Result<()> {
    let prefix = key_prefix(&row.workload);
    for number in 0..row.count {
        let submission = TaskSubmission::new("bench::test").key(format!("{prefix}-{number}"));
        let submission = match group_of(row, number) {
            Some(group) => submission.group(group),
            None => submission,
        };
        let submission = match row.workload.as_str() {
            "mixed_priority" => submission.priority(PRIORITIES[number % PRIORITIES.len()]),
            _ => submission,
        };
        scheduler.submit(&submission).await?;
    }
    Ok(())
}

async fn next_end(events: &mut Receiver<SchedulerEvent>, ending: Ending) -> Result<()> {
    loop {
        match (events.recv().await, ending) {
            (Ok(SchedulerEvent::Completed(_)), Ending::Completes | Ending::CompletesWithBytes) => return Ok(()),
            (Ok(SchedulerEvent::Failed { will_retry: false, .. }), Ending::FailsForGood) => return Ok(()),
            (Ok(SchedulerEvent::DeadLettered { .. }), Ending::FailsRetryably) => return Ok(()),
            (Ok(_), _) => {}
            (Err(error), _) => bail!("its event channel dropped events, so the ends could not be observed: {error}"),
        }
    }
}
