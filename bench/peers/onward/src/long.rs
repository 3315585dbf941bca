//! Measures one orchestration of very many steps: whether the last steps cost as much as the first.

use anyhow::Result;
use bench_protocol::{Measurement, Request, StepTimes};
use onward::orchestration::OrchestrationContext;
use onward::{Failure, Task};
use serde::{Deserialize, Serialize};

use crate::open::open_store;
use crate::orchestrations::engine;
use crate::running;

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Long {
    steps: usize,
    /// True if its steps are activities.
    queued: bool,
}

impl Task for Long {
    const KIND: &'static str = "long";
    const ORCHESTRATION: bool = true;
    type Output = usize;
}

#[derive(Debug, Serialize, Deserialize)]
struct Part(usize);

impl Task for Part {
    const KIND: &'static str = "part";
    type Output = usize;
}

async fn long(long: Long, context: OrchestrationContext, times: StepTimes) -> Result<usize, Failure> {
    for step in 0..long.steps {
        times.step(step, long.steps);
        if long.queued {
            context.activity(Part(step)).await?;
        } else {
            context.step("step", move || async move { Ok(step) }).await?;
        }
    }
    times.step(long.steps, long.steps);
    Ok(long.steps)
}

/// Returns the time of the last tenth of the steps divided by that of the first.
pub(crate) async fn last_over_first(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row).await?;
    let times = StepTimes::default();
    engine.register(|Part(part): Part, _context| async move { Ok(part) });
    engine.orchestrate({
        let times = times.clone();
        move |it: Long, context| long(it, context, times.clone())
    });
    let running = running::start(&engine);
    let queued = request.settings == "queued activities";
    let steps = engine.submit(Long { steps: row.count, queued }).await?.wait().await?;
    running::finish(&engine, running).await?;

    Ok(times.last_over_first(row.count)?.observed("steps", steps as u64))
}
