//! Measures the time until another process is notified of a commit.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bench_protocol::{Latencies, Measurement, Request, now};
use onward_store::{NewTask, Write};

use crate::open::{open_location, open_store};

/// The time limit for a notification.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(10);

/// Measures the time from the call of a submit until a store on other connections is notified of
/// it, at the rate of the row.
pub(crate) async fn notify(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let submitter = open_store(request).await?;
    let listener = open_location(&submitter.location, request.durability).await?;
    let mut changes = listener.changes();
    let mut latencies = Latencies::with_capacity(row.count);
    let started = now();
    for number in 0..row.count {
        let due = started + Duration::from_secs_f64(number as f64 / f64::from(row.rate));
        tokio::time::sleep_until(due.into()).await;
        let mut new = NewTask::new("mail")?;
        new.payload = vec![b'x'; row.payload_bytes].into();
        let work = changes.hint().work;
        let before = now();
        let notified = async { while changes.changed().await.is_some_and(|hint| hint.work == work) {} };
        let submit = submitter.store.apply(vec![Write::Submit(Box::new(new))]);
        let (notified, submitted) = tokio::join!(
            tokio::time::timeout(NOTIFY_TIMEOUT, async {
                notified.await;
                before.elapsed()
            }),
            submit
        );
        submitted?;
        latencies.record(notified.context("no notification of a commit came")?);
    }
    let notified = latencies.count() as u64;
    Ok(Measurement::of(latencies.percentile(0.5)).with_latencies(latencies).observed("notified", notified))
}
