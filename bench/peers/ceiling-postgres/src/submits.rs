//! Submits without claims.

use std::sync::Arc;

use anyhow::Result;
use bench_protocol::{Ends, Measurement, Numbers, Request, Row, now};

use crate::database::{Database, make, payload};

/// Measures submits in batches of the row's size, from as many connections as the row has
/// submitters.
pub(crate) async fn in_batches(request: &Request) -> Result<Measurement> {
    let (url, row) = (request.server()?, &request.row);
    make(url, row).await?;
    let started = now();
    all(url, row).await?;
    let elapsed = started.elapsed();
    let inserted = Database::open(url).await?.count("task").await?;
    Ok(Measurement::of(row.count as f64 / elapsed.as_secs_f64()).observed("inserted", inserted))
}

/// Submits all tasks of a row.
pub(crate) async fn all(url: &str, row: &Row) -> Result<()> {
    let batches = Numbers::new(row.count.div_ceil(row.batch));
    let submitters: Vec<_> = (0..row.submitters.max(1))
        .map(|_| tokio::spawn(submitter(url.to_owned(), row.clone(), batches.clone())))
        .collect();
    for submitter in submitters {
        submitter.await??;
    }
    Ok(())
}

async fn submitter(url: String, row: Row, batches: Numbers) -> Result<()> {
    let (database, payload) = (Database::open(&url).await?, payload(&row)?);
    while let Some(batch) = batches.take() {
        let size = row.batch.min(row.count - batch * row.batch);
        database.submit(&vec![payload.as_slice(); size]).await?;
    }
    Ok(())
}

/// Measures submits in a commit each, with a connection for each submitter.
pub(crate) async fn one_by_one(request: &Request) -> Result<Measurement> {
    let (url, row, numbers) = (request.server()?, &request.row, Numbers::new(request.row.count));
    make(url, row).await?;
    let payload: Arc<[u8]> = payload(row)?.into();
    let mut databases = Vec::new();
    for _ in 0..row.submitters {
        databases.push(Arc::new(Database::open(url).await?));
    }
    let started = now();
    let submitters: Vec<_> = databases
        .iter()
        .map(|database| {
            let (database, payload) = (database.clone(), payload.clone());
            let one = move |_| {
                let (database, payload) = (database.clone(), payload.clone());
                async move { database.submit(&[&*payload]).await.is_ok() }
            };
            tokio::spawn(Ends::of_starter(numbers.clone(), one))
        })
        .collect();
    let mut all = Ends::default();
    for submitter in submitters {
        all.merge(submitter.await?);
    }
    let elapsed = started.elapsed();
    let inserted = Database::open(url).await?.count("task").await?;
    Ok(all.measurement(row, elapsed)?.observed("inserted", inserted))
}
