//! Measures the time until a listening connection is notified of a commit on another connection.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bench_protocol::{Latencies, Measurement, Request, now};
use tokio::sync::mpsc;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, NoTls, connect};

use crate::database::{Database, make, payload};

/// The time limit for a notification.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(10);

/// Measures the time from the start of an insert with a notification in one commit until the
/// notification arrives, at the rate of the row.
pub(crate) async fn one_commit(request: &Request) -> Result<Measurement> {
    let (url, row) = (request.server()?, &request.row);
    make(url, row).await?;
    let (submitter, payload) = (Database::open(url).await?, payload(row)?);
    let insert = "INSERT INTO task (state, priority, submitted_at, payload) SELECT 0, 128, 0, $1::bytea FROM pg_notify('work', '')";
    let insert = submitter.client.prepare(insert).await?;
    let (_listener, mut messages) = listen(url).await?;
    let mut latencies = Latencies::with_capacity(row.count);
    let started = now();
    for number in 0..row.count {
        let due = started + Duration::from_secs_f64(number as f64 / f64::from(row.rate));
        tokio::time::sleep_until(due.into()).await;
        let before = now();
        let notified = async { messages.recv().await.map(|()| before.elapsed()) };
        let values: [&(dyn ToSql + Sync); 1] = [&payload];
        let (notified, inserted) =
            tokio::join!(tokio::time::timeout(NOTIFY_TIMEOUT, notified), submitter.client.execute(&insert, &values));
        ensure!(inserted? == 1, "nothing was inserted");
        latencies.record(notified.context("no message came")?.context("the listener was closed")?);
    }
    let notified = latencies.count() as u64;
    Ok(Measurement::of(latencies.percentile(0.5)).with_latencies(latencies).observed("notified", notified))
}

async fn listen(url: &str) -> Result<(Client, mpsc::UnboundedReceiver<()>)> {
    let (client, mut connection) = connect(url, NoTls).await.context("the server cannot be reached")?;
    let (sender, messages) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(_) = message {
                let _ = sender.send(());
            }
        }
    });
    client.batch_execute("LISTEN work").await?;
    Ok((client, messages))
}
