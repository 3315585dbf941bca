//! Measures the time until another process is notified of a commit.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bench_protocol::{Latencies, Measurement, Request, now};
use onward_store::{NewTask, Write};

use crate::open::{open_place, open_store};

/// The time limit for a notification.
const PATIENCE: Duration = Duration::from_secs(10);

/// Measures the time from the call of a submit until a store on other connections is notified of
/// it, at the rate of the row.
pub(crate) async fn notify(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let submitter = open_store(request).await?;
    let listener = open_place(&submitter.place, request.class).await?;
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
        let heard = async { while changes.changed().await.is_some_and(|hint| hint.work == work) {} };
        let submit = submitter.store.apply(vec![Write::Submit(Box::new(new))]);
        let (heard, submitted) = tokio::join!(
            tokio::time::timeout(PATIENCE, async {
                heard.await;
                before.elapsed()
            }),
            submit
        );
        submitted?;
        latencies.record(heard.context("nobody heard of a commit")?);
    }
    let heard = latencies.count() as u64;
    Ok(Measurement::of(latencies.percentile(0.5)).with_latencies(latencies).observed("heard", heard))
}
