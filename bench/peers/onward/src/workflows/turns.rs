//! Measures the decision of turns without a store, and the reading of templates.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use bench_protocol::{Measurement, Request, microseconds_per, now};
use onward::workflow::TurnsAlone;

use super::graphs::read;

/// The shortest time that is measured: a short chain is played many times.
const MEASURED: Duration = Duration::from_millis(20);

/// Returns a template of steps in a row, each with the result of the one before.
fn chain(steps: usize) -> String {
    let later = (1..steps).map(|step| format!("- {{task: t, with: '${{{{ steps.step_{step}.result }}}}'}}\n"));
    std::iter::once("- {task: t, with: '${{ input }}'}\n".to_owned()).chain(later).collect()
}

/// Measures the decision and the fold of a turn that ends a step and submits the next one.
pub(crate) fn turns(request: &Request) -> Result<Measurement> {
    let steps = request.row.count;
    let alone = TurnsAlone::of(&read("chain.yaml", &chain(steps))?).map_err(|error| anyhow::anyhow!(error))?;
    let (started, mut played) = (now(), 0);
    while started.elapsed() < MEASURED {
        let turns = alone.play().map_err(|error| anyhow::anyhow!(error))?;
        ensure!(turns == steps + 1, "a chain of {steps} steps has {turns} turns");
        played += steps;
    }
    let each = microseconds_per(started.elapsed(), played);
    Ok(Measurement::of(each).observed("turns", steps as u64))
}

/// Measures the reading and checking of a template.
pub(crate) fn check(request: &Request) -> Result<Measurement> {
    let text = chain(request.row.count);
    let started = now();
    let file = black_box(read("chain.yaml", black_box(&text))?);
    let milliseconds = started.elapsed().as_secs_f64() * 1e3;
    Ok(Measurement::of(milliseconds).observed("steps", file.template().steps.len() as u64))
}
