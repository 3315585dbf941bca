//! One orchestration of very many steps: whether the last cost what the first did.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bench_protocol::{Measurement, Request, now};
use onward::orchestration::OrchestrationContext;
use onward::{Failure, Task};
use serde::{Deserialize, Serialize};

use crate::open::open_store;
use crate::orchestrations::engine;
use crate::running;

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Long {
    steps: usize,
    /// Whether its steps are activities.
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

/// When each tenth of the steps had ended.
type Marks = Arc<Mutex<Vec<Instant>>>;

async fn long(long: Long, context: OrchestrationContext, marks: Marks) -> Result<usize, Failure> {
    let tenth = long.steps.div_ceil(10).max(1);
    for step in 0..long.steps {
        if step % tenth == 0 {
            marks.lock().unwrap_or_else(PoisonError::into_inner).push(now());
        }
        if long.queued {
            context.activity(Part(step)).await?;
        } else {
            context.step("step", move || async move { Ok(step) }).await?;
        }
    }
    marks.lock().unwrap_or_else(PoisonError::into_inner).push(now());
    Ok(long.steps)
}

/// The time of the last tenth of the steps over that of the first.
pub(crate) async fn last_over_first(request: &Request) -> Result<Measurement> {
    let row = &request.row;
    let opened = open_store(request).await?;
    let engine = engine(&opened.store, row).await?;
    let marks = Marks::default();
    engine.register(|Part(part): Part, _context| async move { Ok(part) });
    engine.orchestrate({
        let marks = marks.clone();
        move |it: Long, context| long(it, context, marks.clone())
    });
    let running = running::start(&engine);
    let queued = request.settings == "queued activities";
    let steps = engine.submit(Long { steps: row.count, queued }).await?.wait().await?;
    running::finish(&engine, running).await?;

    let marks = std::mem::take(&mut *marks.lock().unwrap_or_else(PoisonError::into_inner));
    ensure!(marks.len() == 11, "the code was run more than once: {} marks", marks.len());
    let tenths: Vec<Duration> = marks.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (first, last) = (tenths.first().context("no first")?, tenths.last().context("no last")?);
    let per_step = |tenth: &Duration| tenth.as_secs_f64() * 1e6 / (row.count as f64 / 10.0);
    Ok(Measurement::of(last.as_secs_f64() / first.as_secs_f64())
        .with("first_us", per_step(first))
        .with("last_us", per_step(last))
        .observed("steps", steps as u64))
}
