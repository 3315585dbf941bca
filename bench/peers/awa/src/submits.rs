//! Submits, in bulk with `COPY` and one by one.

use std::time::Duration;

use anyhow::Result;
use awa::{InsertOpts, InsertParams, insert_with};
use bench_protocol::{Ends, Measurement, Numbers, Order, Request, Row, monotonic_nanoseconds, now};

use crate::client::{Database, PlaceOrder, open};

/// Measures submits in bulk while no worker runs.
pub(crate) async fn in_batches(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let database = open(request, 4).await?;
    let started = now();
    all(&database, row).await?;
    let elapsed = started.elapsed();
    let inserted = u64::try_from(database.counts().await?.available)?;
    Ok(Measurement::of(row.count as f64 / elapsed.as_secs_f64()).observed("inserted", inserted))
}

/// Submits all tasks of a row in calls of its batch size, from as many submitters as it has.
pub(crate) async fn all(database: &Database, row: &Row) -> Result<()> {
    let batches = Numbers::new(row.count.div_ceil(row.batch));
    let submitters: Vec<_> = (0..row.submitters.max(1))
        .map(|_| tokio::spawn(submitter(database.clone(), row.clone(), batches.clone())))
        .collect();
    for submitter in submitters {
        submitter.await??;
    }
    Ok(())
}

async fn submitter(database: Database, row: Row, batches: Numbers) -> Result<()> {
    let template = Order::new(0, 0, row.payload_bytes)?;
    while let Some(batch) = batches.take() {
        let numbers = batch * row.batch..((batch + 1) * row.batch).min(row.count);
        let job =
            |number| awa::insert::params_with(&PlaceOrder(template.numbered(number as u64)), InsertOpts::default());
        let jobs = numbers.map(job).collect::<Result<Vec<InsertParams>, _>>()?;
        database.store.enqueue_params_copy(&database.pool, &jobs).await?;
    }
    Ok(())
}

/// Measures submits in a call each, with a connection for each submitter.
pub(crate) async fn one_by_one(request: &Request) -> Result<Measurement> {
    let (row, numbers) = (&request.row, Numbers::new(request.row.count));
    let database = open(request, u32::try_from(row.submitters)?).await?;
    let template = Order::new(0, 0, row.payload_bytes)?;
    let started = now();
    let submitters: Vec<_> = (0..row.submitters)
        .map(|_| {
            let (pool, template) = (database.pool.clone(), template.clone());
            let one = move |number: usize| {
                let (pool, order) = (pool.clone(), PlaceOrder(template.numbered(number as u64)));
                async move { insert_with(&pool, &order, InsertOpts::default()).await.is_ok() }
            };
            tokio::spawn(Ends::of_starter(numbers.clone(), one))
        })
        .collect();
    let mut all = Ends::default();
    for submitter in submitters {
        all.merge(submitter.await?);
    }
    let measurement = all.measurement(row, started.elapsed())?;
    Ok(measurement.observed("inserted", u64::try_from(database.counts().await?.available)?))
}

/// Submits each task at its due time, without waiting for earlier submits.
pub(crate) async fn paced(database: &Database, row: &Row) -> Result<()> {
    let template = Order::new(0, 0, row.payload_bytes)?;
    let started = now();
    let mut submits = Vec::with_capacity(row.count);
    for number in 0..row.count {
        let due = started + Duration::from_secs_f64(number as f64 / f64::from(row.rate));
        tokio::time::sleep_until(due.into()).await;
        let order = PlaceOrder(Order { submitted: monotonic_nanoseconds(), ..template.numbered(number as u64) });
        let pool = database.pool.clone();
        submits.push(tokio::spawn(async move { insert_with(&pool, &order, InsertOpts::default()).await }));
    }
    for submit in submits {
        submit.await??;
    }
    Ok(())
}
