//! Submits alone: many in one call, and each in a call of its own.

use anyhow::Result;
use bench_protocol::{Ends, Measurement, Numbers, Order, Request, Row, now};
use onward::StoreReads;
use onward::{Engine, NewTask};

use crate::open::{engine, open_store};
use crate::round_trips::{KIND, PlaceOrder};

/// Measures submits in calls of `batch`, from as many submitters as the row has, while no worker
/// runs.
pub(crate) async fn submits(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row.slots).await?;
    let started = now();
    in_batches(&engine, row).await?;
    let elapsed = started.elapsed();
    let inserted = opened.store.queues().await?.iter().map(|queue| queue.waiting).sum();
    Ok(Measurement::of(row.count as f64 / elapsed.as_secs_f64()).observed("inserted", inserted))
}

/// Measures single submits. Every submitter awaits each submit before its next.
pub(crate) async fn each_submit(request: &Request) -> Result<Measurement> {
    let (row, numbers) = (&request.row, Numbers::new(request.row.count));
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row.slots).await?;
    let template = Order::new(0, 0, row.payload_bytes)?;
    let started = now();
    let submitters: Vec<_> = (0..row.submitters)
        .map(|_| {
            let (engine, template) = (engine.clone(), template.clone());
            let one = move |number: usize| {
                let submit = engine.submit(PlaceOrder(template.numbered(number as u64)));
                async move { submit.await.is_ok() }
            };
            tokio::spawn(Ends::of_starter(numbers.clone(), one))
        })
        .collect();
    let mut all = Ends::default();
    for submitter in submitters {
        all.merge(submitter.await?);
    }
    let measurement = all.measurement(row, started.elapsed())?;
    let inserted = opened.store.queues().await?.iter().map(|queue| queue.waiting).sum();
    Ok(measurement.observed("inserted", inserted))
}

/// Submits all tasks of a row in calls of `batch`, from as many submitters as the row has.
pub(super) async fn in_batches(engine: &Engine, row: &Row) -> Result<()> {
    let batches = Numbers::new(row.count.div_ceil(row.batch));
    let submitters: Vec<_> = (0..row.submitters.max(1))
        .map(|_| tokio::spawn(submitter(engine.clone(), batches.clone(), row.clone())))
        .collect();
    for submitter in submitters {
        submitter.await??;
    }
    Ok(())
}

async fn submitter(engine: Engine, batches: Numbers, row: Row) -> Result<()> {
    let template = Order::new(0, 0, row.payload_bytes)?;
    while let Some(batch) = batches.take() {
        let numbers = batch * row.batch..((batch + 1) * row.batch).min(row.count);
        let task = |number| {
            let payload = template.numbered(number as u64).to_json()?.into();
            Ok(NewTask { payload, ..NewTask::new(KIND)? })
        };
        engine.submit_all(numbers.map(task).collect::<Result<_>>()?).await?;
    }
    Ok(())
}
