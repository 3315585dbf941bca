//! Measures runs that are started and awaited, with a number of them in flight.

use std::sync::Arc;

use anyhow::Result;
use bench_protocol::{Ends, Measurement, Numbers, Request, now};
use onward::{Engine, TaskState};
use serde_json::Value;

use super::graphs::{Graph, graph};
use super::handlers;
use super::writing_calls::WritingCalls;
use crate::open::open_store;
use crate::orchestrations::engine;
use crate::running;

/// Starts runs and awaits each, with one in flight for each submitter.
pub(crate) async fn in_flight(request: &Request) -> Result<Measurement> {
    let (row, graph) = (&request.row, Arc::new(graph(&request.row.workload)?));
    let opened = open_store(request).await?;
    let counted = WritingCalls::of(opened.store.clone());
    let engine = engine(&(counted.clone() as Arc<dyn onward::Store>), row).await?;
    engine.add_workflow(graph.file.clone());
    handlers::register(&engine);
    let running = running::start(&engine);
    // The first run stores the template and opens the session.
    anyhow::ensure!(one(engine.clone(), graph.clone()).await, "the first run did not end as it should");

    let (before, calls) = (opened.commits(), counted.count());
    let started = now();
    let ends = start_all(request, &engine, &graph).await?;
    let elapsed = started.elapsed();
    let steps = row.count * row.steps;
    let commits = opened.commit_sizes(&before, steps);
    let calls = (counted.count() - calls) as f64 / steps as f64;

    running::finish(&engine, running).await?;
    Ok(Measurement { commits, ..ends.measurement(row, elapsed)?.with("calls_per_step", calls) })
}

async fn start_all(request: &Request, engine: &Engine, graph: &Arc<Graph>) -> Result<Ends> {
    let numbers = Numbers::new(request.row.count);
    let starters: Vec<_> = (0..request.row.submitters.max(1))
        .map(|_| {
            let (engine, graph) = (engine.clone(), graph.clone());
            tokio::spawn(Ends::of_starter(numbers.clone(), move |_| one(engine.clone(), graph.clone())))
        })
        .collect();
    let mut all = Ends::default();
    for starter in starters {
        all.merge(starter.await?);
    }
    Ok(all)
}

/// Returns whether a run completed with the expected result.
async fn one(engine: Engine, graph: Arc<Graph>) -> bool {
    let Ok(run) = engine.start_run(&graph.file.template().name).input(&graph.input).await else { return false };
    let Ok(record) = engine.wait(run.id).await else { return false };
    let result = record.result.bytes().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    record.state == TaskState::Completed && result.as_ref() == Some(&graph.result)
}
